"""Groups: list, describe and delete them."""

from typing import Any

import pytest

from ottla.base.errors import ApiError, ErrorCode
from ottla.client.admin import groups
from ottla.client.brokers import Brokers
from ottla.wire import consumer_protocol
from ottla.wire.messages import consumer_group_describe
from ottla.wire.messages.delete_groups import DeletableGroupResult, DeleteGroupsResponse
from ottla.wire.messages.describe_groups import (
    DescribedGroup,
    DescribedGroupMember,
    DescribeGroupsResponse,
)
from ottla.wire.messages.list_groups import ListedGroup, ListGroupsResponse


def test_groups_are_listed_by_id(cluster: Any, brokers: Brokers) -> None:
    """Every broker lists the groups that it coordinates."""
    cluster.answers["ListGroups"] = lambda request: ListGroupsResponse(
        groups=[
            ListedGroup(group_id="b", protocol_type="consumer", group_state="Stable"),
            ListedGroup(group_id="a", protocol_type="", group_state="Empty"),
        ]
    )
    listed = groups.list_groups(brokers)
    assert [(row.group_id, row.state) for row in listed] == [("a", "Empty"), ("b", "Stable")]


def test_member_is_described_with_its_assignment(cluster: Any, brokers: Brokers) -> None:
    """The broker returns the assignment without decoding it, in the format of consumers."""
    assignment = consumer_protocol.encode_assignment(
        consumer_protocol.ConsumerProtocolAssignment(
            assigned_partitions=[consumer_protocol.TopicPartition(topic="t", partitions=[1, 0])]
        )
    )
    member = DescribedGroupMember(
        member_id="m", client_id="c", client_host="/10.0.0.1", member_assignment=assignment
    )
    cluster.answers["DescribeGroups"] = lambda request: DescribeGroupsResponse(
        groups=[
            DescribedGroup(
                group_id="g",
                group_state="Stable",
                protocol_type="consumer",
                protocol_data="range",
                members=[member],
            )
        ]
    )
    group = groups.describe_group(brokers, "g")
    assert (group.state, group.assignor) == ("Stable", "range")
    assert group.members[0].assignment == (("t", 0), ("t", 1))
    assert group.members[0].host == "10.0.0.1"


def test_former_names_of_a_members_bytes_are_deprecated() -> None:
    """`said` and `told` return the metadata and the assignment, with a warning."""
    member = groups.Member("m", None, "c", "h", (), metadata=b"1", assignment_bytes=b"2")
    with pytest.warns(DeprecationWarning, match=r"Member\.said is now Member\.metadata"):
        assert member.said == b"1"
    with pytest.warns(DeprecationWarning, match=r"Member\.told is now Member\.assignment_bytes"):
        assert member.told == b"2"


@pytest.mark.parametrize(
    "described",
    [DescribedGroup(group_id="g", group_state="Dead"), DescribedGroup(group_id="g", error_code=69)],
)
def test_a_group_that_does_not_exist_is_an_error(
    cluster: Any, brokers: Brokers, described: DescribedGroup
) -> None:
    """Old brokers describe it as dead, newer ones return an error (KIP-1043)."""
    cluster.answers["DescribeGroups"] = lambda request: DescribeGroupsResponse(groups=[described])
    unknown = consumer_group_describe.DescribedGroup(group_id="g", error_code=69)
    cluster.answers["ConsumerGroupDescribe"] = lambda request: (
        consumer_group_describe.ConsumerGroupDescribeResponse(groups=[unknown])
    )
    with pytest.raises(ApiError, match="There is no group 'g'"):
        groups.describe_group(brokers, "g")


def test_a_group_of_the_consumer_protocol_is_described_too(cluster: Any, brokers: Brokers) -> None:
    """It is no classic group; the coordinator knows the assignments of its members (KIP-848)."""
    topics = [consumer_group_describe.TopicPartitions(topic_name="t", partitions=[1, 0])]
    member = consumer_group_describe.Member(
        member_id="m",
        client_id="c",
        client_host="/10.0.0.1",
        assignment=consumer_group_describe.Assignment(topic_partitions=topics),
    )
    cluster.answers["DescribeGroups"] = lambda request: DescribeGroupsResponse(
        groups=[DescribedGroup(group_id="g", error_code=69)]
    )
    cluster.answers["ConsumerGroupDescribe"] = lambda request: (
        consumer_group_describe.ConsumerGroupDescribeResponse(
            groups=[
                consumer_group_describe.DescribedGroup(
                    group_id="g", group_state="Stable", assignor_name="uniform", members=[member]
                )
            ]
        )
    )
    group = groups.describe_group(brokers, "g")
    assert (group.state, group.assignor, group.protocol_type) == ("Stable", "uniform", "consumer")
    assert group.members[0].assignment == (("t", 0), ("t", 1))


def test_a_group_with_members_is_not_deleted(cluster: Any, brokers: Brokers) -> None:
    """The coordinator rejects the deletion, and the error names the group."""
    cluster.answers["DeleteGroups"] = lambda request: DeleteGroupsResponse(
        results=[DeletableGroupResult(group_id="g", error_code=68)]
    )
    with pytest.raises(ApiError, match="Group 'g'") as caught:
        groups.delete_group(brokers, "g")
    assert caught.value.code is ErrorCode.NON_EMPTY_GROUP
