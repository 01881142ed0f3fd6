"""A group in memory: its members, its state, and the queries that every decision needs.

Only the pure functions in the modules of this package change a group, each called by `machine.py`.
The durable part of a group is its metadata record (`stored.py`). Everything else here may be lost
with the broker; the members send it again. Follows Kafka's ClassicGroup and ClassicGroupMember.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import Enum

from ottla.base.errors import ErrorCode, ProtocolError
from ottla.coordinators.classic.events import Ticket
from ottla.wire import consumer_protocol, schema
from ottla.wire.messages.join_group import JoinGroupRequestProtocol

NO_TIMESTAMP = -1
_SUBSCRIPTION_START = 2


class GroupState(Enum):
    """The states of a group, by the names that tools print."""

    EMPTY = "Empty"
    PREPARING_REBALANCE = "PreparingRebalance"
    COMPLETING_REBALANCE = "CompletingRebalance"
    STABLE = "Stable"
    DEAD = "Dead"


# The valid previous states of each state.
PREVIOUS_STATES: Mapping[GroupState, frozenset[GroupState]] = {
    GroupState.EMPTY: frozenset({GroupState.PREPARING_REBALANCE}),
    GroupState.PREPARING_REBALANCE: frozenset(
        {GroupState.STABLE, GroupState.COMPLETING_REBALANCE, GroupState.EMPTY}
    ),
    GroupState.COMPLETING_REBALANCE: frozenset({GroupState.PREPARING_REBALANCE}),
    GroupState.STABLE: frozenset({GroupState.COMPLETING_REBALANCE}),
    GroupState.DEAD: frozenset(GroupState),
}


@dataclass(slots=True, kw_only=True)
class Member:
    """One member; `protocols` maps its protocol names, in order of preference, to its subscription.

    `is_new` until it receives its first join response: a new member cannot send heartbeats.
    """

    member_id: str
    client_id: str
    client_host: str
    session_timeout_ms: int
    rebalance_timeout_ms: int
    protocols: dict[str, bytes]
    group_instance_id: str | None = None
    assignment: bytes = b""
    is_new: bool = False

    @property
    def is_static(self) -> bool:
        """True if the member keeps its membership while it is away (KIP-345)."""
        return self.group_instance_id is not None

    def has_protocols(self, protocols: Mapping[str, bytes]) -> bool:
        """Return True if these are the member's protocols, in the same order."""
        return list(self.protocols.items()) == list(protocols.items())

    def vote(self, candidates: Iterable[str]) -> str:
        """Return the first of its protocols that is a candidate."""
        return next(name for name in self.protocols if name in candidates)


def protocols_of(protocols: Iterable[JoinGroupRequestProtocol]) -> dict[str, bytes]:
    """Return a request's protocols by name, in order of preference."""
    return {protocol.name: bytes(protocol.metadata) for protocol in protocols}


@dataclass(slots=True)
class InitialDelay:
    """The time in ms for which the first members of a group still wait for others."""

    delay_ms: int
    remaining_ms: int


