"""FindCoordinator: the coordinator of a group or a transactional id."""

import asyncio

import pytest

from ottla.base.errors import ApiError, ErrorCode
from ottla.cluster import names
from ottla.cluster.image import BrokerImage, PartitionImage, TopicImage
from ottla.server.handlers import find_coordinator
from ottla.wire.messages.find_coordinator import FindCoordinatorRequest
from tests.handlers.groups import groups_broker
from tests.handlers.transactions import transactions_broker


@pytest.mark.parametrize("version", range(find_coordinator.MAX_VERSION + 1))
async def test_coordinator_has_the_address_of_the_connection(version):
    """There is one key before version 4, and several since."""
    async with groups_broker() as broker:
        request = FindCoordinatorRequest()
        if version < 4:
            request.key = "g"
        else:
            request.coordinator_keys = ["g", "h"]
        response = await broker.ask(find_coordinator, request, version)
        values = [response] if version < 4 else response.coordinators
        assert [(item.node_id, item.host, item.port) for item in values] == [
            (1, "127.0.0.1", 7)
        ] * len(values)
        assert [item.key for item in response.coordinators] == ([] if version < 4 else ["g", "h"])
        assert all(item.error_code == 0 for item in values)
        assert response.error_message == ("NONE" if 1 <= version < 4 else "")


async def test_first_request_creates_the_offsets_topic():
    """A cluster has no __consumer_offsets before the first request."""
    async with groups_broker() as broker:
        broker.image = broker.image.with_topics(deleted=[names.GROUP_OFFSETS_TOPIC])
        response = await broker.ask(find_coordinator, FindCoordinatorRequest(key="g"), 2)
        assert (response.error_code, response.node_id) == (0, 1)
        assert broker.image.topic(names.GROUP_OFFSETS_TOPIC) is not None


async def test_topic_that_cannot_be_created_is_not_available():
    """The response has the reason in its message."""
    async with groups_broker() as broker:
        broker.image = broker.image.with_topics(deleted=[names.GROUP_OFFSETS_TOPIC])
        broker.refuses_topics = ApiError(ErrorCode.INVALID_REPLICATION_FACTOR, "too few brokers")
        response = await broker.ask(find_coordinator, FindCoordinatorRequest(key="g"), 2)
        assert response.error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE
        assert "too few brokers" in response.error_message
        assert (response.node_id, response.host, response.port) == (-1, "", -1)


async def test_a_silent_controller_does_not_hold_the_connection(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The client asks again, and its later requests are served in between."""
    monkeypatch.setattr(find_coordinator, "_CREATION_SECONDS", 0.01)
    async with groups_broker() as broker:
        broker.image = broker.image.with_topics(deleted=[names.GROUP_OFFSETS_TOPIC])
        broker.controller_silence = asyncio.get_running_loop().create_future()
        response = await broker.ask(find_coordinator, FindCoordinatorRequest(key="g"), 2)
        assert response.error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE
        assert "is being created" in response.error_message
        broker.controller_silence = None
        response = await broker.ask(find_coordinator, FindCoordinatorRequest(key="g"), 2)
        assert (response.error_code, response.node_id) == (0, 1)


async def test_group_of_another_broker_has_that_coordinator():
    """The coordinator is the leader of the group's partition; without a leader no coordinator is
    available.
    """
    async with groups_broker() as broker:
        other = BrokerImage(2, "b2", 9093)
        broker.image = broker.image.with_brokers([other])

        def lead(leader):
            partition = PartitionImage(0, leader, 1, (leader,), (1, 2))
            topic_image = TopicImage(names.GROUP_OFFSETS_TOPIC, bytes(15) + b"\x07", (partition,))
            broker.image = broker.image.with_topics([topic_image])

        lead(2)
        response = await broker.ask(find_coordinator, FindCoordinatorRequest(key="g"), 1)
        assert (response.node_id, response.host, response.port) == (2, "b2", 9093)
        lead(-1)
        response = await broker.ask(find_coordinator, FindCoordinatorRequest(key="g"), 1)
        assert response.error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE


async def test_transactional_id_has_a_coordinator_of_its_own():
    """The first request creates __transaction_state."""
    async with transactions_broker(is_loaded=False) as broker:
        request = FindCoordinatorRequest(key_type=1, coordinator_keys=["tx"])
        response = await broker.ask(find_coordinator, request, 6)
        coordinator = response.coordinators[0]
        assert (coordinator.key, coordinator.error_code, coordinator.node_id, coordinator.port) == (
            "tx",
            0,
            1,
            7,
        )
        assert broker.image.topic(names.TRANSACTION_STATE_TOPIC) is not None


async def test_share_groups_have_no_coordinator_yet():
    """The message says why no coordinator is available."""
    async with groups_broker() as broker:
        request = FindCoordinatorRequest(key_type=2, coordinator_keys=["x"])
        response = await broker.ask(find_coordinator, request, 6)
        assert response.coordinators[0].error_code == ErrorCode.INVALID_REQUEST
        assert response.coordinators[0].error_message
