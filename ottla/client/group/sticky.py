"""The StickyAssignor: balanced, and with as few moves as that allows (KIP-54, KIP-429).

The user data of a member has the partitions that it owned, in the format of Kafka's StickyAssignor,
so groups may have members of both. The same is true for the CooperativeStickyAssignor.
"""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import NamedTuple

from ottla.base.errors import ProtocolError
from ottla.client.group.assignors import (
    Assignments,
    MemberSubscription,
    PartitionAssignor,
    partitions_of,
)
from ottla.client.records import TopicPartition
from ottla.wire import consumer_protocol
from ottla.wire.schema import Message, array, decode, encode, int32

_NO_GENERATION = -1


class PreviousPartitions(Message, versions=(0, 1)):
    """The partitions that a member owned, and since version 1 in which generation."""

    previous_assignment: list[consumer_protocol.TopicPartition] = array(
        consumer_protocol.TopicPartition
    )
    generation: int = int32(since=1, default=_NO_GENERATION, ignorable=True)


class PreviousGeneration(Message, versions=(0, 0)):
    """When a member got the partitions that its subscription lists."""

    generation: int = int32(default=_NO_GENERATION)


class _Claim(NamedTuple):
    generation: int
    partitions: list[TopicPartition]


class StickyAssignor(PartitionAssignor):
    """Assigns every partition again as far as possible to the member that had it."""

    name = "sticky"

    def __init__(self) -> None:
        self._owned: list[TopicPartition] = []
        self._generation = _NO_GENERATION

    def user_data(self, topics: Sequence[str]) -> bytes | None:
        """Return the partitions of this member in the last generation; None before the first."""
        if self._generation == _NO_GENERATION:
            return None
        rows = consumer_protocol.grouped(self._owned)
        return encode(PreviousPartitions(previous_assignment=rows, generation=self._generation), 1)

    def assigned(self, partitions: Sequence[TopicPartition], generation: int) -> None:
        """Note the partitions of this member, for the next generation."""
        self._owned, self._generation = list(partitions), generation

    def claim_of(self, member: MemberSubscription) -> _Claim:
        """Return the partitions that a member had."""
        return _claim(member.user_data)

    def assign(
        self, counts: Mapping[str, int], members: Mapping[str, MemberSubscription]
    ) -> Assignments:
        """Return the partitions of each member."""
        readers = {
            topic: [key for key in sorted(members) if topic in members[key].topics]
            for topic in counts
        }
        claims = {member_id: self.claim_of(member) for member_id, member in members.items()}
        kept = _owners(readers, counts, claims)
        chosen: Assignments = {member_id: [] for member_id in sorted(members)}
        for partition, member_id in kept.items():
            chosen[member_id].append(partition)
        free = [partition for partition in partitions_of(counts) if partition not in kept]
        # Those that few members can take come first, while these have few others.
        for partition in sorted(free, key=lambda partition: len(readers[partition.topic])):
            if able := readers[partition.topic]:
                chosen[min(able, key=lambda key: len(chosen[key]))].append(partition)
        _balance(chosen, readers)
        return {member_id: sorted(partitions) for member_id, partitions in chosen.items()}


class CooperativeStickyAssignor(StickyAssignor):
    """The CooperativeStickyAssignor of a member that itself rebalances eagerly.

    Kafka's consumers do that if they offer it with another assignor, as they do by default: a group
    moves from one to the other in two restarts.
    """

    name = "cooperative-sticky"

    def user_data(self, topics: Sequence[str]) -> bytes | None:
        """Return the last generation, without partitions: an eager member keeps none."""
        if self._generation == _NO_GENERATION:
            return None
        return encode(PreviousGeneration(generation=self._generation), 0)

    def claim_of(self, member: MemberSubscription) -> _Claim:
        """Return the partitions that a member keeps during the rebalance."""
        generation = member.generation
        if generation == _NO_GENERATION and member.user_data:
            with suppress(ProtocolError):
                generation = decode(PreviousGeneration, 0, member.user_data)[0].generation
        return _Claim(generation, list(member.owned))

    def assign(
        self, counts: Mapping[str, int], members: Mapping[str, MemberSubscription]
    ) -> Assignments:
        """Return the partitions of each member, without those that another member must give up.

        That member joins again when it has revoked them: the next rebalance assigns them.
        """
        owned = {key: row.owned for key, row in members.items()}
        taken = {partition for partitions in owned.values() for partition in partitions}
        return {
            member_id: [row for row in rows if row not in taken or row in owned[member_id]]
            for member_id, rows in super().assign(counts, members).items()
        }


def _owners(
    readers: Mapping[str, Sequence[str]],
    counts: Mapping[str, int],
    claims: Mapping[str, _Claim],
) -> dict[TopicPartition, str]:
    """Return who had each partition and may keep it: of two members, the one of the later
    generation.
    """
    owners: dict[TopicPartition, str] = {}
    for member_id in sorted(claims, key=lambda key: (-claims[key].generation, key)):
        for partition in claims[member_id].partitions:
            exists = 0 <= partition.partition < counts.get(partition.topic, 0)
            if exists and member_id in readers[partition.topic]:
                owners.setdefault(partition, member_id)
    return dict(sorted(owners.items()))


def _claim(user_data: bytes | None) -> _Claim:
    """Decode user data; data that is not Kafka's StickyAssignor's claims nothing, as there."""
    if not user_data:
        return _Claim(_NO_GENERATION, [])
    for version in (1, 0):
        try:
            message, _ = decode(PreviousPartitions, version, user_data)
        except ProtocolError:
            continue
        keys = consumer_protocol.ungrouped(message.previous_assignment)
        owned = [TopicPartition(*key) for key in keys]
        return _Claim(message.generation, owned)
    return _Claim(_NO_GENERATION, [])


def _balance(chosen: Assignments, readers: Mapping[str, Sequence[str]]) -> None:
    """Move partitions to members that have at least two fewer, until no such member is left.

    Each move makes the sum of the squares of the sizes smaller, so this ends.
    """
    while move := _next_move(chosen, readers):
        partition, giver, taker = move
        chosen[giver].remove(partition)
        chosen[taker].append(partition)


def _next_move(
    chosen: Assignments, readers: Mapping[str, Sequence[str]]
) -> tuple[TopicPartition, str, str] | None:
    """Return a partition of the largest member that can give one, that member, and the next one."""
    for giver in sorted(chosen, key=lambda key: -len(chosen[key])):
        least: dict[str, str] = {}
        for partition in chosen[giver]:
            topic = partition.topic
            if topic not in least:
                least[topic] = min(readers[topic], key=lambda key: len(chosen[key]))
                if len(chosen[giver]) > len(chosen[least[topic]]) + 1:
                    return partition, giver, least[topic]
    return None
