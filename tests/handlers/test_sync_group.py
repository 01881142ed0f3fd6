"""SyncGroup: assignments of classic groups."""

import pytest

from ottla.base.errors import ErrorCode
from ottla.server.handlers import sync_group
from ottla.wire.messages.sync_group import SyncGroupRequest
from tests.handlers.groups import groups_broker


@pytest.mark.parametrize("version", range(sync_group.MAX_VERSION + 1))
async def test_member_gets_its_assignment(version):
    """The response has the protocol type and name since version 5."""
    async with groups_broker() as broker:
        member, generation = await broker.stable()
        request = SyncGroupRequest(
            group_id="g",
            member_id=member,
            generation_id=generation,
            protocol_type="consumer" if version >= 5 else None,
            protocol_name="range" if version >= 5 else None,
        )
        response = await broker.ask(sync_group, request, version)
        assert (response.error_code, response.assignment) == (0, b"all")
        assert response.protocol_name == ("range" if version >= 5 else None)


async def test_other_protocol_than_the_groups_is_rejected():
    """Since version 5 a member sends the protocol that it expects (KIP-559)."""
    async with groups_broker() as broker:
        member, generation = await broker.stable()
        request = SyncGroupRequest(
            group_id="g",
            member_id=member,
            generation_id=generation,
            protocol_type="consumer",
            protocol_name="sticky",
        )
        response = await broker.ask(sync_group, request, 5)
        assert response.error_code == ErrorCode.INCONSISTENT_GROUP_PROTOCOL


@pytest.mark.parametrize("missing", ["protocol_type", "protocol_name"])
async def test_member_sends_its_protocol_since_version_5(missing):
    """A request without it is inconsistent."""
    async with groups_broker() as broker:
        member, generation = await broker.stable()
        request = SyncGroupRequest(
            group_id="g",
            member_id=member,
            generation_id=generation,
            protocol_type="consumer",
            protocol_name="range",
        )
        setattr(request, missing, None)
        response = await broker.ask(sync_group, request, 5)
        assert response.error_code == ErrorCode.INCONSISTENT_GROUP_PROTOCOL
