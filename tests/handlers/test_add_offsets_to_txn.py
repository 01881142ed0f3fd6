"""AddOffsetsToTxn: a group's partition of __consumer_offsets is added to the transaction."""

import pytest

from ottla.base.errors import ErrorCode
from ottla.server.handlers import add_offsets_to_txn
from ottla.wire.messages.add_offsets_to_txn import AddOffsetsToTxnRequest
from tests.handlers.transactions import OFFSETS, transactions_broker


def request(producer, transactional_id="tx"):
    """Return the request for group `g`."""
    return AddOffsetsToTxnRequest(
        transactional_id=transactional_id,
        producer_id=producer.producer_id,
        producer_epoch=producer.producer_epoch,
        group_id="g",
    )


@pytest.mark.parametrize("version", range(add_offsets_to_txn.MAX_VERSION + 1))
async def test_partition_of_the_groups_offsets_is_added(version):
    """The partition is the one that stores the group's offsets."""
    async with transactions_broker() as broker:
        producer = await broker.producer()
        response = await broker.ask(add_offsets_to_txn, request(producer), version)
        assert response.error_code == 0
        topic_partition = (OFFSETS, broker.groups.partition_for("g"))
        assert broker.transactions.find("tx").partitions == {topic_partition}


@pytest.mark.parametrize(
    ("version", "code"), [(1, ErrorCode.INVALID_PRODUCER_EPOCH), (2, ErrorCode.PRODUCER_FENCED)]
)
async def test_former_producer_is_fenced(version, code):
    """The error code depends on the version."""
    async with transactions_broker() as broker:
        producer = await broker.producer()
        await broker.producer()
        response = await broker.ask(add_offsets_to_txn, request(producer), version)
        assert response.error_code == code


async def test_empty_transactional_id_is_rejected():
    """An empty transactional id is INVALID_REQUEST."""
    async with transactions_broker() as broker:
        producer = await broker.producer()
        response = await broker.ask(add_offsets_to_txn, request(producer, ""), 3)
        assert response.error_code == ErrorCode.INVALID_REQUEST
