"""The consumer-protocol groups of one partition of __consumer_offsets, and the shell around them.

Only `replay` changes groups. The pure modules of this package decide; this module sets the
deadlines of a decision, logs its lines and converts its changes to records. Decisions after an
expired deadline or a finished lookup are appended here without a waiting request.
"""

import logging
from collections.abc import Callable, Iterator, Mapping
from functools import partial

from ottla.base.clock import Clock
from ottla.base.errors import ApiError
from ottla.cluster.image import ClusterImage
from ottla.coordinators.consumer import changes, replay
from ottla.coordinators.consumer.assignment import epochs, target
from ottla.coordinators.consumer.assignment.assignors.plan import Assignments
from ottla.coordinators.consumer.changes import Change, MemberChange
from ottla.coordinators.consumer.regex import regexes
from ottla.coordinators.consumer.regex.lookup import Lookup
from ottla.coordinators.consumer.requests import fencing
from ottla.coordinators.consumer.settings import ConsumerSettings
from ottla.coordinators.consumer.state import ConsumerGroup, Member, MemberState
from ottla.coordinators.consumer.transition import (
    CancelTimer,
    Deadline,
    SetTimer,
    Topics,
    Transition,
)
from ottla.coordinators.hosted import HostedPartition, Status
from ottla.wire.records.records import Record

_log = logging.getLogger(__name__)

_SLICE_SECONDS = 0.005
_RETRY_MS = 500
_REASONS: Mapping[Deadline, str] = {
    Deadline.SESSION: "its session expired",
    Deadline.REBALANCE: "it did not give back its partitions in time",
    Deadline.JOIN: "it did not join again in time",
    Deadline.SYNC: "it did not sync in time",
}

Downgrade = Callable[[Transition, list[Member]], None]
# Runs work, perhaps in another thread, and passes the result to a callback on the event loop.
Background = Callable[[Callable[[], Assignments], Callable[[Assignments], None]], None]


def at_once(work: Callable[[], Assignments], callback: Callable[[Assignments], None]) -> None:
    """Run the work immediately in this thread."""
    callback(work())


