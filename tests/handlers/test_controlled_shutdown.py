"""ControlledShutdown: a broker gives up its leaders before it stops."""

import pytest

from ottla.base.errors import ErrorCode
from ottla.controller.planning.requests import TopicRequest
from ottla.server.handlers import controlled_shutdown
from ottla.wire.messages.controlled_shutdown import ControlledShutdownRequest
from tests.handlers.admin import AdminBroker, admin_broker

VERSIONS = range(controlled_shutdown.MIN_VERSION, controlled_shutdown.MAX_VERSION + 1)


async def two(admin: AdminBroker) -> ControlledShutdownRequest:
    """Start another broker, which leads a topic, and return its request."""
    other = await admin.world.start(2)
    await admin.world.until(lambda: len(admin.controller.image.brokers) == 2)
    topics = [
        TopicRequest("t", assignments=((0, (2, 1)), (1, (1, 2)))),
        TopicRequest("u", assignments=((0, (2,)),)),
    ]
    await admin.controller.create_topics(topics)
    return ControlledShutdownRequest(broker_id=2, broker_epoch=other.broker_epoch)


@pytest.mark.parametrize("version", VERSIONS)
async def test_leaders_move_to_other_brokers(version: int) -> None:
    """The broker leaves every ISR; a topic without other replicas stays."""
    async with admin_broker() as admin:
        response = await controlled_shutdown.handle(admin.context(version), await two(admin))
        assert (response.error_code, response.remaining_partitions) == (0, [])
        image = admin.world.port(1).image
        assert [(item.leader, item.isr) for item in image.topics["t"].partitions] == [
            (1, (1,)),
            (1, (1,)),
        ]
        assert image.topics["u"].partitions[0].leader == 2


async def test_partitions_that_cannot_move_are_named() -> None:
    """No other replica is in sync: the broker decides whether it waits."""
    async with admin_broker() as admin:
        request = await two(admin)
        first = ControlledShutdownRequest(broker_id=1, broker_epoch=admin.controller.broker_epoch)
        assert (await controlled_shutdown.handle(admin.context(3), first)).error_code == 0
        response = await controlled_shutdown.handle(admin.context(3), request)
        remaining = [
            (item.topic_name, item.partition_index) for item in response.remaining_partitions
        ]
        assert remaining == [("t", 0), ("t", 1)]


@pytest.mark.parametrize(
    ("broker_id", "code"),
    [(2, ErrorCode.STALE_BROKER_EPOCH), (3, ErrorCode.BROKER_NOT_AVAILABLE)],
)
async def test_an_unknown_registration_is_refused(broker_id: int, code: ErrorCode) -> None:
    """It is of a former life of the broker, or the broker is not registered."""
    async with admin_broker() as admin:
        request = await two(admin)
        request.broker_id, request.broker_epoch = broker_id, request.broker_epoch - 1
        response = await controlled_shutdown.handle(admin.context(3), request)
        assert response.error_code == code


async def test_only_a_proven_broker_is_served() -> None:
    """The id in the request is a claim."""
    async with admin_broker() as admin:
        admin.stranger = 1
        response = await controlled_shutdown.handle(
            admin.context(3), ControlledShutdownRequest(broker_id=1)
        )
        assert response.error_code == ErrorCode.CLUSTER_AUTHORIZATION_FAILED
