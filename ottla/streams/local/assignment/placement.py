"""Who runs which task and which replica: balanced, sticky and cooperative. Pure.

As in Kafka's HighAvailabilityTaskAssignor (KIP-441), a stateful task moves only to a member whose
state has caught up, within the acceptable lag. Until then the member that has the state runs the
task, and the member that will run it follows the changelog as a warm-up replica.

Not done: costs of traffic between racks (KIP-925); tags only spread standbys (KIP-708).
"""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from ottla.streams.local.layout import TaskId


@dataclass(frozen=True)
class TaskMember:
    """A member, as it describes itself when it joins."""

    owned: frozenset[TaskId] = frozenset()
    """The tasks that it runs."""
    followed: frozenset[TaskId] = frozenset()
    """The tasks that it has a replica of."""
    lags: Mapping[TaskId, int] = field(default_factory=dict)
    """The number of offsets that its state of each other task is behind the changelogs. The group's
    leader computes them.
    """
    process: str = ""
    """The process of the member; a replica in the owner's process has no use."""
    tags: Mapping[str, str] = field(default_factory=dict)
    positions: Mapping[TaskId, int] = field(default_factory=dict)
    """The sum of the positions in changelogs of its state of each other task (Kafka's task offset
    sums).
    """

    def with_lags(self, spans: Mapping[TaskId, tuple[int, int]]) -> "TaskMember":
        """Return the member with its lags; `spans` has the sums of first and end offsets.

        A task without a state there is behind by all of its changelogs; so is one with a state of
        other changelogs, whose position is after their end.
        """
        lags = {}
        for task, (first, end) in spans.items():
            position = self.positions.get(task, first)
            if task not in self.owned:
                lags[task] = end - (position if first <= position <= end else first)
        return replace(self, lags=lags)


@dataclass(frozen=True)
class ReplicaSettings:
    """The options of replicas, with Kafka's names and defaults."""

    num_standby_replicas: int = 0
    acceptable_recovery_lag: int = 10_000
    max_warmup_replicas: int = 2
    rack_aware_tags: tuple[str, ...] = ()
    """The tags in which the owner and the standbys of a task should differ."""
    probing_rebalance_interval_ms: int = 600_000
    state_cleanup_delay_ms: int = 600_000
    """How long the state on disk of a task without a replica here is kept."""


@dataclass
class MemberPlacement:
    """The tasks and replicas of one member."""

    active: list[TaskId] = field(default_factory=list)
    standby: list[TaskId] = field(default_factory=list)
    warmup: list[TaskId] = field(default_factory=list)


Members = Mapping[str, TaskMember]


