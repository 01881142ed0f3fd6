"""ListGroups: the groups that this broker coordinates."""

import pytest

from ottla.server.handlers import list_groups, offset_commit
from ottla.wire.messages.list_groups import ListGroupsRequest
from tests.handlers.groups import commit_request, groups_broker


@pytest.mark.parametrize("version", range(list_groups.MAX_VERSION + 1))
async def test_groups_are_listed(version):
    """States are returned since version 4, types since version 5."""
    async with groups_broker() as broker:
        await broker.stable()
        await broker.ask(offset_commit, commit_request((0, 1), group="h"), 9)
        response = await broker.ask(list_groups, ListGroupsRequest(), version)
        entries = {
            item.group_id: (item.protocol_type, item.group_state, item.group_type)
            for item in response.groups
        }
        stable, empty = ("Stable", "Empty") if version >= 4 else ("", "")
        kind = "classic" if version >= 5 else ""
        assert entries == {"g": ("consumer", stable, kind), "h": ("", empty, kind)}


async def test_filter_of_states():
    """Only groups in one of the states are listed."""
    async with groups_broker() as broker:
        await broker.stable()
        await broker.ask(offset_commit, commit_request((0, 1), group="h"), 9)
        request = ListGroupsRequest(states_filter=["Empty"], types_filter=["classic"])
        response = await broker.ask(list_groups, request, 5)
        assert [item.group_id for item in response.groups] == ["h"]
