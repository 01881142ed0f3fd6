"""Groups that only store offsets: how long they exist."""

from ottla.wire.messages.delete_groups import DeleteGroupsRequest
from ottla.wire.messages.describe_groups import DescribeGroupsRequest
from ottla.wire.messages.list_groups import ListGroupsRequest
from ottla.wire.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
)

T0, T1 = ("t", 0), ("t", 1)


def states(groups):
    """The states of all groups, according to ListGroups and to DescribeGroups."""
    listed = groups.coordinator.list_groups(ListGroupsRequest()).groups
    names = [group.group_id for group in listed]
    request = DescribeGroupsRequest(groups=names)
    described = groups.coordinator.describe_groups(request, api_version=6).groups
    assert [group.group_state for group in described] == [group.group_state for group in listed]
    return {group.group_id: group.group_state for group in listed}


def offset_deletion(group, topic):
    partitions = [OffsetDeleteRequestPartition(partition_index=0)]
    topics = [OffsetDeleteRequestTopic(name=topic, partitions=partitions)]
    return OffsetDeleteRequest(group_id=group, topics=topics)


def test_group_without_offsets_is_empty_until_the_next_check(world, groups):
    """A group that only stored offsets outlives its last offset, as in Apache Kafka 4."""

    async def scenario():
        groups.configure(offsets_retention_check_interval_ms=60_000)
        groups.coordinator.load(0, 1)
        groups.commit({T0: 1}, group="a")
        groups.commit({T0: 1}, group="b")
        assert groups.coordinator.delete_offsets(offset_deletion("a", "t")).error_code == 0
        groups.coordinator.topics_deleted(["t"])
        for _ in range(2):
            assert states(groups) == {"a": "Empty", "b": "Empty"}
            assert groups.offsets("a") == groups.offsets("b") == {}
            await groups.restart()
        await world.clock.sleep(61)
        for _ in range(2):
            assert states(groups) == {}
            await groups.restart()

    world.loop.run(scenario())


def test_group_without_offsets_can_be_deleted_or_used_again(world, groups):
    """It is an empty group like any other."""

    async def scenario():
        groups.coordinator.load(0, 1)
        for name in ("a", "b"):
            groups.commit({T0: 1}, group=name)
        groups.coordinator.topics_deleted(["t"])
        request = DeleteGroupsRequest(groups_names=["a"])
        (result,) = groups.coordinator.delete_groups(request).results
        assert result.error_code == 0
        groups.commit({T1: 2}, group="b")
        assert groups.offsets("b") == {T1: 2}
        assert states(groups) == {"b": "Empty"}

    world.loop.run(scenario())
