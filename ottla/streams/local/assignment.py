"""Who runs which task: balanced and sticky, and cooperative.

The group's leader computes a target. A task whose owner must give it up is left out of this
generation: its owner commits, closes it and joins again, and only the next generation has it for
the new owner (as in KIP-429 and StreamsPartitionAssignor). Tasks that stay are never stopped.
"""

import json
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence

from ottla.client.group.assignors import MemberSubscription, PartitionAssignor, in_order
from ottla.client.records import TopicPartition
from ottla.streams.local.layout import TaskId, TaskLayout

Owned = Mapping[str, frozenset[TaskId]]
"""The tasks that each member runs, by member id."""


def target(tasks: Iterable[TaskId], owned: Owned) -> dict[str, list[TaskId]]:
    """Return a balanced assignment in which as few tasks as possible move.

    The numbers of tasks of two members differ by one at most. Members come in the order of `owned`.
    """
    ordered = sorted(tasks)
    least, larger = divmod(len(ordered), len(owned))
    chosen: dict[str, list[TaskId]] = {member: [] for member in owned}
    free = set(ordered)
    # The members with most tasks keep one more than the others: that moves the fewest.
    for member in sorted(owned, key=lambda name: -len(owned[name] & free)):
        limit = least + (1 if larger else 0)
        kept = _spread(sorted(owned[member] & free), limit)
        chosen[member] = kept
        free -= set(kept)
        larger -= len(kept) > least
    for task in sorted(free):
        member = min(chosen, key=lambda name: _load(chosen[name], task))
        chosen[member].append(task)
    return {member: sorted(kept) for member, kept in chosen.items()}


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


def assign(tasks: Iterable[TaskId], owned: Owned) -> dict[str, list[TaskId]]:
    """Return the assignment of this generation: the target without tasks that others still run."""
    owner_of = {task: member for member, rows in owned.items() for task in rows}
    return {
        member: [task for task in rows if owner_of.get(task, member) == member]
        for member, rows in target(tasks, owned).items()
    }


class TaskAssignor(PartitionAssignor):
    """Assigns tasks in a group of the classic protocol; a member names the tasks that it runs."""

    name = "ottla-streams"

    def __init__(self, layout_of: Callable[[Mapping[str, int]], TaskLayout]) -> None:
        self.owned: frozenset[TaskId] = frozenset()
        """The tasks of this member; set it before each join."""
        self._layout_of = layout_of

    def user_data(self, topics: Sequence[str]) -> bytes:
        """Return the tasks of this member."""
        return json.dumps(
            {"version": 1, "owned": [str(task) for task in sorted(self.owned)]}
        ).encode()

    def assign(
        self, counts: Mapping[str, int], members: Mapping[str, MemberSubscription]
    ) -> dict[str, list[TopicPartition]]:
        """Return the partitions of each member's tasks."""
        layout = self._layout_of(counts)
        owned = {member: _owned(members[member], layout) for member in in_order(members)}
        return {
            member: [key for task in tasks for key in layout.inputs[task]]
            for member, tasks in assign(layout.inputs, owned).items()
        }


def _owned(member: MemberSubscription, layout: TaskLayout) -> frozenset[TaskId]:
    document = json.loads(member.user_data or b"{}")
    tasks = (TaskId.parse(text) for text in document.get("owned", ()))
    return frozenset(task for task in tasks if task in layout.inputs)
