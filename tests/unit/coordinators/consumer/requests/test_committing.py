"""Offsets of consumer-protocol groups: commits of members, and of clients outside the group."""

import pytest

from ottla.base.errors import ErrorCode
from ottla.coordinators.groups.offsets import NO_OFFSET
from ottla.wire.messages.delete_groups import DeleteGroupsRequest
from ottla.wire.messages.describe_groups import DescribeGroupsRequest
from ottla.wire.messages.list_groups import ListGroupsRequest
from ottla.wire.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
)
from ottla.wire.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)
from tests.unit.coordinators.consumer.conftest import T, run

STALE = ErrorCode.STALE_MEMBER_EPOCH


def test_members_commit_in_their_epoch(world, consumers):
    """A commit needs the member's current epoch; larger epochs and unknown members are rejected."""

    async def scenario():
        consumers.start()
        consumers.beat("a")
        assert consumers.commit([0], "a", 2) == [0]
        assert consumers.commit([0], "a", 3) == [STALE]
        assert consumers.commit([0], "x", 2) == [ErrorCode.UNKNOWN_MEMBER_ID]
        assert consumers.commit([0]) == [ErrorCode.UNKNOWN_MEMBER_ID]
        assert consumers.commit([0], "a", 2, version=8) == [ErrorCode.UNSUPPORTED_VERSION]

    run(world, scenario())


def test_member_with_an_older_epoch_commits_partitions_it_kept(world, consumers):
    """An older epoch may commit for partitions that were assigned in it or before (KIP-1251)."""

    async def scenario():
        consumers.start()
        consumers.beat("a")
        consumers.beat("b")
        consumers.beat("a", 2)
        assert consumers.commit([0], "a", 1) == [STALE]
        consumers.beat("a", 2, {T: [0, 1]})
        consumers.beat("b", 3)
        assert consumers.commit([0, 1], "a", 2) == [0, 0]
        assert consumers.commit([2], "a", 2) == [STALE]
        assert consumers.commit([2], "b", 2) == [STALE]
        assert consumers.commit([2], "b", 3) == [0]

    run(world, scenario())


def test_offsets_are_fetched_in_the_members_epoch(world, consumers):
    """A fetch with a member id must have its epoch; a fetch without one is always allowed."""

    async def scenario():
        consumers.start()
        consumers.beat("a")
        consumers.commit([0], "a", 2)
        assert consumers.fetch().error_code == 0
        assert len(consumers.fetch("a", 2).topics) == 1
        assert consumers.fetch("a", 1).error_code == STALE
        assert consumers.fetch("x", 2).error_code == ErrorCode.UNKNOWN_MEMBER_ID

    run(world, scenario())


def test_any_client_can_commit_to_an_empty_group(world, consumers):
    """A tool can set the offsets of an empty group, and the group keeps its protocol."""

    async def scenario():
        consumers.start()
        consumers.beat("a")
        consumers.beat("a", -1)
        assert consumers.commit([0]) == [0]
        await consumers.restart()
        (topic,) = consumers.fetch().topics
        assert topic.partitions[0].committed_offset == 1
        assert consumers.group.members == {}

    run(world, scenario())


@pytest.mark.parametrize(
    ("member_id", "epoch", "code"),
    [
        ("a", 2, 0),
        ("", -1, 0),
        ("a", 3, ErrorCode.ILLEGAL_GENERATION),
        ("a", 1, ErrorCode.ILLEGAL_GENERATION),
        ("x", 2, ErrorCode.UNKNOWN_MEMBER_ID),
    ],
)
def test_transactions_commit_in_the_members_epoch(world, consumers, member_id, epoch, code):
    """A wrong epoch is ILLEGAL_GENERATION, because TxnOffsetCommit has no STALE_MEMBER_EPOCH."""

    async def scenario():
        consumers.start()
        consumers.beat("a")
        partition = TxnOffsetCommitRequestPartition(partition_index=0, committed_offset=5)
        request = TxnOffsetCommitRequest(
            group_id="g",
            producer_id=1,
            producer_epoch=0,
            member_id=member_id,
            generation_id=epoch,
            topics=[TxnOffsetCommitRequestTopic(name="t", partitions=[partition])],
        )
        response = consumers.coordinator.commit_offsets_in_transaction(request)
        assert response.topics[0].partitions[0].error_code == code

    run(world, scenario())


def test_group_is_listed_by_type_and_state(world, consumers):
    """ListGroups filters groups of both protocols; DescribeGroups supports only classic groups."""

    async def scenario():
        consumers.start()
        consumers.beat("a")

        def listed(**filters):
            response = consumers.coordinator.list_groups(ListGroupsRequest(**filters))
            return [(item.group_id, item.group_type, item.group_state) for item in response.groups]

        assert listed() == [("g", "consumer", "Stable")]
        assert listed(types_filter=["Consumer"], states_filter=["stable"]) == listed()
        assert listed(types_filter=["classic"]) == listed(states_filter=["Empty"]) == []
        request = DescribeGroupsRequest(groups=["g"])
        (described,) = consumers.coordinator.describe_groups(request, api_version=6).groups
        assert described.error_code == ErrorCode.GROUP_ID_NOT_FOUND
        assert described.error_message == "Group g is not a classic group."

    run(world, scenario())


def test_only_empty_groups_are_deleted(world, consumers):
    """A group with members is NON_EMPTY_GROUP; a deleted group stays deleted after a restart."""

    async def scenario():
        consumers.start()
        consumers.beat("a")
        consumers.commit([0], "a", 2)

        def delete():
            request = DeleteGroupsRequest(groups_names=["g"])
            return consumers.coordinator.delete_groups(request).results[0].error_code

        assert delete() == ErrorCode.NON_EMPTY_GROUP
        consumers.beat("a", -1)
        assert delete() == 0
        assert delete() == ErrorCode.GROUP_ID_NOT_FOUND
        await consumers.restart()
        assert consumers.group is None
        assert consumers.fetch().topics == []

    run(world, scenario())


def test_offsets_of_subscribed_topics_are_not_deleted(world, consumers):
    """OffsetDelete removes only offsets of topics to which no member is subscribed."""

    async def scenario():
        consumers.start()
        consumers.beat("a")
        consumers.commit([0], "a", 2)
        topic = OffsetDeleteRequestTopic(
            name="t", partitions=[OffsetDeleteRequestPartition(partition_index=0)]
        )
        request = OffsetDeleteRequest(group_id="g", topics=[topic])

        def delete():
            response = consumers.coordinator.delete_offsets(request)
            return response.topics[0].partitions[0].error_code

        assert delete() == ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC
        consumers.beat("a", 2, {T: [0, 1, 2, 3]}, subscribed_topic_names=["u"])
        assert delete() == 0
        assert consumers.fetch().topics == []

    run(world, scenario())


def test_offsets_expire_unless_a_member_is_subscribed(world, consumers):
    """After the retention time, unsubscribed offsets expire, and with the last the empty group."""

    async def scenario():
        consumers.configure(offsets_retention_minutes=1, offsets_retention_check_interval_ms=1000)
        consumers.start()
        consumers.beat("a")
        consumers.commit([0], "a", 2)
        for _ in range(3):
            await consumers.sleep(30)
            consumers.beat("a", 2)
        assert consumers.fetch().topics[0].partitions[0].committed_offset != NO_OFFSET
        consumers.beat("a", -1)
        await consumers.sleep(70)
        assert consumers.fetch().topics == []
        assert consumers.group is None

    run(world, scenario())
