"""EndTxn: a transaction is committed or aborted as a whole."""

from dataclasses import replace

import pytest

from ottla.base.errors import ErrorCode
from ottla.coordinators.txn.machine import ProducerIdAndEpoch
from ottla.coordinators.txn.state import EPOCH_MAX
from ottla.server.handlers import end_txn
from ottla.wire.messages.end_txn import EndTxnRequest
from ottla.wire.records.records import iterate_records
from tests.handlers.transactions import STATE, transactions_broker


async def written(broker, producer):
    """Write to both partitions in one transaction."""
    assert await broker.add(producer, 0, 1) == 0
    assert await broker.send(producer, b"a", b"b") == 0
    assert await broker.send(producer, b"c", number=1) == 0


@pytest.mark.parametrize("version", range(end_txn.MAX_VERSION + 1))
async def test_commit_makes_all_partitions_visible(version):
    """Read-committed consumers see nothing before; read-uncommitted ones see everything at once."""
    async with transactions_broker() as broker:
        producer = await broker.producer()
        await written(broker, producer)
        assert await broker.committed_values(0) == []
        assert (await broker.read(0)).last_stable_offset == 0
        assert (await broker.read(0, isolation=0)).high_watermark == 2
        assert await broker.end(producer, version=version) == 0
        assert await broker.committed_values(0) == [b"a", b"b"]
        assert await broker.committed_values(1) == [b"c"]
        partition = await broker.read(0)
        assert (partition.last_stable_offset, partition.high_watermark) == (3, 3)
        assert partition.aborted_transactions == []
        assert broker.transactions.find("tx").state.display_name == "CompleteCommit"


async def test_abort_lists_the_aborted_transaction():
    """The records stay in the log, and the fetch lists their producers."""
    async with transactions_broker() as broker:
        producer = await broker.producer()
        await written(broker, producer)
        assert await broker.end(producer, is_commit=False) == 0
        partition = await broker.read(0)
        assert [
            (item.producer_id, item.first_offset) for item in partition.aborted_transactions
        ] == [(producer.producer_id, 0)]
        assert (await broker.read(0, isolation=0)).aborted_transactions is None
        assert (await broker.read(0, offset=3)).aborted_transactions == []
        assert broker.transactions.find("tx").state.display_name == "CompleteAbort"


async def test_end_can_be_repeated_but_not_changed():
    """A client that lost the response repeats the request."""
    async with transactions_broker() as broker:
        producer = await broker.producer()
        await written(broker, producer)
        assert await broker.end(producer) == 0
        assert await broker.end(producer) == 0
        assert await broker.end(producer, is_commit=False) == ErrorCode.INVALID_TXN_STATE


async def test_transaction_without_partitions_cannot_be_ended():
    """A transaction begins with its first partition."""
    async with transactions_broker() as broker:
        producer = await broker.producer()
        assert await broker.end(producer) == ErrorCode.INVALID_TXN_STATE


@pytest.mark.parametrize(
    ("version", "code"), [(1, ErrorCode.INVALID_PRODUCER_EPOCH), (2, ErrorCode.PRODUCER_FENCED)]
)
async def test_former_producer_is_fenced(version, code):
    """The error code depends on the version."""
    async with transactions_broker() as broker:
        producer = await broker.producer()
        await broker.producer()
        assert await broker.end(producer, version=version) == code


async def test_transactions_follow_each_other():
    """Sequence numbers continue; a read in between returns only the first transaction."""
    async with transactions_broker() as broker:
        producer = await broker.producer()
        await broker.add(producer, 0)
        await broker.send(producer, b"one")
        await broker.end(producer, is_commit=False)
        await broker.add(producer, 0)
        assert await broker.send(producer, b"two", sequence=1) == 0
        assert (await broker.read()).last_stable_offset == 2
        assert await broker.end(producer) == 0
        partition = await broker.read()
        assert partition.last_stable_offset == 4
        assert [item.first_offset for item in partition.aborted_transactions] == [0]


async def test_partition_of_a_deleted_topic_needs_no_marker():
    """The transaction completes without a marker for it."""
    async with transactions_broker() as broker:
        producer = await broker.producer()
        await broker.add(producer, 0, 1)
        broker.replicas.stop_replicas(1, [("t", 0), ("t", 1)], delete=True)
        broker.image = broker.image.with_topics(deleted=["t"])
        assert await broker.end(producer) == 0
        assert broker.transactions.find("tx").state.display_name == "CompleteCommit"


async def bumped(broker, producer, *, is_commit=True):
    """End the transaction as a client of transaction.version 2; return the code and the producer."""
    request = EndTxnRequest(
        transactional_id="tx",
        producer_id=producer.producer_id,
        producer_epoch=producer.producer_epoch,
        committed=is_commit,
    )
    response = await broker.ask(end_txn, request, 5)
    return ErrorCode(response.error_code).name, ProducerIdAndEpoch(
        response.producer_id, response.producer_epoch
    )


