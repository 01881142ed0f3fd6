"""Transactional batches that wait for a commit by the coordinator, or for the previous transaction."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from types import SimpleNamespace
from typing import Any

import pytest

from ottla.base.errors import ErrorCode
from ottla.base.tasks import Tasks
from ottla.coordinators.ports import Marker
from ottla.coordinators.replies import shaped
from ottla.coordinators.txn.machine import ProducerIdAndEpoch
from ottla.server.handlers import produce
from ottla.server.produce.admission import (
    Admission,
    TransactionalWrite,
    TransactionSupport,
    Waiting,
    error_for,
)
from ottla.storage.config import LogConfig
from ottla.wire import schema
from tests.handlers.logs import OTHER, values
from tests.handlers.transactions import STATE, TransactionsBroker, transactions_broker

DURABLE = {"flush.on.ack": "true"}


@asynccontextmanager
async def durable_broker(**settings: str) -> AsyncIterator[TransactionsBroker]:
    """Run a broker whose transaction coordinator has to flush before it responds."""
    async with transactions_broker(is_loaded=False, **settings) as broker:
        broker.create(STATE, partitions=1, config=DURABLE)
        yield broker


async def test_batch_waits_for_the_addition_of_its_partition() -> None:
    """The addition has to be committed, or the records could outlive the transaction."""
    async with durable_broker() as broker:
        producer = await broker.producer()
        sent = asyncio.ensure_future(broker.send(producer, b"a", version=12))
        await asyncio.sleep(0)
        assert broker.partition("t").log.log_end_offset == 0
        assert await sent == 0
        assert broker.partition("t").log.log_end_offset == 1
        assert broker.transactions.find("tx").partitions == {("t", 0)}


async def test_batches_behind_it_keep_their_order() -> None:
    """A pipelining client sends further batches before the first has its response, also to other
    partitions.
    """
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
        while broker.transactions.find("tx").state.display_name != "CompleteCommit":
            await asyncio.sleep(0)
        assert await broker.committed_values() == [b"%d" % number for number in range(5)]
        assert await broker.committed_values(1) == [b"x"]


async def test_batches_behind_a_heavy_one_keep_their_order() -> None:
    """The heavy batch is validated off the loop, and the ones pipelined after it wait for it."""
    async with durable_broker() as broker:
        broker.partition("t").log.update_config(LogConfig(strict_records=True))
        producer = await broker.producer()
        counts = [3000, 1, 1, 2500, 1]
        sent = [
            asyncio.ensure_future(
                broker.send(producer, *[b"v"] * count, sequence=sum(counts[:number]), version=12)
            )
            for number, count in enumerate(counts)
        ]
        assert await asyncio.gather(*sent) == [0] * 5
        assert broker.partition("t").log.log_end_offset == sum(counts)


async def test_rejected_heavy_batch_does_not_block_the_next_one() -> None:
    """A rejected heavy batch does not block the batches after it."""
    async with durable_broker() as broker:
        broker.partition("t").log.update_config(LogConfig(cleanup_policy=frozenset({"compact"})))
        producer = await broker.producer()
        keyless = asyncio.ensure_future(broker.send(producer, *[b"v"] * 3000, version=12))
        other = asyncio.ensure_future(broker.send(producer, b"v", number=1, version=12))
        assert await asyncio.gather(keyless, other) == [ErrorCode.INVALID_RECORD, 0]


@pytest.mark.parametrize(
    ("version", "code"),
    [
        (10, ErrorCode.INVALID_TXN_STATE),
        (11, ErrorCode.TRANSACTION_ABORTABLE),
        (12, ErrorCode.INVALID_PRODUCER_EPOCH),
    ],
)
async def test_heavy_batch_is_rejected_if_its_transaction_ends_meanwhile(
    version: int, code: ErrorCode
) -> None:
    """If it were written after the marker, it would block read-committed consumers forever
    (KIP-890).
    """
    async with transactions_broker() as broker:
        broker.partition("t").log.update_config(LogConfig(strict_records=True))
        producer = await broker.producer()
        await broker.add(producer, 0)
        sent = asyncio.ensure_future(broker.send(producer, *[b"v"] * 3000, version=version))
        await asyncio.sleep(0)
        end_version = 5 if version >= 12 else 3
        assert await broker.end(producer, is_commit=False, version=end_version) == 0
        assert await sent == code
        assert not broker.partition("t").log.producers.has_open_transaction(*producer)


async def test_later_request_does_not_overtake() -> None:
    """The order holds even if the coordinator responds to the second request before the first."""
    tasks = Tasks()
    async with transactions_broker() as broker:
        first: asyncio.Future[ErrorCode] = asyncio.get_running_loop().create_future()
        replies = [first, ErrorCode.NONE]
        coordinator: Any = SimpleNamespace(
            add_partitions=lambda *_, **__: replies.pop(0),
            verify=lambda *_, **__: ErrorCode.NONE,
        )
        admission = Admission(coordinator, tasks, lambda: broker.options)
        applicant = TransactionalWrite(
            "tx", ProducerIdAndEpoch(7, 0), [broker.partition("t")], TransactionSupport.ADDING
        )
        acted: list[int] = []
        responses = []
        for number in (1, 2):
            verdict = admission.ask(applicant)
            assert isinstance(verdict, Waiting)
            responses.append(verdict.then(lambda _, number=number: acted.append(number)))
        for _ in range(5):
            await asyncio.sleep(0)
        assert acted == []
        first.set_result(ErrorCode.NONE)
        await asyncio.gather(*responses)
        assert acted == [1, 2]
        # Later requests do not wait behind them any more.
        replies.append(ErrorCode.NONE)
        assert admission.ask(applicant) == {}
    await tasks.close()


async def test_waiting_batch_does_not_need_its_frame() -> None:
    """The connection's buffer has the next request by then."""
    async with durable_broker() as broker:
        producer = await broker.producer()
        request = broker.produce_request(producer, b"kept")
        frame = bytearray(schema.encode(request, 12))
        decoded, _ = schema.decode(type(request), 12, frame)
        response = produce.handle(broker.context(produce, 12), decoded)
        frame[:] = bytes(len(frame))
        assert asyncio.isfuture(response)
        answered = await response
        assert answered is not None
        assert answered.responses[0].partition_responses[0].error_code == 0
        partition = await broker.read(isolation=0)
        assert values(partition.records) == [b"kept"]


