"""Three replicas of one partition, without a network: the test moves every message itself.

Each replica is a real `Replicas` on a simulated disk; the leader serves fetches with the real
handler, and a follower applies responses with the real follower code. The controller is a few lines
that decide elections and ISR changes as the real one does.
"""

import asyncio
from types import SimpleNamespace
from typing import Any, NamedTuple, cast

from ottla.base.errors import ApiError, ErrorCode
from ottla.base.rng import SeededRng
from ottla.base.tasks import Tasks
from ottla.cluster.image import BrokerImage, ClusterImage, PartitionState
from ottla.cluster.options import option_tables
from ottla.cluster.options.option_tables import BROKER_OPTIONS
from ottla.replication import following
from ottla.replication.follower_fetches import (
    Diverged,
    Effect,
    FetchedPartition,
    Followed,
    FollowerFetches,
    FollowerFetchLimits,
)
from ottla.replication.isr_updates import Dependencies, IsrUpdates
from ottla.replication.partition import Partition
from ottla.replication.ports import IsrAnswer, IsrProposal
from ottla.replication.replicas import Replicas
from ottla.server.current import Current
from ottla.server.fetch import followers
from ottla.server.fetch.sessions import FetchSessions
from ottla.storage.config import LogConfig
from ottla.storage.directories.disk import LogDirectories
from ottla.testing.sim.files import SimFileSystem
from ottla.wire.messages.fetch import FetchRequest, FetchResponse
from ottla.wire.records.records import Record, encode_batch, iterate_records
from tests.handlers.logs import Clock, connection, through_codec

TOPIC = "t"
TOPIC_ID = b"t" * 16
KEY = (TOPIC_ID, 0)
BROKERS = (1, 2, 3)
LAG_SECONDS = 30.0
VERSION = 17
MIN_ISR = {"min.insync.replicas": "2"}


