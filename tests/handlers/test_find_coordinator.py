"""FindCoordinator: where a group or a transactional id lives."""

import pytest

from ottla.base.errors import ApiError, ErrorCode
from ottla.cluster import names
from ottla.cluster.image import BrokerImage, PartitionImage, TopicImage
from ottla.server.handlers import find_coordinator
from ottla.wire.messages.find_coordinator import FindCoordinatorRequest
from tests.handlers.groups import groups_broker
from tests.handlers.transactions import transactions_broker


@pytest.mark.parametrize("version", range(find_coordinator.MAX_VERSION + 1))
async def test_coordinator_is_told_at_the_address_the_client_came_in_on(version):
    """One key before version 4, several since."""
    async with groups_broker() as broker:
        request = FindCoordinatorRequest()
        if version < 4:
            request.key = "g"
        else:
            request.coordinator_keys = ["g", "h"]
        answer = await broker.ask(find_coordinator, request, version)
        found = [answer] if version < 4 else answer.coordinators
        assert [(item.node_id, item.host, item.port) for item in found] == [
            (1, "127.0.0.1", 7)
        ] * len(found)
        assert [item.key for item in answer.coordinators] == ([] if version < 4 else ["g", "h"])
        assert all(item.error_code == 0 for item in found)


async def test_first_question_creates_the_topic_of_the_groups():
    """A cluster has no __consumer_offsets until somebody asks."""
    async with groups_broker() as broker:
        broker.image = broker.image.with_topics(deleted=[names.GROUP_OFFSETS_TOPIC])
        answer = await broker.ask(find_coordinator, FindCoordinatorRequest(key="g"), 2)
        assert (answer.error_code, answer.node_id) == (0, 1)
        assert broker.image.topic(names.GROUP_OFFSETS_TOPIC) is not None


async def test_topic_that_cannot_be_created_is_not_available():
    """The reason is in the message."""
    async with groups_broker() as broker:
        broker.image = broker.image.with_topics(deleted=[names.GROUP_OFFSETS_TOPIC])
        broker.refuses_topics = ApiError(ErrorCode.INVALID_REPLICATION_FACTOR, "too few brokers")
        answer = await broker.ask(find_coordinator, FindCoordinatorRequest(key="g"), 2)
        assert answer.error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE
        assert "too few brokers" in answer.error_message
        assert (answer.node_id, answer.host, answer.port) == (-1, "", -1)


async def test_group_of_another_broker_is_sent_there():
    """The leader of the group's partition coordinates it; none while there is no leader."""
    async with groups_broker() as broker:
        other = BrokerImage(2, "b2", 9093)
        broker.image = broker.image.with_brokers([other])

        def lead(leader):
            partition = PartitionImage(0, leader, 1, (leader,), (1, 2))
            found = TopicImage(names.GROUP_OFFSETS_TOPIC, bytes(15) + b"\x07", (partition,))
            broker.image = broker.image.with_topics([found])

        lead(2)
        answer = await broker.ask(find_coordinator, FindCoordinatorRequest(key="g"), 1)
        assert (answer.node_id, answer.host, answer.port) == (2, "b2", 9093)
        lead(-1)
        answer = await broker.ask(find_coordinator, FindCoordinatorRequest(key="g"), 1)
        assert answer.error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE


async def test_transactional_id_has_a_coordinator_of_its_own():
    """The first question creates __transaction_state."""
    async with transactions_broker(is_loaded=False) as broker:
        request = FindCoordinatorRequest(key_type=1, coordinator_keys=["tx"])
        answer = await broker.ask(find_coordinator, request, 6)
        found = answer.coordinators[0]
        assert (found.key, found.error_code, found.node_id, found.port) == ("tx", 0, 1, 7)
        assert broker.image.topic(names.TRANSACTION_STATE_TOPIC) is not None


async def test_share_groups_have_no_coordinator_yet():
    """The answer says why."""
    async with groups_broker() as broker:
        request = FindCoordinatorRequest(key_type=2, coordinator_keys=["x"])
        answer = await broker.ask(find_coordinator, request, 6)
        assert answer.coordinators[0].error_code == ErrorCode.INVALID_REQUEST
        assert answer.coordinators[0].error_message
