"""EndTxn: a transaction becomes visible as a whole, or not at all."""

import pytest

from ottla.base.errors import ErrorCode
from ottla.server.handlers import end_txn
from tests.handlers.transactions import transactions_broker


async def written(broker, producer):
    """Write to both partitions in one transaction."""
    assert await broker.add(producer, 0, 1) == 0
    assert await broker.send(producer, b"a", b"b") == 0
    assert await broker.send(producer, b"c", number=1) == 0


@pytest.mark.parametrize("version", range(end_txn.MAX_VERSION + 1))
async def test_commit_makes_all_partitions_visible(version):
    """Nothing before, everything after; uncommitted readers see it at once."""
    async with transactions_broker() as broker:
        producer = await broker.producer()
        await written(broker, producer)
        assert await broker.committed_values(0) == []
        assert (await broker.read(0)).last_stable_offset == 0
        assert (await broker.read(0, isolation=0)).high_watermark == 2
        assert await broker.end(producer, version=version) == 0
        assert await broker.committed_values(0) == [b"a", b"b"]
        assert await broker.committed_values(1) == [b"c"]
        found = await broker.read(0)
        assert (found.last_stable_offset, found.high_watermark) == (3, 3)
        assert found.aborted_transactions == []
        assert broker.transactions.find("tx").state.shown == "CompleteCommit"


async def test_abort_names_what_readers_skip():
    """The records stay in the log; the fetch says whose they are."""
    async with transactions_broker() as broker:
        producer = await broker.producer()
        await written(broker, producer)
        assert await broker.end(producer, is_commit=False) == 0
        found = await broker.read(0)
        assert [(item.producer_id, item.first_offset) for item in found.aborted_transactions] == [
            (producer.producer_id, 0)
        ]
        assert (await broker.read(0, isolation=0)).aborted_transactions is None
        assert (await broker.read(0, offset=3)).aborted_transactions == []
        assert broker.transactions.find("tx").state.shown == "CompleteAbort"


async def test_outcome_can_be_asked_for_again_but_not_changed():
    """A client that did not get its answer repeats the request."""
    async with transactions_broker() as broker:
        producer = await broker.producer()
        await written(broker, producer)
        assert await broker.end(producer) == 0
        assert await broker.end(producer) == 0
        assert await broker.end(producer, is_commit=False) == ErrorCode.INVALID_TXN_STATE


async def test_transaction_must_have_begun():
    """With a partition."""
    async with transactions_broker() as broker:
        producer = await broker.producer()
        assert await broker.end(producer) == ErrorCode.INVALID_TXN_STATE


@pytest.mark.parametrize(
    ("version", "code"), [(1, ErrorCode.INVALID_PRODUCER_EPOCH), (2, ErrorCode.PRODUCER_FENCED)]
)
async def test_former_producer_is_fenced(version, code):
    """By the error that the version knows."""
    async with transactions_broker() as broker:
        producer = await broker.producer()
        await broker.producer()
        assert await broker.end(producer, version=version) == code


async def test_transactions_follow_each_other():
    """Sequence numbers go on; a read in between sees the first and not the second."""
    async with transactions_broker() as broker:
        producer = await broker.producer()
        await broker.add(producer, 0)
        await broker.send(producer, b"one")
        await broker.end(producer, is_commit=False)
        await broker.add(producer, 0)
        assert await broker.send(producer, b"two", sequence=1) == 0
        assert (await broker.read()).last_stable_offset == 2
        assert await broker.end(producer) == 0
        found = await broker.read()
        assert found.last_stable_offset == 4
        assert [item.first_offset for item in found.aborted_transactions] == [0]


async def test_partition_of_a_deleted_topic_needs_no_marker():
    """The transaction is completed without it."""
    async with transactions_broker() as broker:
        producer = await broker.producer()
        await broker.add(producer, 0, 1)
        broker.replicas.stop_replicas(1, [("t", 0), ("t", 1)], delete=True)
        broker.image = broker.image.with_topics(deleted=["t"])
        assert await broker.end(producer) == 0
        assert broker.transactions.find("tx").state.shown == "CompleteCommit"