class TaskPlacement:
    """Computes one assignment; members come in the order of `members`."""

    def __init__(
        self, stateful: Collection[TaskId], members: Members, settings: ReplicaSettings
    ) -> None:
        self._stateful = frozenset(stateful)
        self._members = members
        self._settings = settings
        self.result = {member: MemberPlacement() for member in members}

    def place(self, tasks: Iterable[TaskId]) -> dict[str, MemberPlacement]:
        """Return the tasks and replicas of each member; each task has one active owner."""
        balanced = self.target(tasks)
        holders: Counter[str] = Counter()
        waiting: list[tuple[TaskId, str]] = []
        for member, rows in balanced.items():
            for task in rows:
                holder = self._holder(task, member, holders)
                holders[holder] += 1
                self.result[holder].active.append(task)
                if holder != member:
                    waiting.append((task, member))
        for task, member in sorted(waiting)[: self._settings.max_warmup_replicas]:
            self.result[member].warmup.append(task)
        self._place_standbys()
        for placement in self.result.values():
            placement.active.sort()
        return self.result

    # -- active tasks -----------------------------------------------------------------------------

    def target(self, tasks: Iterable[TaskId]) -> dict[str, list[TaskId]]:
        """Return a balanced assignment in which as few tasks as possible move.

        The numbers of tasks of two members differ by one at most.
        """
        ordered, members = sorted(tasks), self._members
        least, larger = divmod(len(ordered), len(members))
        chosen: dict[str, list[TaskId]] = {member: [] for member in members}
        free = set(ordered)
        # The members with most tasks keep one more than the others: that moves the fewest.
        for member in sorted(members, key=lambda name: -len(members[name].owned & free)):
            limit = least + (1 if larger else 0)
            kept = _spread(sorted(members[member].owned & free), limit)
            chosen[member] = kept
            free -= set(kept)
            larger -= len(kept) > least
        for task in sorted(free, key=lambda row: (not self._caught_up(row), row)):
            room = [
                name
                for name, rows in chosen.items()
                if len(rows) < least or (larger and len(rows) == least)
            ]
            member = min(
                room, key=lambda name: (*self._state_rank(name, task), *_load(chosen[name], task))
            )
            larger -= len(chosen[member]) == least
            chosen[member].append(task)
        return {member: sorted(kept) for member, kept in chosen.items()}

    def _has_caught_up(self, member: str, task: TaskId) -> bool:
        row = self._members[member]
        if task in row.owned:
            return True
        lag = row.lags.get(task)
        return lag is not None and lag <= self._settings.acceptable_recovery_lag

    def _caught_up(self, task: TaskId) -> list[str]:
        """Return the members whose state of a task has caught up; none for a stateless task."""
        if task not in self._stateful:
            return []
        return [name for name in self._members if self._has_caught_up(name, task)]

    def _state_rank(self, member: str, task: TaskId) -> tuple[bool, int]:
        """Return the order of members for a task: those with the least to restore are first."""
        if task not in self._stateful:
            return False, 0
        row = self._members[member]
        # Replicas that have caught up are equal, except for those that follow the changelog.
        has_caught_up = self._has_caught_up(member, task)
        lag = row.lags.get(task, _UNKNOWN)
        return task not in row.followed and not has_caught_up, 0 if has_caught_up else lag

    def _holder(self, task: TaskId, member: str, holders: Counter[str]) -> str:
        """Return the member that runs a task until the target has caught up."""
        ready = self._caught_up(task)
        if not ready or member in ready:
            return member
        owners = [name for name in ready if task in self._members[name].owned]
        return min(owners or ready, key=lambda name: holders[name])

    # -- replicas ---------------------------------------------------------------------------------

    def _place_standbys(self) -> None:
        count = self._settings.num_standby_replicas
        if not count:
            return
        owners = {task: name for name, row in self.result.items() for task in row.active}
        warmups = {task: name for name, row in self.result.items() for task in row.warmup}
        stateful = sorted(self._stateful & owners.keys())
        most = -(-len(stateful) * count // len(self._members))
        for task in stateful:
            replicas = [owners[task], *(name for name in [warmups.get(task)] if name)]
            for _ in range(count):
                used = {self._members[name].process for name in replicas}
                free = [
                    name
                    for name, row in self._members.items()
                    if name not in replicas and row.process not in used
                ]
                if not free:
                    break
                chosen = min(free, key=lambda name: self._standby_rank(name, task, replicas, most))
                self.result[chosen].standby.append(task)
                replicas.append(chosen)

    def _standby_rank(
        self, member: str, task: TaskId, replicas: Sequence[str], most: int
    ) -> tuple[int, bool, bool, int]:
        row, standbys = self._members[member], len(self.result[member].standby)
        same = sum(
            row.tags.get(tag) == self._members[other].tags.get(tag)
            for tag in self._settings.rack_aware_tags
            for other in replicas
        )
        # A member that gives a task up has its state, too.
        has_state = task in row.followed or task in row.owned
        return same, standbys >= most, not has_state, standbys


_UNKNOWN = 1 << 62


def cooperative(
    placements: Mapping[str, MemberPlacement], members: Members
) -> dict[str, MemberPlacement]:
    """Return the assignment of this generation: no task that another member still runs."""
    owner_of = {task: name for name, row in members.items() for task in row.owned}
    return {
        name: MemberPlacement(
            [task for task in row.active if owner_of.get(task, name) == name],
            row.standby,
            row.warmup,
        )
        for name, row in placements.items()
    }


def _spread(tasks: Sequence[TaskId], limit: int) -> list[TaskId]:
    """Return `limit` of the tasks, from as many sub-topologies as possible."""
    counts: Counter[int] = Counter()
    ranked = []
    for task in tasks:
        counts[task.sub_topology] += 1
        ranked.append((counts[task.sub_topology], task))
    return [task for _, task in sorted(ranked)[:limit]]


def _load(tasks: Sequence[TaskId], task: TaskId) -> tuple[int, int]:
    return len(tasks), sum(row.sub_topology == task.sub_topology for row in tasks)
