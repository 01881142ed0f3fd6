"""A broker for the handlers of groups: a real coordinator over partitions in memory, no network.

Requests and responses pass through the codec of their version, so a field that the version lacks is
an error.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from types import ModuleType, SimpleNamespace
from typing import Any, cast

from ottla.base.clock import RealClock
from ottla.base.errors import ApiError
from ottla.base.rng import SeededRng
from ottla.base.tasks import Tasks
from ottla.cluster import names
from ottla.cluster.image import BrokerImage, ClusterImage, PartitionImage, TopicImage
from ottla.cluster.options.option_tables import BROKER_OPTIONS
from ottla.coordinators.groups.service import GroupCoordinator
from ottla.net.connection import Connection
from ottla.server.context import Broker, RequestContext
from ottla.testing.partitions import MemoryPartitions
from ottla.wire import schema
from ottla.wire.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from ottla.wire.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from ottla.wire.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment

_DEFAULTS = BROKER_OPTIONS.parse({})
TOPIC_ID = bytes(15) + b"\x05"
UNKNOWN_ID = bytes(15) + b"\x06"


def topic(name: str, topic_id: bytes, partitions: int) -> TopicImage:
    """Return a topic that broker 1 leads."""
    images = (PartitionImage(number, 1, 0, (1,), (1,)) for number in range(partitions))
    return TopicImage(name, topic_id, tuple(images))


OFFSETS_TOPIC = topic(names.GROUP_OFFSETS_TOPIC, bytes(15) + b"\x07", 3)


class GroupsBroker:
    """Broker 1 of a cluster of one, with topic `t` of two partitions."""

    def __init__(self) -> None:
        self.node_id = 1
        self.advertised: dict[str, tuple[str, int]] = {}
        self.image = ClusterImage().with_brokers([BrokerImage(1, "b1", 9092)])
        self.image = self.image.with_topics([topic("t", TOPIC_ID, 2), OFFSETS_TOPIC])
        self.log = MemoryPartitions()
        self.tasks = Tasks()
        self.controller = self
        self.refuses_topics: ApiError | None = None
        # Awaited by `ensure_topic`, if set.
        self.controller_silence: asyncio.Future[None] | None = None
        self.options = _DEFAULTS
        # The level of every feature.
        self.features = SimpleNamespace(level=lambda _: 1)
        self.groups = GroupCoordinator(
            writer=self.log,
            clock=RealClock(),
            rng=SeededRng(1),
            tasks=self.tasks,
            options=lambda: self.options,
            image=lambda: self.image,
        )

    def configure(self, **settings: str) -> None:
        """Set options of the broker that differ from the defaults."""
        self.options = BROKER_OPTIONS.parse(settings)

    async def ensure_topic(self, name: str) -> None:
        """Create a topic, as the controller does."""
        await (self.controller_silence or asyncio.sleep(0))
        if self.refuses_topics is not None:
            raise self.refuses_topics
        assert name == names.GROUP_OFFSETS_TOPIC
        self.image = self.image.with_topics([OFFSETS_TOPIC])

    async def ask(self, handler: ModuleType, request: Any, version: int) -> Any:
        """Send a request in a version and return its response, both through the codec."""
        context = RequestContext(
            cast(Broker, self), _connection(), int(handler.API), version, 1, "client"
        )
        decoded, _ = schema.decode(type(request), version, schema.encode(request, version))
        response = handler.handle(context, decoded)
        if not hasattr(response, "__slots__") or asyncio.isfuture(response):
            response = await response
        return schema.decode(type(response), version, schema.encode(response, version))[0]

    async def stable(self, group: str = "g") -> tuple[str, int]:
        """Create a group of one member; return its member id and the generation."""
        joined = self.groups.membership.join_group(
            join_request(group), api_version=3, client_id="client", client_host="/127.0.0.1"
        )
        response = await joined if isinstance(joined, asyncio.Future) else joined
        assignment = SyncGroupRequestAssignment(member_id=response.member_id, assignment=b"all")
        self.groups.membership.sync_group(
            SyncGroupRequest(
                group_id=group,
                member_id=response.member_id,
                generation_id=response.generation_id,
                assignments=[assignment],
            )
        )
        return response.member_id, response.generation_id


def _connection() -> Connection:
    peer = SimpleNamespace(
        listener_name="PLAINTEXT", local_address=("127.0.0.1", 7), peer_address=("127.0.0.9", 8)
    )
    return cast(Connection, peer)


def join_request(group: str = "g", **fields: Any) -> JoinGroupRequest:
    """Return a consumer's JoinGroup request."""
    values = {
        "session_timeout_ms": 10_000,
        "rebalance_timeout_ms": 60_000,
        "protocol_type": "consumer",
        "protocols": [JoinGroupRequestProtocol(name="range", metadata=b"\0\0")],
    }
    return JoinGroupRequest(group_id=group, **(values | fields))


def commit_request(
    *partitions: tuple[int, int], name: str = "t", topic_id: bytes = TOPIC_ID, **fields: Any
) -> OffsetCommitRequest:
    """Return an OffsetCommit request for (partition, offset) pairs of one topic."""
    return OffsetCommitRequest(
        group_id=fields.pop("group", "g"),
        topics=[
            OffsetCommitRequestTopic(
                name=name,
                topic_id=topic_id,
                partitions=[
                    OffsetCommitRequestPartition(
                        partition_index=index, committed_offset=offset, committed_metadata="m"
                    )
                    for index, offset in partitions
                ],
            )
        ],
        **fields,
    )


@asynccontextmanager
async def groups_broker(*, is_loaded: bool = True) -> AsyncIterator[GroupsBroker]:
    """Run a broker that coordinates every group."""
    broker = GroupsBroker()
    for partition in range(3 if is_loaded else 0):
        broker.groups.load(partition, 1)
    try:
        yield broker
    finally:
        broker.groups.close()
        await broker.tasks.close()
