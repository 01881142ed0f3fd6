"""The assignor `uniform`: an equal number of partitions for every member, with the fewest moves.

If all members read the same topics, the numbers differ by at most one. If not, no reader of a topic
could hand over a partition of it to another reader that has at least two fewer. Follows Kafka's
UniformAssignor.
"""

import heapq
from collections.abc import Iterable
from itertools import islice
from typing import NamedTuple

from ottla.coordinators.consumer.assignment.assignors.plan import Assignments, GroupPlan, frozen

NAME = "uniform"

# Passes over all topics; each improves the balance, and few plans need more than two or three.
ROUNDS_MAX = 16

_TopicPartition = tuple[bytes, int]


def assign(plan: GroupPlan) -> Assignments:
    """Assign all partitions."""
    if not plan.members:
        return {}
    return _assign_alike(plan) if plan.is_homogeneous else _Balance(plan).result()


class _UnfilledMember(NamedTuple):
    member_id: str
    missing_count: int


def _assign_alike(plan: GroupPlan) -> Assignments:
    """Let every member keep its fair share, and assign free partitions to members that have less.

    The partitions of a member that keeps all of them are not examined: in a large group that is
    nearly every member.
    """
    topics = next(iter(plan.members.values())).topics
    free = _unowned(plan, topics)
    total = sum(plan.partition_counts[topic] for topic in topics)
    share, longer = divmod(total, len(plan.members))
    assignments: Assignments = {}
    unfilled: list[_UnfilledMember] = []
    for position, (member_id, member) in enumerate(plan.members.items()):
        quota = share + (longer > 0)
        assignments[member_id] = retained = {
            topic: partitions for topic, partitions in member.target.items() if topic in topics
        }
        load = sum(map(len, retained.values()))
        if load > quota:
            topic_partitions = _held(retained.items())
            assignments[member_id] = frozen(_by_topic(topic_partitions[:quota]))
            free += topic_partitions[quota:]
        remaining_quota = max(quota - load, 0)
        takes_extra = longer > 0
        # A member that does not need an extra partition leaves it to others, while enough others
        # are left.
        if remaining_quota and takes_extra and len(plan.members) - position > longer:
            remaining_quota -= 1
            takes_extra = False
        longer -= takes_extra
        if remaining_quota:
            unfilled.append(_UnfilledMember(member_id, remaining_quota))
    unassigned = iter(free)
    for member_id, count in unfilled:
        grown = {topic: set(partitions) for topic, partitions in assignments[member_id].items()}
        for topic, partition in islice(unassigned, count):
            grown.setdefault(topic, set()).add(partition)
        assignments[member_id] = frozen(grown)
    assert next(unassigned, None) is None, "partitions were left over"
    return assignments


def _unowned(plan: GroupPlan, topics: Iterable[bytes]) -> list[_TopicPartition]:
    """Return the partitions without an owner, in order."""
    owned: dict[bytes, set[int]] = {topic: set() for topic in topics}
    for member in plan.members.values():
        for topic, partitions in member.target.items():
            if topic in owned:
                owned[topic] |= partitions
    return [
        (topic, partition)
        for topic in sorted(owned)
        for partition in sorted(set(_numbers(plan, topic)) - owned[topic])
    ]


def _numbers(plan: GroupPlan, topic: bytes) -> range:
    return range(plan.partition_counts[topic])


def _held(target: Iterable[tuple[bytes, frozenset[int]]]) -> list[_TopicPartition]:
    return [(topic, partition) for topic, partitions in target for partition in sorted(partitions)]


def _by_topic(topic_partitions: Iterable[_TopicPartition]) -> dict[bytes, set[int]]:
    by_topic: dict[bytes, set[int]] = {}
    for topic, partition in topic_partitions:
        by_topic.setdefault(topic, set()).add(partition)
    return by_topic


class _Balance:
    """Members by number, and the owner of each partition, for members with different subscriptions."""

    def __init__(self, plan: GroupPlan) -> None:
        self._plan = plan
        self._names = list(plan.members)
        self._loads = [0] * len(self._names)
        self._readers: dict[bytes, list[int]] = {}
        for number, member in enumerate(plan.members.values()):
            for topic in member.topics:
                self._readers.setdefault(topic, []).append(number)
        self._owners: dict[bytes, dict[int, int]] = {topic: {} for topic in self._readers}

    def result(self) -> Assignments:
        """Keep valid partitions, assign the free ones, and move partitions to improve the balance."""
        self._keep()
        topics = sorted(self._readers, key=self._rank)
        for topic in topics:
            self._fill(topic)
        shared = [topic for topic in topics if len(self._readers[topic]) > 1]
        for _ in range(ROUNDS_MAX):
            if not any([self._even_out(topic) for topic in shared]):
                break
        result: dict[str, dict[bytes, set[int]]] = {name: {} for name in self._names}
        for topic, owners in self._owners.items():
            for partition, number in owners.items():
                result[self._names[number]].setdefault(topic, set()).add(partition)
        return {member_id: frozen(assignment) for member_id, assignment in result.items()}

    def _rank(self, topic: bytes) -> tuple[float, int, bytes]:
        readers = len(self._readers[topic])
        return -self._plan.partition_counts[topic] / readers, readers, topic

    def _keep(self) -> None:
        for number, member in enumerate(self._plan.members.values()):
            for topic, partition in _held(member.target.items()):
                if topic in member.topics and partition not in self._owners[topic]:
                    self._give(topic, partition, number)

    def _give(self, topic: bytes, partition: int, number: int) -> None:
        self._owners[topic][partition] = number
        self._loads[number] += 1

    def _fill(self, topic: bytes) -> None:
        """Assign each free partition to the reader with the fewest partitions."""
        owners = self._owners[topic]
        lightest = [(self._loads[number], number) for number in self._readers[topic]]
        heapq.heapify(lightest)
        for partition in _numbers(self._plan, topic):
            if partition not in owners:
                _, number = heapq.heappop(lightest)
                self._give(topic, partition, number)
                heapq.heappush(lightest, (self._loads[number], number))

    def _even_out(self, topic: bytes) -> bool:
        """Move partitions of a topic from the fullest to the emptiest reader; True if any moved."""
        readers = self._readers[topic]
        loads = [self._loads[number] for number in readers]
        if max(loads) - min(loads) <= 1:
            return False
        owned: dict[int, list[int]] = {}
        for partition, number in sorted(self._owners[topic].items()):
            owned.setdefault(number, []).append(partition)
        lightest = [(self._loads[number], number) for number in readers]
        heaviest = [(-self._loads[number], number) for number in owned]
        heapq.heapify(lightest)
        heapq.heapify(heaviest)
        has_moved = False
        while heaviest:
            load, giver = heapq.heappop(heaviest)
            if -load != self._loads[giver] or not owned[giver]:
                continue
            taker = self._lightest(lightest)
            if self._loads[giver] - self._loads[taker] <= 1:
                break
            self._loads[giver] -= 1
            partition = owned[giver].pop()
            self._give(topic, partition, taker)
            owned.setdefault(taker, []).append(partition)
            for number in (giver, taker):
                heapq.heappush(heaviest, (-self._loads[number], number))
                heapq.heappush(lightest, (self._loads[number], number))
            has_moved = True
        return has_moved

    def _lightest(self, loads: list[tuple[int, int]]) -> int:
        """Return the member with the fewest partitions; outdated heap entries are discarded."""
        while loads[0][0] != self._loads[loads[0][1]]:
            heapq.heappop(loads)
        return loads[0][1]
