"""Simple clients of both group protocols, which report truthfully which partitions they own."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field

from ottla.base.errors import ErrorCode
from ottla.cluster.image import ClusterImage
from ottla.coordinators.consumer.transition import Client
from ottla.wire import consumer_protocol
from ottla.wire.consumer_protocol import (
    ConsumerProtocolAssignment,
    ConsumerProtocolSubscription,
    TopicPartition,
)
from ottla.wire.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    TopicPartitions,
)
from ottla.wire.messages.heartbeat import HeartbeatRequest
from ottla.wire.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from ottla.wire.messages.leave_group import LeaveGroupRequest, MemberIdentity
from ottla.wire.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment

SESSION_MS = 45_000
CLASSIC_SESSION_MS = 10_000
REBALANCE_TIMEOUT_MS = 300_000
_START_OVER = (
    ErrorCode.FENCED_MEMBER_EPOCH,
    ErrorCode.UNKNOWN_MEMBER_ID,
    # The group became classic without this member, which must therefore be started again.
    ErrorCode.GROUP_ID_NOT_FOUND,
)


@dataclass(eq=False)
class ConsumerClient:
    """One member. `heard_at` is the time of the last successful request, in seconds.

    It revokes partitions only when `revoke` is called, and accepts every assignment.
    """

    member_id: str
    group: str = "g"
    instance: str | None = None
    topics: list[str] | None = field(default_factory=lambda: ["t"])
    regex: str | None = None
    assignor: str | None = None
    session_ms: int = SESSION_MS
    epoch: int = 0
    owned: set[tuple[bytes, int]] = field(default_factory=set)
    target: set[tuple[bytes, int]] = field(default_factory=set)
    heard_at: float = -1.0
    waiting: "asyncio.Future | None" = None
    last_error: int = 0
    is_unsure: bool = True
    must_join: bool = True

    def beat(self, coordinator, now):
        """Send a heartbeat unless the last one still waits for its response."""
        if self.waiting is not None and not self.waiting.done():
            return
        # The request is complete if the member joins, or does not know whether the last one
        # arrived.
        sent = self.topics
        reply = coordinator.membership.consumer_heartbeat(
            self.request(is_full=self.epoch == 0 or self.is_unsure),
            api_version=1,
            client=Client("client", "/127.0.0.1"),
        )
        if isinstance(reply, asyncio.Future):
            self.waiting = reply
            reply.add_done_callback(lambda done: self._hear(done.result(), now, sent))
        else:
            self._hear(reply, now, sent)

    def request(self, *, is_full):
        """Return the next heartbeat."""
        request = ConsumerGroupHeartbeatRequest(
            group_id=self.group,
            member_id=self.member_id,
            member_epoch=self.epoch,
            instance_id=self.instance,
            topic_partitions=_by_topic(self.owned if self.epoch else ()),
        )
        if is_full:
            request.rebalance_timeout_ms = REBALANCE_TIMEOUT_MS
            request.subscribed_topic_names = self.topics
            request.subscribed_topic_regex = self.regex
            request.server_assignor = self.assignor
        return request

    def _hear(self, response, now, sent):
        self.last_error = response.error_code
        # The topics may have changed while the request waited.
        self.is_unsure = bool(response.error_code) or self.topics != sent
        if response.error_code in _START_OVER:
            self.start_over()
        if response.error_code:
            return
        assert response.member_id == self.member_id
        self.epoch = response.member_epoch
        self.heard_at = max(self.heard_at, now)
        if response.assignment is not None:
            self.target = {
                (topic.topic_id, partition)
                for topic in response.assignment.topic_partitions
                for partition in topic.partitions
            }
            if self.owned <= self.target:
                self.owned = set(self.target)

    def revoke(self):
        """Revoke partitions that are not in the target, and accept the others."""
        self.owned &= self.target

    def start_over(self):
        """Give up all partitions and join again."""
        self.epoch, self.owned, self.target = 0, set(), set()

    def leave(self, coordinator, epoch=-1):
        """Leave, or with -2 leave temporarily, without waiting for the response."""
        request = ConsumerGroupHeartbeatRequest(
            group_id=self.group,
            member_id=self.member_id,
            member_epoch=epoch,
            instance_id=self.instance,
        )
        self.start_over()
        client = Client("client", "/127.0.0.1")
        return coordinator.membership.consumer_heartbeat(request, api_version=1, client=client)


def _by_topic(places):
    entries = {}
    for topic_id, partition in sorted(places):
        entries.setdefault(topic_id, []).append(partition)
    return [
        TopicPartitions(topic_id=topic_id, partitions=partitions)
        for topic_id, partitions in entries.items()
    ]


@dataclass(eq=False)
class ClassicClient:
    """An eager member of the classic protocol: it revokes all its partitions before it joins again.

    `image` returns the current topics, which the leader of a classic group must know.
    """

    image: "Callable[[], ClusterImage]"
    topics: list[str] = field(default_factory=lambda: ["t"])
    group: str = "g"
    instance: str | None = None
    regex: str | None = None
    assignor: str | None = None
    member_id: str = ""
    generation: int = -1
    owned: set[tuple[bytes, int]] = field(default_factory=set)
    heard_at: float = -1.0
    session_ms: int = CLASSIC_SESSION_MS
    waiting: "asyncio.Future | None" = None
    must_join: bool = True
    is_unsure: bool = False
    # The partition counts of its last assignment as the leader.
    assigned_for: dict[str, int] | None = None

    @property
    def target(self):
        """The owned partitions, because an eager member has no others."""
        return self.owned

    def revoke(self):
        """Do nothing, because an eager member has nothing to revoke."""

    def beat(self, coordinator, now):
        """Perform the next step: join, or send a heartbeat."""
        if self.waiting is not None and not self.waiting.done():
            return
        if self.assigned_for is not None and self.assigned_for != self._counts():
            self.must_join = True
        if self.must_join:
            self._join(coordinator, now)
            return
        request = HeartbeatRequest(
            group_id=self.group, member_id=self.member_id, generation_id=self.generation
        )
        self._when(
            coordinator.membership.heartbeat(request), lambda answer: self._hear(answer, now)
        )

    def _when(self, reply, hear):
        if isinstance(reply, asyncio.Future):
            self.waiting = reply
            reply.add_done_callback(lambda done: hear(done.result()))
        else:
            hear(reply)

    def _hear(self, response, now):
        if response.error_code == ErrorCode.NONE:
            self.heard_at = max(self.heard_at, now)
        elif response.error_code == ErrorCode.UNKNOWN_MEMBER_ID:
            self._forget()
        elif response.error_code in (ErrorCode.REBALANCE_IN_PROGRESS, ErrorCode.ILLEGAL_GENERATION):
            self.owned, self.must_join = set(), True

    def _forget(self):
        self.member_id, self.owned, self.must_join, self.assigned_for = "", set(), True, None

    def _join(self, coordinator, now):
        self.owned, self.assigned_for = set(), None
        subscription = ConsumerProtocolSubscription(topics=self.topics)
        metadata = consumer_protocol.encode_subscription(subscription)
        request = JoinGroupRequest(
            group_id=self.group,
            member_id=self.member_id,
            session_timeout_ms=CLASSIC_SESSION_MS,
            rebalance_timeout_ms=20_000,
            protocol_type="consumer",
            protocols=[JoinGroupRequestProtocol(name="range", metadata=metadata)],
        )
        reply = coordinator.membership.join_group(
            request, api_version=3, client_id="client", client_host="/127.0.0.1"
        )
        sent = self.topics
        self._when(reply, lambda answer: self._joined(coordinator, answer, now, sent))

    def _joined(self, coordinator, response, now, sent):
        if response.error_code == ErrorCode.UNKNOWN_MEMBER_ID:
            self._forget()
        elif response.error_code == ErrorCode.REBALANCE_IN_PROGRESS:
            self.member_id = response.member_id
        if response.error_code:
            return
        self.member_id, self.generation = response.member_id, response.generation_id
        request = SyncGroupRequest(
            group_id=self.group,
            member_id=self.member_id,
            generation_id=self.generation,
            assignments=self._assignments(response.members) if response.members else [],
        )
        self._when(
            coordinator.membership.sync_group(request), lambda found: self._synced(found, now, sent)
        )

    def _synced(self, response, now, sent):
        self._hear(response, now)
        if response.error_code:
            return
        assignment = consumer_protocol.decode_assignment(response.assignment)
        topics = self.image().topics
        self.owned = {
            (topics[item.topic].topic_id, partition)
            for item in assignment.assigned_partitions
            if item.topic in topics
            for partition in item.partitions
        }
        self.must_join = self.topics != sent

    def _counts(self):
        return {name: len(topic.partitions) for name, topic in self.image().topics.items()}

    def _assignments(self, members):
        """Assign as the leader of a classic group: each partition to one of its subscribers."""
        self.assigned_for = self._counts()
        reads = {
            member.member_id: consumer_protocol.decode_subscription(member.metadata).topics
            for member in members
        }
        shares = {member_id: {} for member_id in reads}
        turn = 0
        for name, count in self.assigned_for.items():
            readers = [member_id for member_id, topics in reads.items() if name in topics]
            for partition in range(count if readers else 0):
                share = shares[readers[turn % len(readers)]]
                share.setdefault(name, []).append(partition)
                turn += 1
        return [
            SyncGroupRequestAssignment(member_id=member_id, assignment=_blob(share))
            for member_id, share in shares.items()
        ]

    def leave(self, coordinator, epoch=-1):
        """Leave without waiting for the response."""
        self.owned = set()
        request = LeaveGroupRequest(
            group_id=self.group, members=[MemberIdentity(member_id=self.member_id)]
        )
        return coordinator.membership.leave_group(request)


def _blob(share):
    return consumer_protocol.encode_assignment(
        ConsumerProtocolAssignment(
            assigned_partitions=[
                TopicPartition(topic=name, partitions=partitions)
                for name, partitions in share.items()
            ]
        )
    )
