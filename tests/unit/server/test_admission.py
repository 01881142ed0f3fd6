"""Batches of transactions that have to wait until they may be written: for a commit, for an end."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from ottla.base.errors import ErrorCode
from ottla.coordinators.txn.machine import Producer
from ottla.server.admission import Applicant, Knowledge, Waiting, told
from tests.handlers.transactions import STATE, TransactionsBroker, transactions_broker

DURABLE = {"flush.on.ack": "true"}


@asynccontextmanager
async def durable_broker(**settings: str) -> AsyncIterator[TransactionsBroker]:
    """Run a broker whose decisions about transactions have to be on the disk first."""
    async with transactions_broker(is_loaded=False, **settings) as broker:
        broker.create(STATE, partitions=1, config=DURABLE)
        yield broker


async def test_batch_waits_for_the_addition_of_its_partition() -> None:
    """Not before it is committed: else the records could outlive the transaction."""
    async with durable_broker() as broker:
        producer = await broker.producer()
        sent = asyncio.ensure_future(broker.send(producer, b"a", version=12))
        await asyncio.sleep(0)
        assert broker.partition("t").log.log_end_offset == 0
        assert await sent == 0
        assert broker.partition("t").log.log_end_offset == 1
        assert broker.transactions.find("tx").partitions == {("t", 0)}


async def test_batches_behind_it_keep_their_order() -> None:
    """A pipelining client sends the next before it has heard of the first; also to elsewhere."""
    async with durable_broker() as broker:
        producer = await broker.producer()
        sent = [
            asyncio.ensure_future(
                broker.send(producer, b"%d" % number, sequence=number, version=12)
            )
            for number in range(5)
        ]
        sent.append(asyncio.ensure_future(broker.send(producer, b"x", number=1, version=12)))
        assert await asyncio.gather(*sent) == [0] * 6
        assert await broker.end(producer, version=5) == 0
        while broker.transactions.find("tx").state.shown != "CompleteCommit":
            await asyncio.sleep(0)
        assert await broker.committed_values() == [b"%d" % number for number in range(5)]
        assert await broker.committed_values(1) == [b"x"]


async def test_first_batch_waits_for_the_markers_of_the_last_transaction() -> None:
    """Its client goes on as soon as the outcome is decided."""
    async with durable_broker() as broker:
        producer = await broker.producer()
        for epoch in range(4):
            producer = producer._replace(producer_epoch=epoch)
            assert await broker.send(producer, b"%d" % epoch, version=12) == 0
            assert await broker.end(producer, version=5) == 0
        while broker.transactions.find("tx").state.shown != "CompleteCommit":
            await asyncio.sleep(0)
        assert await broker.committed_values() == [b"0", b"1", b"2", b"3"]


async def test_it_does_not_wait_for_ever() -> None:
    """After add.partitions.to.txn.retry.backoff.max.ms the client is told to try again."""
    patience = {"add_partitions_to_txn_retry_backoff_max_ms": "20"}
    async with durable_broker(**patience) as broker:
        producer = await broker.producer()
        assert await broker.send(producer, b"a", version=12) == 0
        broker.markers.write = lambda marker, partitions: asyncio.Future()  # type: ignore[method-assign]
        assert await broker.end(producer, version=5) == 0
        following = producer._replace(producer_epoch=1)
        refused = await broker.send(following, b"b", version=12)
        assert refused == ErrorCode.CONCURRENT_TRANSACTIONS
        assert broker.partition("t").log.log_end_offset == 1


async def test_transaction_that_was_aborted_in_between_takes_no_more() -> None:
    """The addition is committed, but so is the fence of another producer."""
    async with durable_broker() as broker:
        producer = await broker.producer()
        sent = asyncio.ensure_future(broker.send(producer, b"a", version=12))
        await asyncio.sleep(0)
        answer = await broker.init()
        assert answer.error_code == ErrorCode.CONCURRENT_TRANSACTIONS
        assert await sent == ErrorCode.INVALID_PRODUCER_EPOCH
        assert broker.partition("t").log.producers.first_unstable_offset() is None


async def test_memory_that_waits_is_counted() -> None:
    """In the budget of all connections, until it is written; not where nothing waits."""
    async with durable_broker() as broker:
        producer = await broker.producer()
        assert await broker.send(producer, bytes(1000), version=12) == 0
        ((size_bytes, until),) = broker.held
        assert 1000 < size_bytes < 1200
        assert until.done()
        assert await broker.send(producer, bytes(1000), sequence=1, version=12) == 0
        assert len(broker.held) == 1


async def test_waiting_ends_with_the_broker() -> None:
    """The answer is cancelled, which closes the connection."""
    async with durable_broker() as broker:
        producer = await broker.producer()
        applicant = Applicant("tx", producer, [broker.partition("t")], Knowledge.ADDING)
        verdict = broker.admission.ask(applicant)
        assert isinstance(verdict, Waiting)
        answered = verdict.then(lambda refusals: 1)
        await broker.tasks.close()
        await asyncio.sleep(0)
        assert answered.cancelled()


@pytest.mark.parametrize(
    ("code", "knowledge", "expected"),
    [
        (ErrorCode.PRODUCER_FENCED, Knowledge.ADDING, ErrorCode.INVALID_PRODUCER_EPOCH),
        (ErrorCode.TRANSACTION_ABORTABLE, Knowledge.OLD, ErrorCode.INVALID_TXN_STATE),
        (
            ErrorCode.TRANSACTION_ABORTABLE,
            Knowledge.ABORTABLE,
            ErrorCode.TRANSACTION_ABORTABLE,
        ),
        (ErrorCode.CONCURRENT_TRANSACTIONS, Knowledge.OLD, ErrorCode.NOT_ENOUGH_REPLICAS),
        (
            ErrorCode.CONCURRENT_TRANSACTIONS,
            Knowledge.ADDING,
            ErrorCode.CONCURRENT_TRANSACTIONS,
        ),
        (ErrorCode.NOT_COORDINATOR, Knowledge.ADDING, ErrorCode.NOT_ENOUGH_REPLICAS),
        (
            ErrorCode.INVALID_PRODUCER_ID_MAPPING,
            Knowledge.OLD,
            ErrorCode.INVALID_PRODUCER_ID_MAPPING,
        ),
    ],
)
def test_clients_are_told_what_they_know(
    code: ErrorCode, knowledge: Knowledge, expected: ErrorCode
) -> None:
    """Codes of later versions become those of before; what passes becomes one that is retried."""
    assert told(code, knowledge) is expected


async def test_first_batch_of_a_transaction_begins_at_0() -> None:
    """Where the log knows nothing of the producer, something before it has got lost."""
    async with transactions_broker() as broker:
        producer = await broker.producer()
        lost = await broker.send(producer, b"b", sequence=1, version=12)
        assert lost == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
        assert await broker.send(producer, b"a", version=12) == 0
        assert await broker.send(producer, b"b", sequence=1, version=12) == 0


async def test_one_request_has_one_producer() -> None:
    """Else nothing of it is written."""
    async with transactions_broker() as broker:
        producer = await broker.producer()
        assert await broker.send(producer, b"a", version=12) == 0
        stranger = Producer(producer.producer_id + 1, 0)
        codes = await broker.send_many(producer, stranger, version=12)
        assert codes == [ErrorCode.INVALID_PRODUCER_ID_MAPPING] * 2
