"""Assignors run by a member: the group's leader chooses who reads which partition.

RangeAssignor and RoundRobinAssignor are here for lists that also name another assignor; otherwise
librdkafka's are used.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from itertools import cycle
from typing import NamedTuple

from ottla.client.records import TopicPartition

Assignments = dict[str, list[TopicPartition]]
"""The partitions of each member, by member id."""
PartitionRacks = Mapping[str, Sequence[frozenset[str]]]
"""The racks of the replicas of each partition, by topic."""
_NOWHERE: frozenset[str] = frozenset()


class MemberSubscription(NamedTuple):
    """The data of one member that the leader receives; `user_data` is the assignor's own.

    `owned` has the partitions that a member keeps during the rebalance (KIP-429), and `generation`
    when it got them.
    """

    topics: tuple[str, ...]
    user_data: bytes | None = None
    instance_id: str | None = None
    rack: str | None = None
    owned: tuple[TopicPartition, ...] = ()
    generation: int = -1


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

    def assign_near(
        self, racks: PartitionRacks, members: Mapping[str, MemberSubscription]
    ) -> Mapping[str, Sequence[tuple[str, int]]]:
        """Return the partitions of each member; override it to assign by racks (KIP-881).

        `racks` has the racks of each partition's replicas, by topic. By default, return the result
        of `assign`.
        """
        return self.assign({topic: len(rows) for topic, rows in racks.items()}, members)

    def assignment_data(self, member_id: str) -> bytes | None:
        """Return bytes for a member, which receives them with the partitions of the last `assign`."""
        return None

    def received(self, data: bytes | None) -> None:
        """Note the bytes that the leader's assignor has sent to this member; by default, ignore
        them.
        """
        return

    def assigned(self, partitions: Sequence[TopicPartition], generation: int) -> None:
        """Note the partitions of this member in a generation of the group; by default, do nothing."""
        return


class RangeAssignor(PartitionAssignor):
    """Divides each topic into ranges: the first members get one partition more (RangeAssignor).

    If members and some partitions are on different racks, a member gets partitions with a replica
    on its rack first (KIP-881). Topics with as many partitions and the same members stay
    co-partitioned: that, and the same sizes, are more important than racks.
    """

    name = "range"

    def assign(
        self, counts: Mapping[str, int], members: Mapping[str, MemberSubscription]
    ) -> Assignments:
        """Return the partitions of each member, without racks of partitions."""
        return self.assign_near({topic: [_NOWHERE] * counts[topic] for topic in counts}, members)

    def assign_near(
        self, racks: PartitionRacks, members: Mapping[str, MemberSubscription]
    ) -> Assignments:
        """Return the partitions of each member."""
        ordered = in_order(members)
        topics = []
        for name, rows in sorted(racks.items()):
            readers = {key: members[key].rack for key in ordered if name in members[key].topics}
            if rows and readers:
                topics.append(_TopicRanges(name, rows, readers))
        if any(topic.needs_racks for topic in topics):
            _match_racks(topics)
        chosen: Assignments = {member_id: [] for member_id in members}
        for topic in topics:
            topic.assign_rest()
            for member_id, numbers in topic.chosen.items():
                chosen[member_id] += [TopicPartition(topic.name, at) for at in sorted(numbers)]
        return chosen


class _TopicRanges:
    """The assignment of one topic while it grows; `readers` has the rack of each member, in order."""

    def __init__(
        self, name: str, racks: Sequence[frozenset[str]], readers: Mapping[str, str | None]
    ) -> None:
        self.name = name
        self.readers = readers
        self.chosen: dict[str, list[int]] = {member_id: [] for member_id in readers}
        self._racks = racks
        self._free = list(range(len(racks)))
        self._size, self._larger_count = divmod(len(racks), len(readers))
        of_readers, of_partitions = {*filter(None, readers.values())}, frozenset().union(*racks)
        self.needs_racks = not of_readers.isdisjoint(of_partitions) and any(
            row != of_partitions for row in racks
        )
        # Topics with this number and the same readers are co-partitioned.
        self.matched_count = len(racks) if of_readers else 0

    def matches(self, member_id: str, partition: int) -> bool:
        """Return True if the member has no rack, or the partition a replica on it."""
        rack = self.readers[member_id]
        return not rack or rack in self._racks[partition]

    def room(self, member_id: str) -> int:
        """Return how many more partitions the member may get."""
        return max(0, self._size + (self._larger_count > 0) - len(self.chosen[member_id]))

    def add(self, member_id: str, partitions: Sequence[int]) -> None:
        """Assign partitions that are free."""
        self.chosen[member_id] += partitions
        self._larger_count -= len(self.chosen[member_id]) > self._size
        self._free = [number for number in self._free if number not in partitions]

    def assign_matching(self) -> None:
        """Assign to each member partitions on its rack."""
        for member_id in self.readers:
            near = [number for number in self._free if self.matches(member_id, number)]
            self._add_first(member_id, near)

    def assign_rest(self) -> None:
        """Assign the partitions that are free, wherever they are."""
        for member_id in self.readers:
            self._add_first(member_id, self._free)

    def _add_first(self, member_id: str, partitions: Sequence[int]) -> None:
        if first := partitions[: self.room(member_id)]:
            self.add(member_id, first)


def _match_racks(topics: Sequence[_TopicRanges]) -> None:
    """Assign partitions to members on their racks; the same numbers of co-partitioned topics."""
    groups: dict[tuple[tuple[str, ...], int], list[_TopicRanges]] = {}
    for topic in topics:
        groups.setdefault((tuple(topic.readers), topic.matched_count), []).append(topic)
    for (readers, count), together in groups.items():
        if len(together) > 1:
            _match_together(readers, count, together)
        elif together[0].needs_racks:
            together[0].assign_matching()


def _match_together(
    readers: Sequence[str], partition_count: int, topics: Sequence[_TopicRanges]
) -> None:
    for number in range(partition_count):
        for member_id in readers:
            if all(topic.room(member_id) and topic.matches(member_id, number) for topic in topics):
                for topic in topics:
                    topic.add(member_id, [number])
                break


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
