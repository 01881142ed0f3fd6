"""JoinGroup: requests and responses of each version."""

import pytest

from ottla.base.errors import ErrorCode
from ottla.server.handlers import describe_groups, join_group
from ottla.wire.messages.describe_groups import DescribeGroupsRequest
from tests.handlers.groups import groups_broker, join_request


@pytest.mark.parametrize("version", range(4))
async def test_member_joins_at_once_before_version_4(version):
    """The response has the generation, the protocol and, for the leader, every member."""
    async with groups_broker() as broker:
        response = await broker.ask(join_group, join_request(), version)
        assert (response.error_code, response.generation_id) == (0, 1)
        assert response.protocol_name == "range"
        assert response.leader == response.member_id
        assert response.member_id.startswith("client-")
        assert [member.metadata for member in response.members] == [b"\0\0"]


@pytest.mark.parametrize("version", range(4, 10))
async def test_member_gets_its_id_first_since_version_4(version):
    """The error MEMBER_ID_REQUIRED returns the id for the next request."""
    async with groups_broker() as broker:
        refused = await broker.ask(join_group, join_request(), version)
        assert refused.error_code == ErrorCode.MEMBER_ID_REQUIRED
        response = await broker.ask(join_group, join_request(member_id=refused.member_id), version)
        assert (response.error_code, response.member_id) == (0, refused.member_id)
        assert response.protocol_type == ("consumer" if version >= 7 else None)


@pytest.mark.parametrize("version", [5, 8, 9])
async def test_static_member_is_named_after_its_instance(version):
    """A static member joins at once in every version that supports it."""
    async with groups_broker() as broker:
        response = await broker.ask(join_group, join_request(group_instance_id="i"), version)
        assert response.error_code == 0
        assert response.member_id.startswith("i-")
        assert response.members[0].group_instance_id == "i"


@pytest.mark.parametrize("version", range(10))
async def test_error_can_be_encoded_in_every_version(version):
    """With an error, the other fields have values that each version can encode."""
    async with groups_broker() as broker:
        response = await broker.ask(join_group, join_request("", member_id="m"), version)
        assert (response.error_code, response.member_id) == (ErrorCode.INVALID_GROUP_ID, "m")
        assert response.generation_id == -1
        assert response.protocol_name == (None if version >= 7 else "")


async def test_host_of_a_member_is_written_as_java_does():
    """Tools show the host in descriptions of the group."""
    async with groups_broker() as broker:
        await broker.ask(join_group, join_request(), 3)
        request = DescribeGroupsRequest(groups=["g"])
        response = await broker.ask(describe_groups, request, 5)
        assert response.groups[0].members[0].client_host == "/127.0.0.9"
        assert response.groups[0].members[0].client_id == "client"