@dataclass(slots=True)
class Group:
    """A group of the classic protocol."""

    group_id: str
    state: GroupState = GroupState.EMPTY
    previous_state: GroupState = GroupState.DEAD
    state_since_ms: int = NO_TIMESTAMP
    generation: int = 0
    protocol_type: str | None = None
    protocol_name: str | None = None
    leader: str | None = None
    members: dict[str, Member] = field(default_factory=dict)
    # Member id by group.instance.id.
    static_members: dict[str, str] = field(default_factory=dict)
    # Ids that were returned with MEMBER_ID_REQUIRED and have not joined yet.
    pending_members: set[str] = field(default_factory=set)
    # Members of the generation that have not requested their assignment yet.
    pending_sync: set[str] = field(default_factory=set)
    awaiting_join: dict[str, Ticket] = field(default_factory=dict)
    awaiting_sync: dict[str, Ticket] = field(default_factory=dict)
    # Topics that the members read; None if their subscriptions cannot be parsed.
    subscribed_topics: frozenset[str] | None = None
    initial_delay: InitialDelay | None = None
    is_new_member_added: bool = False
    _supported: Counter[str] = field(default_factory=Counter)

    @property
    def is_consumer_group(self) -> bool:
        """True if the members' metadata have the format of Kafka consumers."""
        return self.protocol_type == consumer_protocol.PROTOCOL_TYPE

    @property
    def can_rebalance(self) -> bool:
        """True if a rebalance can start in this state."""
        return self.state in PREVIOUS_STATES[GroupState.PREPARING_REBALANCE]

    @property
    def rebalance_timeout_ms(self) -> int:
        """The longest of the members' rebalance timeouts."""
        return max((member.rebalance_timeout_ms for member in self.members.values()), default=0)

    @property
    def has_all_members_joined(self) -> bool:
        """True if no member is missing in the rebalance."""
        return len(self.awaiting_join) == len(self.members) and not self.pending_members

    def transition(self, state: GroupState, now_ms: int) -> None:
        """Change the state, only along `PREVIOUS_STATES`."""
        assert self.state in PREVIOUS_STATES[state], f"{self.group_id}: {self.state} to {state}"
        self.previous_state = self.state
        self.state = state
        self.state_since_ms = now_ms

    def add(self, member: Member) -> None:
        """Add a member; the first one determines the protocol type and is the leader."""
        assert member.member_id not in self.members
        if member.group_instance_id is not None:
            assert member.group_instance_id not in self.static_members
            self.static_members[member.group_instance_id] = member.member_id
        self.members[member.member_id] = member
        self._supported.update(member.protocols.keys())
        self.leader = self.leader or member.member_id
        self.pending_members.discard(member.member_id)

    def remove(self, member_id: str) -> Member | None:
        """Remove a member or a pending one; its waiting requests must have got their responses."""
        assert member_id not in self.awaiting_join
        assert member_id not in self.awaiting_sync
        member = self.members.pop(member_id, None)
        if member is not None:
            self._supported.subtract(member.protocols.keys())
            if member.group_instance_id is not None:
                self.static_members.pop(member.group_instance_id, None)
        if self.leader == member_id:
            self.leader = next(iter(self.members), None)
        self.pending_members.discard(member_id)
        self.pending_sync.discard(member_id)
        return member

    def update(
        self,
        member: Member,
        protocols: dict[str, bytes],
        *,
        session_timeout_ms: int,
        rebalance_timeout_ms: int,
    ) -> None:
        """Update a member with the protocols and timeouts of its latest join."""
        self._supported.subtract(member.protocols.keys())
        member.protocols = protocols
        self._supported.update(protocols.keys())
        member.session_timeout_ms = session_timeout_ms
        member.rebalance_timeout_ms = rebalance_timeout_ms

    def supports(self, protocol_type: str, names: Iterable[str]) -> bool:
        """Return True if a member with this protocol type and these protocols can join."""
        if self.state is GroupState.EMPTY:
            return bool(protocol_type) and any(True for _ in names)
        if protocol_type != self.protocol_type:
            return False
        return any(self._supported[name] == len(self.members) for name in names)

    def elected_protocol(self) -> str:
        """Return the protocol that all members support and most prefer; a tie goes to the oldest
        member's.
        """
        assert self.members
        member_count = len(self.members)
        candidates = {name for name, count in self._supported.items() if count == member_count}
        votes = Counter(member.vote(candidates) for member in self.members.values())
        return max(votes, key=votes.__getitem__)

    def elect_joined_leader(self) -> bool:
        """Elect a leader that has joined this rebalance; False if no member has joined."""
        if self.leader not in self.awaiting_join:
            # In the order in which they became members, so that a replay elects the same one.
            member_id = next((name for name in self.members if name in self.awaiting_join), None)
            if member_id is None:
                return False
            self.leader = member_id
        return True

    def identity_error(self, member_id: str, group_instance_id: str | None) -> ErrorCode:
        """Check the identity: NONE, UNKNOWN_MEMBER_ID, or FENCED_INSTANCE_ID for a replaced member."""
        if group_instance_id is not None:
            current = self.static_members.get(group_instance_id)
            if current is None:
                return ErrorCode.UNKNOWN_MEMBER_ID
            if current != member_id:
                return ErrorCode.FENCED_INSTANCE_ID
        return ErrorCode.NONE if member_id in self.members else ErrorCode.UNKNOWN_MEMBER_ID

    def is_subscribed_to(self, topic: str) -> bool:
        """Return True if the topic's offsets are in use; always True for unparsed subscriptions."""
        if self.subscribed_topics is None:
            return self.is_consumer_group
        return topic in self.subscribed_topics

    def learn_subscribed_topics(self) -> None:
        """Parse the members' subscriptions if they have the format of Kafka consumers."""
        self.subscribed_topics = self._read_subscribed_topics()

    def _read_subscribed_topics(self) -> frozenset[str] | None:
        if not self.is_consumer_group:
            return None
        if not self.members:
            return frozenset()
        if self.protocol_name is None:
            return None
        topics: set[str] = set()
        for member in self.members.values():
            parsed = _topics_of(member.protocols[self.protocol_name])
            if parsed is None:
                return None
            topics.update(parsed)
        return frozenset(topics)


def _topics_of(subscription: bytes) -> list[str] | None:
    """Parse the topics at the beginning of every version of a subscription; None if invalid."""
    cls = consumer_protocol.ConsumerProtocolSubscription
    try:
        return schema.decode(cls, 0, subscription, _SUBSCRIPTION_START)[0].topics
    except ProtocolError:
        return None
