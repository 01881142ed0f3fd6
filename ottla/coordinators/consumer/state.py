"""A group of the consumer protocol in memory: epochs, members, current and target assignments.

Only `replay.py` changes a group; members are immutable values that are replaced. Follows Kafka's
ConsumerGroup, ModernGroup and ConsumerGroupMember.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from enum import Enum, IntEnum
from typing import NamedTuple, TypeAlias

# Partitions by topic id, each with the epoch in which its owner was assigned it.
CurrentAssignment: TypeAlias = Mapping[bytes, Mapping[int, int]]
TargetAssignment: TypeAlias = Mapping[bytes, frozenset[int]]
TopicPartition: TypeAlias = tuple[bytes, int]

JOINING_EPOCH = 0
LEAVING_EPOCH = -1
# A static member that intends to return.
AWAY_EPOCH = -2
# The epoch of a new group; its first member makes it 2.
INITIAL_EPOCH = 1
NO_EPOCH = -1


class GroupState(Enum):
    """The states of a group, by the names that tools print."""

    EMPTY = "Empty"
    ASSIGNING = "Assigning"
    RECONCILING = "Reconciling"
    STABLE = "Stable"
    DEAD = "Dead"


class MemberState(IntEnum):
    """The states of a member on the way to its target, with their numbers in the record."""

    STABLE = 0
    # It has not confirmed yet that it revoked partitions.
    UNREVOKED_PARTITIONS = 1
    # It waits for partitions that other members still own.
    UNRELEASED_PARTITIONS = 2
    # A state of a later version of Kafka.
    UNKNOWN = 127


@dataclass(frozen=True, slots=True)
class ClassicMembership:
    """The protocols by name and the timeout in ms of a member that uses the classic protocol."""

    session_timeout_ms: int
    protocols: tuple[tuple[str, bytes], ...]


class ResolvedRegex(NamedTuple):
    """The topics that a regular expression matched, and the time of the lookup (ms)."""

    topics: frozenset[str]
    version: int
    timestamp_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Member:
    """One member; `subscribed_regex` is empty or null if it subscribes to no pattern."""

    member_id: str
    instance_id: str | None = None
    rack_id: str | None = None
    client_id: str = ""
    client_host: str = ""
    subscribed_topics: frozenset[str] = frozenset()
    subscribed_regex: str | None = ""
    rebalance_timeout_ms: int = -1
    server_assignor: str | None = None
    classic: ClassicMembership | None = None
    epoch: int = JOINING_EPOCH
    previous_epoch: int = NO_EPOCH
    state: MemberState = MemberState.STABLE
    assigned: CurrentAssignment = field(default_factory=dict)
    pending_revocation: CurrentAssignment = field(default_factory=dict)

    @property
    def is_classic(self) -> bool:
        """True if the member uses the classic protocol."""
        return self.classic is not None

    def is_reconciled_to(self, epoch: int) -> bool:
        """Return True if the member has all partitions of the target of this epoch."""
        return self.state is MemberState.STABLE and self.epoch == epoch

    def at_epoch(self, epoch: int) -> "Member":
        """Return the member in another epoch, with its current one as the previous epoch."""
        return replace(self, epoch=epoch, previous_epoch=self.epoch)

    def assignment_epoch(self, topic_partition: TopicPartition) -> int | None:
        """Return the epoch in which the member was assigned a partition; None if it does not own
        it.
        """
        topic_id, partition = topic_partition
        for assignment in (self.assigned, self.pending_revocation):
            epoch = assignment.get(topic_id, {}).get(partition)
            if epoch is not None:
                return epoch
        return None


def partitions_of(member: Member) -> list[TopicPartition]:
    """Return every partition that other members must not own while the member is in this state."""
    return [
        (topic_id, partition)
        for assignment in (member.assigned, member.pending_revocation)
        for topic_id, partitions in assignment.items()
        for partition in partitions
    ]


def _count(member: Member, topics: Counter[str], regexes: Counter[str], by: int) -> None:
    """Add or subtract a member's subscription; topics and expressions without readers are removed."""
    regex = [member.subscribed_regex] if member.subscribed_regex else ()
    for uses, names in ((topics, member.subscribed_topics), (regexes, regex)):
        for name in names:
            uses[name] += by
            if not uses[name]:
                del uses[name]


class Subscriptions(NamedTuple):
    """A group's subscriptions: the number of members by topic name, and by regular expression."""

    topics: Counter[str]
    regexes: Counter[str]


