"""The state machine of a group: takes an event and a time, returns effects in order.

Pure: no clock, no random numbers, no waiting. Only `step` changes a group. The caller performs
every effect before the next event, passes `Stored` or `StoreFailed` for each `Persist`, and
`TimerFired` for each deadline that expires.
"""

from collections.abc import Callable
from typing import Any

from ottla.base.errors import ErrorCode
from ottla.coordinators.classic.events import (
    Converted,
    Effect,
    Event,
    Heartbeat,
    Join,
    Leave,
    Loaded,
    Stored,
    StoreFailed,
    Sync,
    TimerFired,
    TimerKind,
    Touch,
    Unloaded,
)
from ottla.coordinators.classic.join import join
from ottla.coordinators.classic.leave import leave, left_failed, left_stored
from ottla.coordinators.classic.rebalance import (
    join_timer_fired,
    prepare,
    session_timer_fired,
    sync_timer_fired,
)
from ottla.coordinators.classic.settings import MachineSettings
from ottla.coordinators.classic.state import Group, GroupState
from ottla.coordinators.classic.static import replacement_failed, replacement_stored
from ottla.coordinators.classic.sync import (
    assignments_failed,
    assignments_stored,
    heartbeat,
    sync,
    touch,
)
from ottla.coordinators.classic.transition import (
    AfterEmpty,
    AfterReplacement,
    AfterSync,
    Stores,
    Transition,
)
from ottla.wire.messages.leave_group import LeaveGroupResponse


class GroupMachine:
    """One group and its transitions, created for a new group or from a stored one."""

    def __init__(self, group: Group) -> None:
        self.group = group
        self._stores = Stores()

    @property
    def is_storing(self) -> bool:
        """True if the result of a `Persist` is pending."""
        return bool(self._stores.waiting)

    def step(self, event: Event, now_ms: int, settings: MachineSettings) -> list[Effect]:
        """Process `event` at `now_ms` (wall clock, kept with the group's state)."""
        transition = Transition(self.group, now_ms, settings, self._stores)
        _STEPS[type(event)](transition, event)
        return transition.effects


def _timer_fired(transition: Transition, event: TimerFired) -> None:
    if event.timer.kind is TimerKind.JOIN:
        join_timer_fired(transition)
    elif event.timer.kind is TimerKind.SYNC:
        sync_timer_fired(transition)
    else:
        session_timer_fired(transition, event.timer.member_id)


def _stored(transition: Transition, event: Stored) -> None:
    match transition.stores.waiting.pop(event.token):
        case AfterSync() as then:
            assignments_stored(transition, then)
        case AfterReplacement() as then:
            replacement_stored(transition, then)
        case AfterEmpty() as then:
            left_stored(transition, then)


def _store_failed(transition: Transition, event: StoreFailed) -> None:
    transition.note(f"could not be stored: {event.code.name}")
    match transition.stores.waiting.pop(event.token):
        case AfterSync() as then:
            assignments_failed(transition, then, event.code)
        case AfterReplacement() as then:
            replacement_failed(transition, then, event)
        case AfterEmpty() as then:
            left_failed(transition, then, event.code)


def _loaded(transition: Transition, _: Loaded) -> None:
    group = transition.group
    for member in group.members.values():
        transition.restart_session(member)
    if len(group.members) > transition.settings.max_size:
        prepare(transition, f"{len(group.members)} members are more than group.max.size")
    elif group.members and group.leader is None:
        prepare(transition, "its members used the consumer protocol")


def _unloaded(transition: Transition, _: Unloaded) -> None:
    _answer_all(transition, ErrorCode.NOT_COORDINATOR)
    for continuation in transition.stores.waiting.values():
        if isinstance(continuation, AfterEmpty):
            for respond in continuation.responses:
                response = LeaveGroupResponse(error_code=ErrorCode.NOT_COORDINATOR)
                transition.answer(respond.ticket, response)
    transition.stores.waiting.clear()
    transition.group.transition(GroupState.DEAD, transition.now_ms)


def _answer_all(transition: Transition, code: ErrorCode) -> None:
    for member_id in list(transition.group.awaiting_join):
        transition.answer_join_error(member_id, code)
    for member_id in list(transition.group.awaiting_sync):
        transition.answer_sync_error(member_id, code)


def _converted(transition: Transition, _: Converted) -> None:
    _answer_all(transition, ErrorCode.REBALANCE_IN_PROGRESS)
    for then in transition.stores.waiting.values():
        if isinstance(then, AfterEmpty):
            left_stored(transition, then)
    transition.stores.waiting.clear()
    transition.group.transition(GroupState.DEAD, transition.now_ms)


_STEPS: dict[type, Callable[[Transition, Any], None]] = {
    Join: join,
    Sync: sync,
    Heartbeat: heartbeat,
    Leave: leave,
    Touch: touch,
    TimerFired: _timer_fired,
    Stored: _stored,
    StoreFailed: _store_failed,
    Loaded: _loaded,
    Unloaded: _unloaded,
    Converted: _converted,
}
