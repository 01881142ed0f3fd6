"""AlterPartition: leaders propose, the controller decides."""

import pytest

from ottla.base.errors import ErrorCode
from ottla.controller.planning.requests import TopicRequest
from ottla.server.handlers import alter_partition
from ottla.wire.messages.alter_partition import (
    AlterPartitionRequest,
    AlterPartitionResponsePartitionData,
    BrokerState,
    PartitionData,
    TopicData,
)
from tests.handlers.admin import AdminBroker, admin_broker

VERSIONS = range(alter_partition.MIN_VERSION, alter_partition.MAX_VERSION + 1)


async def three(admin: AdminBroker) -> bytes:
    """Start two more brokers, and create a topic with a replica on each; return its id."""
    await admin.world.start(2)
    await admin.world.start(3)
    await admin.world.until(lambda: len(admin.controller.image.brokers) == 3)
    topic = TopicRequest("t", assignments=((0, (1, 2, 3)),))
    (result,) = await admin.controller.create_topics([topic])
    assert result.error is None
    return result.topic_id


def request(admin: AdminBroker, topic_id: bytes, *isr: int, **fields: int) -> AlterPartitionRequest:
    values = {"leader_epoch": 0, "partition_epoch": 0, **fields}
    partition = PartitionData(
        partition_index=0,
        new_isr=list(isr),
        new_isr_with_epochs=[BrokerState(broker_id=item) for item in isr],
        **values,
    )
    return AlterPartitionRequest(
        broker_id=1,
        broker_epoch=admin.controller.broker_epoch,
        topics=[TopicData(topic_id=topic_id, partitions=[partition])],
    )


def only(response: object) -> AlterPartitionResponsePartitionData:
    (topic,) = response.topics  # type: ignore[attr-defined]
    (partition,) = topic.partitions
    return partition


async def test_unknown_recovery_state_is_refused() -> None:
    """Otherwise a leader that has not recovered would count as recovered (KIP-704)."""
    async with admin_broker() as admin:
        proposal = request(admin, await three(admin), 1, leader_recovery_state=2)
        response = await alter_partition.handle(admin.context(3), proposal)
        assert (response.error_code, response.topics) == (ErrorCode.INVALID_REQUEST, [])


@pytest.mark.parametrize("version", VERSIONS)
async def test_an_isr_is_stored_and_every_broker_hears_of_it(version: int) -> None:
    """The response has the new partition epoch; replicas get no LeaderAndIsr."""
    async with admin_broker() as admin:
        topic_id = await three(admin)
        calls = len(admin.world.port(2).calls)
        requested = request(admin, topic_id, 1, 3)
        (item,) = requested.topics[0].partitions
        if version < 3:
            item.new_isr_with_epochs = []
        else:
            item.new_isr = []
        response = only(await alter_partition.handle(admin.context(version), requested))
        assert (response.error_code, response.isr, response.leader_id) == (0, [1, 3], 1)
        assert (response.leader_epoch, response.partition_epoch) == (0, 1)
        await admin.world.until(
            lambda: admin.world.port(2).image.topics["t"].partitions[0].isr == (1, 3)
        )
        assert [name for name, _ in admin.world.port(2).calls[calls:]] == ["metadata"]


async def test_each_partition_has_its_own_error() -> None:
    """A stale leader epoch is fenced."""
    async with admin_broker() as admin:
        topic_id = await three(admin)
        requested = request(admin, topic_id, 1, leader_epoch=-1)
        response = only(await alter_partition.handle(admin.context(3), requested))
        assert response.error_code == ErrorCode.FENCED_LEADER_EPOCH


async def test_a_former_registration_is_fenced() -> None:
    """The whole request is refused."""
    async with admin_broker() as admin:
        topic_id = await three(admin)
        requested = request(admin, topic_id, 1)
        requested.broker_epoch -= 1
        response = await alter_partition.handle(admin.context(3), requested)
        assert response.error_code == ErrorCode.STALE_BROKER_EPOCH


async def test_a_broker_that_is_not_the_controller_refuses() -> None:
    """The leader asks the right one next."""
    async with admin_broker() as admin:
        requested = request(admin, await three(admin), 1)
        await admin.controller.stop()
        response = await alter_partition.handle(admin.context(3), requested)
        assert response.error_code == ErrorCode.NOT_CONTROLLER


async def test_only_a_proven_broker_is_served() -> None:
    """The id in the request is a claim."""
    async with admin_broker() as admin:
        admin.stranger = 1
        response = await alter_partition.handle(
            admin.context(3), AlterPartitionRequest(broker_id=1)
        )
        assert response.error_code == ErrorCode.CLUSTER_AUTHORIZATION_FAILED
