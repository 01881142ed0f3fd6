"""Heartbeat: members of classic groups."""

import pytest

from ottla.base.errors import ErrorCode
from ottla.server.handlers import heartbeat
from ottla.wire.messages.heartbeat import HeartbeatRequest
from tests.handlers.groups import groups_broker


@pytest.mark.parametrize("version", range(heartbeat.MAX_VERSION + 1))
async def test_member_of_the_generation_is_alive(version):
    """Other members get an error code."""
    async with groups_broker() as broker:
        member, generation = await broker.stable()
        request = HeartbeatRequest(group_id="g", member_id=member, generation_id=generation)
        assert (await broker.ask(heartbeat, request, version)).error_code == 0
        request.generation_id += 1
        response = await broker.ask(heartbeat, request, version)
        assert response.error_code == ErrorCode.ILLEGAL_GENERATION
        request.member_id = "stranger"
        response = await broker.ask(heartbeat, request, version)
        assert response.error_code == ErrorCode.UNKNOWN_MEMBER_ID


async def test_broker_that_is_not_the_coordinator_returns_an_error():
    """The client then looks for the coordinator."""
    async with groups_broker(is_loaded=False) as broker:
        request = HeartbeatRequest(group_id="g", member_id="m", generation_id=1)
        response = await broker.ask(heartbeat, request, 4)
        assert response.error_code == ErrorCode.NOT_COORDINATOR
