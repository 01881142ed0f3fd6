"""InitProducerId: ids for idempotent producers."""

import asyncio

import pytest

from ottla.base.errors import ErrorCode
from ottla.server.handlers import init_producer_id
from ottla.wire.messages.init_producer_id import InitProducerIdRequest
from tests.handlers.groups import groups_broker
from tests.handlers.transactions import transactions_broker


class Supply:
    """Ids from 1000 upwards; the first is available only later."""

    def __init__(self):
        self.last = 999

    def next_id(self):
        self.last += 1
        if self.last > 1000:
            return self.last
        future = asyncio.get_running_loop().create_future()
        asyncio.get_running_loop().call_soon(future.set_result, self.last)
        return future


@pytest.mark.parametrize("version", range(init_producer_id.MAX_VERSION + 1))
async def test_every_producer_gets_its_own_id(version):
    """The epoch is 0, whatever id the producer had before."""
    async with groups_broker() as broker:
        broker.producer_ids = Supply()
        request = InitProducerIdRequest(transactional_id=None)
        first = await broker.ask(init_producer_id, request, version)
        if version >= 3:
            request.producer_id, request.producer_epoch = first.producer_id, 0
        second = await broker.ask(init_producer_id, request, version)
        assert [
            (item.error_code, item.producer_id, item.producer_epoch) for item in (first, second)
        ] == [
            (0, 1000, 0),
            (0, 1001, 0),
        ]


async def test_empty_transactional_id_and_incomplete_producer_are_rejected():
    """The error is not retriable."""
    async with transactions_broker() as broker:
        for fields in ({"transactional_id": ""}, {"producer_id": 5}, {"producer_epoch": 5}):
            response = await broker.init(**fields)
            assert response.error_code == ErrorCode.INVALID_REQUEST
            assert (response.producer_id, response.producer_epoch) == (-1, -1)


@pytest.mark.parametrize("timeout_ms", [0, -1, 900_001])
async def test_transaction_timeout_must_be_within_the_limit(timeout_ms):
    """The limit is transaction.max.timeout.ms."""
    async with transactions_broker() as broker:
        response = await broker.init(timeout_ms=timeout_ms)
        assert response.error_code == ErrorCode.INVALID_TRANSACTION_TIMEOUT


async def test_each_producer_of_a_transactional_id_gets_the_next_epoch():
    """The producer id stays; other transactional ids have other producer ids."""
    async with transactions_broker() as broker:
        assert await broker.producer() == (1000, 0)
        assert await broker.producer() == (1000, 1)
        assert await broker.producer("other") == (1001, 0)


async def test_ongoing_transaction_is_aborted_first():
    """The client retries, and gets an epoch above the one that fenced the previous producer."""
    async with transactions_broker() as broker:
        producer = await broker.producer()
        await broker.add(producer, 0)
        assert await broker.send(producer, b"a") == 0
        assert (await broker.init()).error_code == ErrorCode.CONCURRENT_TRANSACTIONS
        assert await broker.producer() == (1000, 2)
        assert await broker.send(producer, b"b", sequence=1) == ErrorCode.INVALID_PRODUCER_EPOCH
        partition = await broker.read()
        assert (partition.last_stable_offset, partition.high_watermark) == (2, 2)
        assert [item.first_offset for item in partition.aborted_transactions] == [0]


@pytest.mark.parametrize(
    ("version", "code"), [(3, ErrorCode.INVALID_PRODUCER_EPOCH), (4, ErrorCode.PRODUCER_FENCED)]
)
async def test_producer_with_an_old_epoch_is_fenced(version, code):
    """The error code depends on the version (KIP-360)."""
    async with transactions_broker() as broker:
        await broker.producer()
        await broker.producer()
        request = InitProducerIdRequest(
            transactional_id="tx", transaction_timeout_ms=1000, producer_id=1000, producer_epoch=0
        )
        response = await broker.ask(init_producer_id, request, version)
        assert response.error_code == code


async def test_transactional_id_of_another_broker_is_not_coordinated_here():
    """The broker does not load its state."""
    async with transactions_broker(is_loaded=False) as broker:
        assert (await broker.init()).error_code == ErrorCode.NOT_COORDINATOR
