"""DeleteGroups: only empty groups are deleted."""

import pytest

from ottla.base.errors import ErrorCode
from ottla.server.handlers import delete_groups, offset_commit
from ottla.wire.messages.delete_groups import DeleteGroupsRequest
from tests.handlers.groups import commit_request, groups_broker


@pytest.mark.parametrize("version", range(delete_groups.MAX_VERSION + 1))
async def test_each_group_has_its_result(version):
    """Empty groups, groups with members and unknown groups have different results."""
    async with groups_broker() as broker:
        await broker.stable()
        await broker.ask(offset_commit, commit_request((0, 1), group="h"), 9)
        request = DeleteGroupsRequest(groups_names=["h", "g", "none"])
        response = await broker.ask(delete_groups, request, version)
        assert {item.group_id: ErrorCode(item.error_code).name for item in response.results} == {
            "h": "NONE",
            "g": "NON_EMPTY_GROUP",
            "none": "GROUP_ID_NOT_FOUND",
        }