class ReplicaBroker:
    """One broker; `restart` ends its process and starts another one on the same disk."""

    def __init__(self, node_id: int, clock: Clock) -> None:
        self.node_id = node_id
        self.clock = clock
        self.rng = SeededRng(node_id)
        self.tasks = Tasks()
        self.files = SimFileSystem()
        self.options = option_tables.topic_snapshot(BROKER_OPTIONS.parse({}), MIN_ISR)
        self.image = ClusterImage().with_brokers(
            [BrokerImage(broker, f"b{broker}", 9092) for broker in BROKERS]
        )
        self.current = Current(image=self.image, options=self.options)
        self.proposals: list[tuple[IsrProposal, asyncio.Future[IsrAnswer]]] = []
        self.start()

    def start(self) -> None:
        """Load the log and begin without any knowledge of the controller's decisions."""
        self.directories = LogDirectories.open(
            ["/data"],
            files=self.files,
            clock=self.clock,
            rng=self.rng,
            broker_id=self.node_id,
            default_config=LogConfig(segment_bytes=600),
            on_offline=lambda path, error: None,
        )
        self.replicas = Replicas(
            self.node_id,
            self.directories,
            clock=self.clock,
            files=self.files,
            tasks=self.tasks,
            topic_options=lambda _: self.options,
            image=lambda: self.image,
        )
        self.follower_sessions = FetchSessions(10, clock=self.clock, rng=self.rng)
        self.isr_updates = IsrUpdates(
            Dependencies(
                clock=self.clock,
                changes=self,
                lag_seconds=lambda: LAG_SECONDS,
                eligible=lambda: BROKERS,
                partitions=self.replicas.partitions,
            )
        )
        self.by_leader: dict[int, FollowerFetches] = {}
        self.fetches = FollowerFetches(self.node_id)
        self.followed: Followed | None = None
        self.proposals.clear()

    def restart(self) -> None:
        """End the process like `kill -9` and start it again."""
        self.files = self.files.kill()
        self.start()

    def propose(self, proposal: IsrProposal) -> "asyncio.Future[IsrAnswer]":
        """Keep a proposal until the test completes it (implements IsrChanges)."""
        future: asyncio.Future[IsrAnswer] = asyncio.get_running_loop().create_future()
        self.proposals.append((proposal, future))
        return future

    @property
    def partition(self) -> Partition | None:
        """The replica; None until a decision of the controller was applied since the start."""
        try:
            return self.replicas.get(TOPIC, 0)
        except ApiError:
            return None

    def apply(self, state: PartitionState) -> None:
        """Apply a decision of the controller, and begin to follow the leader of a new epoch."""
        former = -1 if self.partition is None else self.partition.leader_epoch
        self.replicas.apply_leader_and_isr(1, (state,))
        partition = self.partition
        if partition is None or partition.leader_epoch == former:
            return
        self.fetches.unfollow(KEY)
        self.followed = None
        if not partition.is_leader:
            # Each leader has a fetcher of its own; a response of another one is not for this one.
            self.fetches = self.by_leader.setdefault(
                partition.leader, FollowerFetches(self.node_id)
            )
            self.followed = following.begin(partition, KEY)
            self.fetches.follow(self.followed)

    def append(self, value: bytes) -> bool:
        """Produce one record with acks=all; return False if this broker refuses it."""
        partition = self.partition
        if partition is None:
            return False
        try:
            partition.append_as_leader(encode_batch([Record(None, value, (), 1000)]), acks=-1)
        except ApiError:
            return False
        return True

    def answer(self, request: FetchRequest) -> FetchResponse:
        """Serve a follower immediately, with the real handler."""
        request.max_wait_ms = 0
        context = SimpleNamespace(
            broker=self,
            api_version=VERSION,
            connection=connection(),
            usage=None,
            is_from_broker=lambda _: True,
        )
        response = followers.handle(cast(Any, context), request)
        assert isinstance(response, FetchResponse)
        fetch_response: FetchResponse = through_codec(response, VERSION)
        return fetch_response

    def request(self) -> FetchRequest | None:
        """Return the next fetch of this follower."""
        return self.fetches.next_request(self.clock.monotonic(), -1, FollowerFetchLimits())

    async def receive(self, fetches: FollowerFetches, response: FetchResponse) -> None:
        """Apply a response to a request of `fetches`, as the fetcher does."""
        for effect in fetches.received(response, self.clock.monotonic(), 1.0):
            await self._perform(effect)

    async def _perform(self, effect: Effect) -> None:
        partition, followed = self.partition, effect.followed
        if partition is None or not following.is_following(partition, followed.leader_epoch):
            return
        if isinstance(effect, FetchedPartition):
            following.append(partition, effect.data)
        elif isinstance(effect, Diverged):
            offset = following.truncation_offset(partition, effect.epoch, effect.end_offset)
            await following.truncate(partition, offset)
        else:
            raise AssertionError("no records are deleted here, and no election is unclean")
        following.synchronize(partition, followed)

    def values(self, end_offset: int) -> list[bytes | None]:
        """Return the records before `end_offset`."""
        partition = self.partition
        assert partition is not None
        result: list[bytes | None] = []
        while len(result) < end_offset:
            fetched = partition.log.read(len(result), 1 << 20, max_offset=end_offset)
            assert fetched is not None
            result += [record.value for record in iterate_records(bytes(fetched.data))]
        return result[:end_offset]


class Decision(NamedTuple):
    """The controller's state of the partition."""

    leader: int
    leader_epoch: int
    isr: tuple[int, ...]
    partition_epoch: int

    def state(self) -> PartitionState:
        """Return it as the controller sends it."""
        return PartitionState(
            topic=TOPIC,
            topic_id=TOPIC_ID,
            partition=0,
            leader=self.leader,
            leader_epoch=self.leader_epoch,
            isr=self.isr,
            replicas=BROKERS,
            partition_epoch=self.partition_epoch,
        )

    def elect(self, leader: int) -> "Decision":
        """Make a member of the ISR the leader."""
        return self._replace(
            leader=leader,
            leader_epoch=self.leader_epoch + 1,
            partition_epoch=self.partition_epoch + 1,
        )

    def alter(self, proposal: IsrProposal) -> tuple["Decision", IsrAnswer]:
        """Accept or refuse a leader's proposal."""
        if proposal.leader_epoch != self.leader_epoch:
            return self, IsrAnswer(ErrorCode.FENCED_LEADER_EPOCH)
        if proposal.partition_epoch != self.partition_epoch:
            return self, IsrAnswer(ErrorCode.INVALID_UPDATE_VERSION)
        isr = tuple(member.broker_id for member in proposal.new_isr)
        after = self._replace(isr=isr, partition_epoch=self.partition_epoch + 1)
        response = IsrAnswer(
            ErrorCode.NONE, after.leader, after.leader_epoch, isr, after.partition_epoch
        )
        return after, response
