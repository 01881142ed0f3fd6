"""The groups of one partition of __consumer_offsets, and the shell around their state machines.

The stored state of a shard is `metadata` and `offsets`; only `replay` changes them. The state
machines contain nothing that the members do not know, so they are created again from the metadata
after a load. The machines of groups with members are created soon, in slices of time; the others on
their first request.
"""

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import Any, TypeAlias

from ottla.base.ageing import AgeingClock
from ottla.base.clock import Clock
from ottla.base.errors import ApiError, ErrorCode
from ottla.cluster.image import ClusterImage
from ottla.coordinators.classic.events import (
    CancelTimer,
    Converted,
    Effect,
    Event,
    Loaded,
    Note,
    Persist,
    Respond,
    SetTimer,
    Stored,
    StoreFailed,
    Timer,
    TimerFired,
    Unloaded,
)
from ottla.coordinators.classic.machine import GroupMachine
from ottla.coordinators.classic.state import Group, GroupState
from ottla.coordinators.classic.stored import group_from
from ottla.coordinators.consumer import changes
from ottla.coordinators.consumer.groups import Background, ConsumerGroups, at_once
from ottla.coordinators.consumer.settings import ConsumerSettings
from ottla.coordinators.consumer.state import ConsumerGroup
from ottla.coordinators.consumer.state import Member as ConsumerMember
from ottla.coordinators.consumer.transition import Transition as ConsumerTransition
from ottla.coordinators.groups import migration, records
from ottla.coordinators.groups.expiry import expired, expired_in_consumer_group
from ottla.coordinators.groups.offsets import OffsetStore
from ottla.coordinators.groups.records import Change, GroupMetadata, OffsetCommit
from ottla.coordinators.groups.settings import GroupSettings
from ottla.coordinators.hosted import HostedPartition, Status
from ottla.coordinators.refusals import group_error
from ottla.coordinators.replies import Waiter
from ottla.wire.group_records import GroupMetadataValue
from ottla.wire.records import batch
from ottla.wire.records.records import Record

_log = logging.getLogger(__name__)

AnyChange: TypeAlias = Change | changes.Change

# Keeps a batch of tombstones far below any max.message.bytes.
TOMBSTONES_MAX = 500
_SLICE_SECONDS = 0.005
_EXPIRY = "expiry"
_WAKING = "waking"
_BECOMING = "becoming classic"


