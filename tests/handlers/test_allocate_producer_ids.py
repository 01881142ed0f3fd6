"""AllocateProducerIds: blocks of ids for brokers of Apache Kafka."""

from ottla.base.errors import ErrorCode
from ottla.server.handlers import allocate_producer_ids
from ottla.wire.messages.allocate_producer_ids import AllocateProducerIdsRequest
from tests.handlers.admin import AdminBroker, admin_broker


def request(admin: AdminBroker, broker_id: int = 1, behind: int = 0) -> AllocateProducerIdsRequest:
    epoch = admin.controller.broker_epoch - behind
    return AllocateProducerIdsRequest(broker_id=broker_id, broker_epoch=epoch)


async def test_blocks_follow_one_another() -> None:
    """A thousand ids each."""
    async with admin_broker() as admin:
        responses = [
            await allocate_producer_ids.handle(admin.context(0), request(admin)) for _ in range(2)
        ]
        assert [
            (item.error_code, item.producer_id_start, item.producer_id_len) for item in responses
        ] == [
            (0, 0, 1000),
            (0, 1000, 1000),
        ]


async def test_only_a_registered_broker_gets_ids() -> None:
    """Another registration, or another broker, is refused."""
    async with admin_broker() as admin:
        for requested in (request(admin, behind=1), request(admin, broker_id=9)):
            response = await allocate_producer_ids.handle(admin.context(0), requested)
            assert response.error_code == ErrorCode.STALE_BROKER_EPOCH


async def test_a_broker_that_is_not_the_controller_refuses() -> None:
    """It allocates nothing."""
    async with admin_broker() as admin:
        requested = request(admin)
        await admin.controller.stop()
        response = await allocate_producer_ids.handle(admin.context(0), requested)
        assert response.error_code == ErrorCode.NOT_CONTROLLER


async def test_only_a_proven_broker_is_served() -> None:
    """The id in the request is a claim."""
    async with admin_broker() as admin:
        admin.stranger = 1
        response = await allocate_producer_ids.handle(admin.context(0), request(admin))
        assert response.error_code == ErrorCode.CLUSTER_AUTHORIZATION_FAILED
