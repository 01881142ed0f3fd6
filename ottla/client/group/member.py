"""One member's requests to its group's coordinator, in the classic protocol; they block.

JoinGroup is sent until a generation is complete: the coordinator responds when all members have
joined, and the group's leader then computes the assignment (SyncGroup).
"""

from collections.abc import Callable, Mapping, Sequence
from enum import Enum, auto
from typing import NamedTuple, TypeVar

from ottla.base.errors import ApiError, ErrorCode
from ottla.client.brokers import Brokers
from ottla.client.group.assignors import MemberSubscription, PartitionAssignor, PartitionRacks
from ottla.client.group.identities import NO_GENERATION, Identity
from ottla.client.group.offset_requests import Offsets, commit_offsets
from ottla.client.records import TopicPartition
from ottla.client.security.options import Security
from ottla.wire import consumer_protocol
from ottla.wire.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from ottla.wire.messages.join_group import (
    JoinGroupRequest,
    JoinGroupRequestProtocol,
    JoinGroupResponse,
)
from ottla.wire.messages.leave_group import LeaveGroupRequest, LeaveGroupResponse, MemberIdentity
from ottla.wire.messages.sync_group import (
    SyncGroupRequest,
    SyncGroupRequestAssignment,
    SyncGroupResponse,
)
from ottla.wire.schema import Message

M = TypeVar("M", bound=Message)

# The coordinator responds to JoinGroup at the latest when the time for the rebalance is over.
_JOIN_MARGIN_S = 5.0


class GroupSettings(NamedTuple):
    """The options of one member; times in seconds."""

    bootstrap: str
    client_id: str
    group_id: str
    instance_id: str | None
    session_s: float
    rebalance_s: float
    heartbeat_s: float
    refresh_s: float
    creates_topics: bool
    security: Security | None = None
    rack: str | None = None


class Verdict(Enum):
    """The meaning of the coordinator's response for a member."""

    FINE = auto()
    # Join the next generation.
    REBALANCE = auto()
    # The partitions may belong to others.
    REMOVED = auto()


