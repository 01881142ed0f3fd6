"""A coordinator with topics, on virtual time, and requests of members of both protocols."""

import asyncio

import pytest

from ottla.cluster.image import ClusterImage, PartitionImage, TopicImage
from ottla.cluster.names import GROUP_OFFSETS_TOPIC
from ottla.cluster.options.option_tables import BROKER_OPTIONS
from ottla.coordinators.consumer.transition import Client
from ottla.coordinators.groups.service import GroupCoordinator
from ottla.wire import consumer_protocol
from ottla.wire.consumer_protocol import ConsumerProtocolSubscription, TopicPartition
from ottla.wire.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    TopicPartitions,
)
from ottla.wire.messages.heartbeat import HeartbeatRequest
from ottla.wire.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from ottla.wire.messages.leave_group import LeaveGroupRequest, MemberIdentity
from ottla.wire.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from ottla.wire.messages.offset_fetch import OffsetFetchRequestGroup
from ottla.wire.messages.sync_group import SyncGroupRequest

T, U = bytes(15) + b"\x01", bytes(15) + b"\x02"


def topic_image(name, topic_id, partitions):
    images = tuple(PartitionImage(number, 0, 0, (0,), (0,)) for number in range(partitions))
    return TopicImage(name, topic_id, images)


class Consumers:
    """One coordinator with topics `t` and `u` of four partitions; requests are for group "g"."""

    def __init__(self, world):
        self.world = world
        self.options = BROKER_OPTIONS.parse({})
        self.group_options = {}
        # The topics that the clients of later requests may see: None for every topic.
        self.may_describe = None
        self.image = ClusterImage().with_topics(
            [
                topic_image(GROUP_OFFSETS_TOPIC, bytes(15) + b"\x07", 1),
                topic_image("t", T, 4),
                topic_image("u", U, 4),
            ]
        )
        self.coordinator = self._make()

    def _make(self):
        return GroupCoordinator(
            writer=self.world.partitions,
            clock=self.world.clock,
            rng=self.world.rng,
            tasks=self.world.tasks,
            options=lambda: self.options,
            image=lambda: self.image,
            group_options=lambda group_id: self.group_options.get(group_id, {}),
        )

    def start(self):
        self.coordinator.load(0, 1)
        return self

    def configure(self, **settings):
        names = {name.replace("_", "."): str(value) for name, value in settings.items()}
        self.options = BROKER_OPTIONS.parse(names)

    async def restart(self):
        """Replace the coordinator by one that reads the log."""
        self.coordinator.close()
        self.coordinator = self._make()
        self.coordinator.load(0, 9)
        await self.sleep(0.001)

    async def sleep(self, seconds):
        await self.world.clock.sleep(seconds)

    @property
    def group(self):
        """The group in memory, or None if there is no group of the consumer protocol."""
        return self.coordinator.runtime.find(0).consumers.get("g")

    def grow(self, name, topic_id, partitions):
        self.image = self.image.with_topics([topic_image(name, topic_id, partitions)])

    # -- members of the consumer protocol

    def beat(self, member_id, epoch=0, owned=None, version=1, **fields):
        """Send a heartbeat; a joining member subscribes to t by default."""
        if epoch == 0:
            joins = {"rebalance_timeout_ms": 10_000, "subscribed_topic_names": ["t"]}
            if "subscribed_topic_regex" in fields:
                del joins["subscribed_topic_names"]
            fields = {**joins, **fields}
            owned = {}
        if owned is not None:
            fields["topic_partitions"] = [
                TopicPartitions(topic_id=topic_id, partitions=sorted(partitions))
                for topic_id, partitions in owned.items()
            ]
        request = ConsumerGroupHeartbeatRequest(
            group_id="g", member_id=member_id, member_epoch=epoch, **fields
        )
        return self.coordinator.membership.consumer_heartbeat(
            request, api_version=version, client=Client("client", "/127.0.0.1", self.may_describe)
        )

    # -- members of the classic protocol

    def join(self, member_id="", topics=("t",), owned=None, version=3, **fields):
        subscription = ConsumerProtocolSubscription(
            topics=list(topics),
            owned_partitions=[
                TopicPartition(topic=name, partitions=list(partitions))
                for name, partitions in (owned or {}).items()
            ],
        )
        metadata = consumer_protocol.encode_subscription(subscription)
        request = JoinGroupRequest(
            group_id="g",
            member_id=member_id,
            protocol_type=fields.pop("protocol_type", "consumer"),
            protocols=fields.pop(
                "protocols", [JoinGroupRequestProtocol(name="range", metadata=metadata)]
            ),
            session_timeout_ms=10_000,
            rebalance_timeout_ms=20_000,
            **fields,
        )
        return self.coordinator.membership.join_group(
            request,
            api_version=version,
            client_id="client",
            client_host="/127.0.0.1",
            may_describe=self.may_describe,
        )

    def sync(self, member_id, generation, **fields):
        request = SyncGroupRequest(
            group_id="g", member_id=member_id, generation_id=generation, **fields
        )
        return self.coordinator.membership.sync_group(request)

    def heartbeat_of_classic(self, member_id, generation, **fields):
        request = HeartbeatRequest(
            group_id="g", member_id=member_id, generation_id=generation, **fields
        )
        return self.coordinator.membership.heartbeat(request)

    def leave(self, *members):
        request = LeaveGroupRequest(
            group_id="g",
            members=[
                item if isinstance(item, MemberIdentity) else MemberIdentity(member_id=item)
                for item in members
            ],
        )
        return self.coordinator.membership.leave_group(request)

    # -- offsets

    def commit(self, places, member_id="", epoch=-1, version=9):
        """Commit offset 1 for partitions of t; return the error code of each."""
        partitions = [
            OffsetCommitRequestPartition(partition_index=partition, committed_offset=1)
            for partition in places
        ]
        request = OffsetCommitRequest(
            group_id="g",
            member_id=member_id,
            generation_id_or_member_epoch=epoch,
            topics=[OffsetCommitRequestTopic(name="t", partitions=partitions)],
        )
        response = self.coordinator.commit_offsets(request, api_version=version)
        return [item.error_code for topic in response.topics for item in topic.partitions]

    def fetch(self, member_id=None, epoch=-1):
        request = OffsetFetchRequestGroup(
            group_id="g", member_id=member_id, member_epoch=epoch, topics=None
        )
        return self.coordinator.fetch_offsets(request, require_stable=False)


def partitions_in(response):
    """The partitions that a heartbeat response assigns, by topic id, or None."""
    if response.assignment is None:
        return None
    return {topic.topic_id: topic.partitions for topic in response.assignment.topic_partitions}


def run(world, scenario):
    """Run a scenario and let its callbacks finish."""

    async def settled():
        await scenario
        await asyncio.sleep(0)

    world.loop.run(settled())


@pytest.fixture
def consumers(world):
    return Consumers(world)
