"""The assignor of tasks in a group of the classic protocol.

A member describes its tasks, its replicas and how far its states are; the group's leader compares
that with the ends of the changelogs, and places tasks and replicas. A task whose owner must give it
up is left out of this generation: its owner commits, closes it and joins again, and only the next
generation has it for the new owner (as in KIP-429 and StreamsPartitionAssignor). Tasks that stay
are never stopped.

Kafka's leader asks for a rebalance from time to time while replicas warm up. Here a member whose
warm-up replica has caught up joins again itself.
"""

import json
import logging
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

from ottla.base.errors import OttlaError
from ottla.client.group.assignors import MemberSubscription, PartitionAssignor, in_order
from ottla.client.records import TopicPartition
from ottla.streams.local.assignment.placement import (
    MemberPlacement,
    ReplicaSettings,
    TaskMember,
    TaskPlacement,
    cooperative,
)
from ottla.streams.local.layout import TaskId, TaskLayout

_log = logging.getLogger(__name__)
_VERSION = 1
Spans = Mapping[TopicPartition, tuple[int, int]]


class TaskAssignor(PartitionAssignor):
    """Assigns tasks and replicas."""

    name = "ottla-streams"

    def __init__(
        self,
        layout_of: Callable[[Mapping[str, int]], TaskLayout],
        find_spans: Callable[[Iterable[TopicPartition]], Spans],
        settings: ReplicaSettings | None = None,
    ) -> None:
        """`find_spans` asks the brokers for the first and end offsets of changelogs. It is called
        in the thread of the group, by the leader: no worker waits for it.
        """
        self.member = TaskMember()
        """The description of this member; set it before each join."""
        self.received_placement = MemberPlacement()
        """The replicas of this member in its last assignment."""
        self._layout_of, self._find_spans = layout_of, find_spans
        self._settings = settings or ReplicaSettings()
        self._placements: Mapping[str, MemberPlacement] = {}

    def user_data(self, topics: Sequence[str]) -> bytes:
        """Return the description of this member."""
        member = self.member
        document = {
            "version": _VERSION,
            "owned": _texts(member.owned),
            "followed": _texts(member.followed),
            "positions": {str(task): sum_ for task, sum_ in sorted(member.positions.items())},
            "process": member.process,
            "tags": dict(member.tags),
        }
        return json.dumps(document).encode()

    def assign(
        self, counts: Mapping[str, int], members: Mapping[str, MemberSubscription]
    ) -> dict[str, list[TopicPartition]]:
        """Return the partitions of each member's tasks."""
        layout = self._layout_of(counts)
        described = {name: _member(members[name], layout) for name in in_order(members)}
        changelogs = {task: layout.changelogs(task).keys() for task in layout.inputs}
        stateful = {task: keys for task, keys in changelogs.items() if keys}
        spans = self._sums(stateful)
        described = {name: row.with_lags(spans) for name, row in described.items()}
        placement = TaskPlacement(stateful.keys(), described, self._settings)
        self._placements = cooperative(placement.place(layout.inputs), described)
        return {
            name: [key for task in row.active for key in layout.inputs[task]]
            for name, row in self._placements.items()
        }

    def _sums(
        self, changelogs: Mapping[TaskId, Collection[TopicPartition]]
    ) -> dict[TaskId, tuple[int, int]]:
        """Return the sums of first and end offsets; empty if the brokers do not respond."""
        try:
            spans = self._find_spans(key for keys in changelogs.values() for key in keys)
        except OttlaError as error:
            _log.info("The lags of replicas are not known: %s", error)
            return {}
        return {
            task: (sum(spans[key][0] for key in keys), sum(spans[key][1] for key in keys))
            for task, keys in changelogs.items()
        }

    def assignment_data(self, member_id: str) -> bytes | None:
        """Return the replicas of a member."""
        row = self._placements.get(member_id, MemberPlacement())
        if not row.standby and not row.warmup:
            return None
        document = {"standby": _texts(row.standby), "warmup": _texts(row.warmup)}
        return json.dumps({"version": _VERSION, **document}).encode()

    def received(self, data: bytes | None) -> None:
        """Note the replicas of this member."""
        document = json.loads(data or b"{}")
        self.received_placement = MemberPlacement(
            [],
            [TaskId.parse(text) for text in document.get("standby", ())],
            [TaskId.parse(text) for text in document.get("warmup", ())],
        )


def _texts(tasks: Sequence[TaskId] | frozenset[TaskId]) -> list[str]:
    return [str(task) for task in sorted(tasks)]


def _member(subscription: MemberSubscription, layout: TaskLayout) -> TaskMember:
    document = json.loads(subscription.user_data or b"{}")

    def tasks(name: str) -> frozenset[TaskId]:
        parsed = (TaskId.parse(text) for text in document.get(name, ()))
        return frozenset(task for task in parsed if task in layout.inputs)

    return TaskMember(
        tasks("owned"),
        tasks("followed"),
        process=document.get("process", ""),
        tags=document.get("tags", {}),
        positions={
            TaskId.parse(text): sum_ for text, sum_ in document.get("positions", {}).items()
        },
    )
