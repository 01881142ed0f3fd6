"""The groups of one partition of __consumer_offsets, and the shell around their machines.

What a shard keeps is `metadata` and `offsets`; only `replay` changes them. The machines hold what the
members know anyway, and start again from the metadata after a load: those with members soon, a slice
of time after the other, the rest when somebody asks for them.
"""

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Any

from ottla.base.clock import Clock
from ottla.base.errors import ApiError, ErrorCode
from ottla.coordinators.group import records
from ottla.coordinators.group.events import (
    Answer,
    CancelTimer,
    Effect,
    Event,
    Loaded,
    Note,
    Persist,
    SetTimer,
    Stored,
    StoreFailed,
    Timer,
    TimerFired,
    Unloaded,
)
from ottla.coordinators.group.expiry import expired
from ottla.coordinators.group.machine import GroupMachine
from ottla.coordinators.group.offsets import OffsetStore
from ottla.coordinators.group.records import Change, GroupMetadata, OffsetCommit
from ottla.coordinators.group.refusals import group_error
from ottla.coordinators.group.settings import GroupSettings
from ottla.coordinators.group.state import Group, GroupState
from ottla.coordinators.group.stored import group_from
from ottla.coordinators.hosted import HostedPartition, Status
from ottla.coordinators.replies import Waiter
from ottla.wire.group_records import GroupMetadataValue
from ottla.wire.records import batch
from ottla.wire.records.records import Record

_log = logging.getLogger(__name__)

# Keeps a batch of tombstones far below any max.message.bytes.
TOMBSTONES_MAX = 500
_SLICE_SECONDS = 0.005
_EXPIRY = "expiry"
_WAKING = "waking"