class GroupShard:
    """The groups of one partition, while this broker leads the partition."""

    def __init__(
        self,
        host: HostedPartition,
        clock: Clock,
        settings: Callable[[], GroupSettings],
        *,
        image: Callable[[], ClusterImage] = ClusterImage,
        settings_of: Callable[[str], ConsumerSettings] = lambda _: ConsumerSettings(),
        background: Background = at_once,
    ) -> None:
        self.metadata: dict[str, GroupMetadataValue] = {}
        self.offsets = OffsetStore()
        self.consumers = ConsumerGroups(
            host,
            clock,
            settings=settings_of,
            image=image,
            downgrade=self._downgrade,
            background=background,
        )
        self._machines: dict[str, GroupMachine] = {}
        self._gone_topics: frozenset[str] = frozenset()
        self.host = host
        self._clock = clock
        self._ageing = AgeingClock(clock.time_ms(), clock.monotonic())
        self._settings = settings
        self._image = image
        # Events that performing an effect brought about; they wait until it is performed.
        self._inbox: deque[tuple[GroupMachine, Event]] = deque()
        self._is_draining = False

    # -- replay: the only way in which what the shard keeps changes

    def replay(self, record: Record, producer_id: int = batch.NO_PRODUCER_ID) -> None:
        """Apply one record, either just appended or read from the log."""
        change = records.decode(record)
        if isinstance(change, GroupMetadata):
            self._replay_metadata(change)
        elif isinstance(change, OffsetCommit):
            self._replay_offset(change, producer_id)
        else:
            of_consumers = changes.decode(record)
            if of_consumers is not None:
                self.consumers.replay(of_consumers)
                if isinstance(of_consumers, changes.GroupChange) and of_consumers.value is None:
                    self.offsets.end_group(of_consumers.group_id)

    def _replay_metadata(self, change: GroupMetadata) -> None:
        if change.value is not None:
            self.metadata[change.group_id] = change.value
            return
        self.metadata.pop(change.group_id, None)
        self.offsets.end_group(change.group_id)
        machine = self._machines.pop(change.group_id, None)
        if machine is not None:
            self._answer_waiting(machine, Converted())

    def _replay_offset(self, change: OffsetCommit, producer_id: int) -> None:
        if change.offset is None:
            self.offsets.remove(change.group_id, change.topic_partition)
        elif producer_id == batch.NO_PRODUCER_ID:
            self.offsets.apply(change.group_id, change.topic_partition, change.offset)
        else:
            self.offsets.apply_open(
                producer_id, change.group_id, change.topic_partition, change.offset
            )

    def end_transaction(self, producer_id: int, *, is_committed: bool) -> None:
        """Apply the end of a transaction that committed offsets."""
        self.offsets.end_transaction(producer_id, is_committed=is_committed)

    # -- life

    def on_loaded(self) -> None:
        """Start the groups whose members have sessions."""
        self._wake_some([name for name, value in self.metadata.items() if value.members])
        self.consumers.on_loaded()
        self._schedule_expiry()
        if self._gone_topics:
            self.forget_topics(self._gone_topics)

    def _wake_some(self, group_ids: list[str]) -> None:
        ends = self._clock.monotonic() + _SLICE_SECONDS
        while group_ids and self._clock.monotonic() < ends:
            self._machine(group_ids.pop())
        if group_ids:
            self.host.timers.set(_WAKING, 0, partial(self._wake_some, group_ids))

    def _machine(self, group_id: str) -> GroupMachine | None:
        """Return a group's state machine, created from the stored state if necessary; None without
        a group.
        """
        machine = self._machines.get(group_id)
        if machine is None and group_id in self.metadata:
            machine = GroupMachine(group_from(group_id, self.metadata[group_id]))
            self._machines[group_id] = machine
            self._feed(machine, Loaded())
        return machine

    def on_unloaded(self) -> None:
        """Respond to all waiting requests, whose clients then look up the new coordinator."""
        machines, self._machines = list(self._machines.values()), {}
        self._inbox.clear()
        for machine in machines:
            self._answer_waiting(machine, Unloaded())

    def _answer_waiting(self, machine: GroupMachine, event: Converted | Unloaded) -> None:
        """Respond to the requests that wait in a state machine that is no longer used."""
        for effect in machine.step(event, self._clock.time_ms(), self._settings().machine):
            if isinstance(effect, Respond):
                _answer(effect)

    # -- what others ask

    @property
    def settings(self) -> GroupSettings:
        """The current options."""
        return self._settings()

    @property
    def image(self) -> ClusterImage:
        """The current cluster image."""
        return self._image()

    def now_ms(self) -> int:
        """Return the wall-clock time in milliseconds."""
        return self._clock.time_ms()

    def group(self, group_id: str) -> Group | None:
        """Return a classic group; a group that only stores offsets is an empty classic group.

        It remains one without offsets, until `expire` deletes it. None if the group has no machine,
        or if the group uses the consumer protocol.
        """
        if self.consumers.get(group_id) is not None:
            return None
        machine = self._machine(group_id)
        if machine is not None:
            return machine.group
        return Group(group_id) if self.offsets.has_group(group_id) else None

    def groups(self) -> Iterator[Group]:
        """Iterate over all classic groups."""
        names = [*self.metadata, *self._machines, *self.offsets.groups()]
        for group_id in dict.fromkeys(names):
            group = self.group(group_id)
            if group is not None:
                yield group

    def encode(self, group_changes: Iterable[AnyChange]) -> list[Record]:
        """Return the records of changes."""
        now_ms = self.now_ms()
        return [
            records.encode(change, now_ms)
            if isinstance(change, GroupMetadata | OffsetCommit)
            else changes.encode(change, now_ms)
            for change in group_changes
        ]

    # -- events

    def feed(self, group_id: str, event: Event, *, may_create: bool = False) -> bool:
        """Pass an event to a group; False if the group does not exist and must not be created."""
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
        """Return True if a group has no members or records, for example after a rejected join."""
        group = machine.group
        return (
            group.state is GroupState.EMPTY
            and not group.pending_members
            and group.group_id not in self.metadata
            and not machine.is_storing
        )

    def _perform(self, machine: GroupMachine, effect: Effect) -> None:
        match effect:
            case Respond():
                _answer(effect)
            case SetTimer():
                self._set_timer(machine, effect)
            case CancelTimer():
                self.host.timers.cancel((machine.group.group_id, effect.timer))
            case Persist():
                self._persist(machine, effect)
            case Note():
                _log.info("group changed group=%s how=%s", machine.group.group_id, effect.text)

    def _set_timer(self, machine: GroupMachine, effect: SetTimer) -> None:
        if self.host.status is Status.ACTIVE:
            action = partial(self._timer_fired, machine, effect.timer)
            key = (machine.group.group_id, effect.timer)
            self.host.timers.set(key, effect.delay_ms, action)

    def _timer_fired(self, machine: GroupMachine, timer: Timer) -> None:
        self._feed(machine, TimerFired(timer))

    def _persist(self, machine: GroupMachine, effect: Persist) -> None:
        change = GroupMetadata(machine.group.group_id, effect.value)
        try:
            committed = self.host.append(self.encode([change]))
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

    # -- groups of the consumer protocol that become classic

    def _downgrade(self, transition: ConsumerTransition, leaving: list[ConsumerMember]) -> None:
        """Convert a group to classic when these members leave, and rebalance it."""
        remaining = migration.without(transition.group, leaving)
        self.make_classic(transition, remaining, {}, is_settled=False)

    def make_classic(
        self,
        transition: ConsumerTransition,
        members: list[ConsumerMember],
        renamed: dict[str, str],
        *,
        is_settled: bool,
    ) -> None:
        """Add the changes that convert a group to a classic one with these members; see
        `migration`. It is rebalanced after they are appended, unless it is settled.
        """
        group = transition.group
        value = migration.downgraded(group, members, transition.topics.image, transition.now_ms)
        if not is_settled:
            value.leader = None
            callback = partial(self._wake_classic, group.group_id)
            self.host.timers.set((group.group_id, _BECOMING), 0, callback)
        transition.changes += migration.tombstones(group, renamed)
        transition.after += self.encode([GroupMetadata(group.group_id, value)])
        transition.note(f"becomes classic members={len(members)}")

    def _wake_classic(self, group_id: str) -> None:
        if self.consumers.get(group_id) is None:
            self._machine(group_id)

    def end_empty(self, group: ConsumerGroup) -> bool:
        """Delete a group without members, but not its offsets; False if that failed."""
        return self._append_tombstones(migration.tombstones(group))

    # -- housekeeping

    def forget_topics(self, topics: frozenset[str]) -> None:
        """Remove the offsets of deleted topics; if the partition is still being loaded,
        afterwards.
        """
        if self.host.status is Status.LOADING:
            self._gone_topics |= topics
            return
        deletions: list[AnyChange] = [
            OffsetCommit(group_id, topic_partition, None)
            for group_id, topic_partition in self.offsets.partitions_of_topics(topics)
        ]
        self._append_tombstones(deletions)

    def _schedule_expiry(self) -> None:
        delay_ms = self._settings().retention_check_interval_ms
        self.host.timers.set(_EXPIRY, delay_ms, self.expire)

    def expire(self) -> None:
        """Remove expired offsets, and empty groups without offsets, in slices of time."""
        consumers = (group.group_id for group in self.consumers)
        self._expire_some(list(dict.fromkeys([*self.metadata, *consumers, *self.offsets.groups()])))

    def _expire_some(self, group_ids: list[str]) -> None:
        ends = self._clock.monotonic() + _SLICE_SECONDS
        changes: list[AnyChange] = []
        while group_ids and self._clock.monotonic() < ends and len(changes) < TOMBSTONES_MAX:
            changes.extend(self._expired(group_ids.pop()))
        is_written = self._append_tombstones(changes)
        if group_ids and is_written:
            self.host.timers.set(_EXPIRY, 0, partial(self._expire_some, group_ids))
        else:
            self._schedule_expiry()

    def _expired(self, group_id: str) -> Iterator[AnyChange]:
        group = self.consumers.get(group_id) or self.group(group_id)
        if group is None:
            return
        offsets = self.offsets.of_group(group_id)
        now_ms = self._ageing.observe(self.now_ms(), self._clock.monotonic())
        retention_ms = self._settings().offsets_retention_ms
        if isinstance(group, Group):
            candidates = expired(group, offsets, now_ms=now_ms, retention_ms=retention_ms)
        else:
            candidates = expired_in_consumer_group(
                group, offsets, now_ms=now_ms, retention_ms=retention_ms
            )
        deleted = [
            topic_partition
            for topic_partition in candidates
            if not self.offsets.is_unstable(group_id, topic_partition)
        ]
        if deleted:
            _log.info("offsets expired group=%s count=%d", group_id, len(deleted))
        for topic_partition in deleted:
            yield OffsetCommit(group_id, topic_partition, None)
        if len(deleted) == len(offsets) and not self.offsets.has_open(group_id):
            yield from self._end_of_empty(group_id)

    def _end_of_empty(self, group_id: str) -> Iterator[AnyChange]:
        """Return the change that deletes a group without members."""
        consumers = self.consumers.get(group_id)
        group = self.group(group_id)
        if consumers is not None and not consumers.members:
            _log.info("empty group without offsets deleted group=%s", group_id)
            yield from migration.tombstones(consumers)
        elif group is not None:
            if group.state is not GroupState.EMPTY or group.pending_members:
                return
            _log.info("empty group without offsets deleted group=%s", group_id)
            yield GroupMetadata(group_id, None)

    def _append_tombstones(self, changes: Sequence[AnyChange]) -> bool:
        """Append tombstones in chunks; False if that failed, in which case the next pass retries."""
        for start in range(0, len(changes), TOMBSTONES_MAX):
            try:
                self.host.append(self.encode(changes[start : start + TOMBSTONES_MAX]))
            except ApiError as error:
                _log.warning("tombstones not written partition=%d error=%s",
                             self.host.partition, error)  # fmt: skip
                return False
        return True


def _answer(effect: Respond) -> None:
    ticket: Any = effect.ticket
    assert isinstance(ticket, Waiter)
    ticket.answer(effect.response)