async def test_each_end_increments_the_epoch():
    """With KIP-890 a write adds its partition, and each transaction begins with sequence number 0."""
    async with transactions_broker() as broker:
        producer = await broker.producer()
        for epoch, text in enumerate((b"a", b"b", b"c")):
            assert producer.producer_epoch == epoch
            assert await broker.send(producer, text, version=12) == 0
            assert await broker.send(producer, text, sequence=1, version=12) == 0
            code, producer = await bumped(broker, producer, is_commit=text != b"b")
            assert code == "NONE"
        assert await broker.committed_values() == [b"a", b"a", b"b", b"b", b"c", b"c"]
        partition = await broker.read()
        assert [item.first_offset for item in partition.aborted_transactions] == [3]
        assert (await broker.read()).last_stable_offset == 9


async def test_repeated_end_returns_the_same_epoch():
    """The previous epoch is accepted for the same outcome, not for the other one."""
    async with transactions_broker() as broker:
        producer = await broker.producer()
        assert await broker.send(producer, b"a", version=12) == 0
        first = await bumped(broker, producer)
        assert await bumped(broker, producer) == first
        assert await bumped(broker, producer, is_commit=False) == (
            "INVALID_TXN_STATE",
            ProducerIdAndEpoch(),
        )
        assert first == ("NONE", producer._replace(producer_epoch=1))


async def test_abort_without_partitions_succeeds():
    """The client cannot know whether its records arrived; a commit of nothing is an error."""
    async with transactions_broker() as broker:
        producer = await broker.producer()
        assert await bumped(broker, producer) == ("INVALID_TXN_STATE", ProducerIdAndEpoch())
        code, producer = await bumped(broker, producer, is_commit=False)
        assert (code, producer.producer_epoch) == ("NONE", 1)


async def test_late_records_do_not_join_another_transaction():
    """Late records have the epoch of their own transaction, which has ended (KIP-890)."""
    async with transactions_broker() as broker:
        producer = await broker.producer()
        assert await broker.send(producer, b"a", version=12) == 0
        _, following = await bumped(broker, producer)
        late = await broker.send(producer, b"late", sequence=1, version=12)
        elsewhere = await broker.send(producer, b"late", number=1, version=12)
        assert late == elsewhere == ErrorCode.INVALID_PRODUCER_EPOCH
        assert await broker.send(following, b"b", version=12) == 0
        assert (await bumped(broker, following))[0] == "NONE"
        assert await broker.committed_values() == [b"a", b"b"]


async def test_last_epoch_is_followed_by_another_producer_id():
    """Its first transaction begins with epoch 0, and the old id is not used again."""
    async with transactions_broker() as broker:
        producer = await broker.producer()
        for shard in broker.transactions.runtime.shards():
            for name, actual in list(shard[1].transactions.items()):
                shard[1].transactions[name] = replace(actual, producer_epoch=EPOCH_MAX - 1)
        last = producer._replace(producer_epoch=EPOCH_MAX - 1)
        assert await broker.send(last, b"a", version=12) == 0
        code, following = await bumped(broker, last)
        assert (code, following) == ("NONE", ProducerIdAndEpoch(producer.producer_id + 1, 0))
        assert await bumped(broker, last) == ("NONE", following)
        assert await broker.send(following, b"b", version=12) == 0
        assert (await bumped(broker, following))[0] == "NONE"
        assert await broker.committed_values() == [b"a", b"b"]
        refused = await broker.send(last, b"late", sequence=1, version=12)
        assert refused == ErrorCode.INVALID_PRODUCER_EPOCH


async def test_clients_of_both_kinds_share_a_broker():
    """The older client keeps its epoch and AddPartitionsToTxn."""
    async with transactions_broker() as broker:
        old, new = await broker.producer("old"), await broker.producer()
        for round_number in range(3):
            assert await broker.add(old, 0, transactional_id="old") == 0
            code = await broker.send(old, b"o", sequence=round_number, transactional_id="old")
            assert code == 0
            assert await broker.send(new, b"n", version=12) == 0
            request = EndTxnRequest(
                transactional_id="old",
                producer_id=old.producer_id,
                producer_epoch=old.producer_epoch,
                committed=True,
            )
            assert (await broker.ask(end_txn, request, 4)).error_code == 0
            _, new = await bumped(broker, new)
        assert await broker.committed_values() == [b"o", b"n"] * 3


async def test_transaction_version_selects_the_record_format():
    """Below level 1 every broker can read the records, and clients of both kinds still work."""
    async with transactions_broker() as broker:
        for level, version in ((0, 0), (1, 1), (2, 1)):
            broker.transaction_version = level
            producer = await broker.producer()
            assert await broker.send(producer, b"a", version=12) == 0
            assert (await bumped(broker, producer))[0] == "NONE"
            number = broker.transactions.partition_for("tx")
            log = broker.partition(STATE, number).log
            data = log.read(0, 1 << 20, max_offset=log.log_end_offset).records
            *_, last = iterate_records(bytes(data))
            assert int.from_bytes(last.value[:2], "big") == version


async def test_ended_transactions_are_released_without_a_reader():
    """Otherwise the broker would keep more state with every transaction, and scan it at each end."""
    async with transactions_broker() as broker:
        producer = await broker.producer()
        for _ in range(10):
            assert await broker.send(producer, b"a", version=12) == 0
            _, producer = await bumped(broker, producer)
        assert broker.partition("t").log.producers.undecided == []
