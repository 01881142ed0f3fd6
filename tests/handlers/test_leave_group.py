"""LeaveGroup: one member or several."""

import pytest

from ottla.base.errors import ErrorCode
from ottla.server.handlers import join_group, leave_group
from ottla.wire.messages.leave_group import LeaveGroupRequest, MemberIdentity
from tests.handlers.groups import groups_broker, join_request


@pytest.mark.parametrize("version", range(3))
async def test_only_member_leaves(version):
    """Before version 3 the member's error is the top-level error."""
    async with groups_broker() as broker:
        member, _ = await broker.stable()
        request = LeaveGroupRequest(group_id="g", member_id=member)
        assert (await broker.ask(leave_group, request, version)).error_code == 0
        response = await broker.ask(leave_group, request, version)
        assert response.error_code == ErrorCode.UNKNOWN_MEMBER_ID


@pytest.mark.parametrize("version", range(3, 6))
async def test_each_member_has_its_own_error(version):
    """The request has a member by id, a static member that an operator removes, and an unknown one."""
    async with groups_broker() as broker:
        joined = await broker.ask(join_group, join_request(group_instance_id="i"), 9)
        members = [
            MemberIdentity(member_id="stranger"),
            MemberIdentity(group_instance_id="i"),
            MemberIdentity(member_id=joined.member_id, group_instance_id="i"),
        ]
        request = LeaveGroupRequest(group_id="g", members=members)
        response = await broker.ask(leave_group, request, version)
        assert response.error_code == 0
        assert [
            (item.member_id, item.group_instance_id, item.error_code) for item in response.members
        ] == [
            ("stranger", None, ErrorCode.UNKNOWN_MEMBER_ID),
            ("", "i", ErrorCode.NONE),
            (joined.member_id, "i", ErrorCode.UNKNOWN_MEMBER_ID),
        ]


@pytest.mark.parametrize(("version", "code"), [(2, ErrorCode.INVALID_GROUP_ID),
                                               (5, ErrorCode.INVALID_GROUP_ID)])  # fmt: skip
async def test_error_of_the_group_is_at_the_top_level(version, code):
    """The error applies to every member."""
    async with groups_broker() as broker:
        request = LeaveGroupRequest(group_id="")
        if version < 3:
            request.member_id = "m"
        else:
            request.members = [MemberIdentity(member_id="m")]
        response = await broker.ask(leave_group, request, version)
        assert (response.error_code, response.members) == (code, [])