class GroupShard:
    """One partition's groups. Lives as long as this leadership of the partition."""

    def __init__(
        self, host: HostedPartition, clock: Clock, settings: Callable[[], GroupSettings]
    ) -> None:
        self.metadata: dict[str, GroupMetadataValue] = {}
        self.offsets = OffsetStore()
        self._machines: dict[str, GroupMachine] = {}
        self._gone_topics: frozenset[str] = frozenset()
        self._host = host
        self._clock = clock
        self._settings = settings
        # Events that performing an effect brought about; they wait until it is performed.
        self._inbox: deque[tuple[GroupMachine, Event]] = deque()
        self._is_draining = False

    # -- replay: the only way in which what the shard keeps changes

    def replay(self, record: Record, producer_id: int = batch.NO_PRODUCER_ID) -> None:
        """Apply one record, just appended or read from the log."""
        change = records.decode(record)
        if isinstance(change, GroupMetadata):
            self._replay_metadata(change)
        elif isinstance(change, OffsetCommit):
            self._replay_offset(change, producer_id)

    def _replay_metadata(self, change: GroupMetadata) -> None:
        if change.value is not None:
            self.metadata[change.group_id] = change.value
            return
        self.metadata.pop(change.group_id, None)
        machine = self._machines.pop(change.group_id, None)
        assert machine is None or not machine.group.members, "a group with members was deleted"

    def _replay_offset(self, change: OffsetCommit, producer_id: int) -> None:
        if change.offset is None:
            self.offsets.remove(change.group_id, change.place)
        elif producer_id == batch.NO_PRODUCER_ID:
            self.offsets.apply(change.group_id, change.place, change.offset)
        else:
            self.offsets.apply_open(producer_id, change.group_id, change.place, change.offset)

    def end_transaction(self, producer_id: int, *, is_committed: bool) -> None:
        """Apply the end of a transaction that committed offsets."""
        self.offsets.end_transaction(producer_id, is_committed=is_committed)

    # -- life

    def on_loaded(self) -> None:
        """Set the groups going whose members have sessions."""
        self._wake_some([name for name, value in self.metadata.items() if value.members])
        self._schedule_expiry()
        if self._gone_topics:
            self.forget_topics(self._gone_topics)

    def _wake_some(self, left: list[str]) -> None:
        ends = self._clock.monotonic() + _SLICE_SECONDS
        while left and self._clock.monotonic() < ends:
            self._machine(left.pop())
        if left:
            self._host.timers.set(_WAKING, 0, partial(self._wake_some, left))

    def _machine(self, group_id: str) -> GroupMachine | None:
        """Return a group's machine, made from what is stored if need be; None if there is none."""
        found = self._machines.get(group_id)
        if found is None and group_id in self.metadata:
            found = GroupMachine(group_from(group_id, self.metadata[group_id]))
            self._machines[group_id] = found
            self._feed(found, Loaded())
        return found

    def on_unloaded(self) -> None:
        """Tell everyone who waits to look for the new coordinator."""
        machines, self._machines = list(self._machines.values()), {}
        self._inbox.clear()
        for machine in machines:
            effects = machine.step(Unloaded(), self._clock.time_ms(), self._settings().machine)
            for effect in effects:
                if isinstance(effect, Answer):
                    _answer(effect)

    # -- what others ask

    @property
    def settings(self) -> GroupSettings:
        """The options in force."""
        return self._settings()

    def now_ms(self) -> int:
        """Return the wall-clock time."""
        return self._clock.time_ms()

    def group(self, group_id: str) -> Group | None:
        """Return a group; one that only stores offsets is an empty one. None if there is none."""
        machine = self._machine(group_id)
        if machine is not None:
            return machine.group
        return Group(group_id) if self.offsets.has_group(group_id) else None

    def groups(self) -> Iterator[Group]:
        """Go over all groups."""
        names = [*self.metadata, *self._machines, *self.offsets.groups()]
        for group_id in dict.fromkeys(names):
            group = self.group(group_id)
            if group is not None:
                yield group

    def encode(self, changes: Iterable[Change]) -> list[Record]:
        """Return the records of changes."""
        now_ms = self.now_ms()
        return [records.encode(change, now_ms) for change in changes]

    # -- events

    def feed(self, group_id: str, event: Event, *, may_create: bool = False) -> bool:
        """Let something happen to a group; False where it does not exist and may not be made."""
        machine = self._machine(group_id)
        if machine is None:
            if not may_create:
                return False
            machine = self._machines[group_id] = GroupMachine(Group(group_id))
        self._feed(machine, event)
        return True

    def _feed(self, machine: GroupMachine, event: Event) -> None:
        self._inbox.append((machine, event))
        if self._is_draining:
            return
        self._is_draining = True
        try:
            while self._inbox:
                self._step(*self._inbox.popleft())
        finally:
            self._is_draining = False

    def _step(self, machine: GroupMachine, event: Event) -> None:
        group = machine.group
        if self._machines.get(group.group_id) is not machine:
            return
        for effect in machine.step(event, self._clock.time_ms(), self._settings().machine):
            self._perform(machine, effect)
        if self._is_blank(machine):
            del self._machines[group.group_id]

    def _is_blank(self, machine: GroupMachine) -> bool:
        """Tell whether nothing has come of a group, for example because its join was refused."""
        group = machine.group
        return (
            group.state is GroupState.EMPTY
            and not group.pending_members
            and group.group_id not in self.metadata
            and not machine.is_storing
        )

    def _perform(self, machine: GroupMachine, effect: Effect) -> None:
        match effect:
            case Answer():
                _answer(effect)
            case SetTimer():
                self._set_timer(machine, effect)
            case CancelTimer():
                self._host.timers.cancel((machine.group.group_id, effect.timer))
            case Persist():
                self._persist(machine, effect)
            case Note():
                # Clients choose the names in it: a line must stay one line.
                said = f"group={machine.group.group_id} {effect.text}"
                _log.info("%s", said.replace("\n", "\\n").replace("\r", "\\r"))

    def _set_timer(self, machine: GroupMachine, effect: SetTimer) -> None:
        if self._host.status is Status.ACTIVE:
            action = partial(self._timer_fired, machine, effect.timer)
            key = (machine.group.group_id, effect.timer)
            self._host.timers.set(key, effect.delay_ms, action)

    def _timer_fired(self, machine: GroupMachine, timer: Timer) -> None:
        self._feed(machine, TimerFired(timer))

    def _persist(self, machine: GroupMachine, effect: Persist) -> None:
        change = GroupMetadata(machine.group.group_id, effect.value)
        try:
            committed = self._host.append(self.encode([change]))
        except ApiError as error:
            self._feed(machine, StoreFailed(effect.token, group_error(error.code)))
            return
        if committed.done():
            self._stored(machine, effect.token, committed)
        else:
            committed.add_done_callback(partial(self._stored, machine, effect.token))

    def _stored(self, machine: GroupMachine, token: int, committed: asyncio.Future[None]) -> None:
        error = committed.exception()
        if error is None:
            self._feed(machine, Stored(token))
            return
        code = error.code if isinstance(error, ApiError) else ErrorCode.UNKNOWN_SERVER_ERROR
        self._feed(machine, StoreFailed(token, group_error(code), is_written=True))

    # -- housekeeping

    def forget_topics(self, topics: frozenset[str]) -> None:
        """Remove the offsets of topics that were deleted, after the load if it still goes on."""
        if self._host.status is Status.LOADING:
            self._gone_topics |= topics
            return
        found = self.offsets.places_of_topics(topics)
        self._append_tombstones([OffsetCommit(group_id, place, None) for group_id, place in found])

    def _schedule_expiry(self) -> None:
        delay_ms = self._settings().retention_check_interval_ms
        self._host.timers.set(_EXPIRY, delay_ms, self.expire)

    def expire(self) -> None:
        """Remove offsets that have expired, and empty groups without any, a slice at a time."""
        self._expire_some(list(dict.fromkeys([*self.metadata, *self.offsets.groups()])))

    def _expire_some(self, left: list[str]) -> None:
        ends = self._clock.monotonic() + _SLICE_SECONDS
        changes: list[Change] = []
        while left and self._clock.monotonic() < ends and len(changes) < TOMBSTONES_MAX:
            changes.extend(self._expired(left.pop()))
        is_written = self._append_tombstones(changes)
        if left and is_written:
            self._host.timers.set(_EXPIRY, 0, partial(self._expire_some, left))
        else:
            self._schedule_expiry()

    def _expired(self, group_id: str) -> Iterator[Change]:
        group = self.group(group_id)
        if group is None:
            return
        offsets = self.offsets.of_group(group_id)
        found = [
            place
            for place in expired(
                group,
                offsets,
                now_ms=self.now_ms(),
                retention_ms=self._settings().offsets_retention_ms,
            )
            if not self.offsets.is_unstable(group_id, place)
        ]
        if found:
            _log.info("group=%s offsets expired count=%d", group_id, len(found))
        for place in found:
            yield OffsetCommit(group_id, place, None)
        is_bare = len(found) == len(offsets) and not self.offsets.has_open(group_id)
        is_empty = group.state is GroupState.EMPTY and not group.pending_members
        if is_bare and is_empty and group_id in self.metadata:
            _log.info("group=%s deleted: empty and without offsets", group_id)
            yield GroupMetadata(group_id, None)

    def _append_tombstones(self, changes: list[Change]) -> bool:
        """Append in pieces; False where that failed, which the next round makes good."""
        for start in range(0, len(changes), TOMBSTONES_MAX):
            try:
                self._host.append(self.encode(changes[start : start + TOMBSTONES_MAX]))
            except ApiError as error:
                _log.warning("tombstones not written partition=%d error=%s",
                             self._host.partition, error)  # fmt: skip
                return False
        return True


def _answer(effect: Answer) -> None:
    ticket: Any = effect.ticket
    assert isinstance(ticket, Waiter)
    ticket.answer(effect.response)
