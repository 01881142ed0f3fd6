"""A group coordinator with in-memory partitions, and helpers for its requests."""

import pytest

from ottla.cluster.image import ClusterImage, PartitionImage, TopicImage
from ottla.cluster.names import GROUP_OFFSETS_TOPIC
from ottla.cluster.options.option_tables import BROKER_OPTIONS
from ottla.coordinators.groups.service import GroupCoordinator
from ottla.wire.messages.heartbeat import HeartbeatRequest
from ottla.wire.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from ottla.wire.messages.leave_group import LeaveGroupRequest, MemberIdentity
from ottla.wire.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from ottla.wire.messages.offset_fetch import OffsetFetchRequestGroup, OffsetFetchRequestTopics
from ottla.wire.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment


class Groups:
    """One coordinator; requests are for group "g" by default."""

    def __init__(self, world, partitions=1):
        self.world = world
        self.options = BROKER_OPTIONS.parse({})
        self.image = ClusterImage().with_topics([offsets_topic(partitions)])
        self.coordinator = self.make()

    def make(self):
        return GroupCoordinator(
            writer=self.world.partitions,
            clock=self.world.clock,
            rng=self.world.rng,
            tasks=self.world.tasks,
            options=lambda: self.options,
            image=lambda: self.image,
        )

    def configure(self, **settings):
        names = {name.replace("_", "."): str(value) for name, value in settings.items()}
        self.options = BROKER_OPTIONS.parse(names)

    async def restart(self, leader_epoch=9):
        """Replace the coordinator by one that reads the log."""
        self.coordinator.close()
        self.coordinator = self.make()
        self.coordinator.load(0, leader_epoch)
        await self.world.clock.sleep(0.001)

    def join(self, member_id="", version=3, protocols=("range",), group="g", **fields):
        request = JoinGroupRequest(
            group_id=group,
            member_id=member_id,
            protocol_type=fields.pop("protocol_type", "consumer"),
            protocols=[JoinGroupRequestProtocol(name=name, metadata=b"\0\0") for name in protocols],
            session_timeout_ms=fields.pop("session_timeout_ms", 10_000),
            rebalance_timeout_ms=fields.pop("rebalance_timeout_ms", 60_000),
            **fields,
        )
        return self.coordinator.membership.join_group(
            request, api_version=version, client_id="client", client_host="/127.0.0.1"
        )

    def sync(self, member_id, generation, assignments=(), group="g"):
        request = SyncGroupRequest(
            group_id=group,
            member_id=member_id,
            generation_id=generation,
            assignments=[
                SyncGroupRequestAssignment(member_id=name, assignment=blob)
                for name, blob in dict(assignments).items()
            ],
        )
        return self.coordinator.membership.sync_group(request)

    def heartbeat(self, member_id, generation, group="g"):
        request = HeartbeatRequest(group_id=group, member_id=member_id, generation_id=generation)
        return self.coordinator.membership.heartbeat(request)

    def leave(self, *member_ids, group="g"):
        members = [MemberIdentity(member_id=name) for name in member_ids]
        return self.coordinator.membership.leave_group(
            LeaveGroupRequest(group_id=group, members=members)
        )

    def commit(self, offsets, member_id="", generation=-1, version=9, group="g", **fields):
        partitions = {}
        for (topic, index), offset in offsets.items():
            partitions.setdefault(topic, []).append(
                OffsetCommitRequestPartition(
                    partition_index=index, committed_offset=offset, committed_metadata="m"
                )
            )
        request = OffsetCommitRequest(
            group_id=group,
            member_id=member_id,
            generation_id_or_member_epoch=generation,
            topics=[
                OffsetCommitRequestTopic(name=topic, partitions=partition)
                for topic, partition in partitions.items()
            ],
            **fields,
        )
        return self.coordinator.commit_offsets(request, api_version=version)

    def fetch(self, topics=None, group="g", require_stable=False):
        requested = None
        if topics is not None:
            requested = [
                OffsetFetchRequestTopics(name=topic, partition_indexes=list(indexes))
                for topic, indexes in topics.items()
            ]
        request = OffsetFetchRequestGroup(group_id=group, topics=requested)
        return self.coordinator.fetch_offsets(request, require_stable=require_stable)

    def offsets(self, group="g"):
        """Every offset of the group, by partition."""
        response = self.fetch(group=group)
        return {
            (topic.name, item.partition_index): item.committed_offset
            for topic in response.topics
            for item in topic.partitions
        }

    async def stable(self, *, group="g"):
        """Create a group of one member with an assignment; return the member and the generation."""
        joined = await self.join(group=group)
        synced = self.sync(
            joined.member_id, joined.generation_id, {joined.member_id: b"all"}, group=group
        )
        assert synced.assignment == b"all"
        return joined.member_id, joined.generation_id


def offsets_topic(partitions):
    images = tuple(PartitionImage(number, 0, 0, (0,), (0,)) for number in range(partitions))
    return TopicImage(GROUP_OFFSETS_TOPIC, bytes(15) + b"\x07", images)


@pytest.fixture
def groups(world):
    return Groups(world)
