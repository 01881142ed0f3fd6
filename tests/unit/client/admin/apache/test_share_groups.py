"""Share groups: their members and offsets."""

from collections.abc import Callable
from typing import Any

import pytest

from ottla.base.errors import ApiError, ErrorCode
from ottla.client.admin.acls import AclOperation
from ottla.client.admin.apache import share_groups
from ottla.client.brokers import Brokers
from ottla.wire.messages import alter_share_group_offsets as altering
from ottla.wire.messages import delete_share_group_offsets as deleting
from ottla.wire.messages import describe_share_group_offsets as describing
from ottla.wire.messages import share_group_describe as group_describing


def test_a_share_group_is_described_with_its_members(
    cluster: Any, brokers: Brokers, asked: Callable[[str], Any]
) -> None:
    """Several members share a partition; operations are reported if they were requested."""
    topics = [group_describing.TopicPartitions(topic_name="t", partitions=[1, 0])]
    member = group_describing.Member(
        member_id="m",
        rack_id="r",
        member_epoch=3,
        client_id="c",
        client_host="/10.0.0.1",
        assignment=group_describing.Assignment(topic_partitions=topics),
    )
    group = group_describing.DescribedGroup(
        group_id="s",
        group_state="Stable",
        group_epoch=2,
        assignment_epoch=1,
        assignor_name="simple",
        members=[member],
        authorized_operations=1 << AclOperation.READ | 1 << AclOperation.ALL,
    )
    cluster.answers["ShareGroupDescribe"] = lambda request: (
        group_describing.ShareGroupDescribeResponse(groups=[group])
    )
    described = share_groups.describe_share_group(brokers, "s", include_authorized_operations=True)
    assert described == share_groups.ShareGroup(
        "s",
        "Stable",
        2,
        1,
        "simple",
        (share_groups.ShareMember("m", "r", "c", "10.0.0.1", 3, (("t", 0), ("t", 1))),),
        frozenset({AclOperation.READ}),
    )
    assert asked("ShareGroupDescribe").include_authorized_operations


def test_a_share_group_that_does_not_exist_is_an_error(cluster: Any, brokers: Brokers) -> None:
    """The error names the group and has the message of the coordinator."""
    group = group_describing.DescribedGroup(group_id="s", error_code=69, error_message="none")
    cluster.answers["ShareGroupDescribe"] = lambda request: (
        group_describing.ShareGroupDescribeResponse(groups=[group])
    )
    with pytest.raises(ApiError, match="Group 's': none") as caught:
        share_groups.describe_share_group(brokers, "s")
    assert caught.value.code is ErrorCode.GROUP_ID_NOT_FOUND


def test_start_offsets_are_listed_by_partition(
    cluster: Any, brokers: Brokers, asked: Callable[[str], Any]
) -> None:
    """A partition without a start offset is left out; without partitions all are requested."""
    rows = [
        describing.DescribeShareGroupOffsetsResponsePartition(
            partition_index=index, start_offset=offset, leader_epoch=2, lag=5
        )
        for index, offset in ((1, 7), (0, -1))
    ]
    topic = describing.DescribeShareGroupOffsetsResponseTopic(topic_name="t", partitions=rows)
    group = describing.DescribeShareGroupOffsetsResponseGroup(group_id="s", topics=[topic])
    cluster.answers["DescribeShareGroupOffsets"] = lambda request: (
        describing.DescribeShareGroupOffsetsResponse(groups=[group])
    )
    listed = share_groups.list_share_group_offsets(brokers, "s", [("t", 1), ("t", 0)])
    assert listed == {("t", 1): share_groups.ShareOffset(7, 2, 5)}
    (requested,) = asked("DescribeShareGroupOffsets").groups
    assert [(row.topic_name, row.partitions) for row in requested.topics] == [("t", [1, 0])]
    share_groups.list_share_group_offsets(brokers, "s")
    assert asked("DescribeShareGroupOffsets").groups[0].topics is None


def test_start_offsets_of_a_group_with_members_are_not_altered(
    cluster: Any, brokers: Brokers, asked: Callable[[str], Any]
) -> None:
    """The coordinator rejects the request as a whole."""
    cluster.answers["AlterShareGroupOffsets"] = lambda request: (
        altering.AlterShareGroupOffsetsResponse(error_code=68)
    )
    with pytest.raises(ApiError, match="Group 's'") as caught:
        share_groups.alter_share_group_offsets(brokers, "s", {("t", 0): 3, ("t", 1): 4})
    assert caught.value.code is ErrorCode.NON_EMPTY_GROUP
    (topic,) = asked("AlterShareGroupOffsets").topics
    assert [(row.partition_index, row.start_offset) for row in topic.partitions] == [(0, 3), (1, 4)]


def test_error_of_a_partition_names_it(cluster: Any, brokers: Brokers) -> None:
    """An offset of a partition that does not exist is rejected alone."""
    row = altering.AlterShareGroupOffsetsResponsePartition(partition_index=4, error_code=3)
    topic = altering.AlterShareGroupOffsetsResponseTopic(topic_name="t", partitions=[row])
    cluster.answers["AlterShareGroupOffsets"] = lambda request: (
        altering.AlterShareGroupOffsetsResponse(responses=[topic])
    )
    with pytest.raises(ApiError, match="Group 's', t-4: "):
        share_groups.alter_share_group_offsets(brokers, "s", {("t", 4): 3})


def test_state_of_topics_is_deleted(
    cluster: Any, brokers: Brokers, asked: Callable[[str], Any]
) -> None:
    """The error of a topic names it."""
    row = deleting.DeleteShareGroupOffsetsResponseTopic(topic_name="u", error_code=3)
    cluster.answers["DeleteShareGroupOffsets"] = lambda request: (
        deleting.DeleteShareGroupOffsetsResponse(
            responses=[row] if len(request.topics) == 2 else []
        )
    )
    share_groups.delete_share_group_offsets(brokers, "s", ["t"])
    assert [topic.topic_name for topic in asked("DeleteShareGroupOffsets").topics] == ["t"]
    with pytest.raises(ApiError, match="Group 's', u: ") as caught:
        share_groups.delete_share_group_offsets(brokers, "s", ["t", "u"])
    assert caught.value.code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