async def test_first_batch_waits_for_the_markers_of_the_last_transaction() -> None:
    """The batch is written as soon as the markers of the previous transaction are complete."""
    patience = {"add_partitions_to_txn_retry_backoff_max_ms": "60000"}
    async with durable_broker(**patience) as broker, asyncio.timeout(20):
        producer = await broker.producer()
        for epoch in range(4):
            producer = producer._replace(producer_epoch=epoch)
            assert await broker.send(producer, b"%d" % epoch, version=12) == 0
            assert await broker.end(producer, version=5) == 0
        while broker.transactions.find("tx").state.display_name != "CompleteCommit":
            await asyncio.sleep(0)
        assert await broker.committed_values() == [b"0", b"1", b"2", b"3"]


async def test_end_of_the_last_transaction_completes_the_wait() -> None:
    """The batch is written when the last marker is."""
    patience = {"add_partitions_to_txn_retry_backoff_max_ms": "60000"}
    async with durable_broker(**patience) as broker, asyncio.timeout(20):
        producer = await broker.producer()
        assert await broker.send(producer, b"a", version=12) == 0
        write, held = broker.markers.write, asyncio.get_running_loop().create_future()
        broker.markers.write = lambda marker, partitions: shaped(  # type: ignore[method-assign]
            held, lambda _: write(marker, partitions)
        )
        assert await broker.end(producer, version=5) == 0
        following = producer._replace(producer_epoch=1)
        sent = asyncio.ensure_future(broker.send(following, b"b", version=12))
        for _ in range(5):
            await asyncio.sleep(0)
        assert not sent.done()
        held.set_result(None)
        assert await sent == 0


async def test_wait_for_the_last_transaction_times_out() -> None:
    """After add.partitions.to.txn.retry.backoff.max.ms the client gets a retriable error."""
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


async def test_waiting_for_an_end_ends_with_the_coordinator() -> None:
    """If the coordinator moves, the client retries and finds the new one."""
    patience = {"add_partitions_to_txn_retry_backoff_max_ms": "60000"}
    async with durable_broker(**patience) as broker, asyncio.timeout(20):
        producer = await broker.producer()
        assert await broker.send(producer, b"a", version=12) == 0
        broker.markers.write = lambda marker, partitions: asyncio.Future()  # type: ignore[method-assign]
        assert await broker.end(producer, version=5) == 0
        following = producer._replace(producer_epoch=1)
        sent = asyncio.ensure_future(broker.send(following, b"b", version=12))
        for _ in range(5):
            await asyncio.sleep(0)
        assert not sent.done()
        broker.transactions.unload(0)
        assert await sent == ErrorCode.NOT_ENOUGH_REPLICAS


