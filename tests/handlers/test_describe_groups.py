"""DescribeGroups: states and members of groups."""

import pytest

from ottla.base.errors import ErrorCode
from ottla.server import operations
from ottla.server.handlers import describe_groups
from ottla.wire.messages.describe_groups import DescribeGroupsRequest
from tests.handlers.groups import groups_broker


@pytest.mark.parametrize("version", range(describe_groups.MAX_VERSION + 1))
async def test_groups_are_described(version):
    """A stable group has its member, and a missing group is described as well."""
    async with groups_broker() as broker:
        member, _ = await broker.stable()
        request = DescribeGroupsRequest(groups=["g", "none"])
        known, unknown = (await broker.ask(describe_groups, request, version)).groups
        assert (known.error_code, known.group_state) == (0, "Stable")
        assert (known.protocol_type, known.protocol_data) == ("consumer", "range")
        assert [(item.member_id, item.member_assignment) for item in known.members] == [
            (member, b"all")
        ]
        assert (unknown.group_id, unknown.group_state) == ("none", "Dead")
        expected = ErrorCode.GROUP_ID_NOT_FOUND if version >= 6 else ErrorCode.NONE
        assert unknown.error_code == expected


async def test_group_that_is_named_twice_has_two_rows():
    """The rows are in the order of the request, as in Kafka."""
    async with groups_broker() as broker:
        request = DescribeGroupsRequest(groups=["g", "h", "g"])
        groups = (await broker.ask(describe_groups, request, 5)).groups
        assert [group.group_id for group in groups] == ["g", "h", "g"]


async def test_operations_are_returned_on_request():
    """Without an authorizer all operations are allowed."""
    async with groups_broker() as broker:
        await broker.stable()
        request = DescribeGroupsRequest(groups=["g"])
        group = (await broker.ask(describe_groups, request, 5)).groups[0]
        assert group.authorized_operations == operations.NOT_ASKED
        request.include_authorized_operations = True
        group = (await broker.ask(describe_groups, request, 5)).groups[0]
        assert group.authorized_operations == operations.ON_GROUP