class ConsumerGroups:
    """The groups of one shard, by id; `settings` returns the current settings of a group.

    `downgrade` makes a group classic when the given members leave; see `groups/migration.py`.
    `background` runs the assignors of large groups.
    """

    def __init__(
        self,
        host: HostedPartition,
        clock: Clock,
        *,
        settings: Callable[[str], ConsumerSettings],
        image: Callable[[], ClusterImage],
        downgrade: Downgrade,
        background: Background = at_once,
    ) -> None:
        self._groups: dict[str, ConsumerGroup] = {}
        self._host = host
        self._clock = clock
        self._settings = settings
        self._image = image
        self._downgrade = downgrade
        self._background = background
        self._is_loaded = False
        self._seen: Topics | None = None
        # The image and the epoch of the latest check of a group's topics.
        self._checked: dict[str, tuple[ClusterImage, int]] = {}
        self._lookups: set[str] = set()
        # The groups whose targets are being computed.
        self._assigning: set[str] = set()

    # -- what is kept

    def __iter__(self) -> Iterator[ConsumerGroup]:
        return iter(list(self._groups.values()))

    def get(self, group_id: str) -> ConsumerGroup | None:
        """Return a group; None if this protocol has no such group."""
        return self._groups.get(group_id)

    def replay(self, change: Change) -> None:
        """Apply one change, either just appended or read from the log."""
        replay.apply(self._groups, change)
        if self._is_loaded and isinstance(change, MemberChange) and change.member is None:
            # Not before: a member whose removal could not be stored has its deadlines yet.
            for deadline in Deadline:
                self._host.timers.cancel((change.group_id, deadline, change.member_id))
        if change.group_id not in self._groups:
            self._checked.pop(change.group_id, None)

    def on_loaded(self) -> None:
        """Start the sessions of all members with their full timeout."""
        self._is_loaded = True
        members = [(group.group_id, member) for group in self for member in group.members.values()]
        self._start_some(members)

    def _start_some(self, members: list[tuple[str, Member]]) -> None:
        ends = self._clock.monotonic() + _SLICE_SECONDS
        while members and self._clock.monotonic() < ends:
            group_id, member = members.pop()
            delay_ms = self._settings(group_id).session_timeout_ms
            self._set_timer(
                group_id, SetTimer(Deadline.SESSION, member.member_id, delay_ms, is_kept=True)
            )
            is_unrevoked = member.state is MemberState.UNREVOKED_PARTITIONS
            if is_unrevoked and not member.is_classic:
                self._set_timer(group_id, epochs.rebalance_timer(member)._replace(is_kept=True))
        if members:
            self._host.timers.set(_Waking, 0, partial(self._start_some, members))

    # -- decisions

    def transition(self, group: ConsumerGroup) -> Transition:
        """Return a transition of a group, which may be a new one."""
        topics = self._topics()
        group_id = group.group_id
        image, epoch = self._checked.get(group_id, (None, 0))
        is_due = image is not topics.image or group.epoch < epoch
        return Transition(group, topics, self._settings(group_id), self._clock.time_ms(), is_due)

    def is_looking_up(self, group_id: str) -> bool:
        """Return True if a lookup of the group's regular expressions is running."""
        return group_id in self._lookups

    def records(self, transition: Transition) -> list[Record]:
        """Set the deadlines of a transition, log it, and return the records of its changes."""
        group_id = transition.group.group_id
        for timer in transition.timers:
            if isinstance(timer, CancelTimer):
                self._host.timers.cancel((group_id, timer.deadline, timer.member_id))
            else:
                self._set_timer(group_id, timer)
        for note in transition.notes:
            _log.info("consumer group changed group=%s how=%s", group_id, note)
        if transition.checked_at_epoch is not None:
            self._checked[group_id] = (transition.topics.image, transition.checked_at_epoch)
        if transition.regexes_wanted:
            self._lookups.add(group_id)
            lookup = Lookup(
                transition.topics,
                transition.now_ms,
                transition.regexes_wanted,
                transition.may_describe,
            )
            start = partial(self._look_up, group_id, lookup)
            self._host.timers.set((_LookingUp, group_id), 0, start)
        if transition.is_target_wanted and group_id not in self._assigning:
            self._assigning.add(group_id)
            # After what is decided here has been written.
            self._host.timers.set((_Assigning, group_id), 0, partial(self._assign, group_id))
        encoded = [changes.encode(change, transition.now_ms) for change in transition.changes]
        return [*transition.before, *encoded, *transition.after]

    def _topics(self) -> Topics:
        """Return the topics; their version increases only if there are new topics."""
        image, previous = self._image(), self._seen
        if previous is None:
            self._seen = Topics(image, self._clock.time_ms())
        elif previous.image is not image:
            has_new = previous.image.topics is not image.topics and not (
                image.topics.keys() <= previous.image.topics.keys()
            )
            version = (
                max(self._clock.time_ms(), previous.version + 1) if has_new else previous.version
            )
            self._seen = Topics(image, version)
        assert self._seen is not None
        return self._seen

    # -- deadlines

    def _set_timer(self, group_id: str, timer: SetTimer) -> None:
        key = (group_id, timer.deadline, timer.member_id)
        if self._host.status is not Status.ACTIVE:
            return
        if not (timer.is_kept and self._host.timers.has(key)):
            action = partial(self._expired, group_id, timer)
            self._host.timers.set(key, timer.delay_ms, action)

    def _expired(self, group_id: str, timer: SetTimer) -> None:
        group = self._groups.get(group_id)
        member = None if group is None else group.members.get(timer.member_id)
        if group is None or member is None:
            return
        if timer.epoch is not None and member.epoch != timer.epoch:
            return
        transition = self.transition(group)
        transition.note(f"member fenced: {member.member_id}, {_REASONS[timer.deadline]}")
        self.fence(transition, [member])
        if not self._append(transition):
            self._set_timer(group_id, timer._replace(delay_ms=_RETRY_MS))

    def fence(self, transition: Transition, members: list[Member]) -> None:
        """Remove members from a group, which becomes classic if only classic members are left."""
        if fencing.becomes_classic(transition, members):
            self._downgrade(transition, members)
        else:
            fencing.fence(transition, members)

    def _append(self, transition: Transition) -> bool:
        records = self.records(transition)
        try:
            if records:
                self._host.append(records)
        except ApiError as error:
            _log.warning(
                "consumer group not stored group=%s error=%s", transition.group.group_id, error
            )
            return False
        return True

    # -- targets of large groups

    def _assign(self, group_id: str) -> None:
        group = self._groups.get(group_id)
        if group is None or group.assignment_epoch >= group.epoch:
            self._assigning.discard(group_id)
            return
        job = target.job(
            group,
            list(group.members.values()),
            self._image(),
            default_assignor=self._settings(group_id).assignors[0],
            epoch=group.epoch,
        )
        self._background(job.run, partial(self._assigned, group_id, job))

    def _assigned(self, group_id: str, job: target.Job, computed: Assignments) -> None:
        """Write a target. If the group has a later epoch by now, the next target is computed
        afterwards.
        """
        self._assigning.discard(group_id)
        group = self._groups.get(group_id)
        if group is None or self._host.status is not Status.ACTIVE:
            return
        # A group that was deleted and created again in the meantime has another epoch.
        if not group.assignment_epoch < job.epoch <= group.epoch:
            return
        transition = self.transition(group)
        transition.changes += target.changes_of(
            group, computed, job, transition.now_ms, is_later=True
        )
        transition.note(
            f"assigned epoch={job.epoch} assignor={job.assignor} members={len(computed)}"
        )
        self._append(transition)

    # -- lookups of regular expressions

    def _look_up(self, group_id: str, lookup: Lookup) -> None:
        ends = self._clock.monotonic() + _SLICE_SECONDS
        while lookup.has_more and self._clock.monotonic() < ends:
            lookup.look_at_some()
        if lookup.has_more:
            again = partial(self._look_up, group_id, lookup)
            self._host.timers.set((_LookingUp, group_id), 0, again)
            return
        self._lookups.discard(group_id)
        group = self._groups.get(group_id)
        if group is not None:
            transition = self.transition(group)
            regexes.looked_up(transition, lookup.result())
            self._append(transition)


class _Waking:
    """The key of the timer that starts sessions in slices."""


class _Assigning:
    """The key of the timer that begins to compute a group's target."""


class _LookingUp:
    """The key of the timer that continues a group's lookup."""
