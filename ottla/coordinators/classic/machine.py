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
    Rebalance,
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
    MachineSettings,
    Stores,
    Turn,
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
        turn = Turn(self.group, now_ms, settings, self._stores)
        _STEPS[type(event)](turn, event)
        return turn.effects


def _timer_fired(turn: Turn, event: TimerFired) -> None:
    if event.timer.kind is TimerKind.JOIN:
        join_timer_fired(turn)
    elif event.timer.kind is TimerKind.SYNC:
        sync_timer_fired(turn)
    else:
        session_timer_fired(turn, event.timer.member_id)


def _stored(turn: Turn, event: Stored) -> None:
    match turn.stores.waiting.pop(event.token):
        case AfterSync() as then:
            assignments_stored(turn, then)
        case AfterReplacement() as then:
            replacement_stored(turn, then)
        case AfterEmpty() as then:
            left_stored(turn, then)


def _store_failed(turn: Turn, event: StoreFailed) -> None:
    turn.note(f"could not be stored: {event.code.name}")
    match turn.stores.waiting.pop(event.token):
        case AfterSync() as then:
            assignments_failed(turn, then, event.code)
        case AfterReplacement() as then:
            replacement_failed(turn, then, event)
        case AfterEmpty() as then:
            left_failed(turn, then, event.code)


def _loaded(turn: Turn, _: Loaded) -> None:
    group = turn.group
    for member in group.members.values():
        turn.restart_session(member)
    if len(group.members) > turn.settings.max_size:
        prepare(turn, f"{len(group.members)} members are more than group.max.size")


def _unloaded(turn: Turn, _: Unloaded) -> None:
    _answer_all(turn, ErrorCode.NOT_COORDINATOR)
    for then in turn.stores.waiting.values():
        if isinstance(then, AfterEmpty):
            for answer in then.answers:
                gone = LeaveGroupResponse(error_code=ErrorCode.NOT_COORDINATOR)
                turn.answer(answer.ticket, gone)
    turn.stores.waiting.clear()
    turn.group.transition(GroupState.DEAD, turn.now_ms)


def _answer_all(turn: Turn, code: ErrorCode) -> None:
    for member_id in list(turn.group.awaiting_join):
        turn.answer_join_error(member_id, code)
    for member_id in list(turn.group.awaiting_sync):
        turn.answer_sync_error(member_id, code)


def _converted(turn: Turn, _: Converted) -> None:
    _answer_all(turn, ErrorCode.REBALANCE_IN_PROGRESS)
    for then in turn.stores.waiting.values():
        if isinstance(then, AfterEmpty):
            left_stored(turn, then)
    turn.stores.waiting.clear()
    turn.group.transition(GroupState.DEAD, turn.now_ms)


def _rebalance(turn: Turn, event: Rebalance) -> None:
    if turn.group.members and turn.group.can_rebalance:
        prepare(turn, event.reason)


_STEPS: dict[type, Callable[[Turn, Any], None]] = {
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
    Rebalance: _rebalance,
}
