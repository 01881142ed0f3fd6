"""Assignors run by a member: the group's leader chooses who reads which partition.

RangeAssignor and RoundRobinAssignor are here for lists that also name another assignor; otherwise
librdkafka's are used. Not done: Range does not look at racks (KIP-881).
"""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from itertools import cycle
from typing import NamedTuple

from ottla.client.records import TopicPartition

Assignments = dict[str, list[TopicPartition]]
"""The partitions of each member, by member id."""


class MemberSubscription(NamedTuple):
    """The data of one member that the leader receives; `user_data` is the assignor's own."""

    topics: tuple[str, ...]
    user_data: bytes | None = None
    instance_id: str | None = None


class PartitionAssignor(ABC):
    """Base class of assignors (ConsumerPartitionAssignor); override `assign`.

    All members of a group must have an assignor of the same `name`.
    """

    name: str

    def user_data(self, topics: Sequence[str]) -> bytes | None:
        """Return bytes for the leader, which receives them with the topics of this member."""
        return None

    @abstractmethod
    def assign(
        self, counts: Mapping[str, int], members: Mapping[str, MemberSubscription]
    ) -> Mapping[str, Sequence[tuple[str, int]]]:
        """Return the partitions of each member; called only in the group's leader.

        `counts` has the number of partitions of each topic that exists; `members` is by member id.
        """

    def assigned(self, partitions: Sequence[TopicPartition], generation: int) -> None:
        """Note the partitions of this member in a generation of the group; by default, do nothing."""
        return


class RangeAssignor(PartitionAssignor):
    """Divides each topic into ranges: the first members get one partition more (RangeAssignor)."""

    name = "range"

    def assign(
        self, counts: Mapping[str, int], members: Mapping[str, MemberSubscription]
    ) -> Assignments:
        """Return the partitions of each member."""
        chosen: Assignments = {member_id: [] for member_id in members}
        for topic, count in sorted(counts.items()):
            readers = [key for key in in_order(members) if topic in members[key].topics]
            start = 0
            for index, member_id in enumerate(readers):
                stop = start + count // len(readers) + (index < count % len(readers))
                chosen[member_id] += [TopicPartition(topic, at) for at in range(start, stop)]
                start = stop
        return chosen


class RoundRobinAssignor(PartitionAssignor):
    """Deals the partitions of all topics, in order, to one member after the other."""

    name = "roundrobin"

    def assign(
        self, counts: Mapping[str, int], members: Mapping[str, MemberSubscription]
    ) -> Assignments:
        """Return the partitions of each member."""
        chosen: Assignments = {member_id: [] for member_id in members}
        subscribed = {topic for member in members.values() for topic in member.topics}
        turns = cycle(in_order(members))
        for partition in partitions_of(counts):
            if partition.topic in subscribed:
                member_id = next(key for key in turns if partition.topic in members[key].topics)
                chosen[member_id].append(partition)
        return chosen


def in_order(members: Mapping[str, MemberSubscription]) -> list[str]:
    """Return the member ids: static members first, by their instance ids (MemberInfo)."""

    def order(member_id: str) -> tuple[bool, str]:
        instance_id = members[member_id].instance_id
        return instance_id is None, member_id if instance_id is None else instance_id

    return sorted(members, key=order)


def partitions_of(counts: Mapping[str, int]) -> Iterable[TopicPartition]:
    """Return all partitions, sorted by topic and number."""
    for topic, count in sorted(counts.items()):
        for index in range(count):
            yield TopicPartition(topic, index)