@pytest.mark.parametrize("are_markers_written", [True, False])
async def test_transaction_aborted_meanwhile_accepts_no_batch(
    are_markers_written: bool,
) -> None:
    """The addition is committed, but another producer's fence is committed as well."""
    async with durable_broker() as broker:
        producer = await broker.producer()
        if not are_markers_written:
            broker.markers.write = lambda marker, partitions: asyncio.Future()  # type: ignore[method-assign]
        sent = asyncio.ensure_future(broker.send(producer, b"a", version=12))
        await asyncio.sleep(0)
        response = await broker.init()
        assert response.error_code == ErrorCode.CONCURRENT_TRANSACTIONS
        assert await sent == ErrorCode.INVALID_PRODUCER_EPOCH
        assert values((await broker.read(isolation=0)).records).count(b"a") == 0
        assert broker.partition("t").log.producers.first_unstable_offset() is None


async def test_memory_of_waiting_batches_is_counted() -> None:
    """A waiting batch counts in the budget of all connections until it is written, other batches do
    not.
    """
    async with durable_broker() as broker:
        producer = await broker.producer()
        assert await broker.send(producer, bytes(1000), version=12) == 0
        ((size_bytes, until),) = broker.held
        assert 1000 < size_bytes < 1200
        assert until.done()
        assert await broker.send(producer, bytes(1000), sequence=1, version=12) == 0
        assert len(broker.held) == 1


async def test_stopping_broker_cancels_the_wait() -> None:
    """The response is cancelled, which closes the connection."""
    async with durable_broker() as broker:
        producer = await broker.producer()
        applicant = TransactionalWrite(
            "tx", producer, [broker.partition("t")], TransactionSupport.ADDING
        )
        verdict = broker.admission.ask(applicant)
        assert isinstance(verdict, Waiting)
        answered = verdict.then(lambda refusals: 1)
        await broker.tasks.close()
        await asyncio.sleep(0)
        assert answered.cancelled()


@pytest.mark.parametrize(
    ("code", "knowledge", "expected"),
    [
        (ErrorCode.PRODUCER_FENCED, TransactionSupport.ADDING, ErrorCode.INVALID_PRODUCER_EPOCH),
        (ErrorCode.TRANSACTION_ABORTABLE, TransactionSupport.OLD, ErrorCode.INVALID_TXN_STATE),
        (
            ErrorCode.TRANSACTION_ABORTABLE,
            TransactionSupport.ABORTABLE,
            ErrorCode.TRANSACTION_ABORTABLE,
        ),
        (ErrorCode.CONCURRENT_TRANSACTIONS, TransactionSupport.OLD, ErrorCode.NOT_ENOUGH_REPLICAS),
        (
            ErrorCode.CONCURRENT_TRANSACTIONS,
            TransactionSupport.ADDING,
            ErrorCode.CONCURRENT_TRANSACTIONS,
        ),
        (ErrorCode.NOT_COORDINATOR, TransactionSupport.ADDING, ErrorCode.NOT_ENOUGH_REPLICAS),
        (
            ErrorCode.INVALID_PRODUCER_ID_MAPPING,
            TransactionSupport.OLD,
            ErrorCode.INVALID_PRODUCER_ID_MAPPING,
        ),
    ],
)
def test_clients_get_error_codes_of_their_version(
    code: ErrorCode, knowledge: TransactionSupport, expected: ErrorCode
) -> None:
    """New error codes are replaced by old ones, and transient ones by one that the client retries."""
    assert error_for(code, knowledge) is expected


async def test_first_batch_of_a_transaction_begins_at_0() -> None:
    """If the log has no state of the producer, a higher first sequence means that a batch was lost."""
    async with transactions_broker() as broker:
        producer = await broker.producer()
        lost = await broker.send(producer, b"b", sequence=1, version=12)
        assert lost == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
        assert await broker.send(producer, b"a", version=12) == 0
        assert await broker.send(producer, b"b", sequence=1, version=12) == 0


async def test_one_request_has_one_producer() -> None:
    """A request with batches of two producers writes nothing."""
    async with transactions_broker() as broker:
        producer = await broker.producer()
        assert await broker.send(producer, b"a", version=12) == 0
        stranger = ProducerIdAndEpoch(producer.producer_id + 1, 0)
        codes = await broker.send_many(producer, stranger, version=12)
        assert codes == [ErrorCode.INVALID_PRODUCER_ID_MAPPING] * 2


