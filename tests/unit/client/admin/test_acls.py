"""The operations that a user is authorized for (KIP-430)."""

from collections.abc import Callable
from typing import Any

import pytest

from ottla.client.admin import cluster as describing
from ottla.client.admin import groups, topics
from ottla.client.admin.acls import AclOperation, operations_of
from ottla.client.brokers import Brokers
from ottla.wire.messages.describe_cluster import DescribeClusterResponse
from ottla.wire.messages.describe_groups import DescribedGroup, DescribeGroupsResponse

_BITS = 1 << AclOperation.READ | 1 << AclOperation.DESCRIBE


@pytest.mark.parametrize(
    ("bits", "expected"),
    [
        (-0x80000000, None),
        (0, set()),
        (_BITS, {AclOperation.READ, AclOperation.DESCRIBE}),
        # ANY, ALL, and an operation of a newer broker.
        (_BITS | 0b110 | 1 << 30, {AclOperation.READ, AclOperation.DESCRIBE}),
    ],
)
def test_operations_are_bits(bits: int, expected: set[AclOperation] | None) -> None:
    """Bit n is operation n; the smallest number means that they were not requested."""
    assert operations_of(bits) == expected


def test_operations_are_reported_if_they_are_requested(
    cluster: Any, brokers: Brokers, asked: Callable[[str], Any]
) -> None:
    """Topics, groups and the cluster have them; by default they are None."""
    expected = {AclOperation.READ, AclOperation.DESCRIBE}
    metadata = cluster.answers["Metadata"]

    def answer(request: Any) -> Any:
        response = metadata(request)
        for topic in response.topics:
            topic.topic_authorized_operations = _BITS
        return response

    cluster.answers["Metadata"] = answer
    described = topics.describe_topic(brokers, "t", include_authorized_operations=True)
    assert described.authorized_operations == expected
    assert asked("Metadata").include_topic_authorized_operations
    assert topics.describe_topic(brokers, "t").authorized_operations is None
    assert not asked("Metadata").include_topic_authorized_operations
    group = DescribedGroup(group_id="g", group_state="Empty", authorized_operations=_BITS)
    cluster.answers["DescribeGroups"] = lambda request: DescribeGroupsResponse(groups=[group])
    with_them = groups.describe_group(brokers, "g", include_authorized_operations=True)
    assert with_them.authorized_operations == expected
    cluster.answers["DescribeCluster"] = lambda request: DescribeClusterResponse(
        cluster_authorized_operations=_BITS
    )
    answered = describing.describe_cluster(brokers, include_authorized_operations=True)
    assert answered.authorized_operations == expected
    assert describing.describe_cluster(brokers).authorized_operations is None