@dataclass(slots=True)
class ConsumerGroup:
    """A group; `assignment_epoch` is the group epoch for which the target was computed."""

    group_id: str
    epoch: int = INITIAL_EPOCH
    metadata_hash: int = 0
    assignment_epoch: int = INITIAL_EPOCH
    assignment_timestamp_ms: int = 0
    members: dict[str, Member] = field(default_factory=dict)
    targets: dict[str, TargetAssignment] = field(default_factory=dict)
    regexes: dict[str, ResolvedRegex] = field(default_factory=dict)
    # Member id by group.instance.id.
    static_members: dict[str, str] = field(default_factory=dict)
    # The members that own each partition, or have not revoked it yet.
    owners: dict[TopicPartition, str] = field(default_factory=dict)
    # The number of members that subscribe to a topic, and to an expression.
    topic_uses: Counter[str] = field(default_factory=Counter)
    regex_uses: Counter[str] = field(default_factory=Counter)
    # From before KIP-1101; removed with the next change of the subscriptions.
    has_partition_metadata: bool = False

    @property
    def state(self) -> GroupState:
        """The group's state, derived from its epochs and members."""
        if not self.members:
            return GroupState.EMPTY
        if self.epoch > self.assignment_epoch:
            return GroupState.ASSIGNING
        if all(member.is_reconciled_to(self.assignment_epoch) for member in self.members.values()):
            return GroupState.STABLE
        return GroupState.RECONCILING

    def static_member(self, instance_id: str | None) -> Member | None:
        """Return the member with an instance id; None if no member has it."""
        member_id = None if instance_id is None else self.static_members.get(instance_id)
        return None if member_id is None else self.members.get(member_id)

    def target_of(self, member_id: str) -> TargetAssignment:
        """Return a member's target."""
        return self.targets.get(member_id, {})

    def put(self, member: Member) -> None:
        """Add a member, or replace its previous state."""
        self._forget(member.member_id)
        self.members[member.member_id] = member
        if member.instance_id is not None:
            self.static_members[member.instance_id] = member.member_id
        self.owners.update(dict.fromkeys(partitions_of(member), member.member_id))
        _count(member, self.topic_uses, self.regex_uses, 1)

    def remove(self, member_id: str) -> None:
        """Remove a member; does nothing if it does not exist."""
        self._forget(member_id)
        self.members.pop(member_id, None)

    def _forget(self, member_id: str) -> None:
        old = self.members.get(member_id)
        if old is None:
            return
        for topic_partition in partitions_of(old):
            if self.owners.get(topic_partition) == member_id:
                del self.owners[topic_partition]
        if old.instance_id is not None and self.static_members.get(old.instance_id) == member_id:
            del self.static_members[old.instance_id]
        _count(old, self.topic_uses, self.regex_uses, -1)

    def members_with(self, member: Member | None) -> list[Member]:
        """Return the members after `member` was added or updated, or has replaced a static
        member.
        """
        members = dict(self.members)
        if member is not None:
            replaced = self.static_members.get(member.instance_id or "")
            if replaced is not None:
                members.pop(replaced, None)
            members[member.member_id] = member
        return list(members.values())

    def subscriptions(self, members: Iterable[Member] | None = None) -> Subscriptions:
        """Return the subscriptions of these members, by default of the group's own."""
        if members is None:
            return Subscriptions(self.topic_uses, self.regex_uses)
        result = Subscriptions(Counter(), Counter())
        for member in members:
            _count(member, result.topics, result.regexes, 1)
        return result

    def topics_read(self, subscriptions: Subscriptions | None = None) -> set[str]:
        """Return the names of all topics that members read, including those that do not exist."""
        current = self.subscriptions() if subscriptions is None else subscriptions
        names = set(current.topics)
        for regex in current.regexes:
            resolved = self.regexes.get(regex)
            if resolved is not None:
                names |= resolved.topics
        return names

    def is_subscribed_to(self, topic: str) -> bool:
        """Return True if a member reads the topic."""
        return topic in self.topics_read()

    def topics_of(self, member: Member) -> set[str]:
        """Return the names of the topics that one member reads."""
        resolved = self.regexes.get(member.subscribed_regex or "")
        return set(member.subscribed_topics) | (resolved.topics if resolved else frozenset())

    def preferred_assignor(self, members: list[Member] | None = None) -> str | None:
        """Return the assignor that most members request; None if no member requests one."""
        requests: Counter[str] = Counter(
            member.server_assignor
            for member in (self.members.values() if members is None else members)
            if member.server_assignor is not None
        )
        # If two are requested equally often, uniform is preferred to range.
        return max(requests, key=lambda name: (requests[name], name)) if requests else None

    @property
    def classic_member_count(self) -> int:
        """The number of members that use the classic protocol."""
        return sum(member.is_classic for member in self.members.values())

    def supports_classic(self, names: list[str]) -> bool:
        """Return True if every classic member supports one of these protocols."""
        if not self.members:
            return bool(names)
        supporters: Counter[str] = Counter(
            name
            for member in self.members.values()
            if member.classic is not None
            for name, _ in member.classic.protocols
        )
        return any(supporters[name] == self.classic_member_count for name in names)