async def test_partition_of_another_leader_joins_no_transaction() -> None:
    """A broker that is not the leader does not add the partition to the transaction."""
    async with transactions_broker() as broker:
        producer = await broker.producer()
        broker.create("t", partitions=2, leader=OTHER, leader_epoch=4)
        refused = await broker.send(producer, b"a", version=12)
        assert refused == ErrorCode.NOT_LEADER_OR_FOLLOWER
        assert broker.transactions.find("tx").partitions == frozenset()


class Elsewhere:
    """A coordinator on another broker: its responses are futures that a test completes."""

    def __init__(self) -> None:
        self.questions: list[tuple[bool, asyncio.Future[dict[tuple[str, int], ErrorCode]]]] = []

    def is_elsewhere(self, transactional_id: str) -> bool:
        """Return True for every id."""
        return True

    def check(
        self, transactional_id: str, producer: ProducerIdAndEpoch, partitions: Any, *, adds: bool
    ) -> "asyncio.Future[dict[tuple[str, int], ErrorCode]]":
        """Note the question."""
        response: asyncio.Future[dict[tuple[str, int], ErrorCode]]
        response = asyncio.get_running_loop().create_future()
        self.questions.append((adds, response))
        return response

    async def pause(self) -> None:
        """Let other tasks run."""
        await asyncio.sleep(0)


@asynccontextmanager
async def coordinated_elsewhere() -> AsyncIterator[tuple[TransactionsBroker, Elsewhere]]:
    """Run a broker whose transactions are coordinated by another one."""
    async with transactions_broker() as broker:
        remote = Elsewhere()
        broker.admission = Admission(
            broker.transactions, broker.tasks, lambda: broker.options, remote
        )
        yield broker, remote


@pytest.mark.parametrize(("version", "adds"), [(11, False), (12, True)])
async def test_another_coordinator_decides(version: int, adds: bool) -> None:
    """An older client's partition is verified, a newer client's is added."""
    async with coordinated_elsewhere() as (broker, remote):
        sent = asyncio.ensure_future(broker.send(ProducerIdAndEpoch(7, 0), b"a", version=version))
        await asyncio.sleep(0)
        ((asked, response),) = remote.questions
        assert asked == adds
        response.set_result({("t", 0): ErrorCode.NONE})
        assert await sent == 0
        # The transaction is open here now, so the coordinator is not asked again.
        assert await broker.send(ProducerIdAndEpoch(7, 0), b"b", sequence=1, version=version) == 0
        assert len(remote.questions) == 1


@pytest.mark.parametrize(
    ("code", "seen"),
    [
        (ErrorCode.NETWORK_EXCEPTION, ErrorCode.NOT_ENOUGH_REPLICAS),
        (ErrorCode.NOT_COORDINATOR, ErrorCode.NOT_ENOUGH_REPLICAS),
        (ErrorCode.TRANSACTION_ABORTABLE, ErrorCode.TRANSACTION_ABORTABLE),
    ],
)
async def test_a_write_that_another_coordinator_refuses(code: ErrorCode, seen: ErrorCode) -> None:
    """A coordinator that cannot be reached is a retriable error."""
    async with coordinated_elsewhere() as (broker, remote):
        sent = asyncio.ensure_future(broker.send(ProducerIdAndEpoch(7, 0), b"a", version=11))
        await asyncio.sleep(0)
        remote.questions[0][1].set_result({("t", 0): code})
        assert await sent == seen
        assert broker.partition("t").log.log_end_offset == 0


async def test_an_answer_about_an_ended_transaction_does_not_count() -> None:
    """A marker arrives between request and response: the batch would never get one (KIP-890)."""
    async with coordinated_elsewhere() as (broker, remote):
        producer = ProducerIdAndEpoch(7, 0)
        sent = asyncio.ensure_future(broker.send(producer, b"a", version=11))
        await asyncio.sleep(0)
        codes = broker.markers.write(Marker(7, 0, 0, is_commit=False), [("t", 0)])
        assert codes == {("t", 0): ErrorCode.NONE}
        remote.questions[0][1].set_result({("t", 0): ErrorCode.NONE})
        while len(remote.questions) < 2:
            await asyncio.sleep(0)
        remote.questions[1][1].set_result({("t", 0): ErrorCode.TRANSACTION_ABORTABLE})
        assert await sent == ErrorCode.TRANSACTION_ABORTABLE
        assert not broker.partition("t").log.producers.has_open_transaction(*producer)