class ClassicMember:
    """One member of a group of the classic protocol. For one thread."""

    def __init__(
        self, settings: GroupSettings, assignors: Sequence[PartitionAssignor], brokers: Brokers
    ) -> None:
        self.id = ""
        self.generation = NO_GENERATION
        self.is_leader = False
        # In the leader: the racks of the partitions of the group's topics.
        self.racks: PartitionRacks = {}
        self._settings = settings
        self._assignors = {assignor.name: assignor for assignor in assignors}
        self._brokers = brokers

    def join(
        self, topics: Sequence[str], partition_racks: Callable[[Sequence[str]], PartitionRacks]
    ) -> list[TopicPartition] | None:
        """Join once; return the assignment, or None if the group has to be joined again.

        Raises ApiError for errors that joining again does not solve, and for transient ones.
        """
        joined = self._ask_slowly(self._join_request(topics), JoinGroupResponse)
        if joined.error_code == ErrorCode.MEMBER_ID_REQUIRED:
            self.id = joined.member_id
            return None
        if self._noted(joined.error_code) is not Verdict.FINE:
            return None
        self.id, self.generation = joined.member_id, joined.generation_id
        self.is_leader = joined.leader == joined.member_id
        assignor = self._assignors[joined.protocol_name or ""]
        assignments: Mapping[str, Sequence[tuple[str, int]]] = {}
        if self.is_leader:
            members = {
                member.member_id: _subscription_of(member.metadata, member.group_instance_id)
                for member in joined.members
            }
            subscribed = {topic for member in members.values() for topic in member.topics}
            self.racks = partition_racks(sorted(subscribed or topics))
            if not joined.skip_assignment:
                assignments = assignor.assign_near(self.racks, members)
        synced = self._ask_slowly(self._sync_request(assignor, assignments), SyncGroupResponse)
        if self._noted(synced.error_code) is not Verdict.FINE:
            return None
        assignment = consumer_protocol.decode_assignment(synced.assignment)
        rows, data = assignment.assigned_partitions, assignment.user_data
        mine = [TopicPartition(*key) for key in consumer_protocol.ungrouped(rows)]
        assignor.received(None if data is None else bytes(data))
        assignor.assigned(mine, self.generation)
        return mine

    def heartbeat(self) -> Verdict:
        """Send a sign of life to the coordinator; return FINE, REBALANCE or REMOVED.

        Raises ApiError for other errors, NotReachable and TimedOut.
        """
        request = HeartbeatRequest(
            group_id=self._settings.group_id,
            generation_id=self.generation,
            member_id=self.id,
            group_instance_id=self._settings.instance_id,
        )
        return self._noted(self._ask(request, HeartbeatResponse).error_code)

    def commit(self, offsets: Offsets) -> int:
        """Commit offsets with their metadata as a member; return the first error code, or 0."""
        identity = Identity(self.id, self.generation, self._settings.instance_id)
        group_id = self._settings.group_id
        try:
            return self._brokers.retry(
                lambda: commit_offsets(self._brokers, group_id, identity, offsets)
            )
        except ApiError as error:
            return int(error.code)

    def forget(self) -> None:
        """Become a new member with the next join."""
        self.id, self.generation, self.is_leader = "", NO_GENERATION, False

    def _noted(self, code: int) -> Verdict:
        """Return the meaning of an error code, after which a removed member has no generation.

        Raises ApiError for the codes that `Verdict` does not have.
        """
        if not code:
            return Verdict.FINE
        if code == ErrorCode.REBALANCE_IN_PROGRESS:
            return Verdict.REBALANCE
        if code not in (ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.ILLEGAL_GENERATION):
            raise ApiError(ErrorCode(code))
        self.generation, self.is_leader = NO_GENERATION, False
        # With a wrong generation it is still a member, and joins under its id.
        if code == ErrorCode.UNKNOWN_MEMBER_ID:
            self.id = ""
        return Verdict.REMOVED

    def _join_request(self, topics: Sequence[str]) -> JoinGroupRequest:
        settings = self._settings
        protocols = []
        for assignor in self._assignors.values():
            subscription = consumer_protocol.ConsumerProtocolSubscription(
                topics=list(topics),
                user_data=assignor.user_data(topics),
                rack_id=settings.rack or None,
            )
            metadata = consumer_protocol.encode_subscription(subscription)
            protocols.append(JoinGroupRequestProtocol(name=assignor.name, metadata=metadata))
        return JoinGroupRequest(
            group_id=settings.group_id,
            session_timeout_ms=round(settings.session_s * 1000),
            rebalance_timeout_ms=round(settings.rebalance_s * 1000),
            member_id=self.id,
            group_instance_id=settings.instance_id,
            protocol_type=consumer_protocol.PROTOCOL_TYPE,
            protocols=protocols,
        )

    def _sync_request(
        self, assignor: PartitionAssignor, assignments: Mapping[str, Sequence[tuple[str, int]]]
    ) -> SyncGroupRequest:
        return SyncGroupRequest(
            group_id=self._settings.group_id,
            generation_id=self.generation,
            member_id=self.id,
            group_instance_id=self._settings.instance_id,
            protocol_type=consumer_protocol.PROTOCOL_TYPE,
            protocol_name=assignor.name,
            assignments=[
                SyncGroupRequestAssignment(
                    member_id=member_id,
                    assignment=_encoded(partitions, assignor.assignment_data(member_id)),
                )
                for member_id, partitions in assignments.items()
            ],
        )

    def _ask(self, request: Message, response: type[M]) -> M:
        return self._brokers.ask_coordinator(self._settings.group_id, request, response)

    def _ask_slowly(self, request: Message, response: type[M]) -> M:
        """Wait as long as a rebalance may take."""
        before = self._brokers.timeout_s
        self._brokers.timeout_s = self._settings.rebalance_s + _JOIN_MARGIN_S
        try:
            return self._ask(request, response)
        finally:
            self._brokers.timeout_s = before


def leave(settings: GroupSettings, member_id: str, reason: str, timeout_s: float) -> None:
    """Leave the group, on a connection of its own: another may wait for JoinGroup's response.

    Raises ApiError, NotReachable or TimedOut.
    """
    request = LeaveGroupRequest(
        group_id=settings.group_id,
        members=[
            MemberIdentity(
                member_id=member_id, group_instance_id=settings.instance_id, reason=reason
            )
        ],
    )
    with Brokers(
        settings.bootstrap,
        timeout_s=timeout_s,
        client_id=settings.client_id,
        is_proven=True,
        security=settings.security,
    ) as brokers:
        brokers.ask_coordinator(settings.group_id, request, LeaveGroupResponse)


def _subscription_of(metadata: bytes, instance_id: str | None) -> MemberSubscription:
    subscription = consumer_protocol.decode_subscription(metadata)
    user_data = subscription.user_data
    owned = consumer_protocol.ungrouped(subscription.owned_partitions)
    return MemberSubscription(
        tuple(subscription.topics),
        None if user_data is None else bytes(user_data),
        instance_id,
        subscription.rack_id or None,
        tuple(TopicPartition(*key) for key in owned),
        subscription.generation_id,
    )


def _encoded(partitions: Sequence[tuple[str, int]], user_data: bytes | None) -> bytes:
    assignment = consumer_protocol.ConsumerProtocolAssignment(
        assigned_partitions=consumer_protocol.grouped(partitions), user_data=user_data
    )
    return consumer_protocol.encode_assignment(assignment, 1)
