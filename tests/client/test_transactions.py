"""Transactions: records and offsets become visible together, or not at all."""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest

from ottla.base.errors import ApiError, ErrorCode
from ottla.client import (
    AdminClient,
    AsyncConsumer,
    AsyncProducer,
    Consumer,
    OffsetAndMetadata,
    Producer,
)
from ottla.client.admin.offsets import committed_offsets
from ottla.client.brokers import Brokers
from ottla.client.errors import ClientError, Fenced
from ottla.testing import Cluster
from tests.client.test_consumer import consumer_of, fill, poll_until, read, values_of


def transactional(cluster: Cluster, name: str, **settings: Any) -> Producer:
    """Return a producer with a transactional id."""
    words = {"linger_ms": 0} | settings
    return Producer(bootstrap_servers=cluster.bootstrap, transactional_id=name, **words)


def committed_values(cluster: Cluster, topic: str, count: int) -> list[bytes]:
    """Return what a read_committed consumer reads."""
    settings = {"isolation_level": "read_committed"}
    with consumer_of(cluster, **settings) as consumer:
        consumer.assign([(topic, number) for number in range(3)])
        return values_of(read(consumer, count) + consumer.poll(0.3))


def test_block_is_committed_or_aborted(cluster: Cluster, topic: str) -> None:
    """An exception or Ctrl-C in the block aborts; the next transaction is not affected."""
    with transactional(cluster, topic) as producer:
        with producer.transaction():
            producer.send(topic, b"one")
            producer.send(topic, b"two")
        for error in (RuntimeError, KeyboardInterrupt):
            with pytest.raises(error), producer.transaction():
                producer.send(topic, b"aborted")
                producer.flush()
                raise error
        with producer.transaction():
            producer.send(topic, b"three")
    assert committed_values(cluster, topic, 3) == [b"one", b"three", b"two"]


def test_offsets_are_part_of_the_transaction(cluster: Cluster, topic: str) -> None:
    """Read, process, write: positions are committed with the results, or not."""
    out = f"{topic}-out"
    cluster.create_topic(out, partitions=3)
    fill(cluster, topic, [b"a", b"b", b"c"])
    settings = {"group_id": topic, "enable_auto_commit": False}
    with transactional(cluster, topic) as producer:
        for is_failing in (True, False):
            with consumer_of(cluster, topic, **settings) as consumer:
                records = read(consumer, 3)
                try:
                    with producer.transaction():
                        for record in records:
                            producer.send(out, record.value.upper())
                        producer.send_offsets(consumer)
                        if is_failing:
                            raise RuntimeError("the application fails")
                except RuntimeError:
                    assert consumer.committed() == {}
                else:
                    assert sum(row.offset for row in consumer.committed().values()) == 3
    assert committed_values(cluster, out, 3) == [b"A", b"B", b"C"]


def test_older_producer_is_fenced(cluster: Cluster, topic: str) -> None:
    """A second producer with the same id takes over; the first one cannot commit."""
    first = transactional(cluster, topic)
    first.begin_transaction()
    first.send(topic, b"zombie", partition=0).result(10)
    with transactional(cluster, topic) as second, second.transaction():
        second.send(topic, b"new")
    with pytest.raises(Fenced, match="taken over"):
        first.commit_transaction()
    first.close()
    assert committed_values(cluster, topic, 1) == [b"new"]


def fenced_transaction(cluster: Cluster, topic: str) -> Producer:
    """Return a producer that another one has fenced after the first record of a transaction."""
    first = transactional(cluster, topic, batch_size=1_000, linger_ms=50)
    first.begin_transaction()
    first.send(topic, b"zombie", partition=0).result(10)
    with transactional(cluster, topic) as second:
        second.init_transactions()
    return first


def test_records_behind_a_fatal_error_have_its_reason(cluster: Cluster, topic: str) -> None:
    """Batches that were not sent fail as the one that was, and so does the next record."""
    with fenced_transaction(cluster, topic) as producer:
        futures = [producer.send(topic, bytes(100), partition=0) for _ in range(14)]
        errors = [future.exception(10) for future in futures]
        assert {type(error) for error in errors} == {Fenced}
        assert "was not sent: a newer client" in str(errors[-1])
        with pytest.raises(Fenced, match="was not sent: a newer client"):
            producer.send(topic, b"later")


async def test_records_behind_a_fatal_error_have_its_reason_in_asyncio(
    cluster: Cluster, topic: str
) -> None:
    """The next record has it, too; `close` raises nothing."""
    settings = {"bootstrap_servers": cluster.bootstrap, "transactional_id": topic}
    async with AsyncProducer(batch_size=1_000, linger_ms=50, **settings) as producer:
        await producer.begin_transaction()
        await (await producer.send(topic, b"zombie", partition=0))
        async with AsyncProducer(**settings) as other:
            await other.init_transactions()
        futures = [await producer.send(topic, bytes(100), partition=0) for _ in range(14)]
        errors = await asyncio.gather(*futures, return_exceptions=True)
        assert {type(error) for error in errors} == {Fenced}
        with pytest.raises(Fenced, match="was not sent: a newer client"):
            await producer.send(topic, b"later")


def test_error_of_the_block_is_raised_after_a_fence(cluster: Cluster, topic: str) -> None:
    """An abort or a close that fails does not hide it."""
    with pytest.raises(KeyError, match="body"), fenced_transaction(cluster, topic):
        raise KeyError("body")
    with (
        pytest.raises(KeyError, match="body"),
        transactional(cluster, topic) as producer,
        producer.transaction(),
    ):
        with transactional(cluster, topic) as second:
            second.init_transactions()
        raise KeyError("body")


def test_records_are_offsets_of_a_transaction(cluster: Cluster, topic: str) -> None:
    """As in `Consumer.commit`, the offset after each record is committed."""
    fill(cluster, topic, [b"a", b"b", b"c", b"d"])
    with (
        transactional(cluster, topic) as producer,
        consumer_of(cluster, topic, group_id=topic, enable_auto_commit=False) as consumer,
    ):
        records = read(consumer, 4)
        for offsets, sums in ((records[0], 1), (records, 4)):
            with producer.transaction():
                producer.send_offsets(consumer, offsets)
            assert sum(row.offset for row in consumer.committed().values()) == sums


def test_commits_without_metadata_have_none(cluster: Cluster, topic: str) -> None:
    """Other clients used to read a NUL character; metadata itself is as it was committed."""
    fill(cluster, topic, [b"a", b"b", b"c"])
    with (
        transactional(cluster, topic) as producer,
        AdminClient(bootstrap_servers=cluster.bootstrap) as admin,
        Brokers(cluster.bootstrap) as brokers,
    ):
        with consumer_of(cluster, topic, group_id=topic, enable_auto_commit=False) as consumer:
            records = read(consumer, 3)
            consumer.commit(records[0])
            consumer.commit_async(records[1])
            with producer.transaction():
                producer.send_offsets(consumer, records[2])
        assert [row.metadata for row in committed_offsets(brokers, topic).values()] == [""] * 3
        with consumer_of(cluster, group_id=topic) as consumer:
            consumer.assign([(topic, 0)])
            consumer.commit({(topic, 0): OffsetAndMetadata(1, "note")})
        assert admin.list_group_offsets(topic)[topic, 0].metadata == "note"


def test_transaction_needs_an_id(cluster: Cluster) -> None:
    """The error names the option."""
    with (
        Producer(bootstrap_servers=cluster.bootstrap) as producer,
        consumer_of(cluster, group_id="no-id") as consumer,
    ):
        calls: list[Callable[[], object]] = [
            producer.transaction().__enter__,
            producer.init_transactions,
            producer.commit_transaction,
            producer.abort_transaction,
            lambda: producer.send_offsets(consumer, {}),
        ]
        for call in calls:
            with pytest.raises(ClientError, match="need the option transactional_id"):
                call()


def test_transaction_that_takes_too_long_is_explained() -> None:
    """Its coordinator fences the producer, as another producer with the same id would."""
    options = {"transaction.abort.timed.out.transaction.cleanup.interval.ms": "50"}
    with Cluster(options=options) as cluster:
        cluster.create_topic("slow")
        settings = {"transactional_id": "slow", "transaction_timeout_ms": 1_000}
        # The producer raises the error again when it is closed.
        with (
            suppress(Fenced),
            AdminClient(bootstrap_servers=cluster.bootstrap) as admin,
            Producer(bootstrap_servers=cluster.bootstrap, **settings) as producer,
        ):
            producer.begin_transaction()
            producer.send("slow", b"late").result(20)
            while admin.describe_transaction("slow").state == "Ongoing":
                producer.flush()
            with pytest.raises(Fenced, match=r"longer than transaction\.timeout\.ms"):
                producer.commit_transaction()


async def test_asyncio_has_transactions(cluster: Cluster, topic: str) -> None:
    """The block is an `async with`; offsets come from an AsyncConsumer's positions."""
    fill(cluster, topic, [b"a"])
    settings = {"bootstrap_servers": cluster.bootstrap}
    async with (
        AsyncProducer(**settings, transactional_id=topic, linger_ms=0) as producer,
        AsyncConsumer(
            topic,
            **settings,
            group_id=topic,
            auto_offset_reset="earliest",
            enable_auto_commit=False,
        ) as consumer,
    ):
        assert len(await consumer.poll(10)) == 1
        with pytest.raises(RuntimeError):
            async with producer.transaction():
                await producer.send(topic, b"aborted")
                raise RuntimeError("the application fails")
        async with producer.transaction():
            await producer.send(topic, b"b")
            await producer.send_offsets(consumer)
        assert (await consumer.committed())[topic, 0].offset == 1
        await producer.begin_transaction()
        await producer.send(topic, b"aborted, too")
        await producer.abort_transaction()
        await producer.begin_transaction()
        await producer.send(topic, b"c")
        await producer.send_offsets(consumer, await consumer.positions())
        await producer.commit_transaction()
    assert committed_values(cluster, topic, 3) == [b"a", b"b", b"c"]


def test_record_that_is_not_sent_aborts_its_transaction(cluster: Cluster, topic: str) -> None:
    """A record that is too large has its error in its future, and none of the block is visible."""
    with transactional(cluster, topic, max_request_size=1000) as producer:
        with pytest.raises(ApiError, match="was aborted") as caught, producer.transaction():
            producer.send(topic, b"small")
            future = producer.send(topic, b"x" * 5000)
        assert caught.value.code is ErrorCode.MESSAGE_TOO_LARGE
        assert isinstance(future.exception(), ApiError)
        with pytest.raises(RuntimeError), producer.transaction():
            producer.send(topic, b"x" * 5000)
            raise RuntimeError("the application fails")
        with producer.transaction():
            producer.send(topic, b"next")
    assert committed_values(cluster, topic, 1) == [b"next"]


async def test_record_that_is_not_sent_aborts_its_transaction_in_asyncio(
    cluster: Cluster, topic: str
) -> None:
    """The same for an AsyncProducer."""
    settings = {"bootstrap_servers": cluster.bootstrap, "max_request_size": 1000}
    async with AsyncProducer(**settings, transactional_id=topic, linger_ms=0) as producer:
        with pytest.raises(ApiError, match="was aborted"):
            async with producer.transaction():
                await producer.send(topic, b"small")
                future = await producer.send(topic, b"x" * 5000)
        with pytest.raises(ApiError):
            await future
        async with producer.transaction():
            await producer.send(topic, b"next")
    assert committed_values(cluster, topic, 1) == [b"next"]


@pytest.mark.parametrize("strategy", ["range", "sticky"])
def test_static_member_is_fenced_by_its_successor(
    cluster: Cluster, topic: str, strategy: str
) -> None:
    """Two consumers with one group.instance.id: the first learns that another one joined."""
    settings = {"group_id": topic, "group_instance_id": "one", "heartbeat_interval_ms": 100}
    settings["partition_assignment_strategy"] = strategy
    first: Consumer = consumer_of(cluster, topic, **settings)
    poll_until(first, lambda: len(first.assignment) == 3)
    with consumer_of(cluster, topic, **settings) as second:
        poll_until(second, lambda: len(second.assignment) == 3)
        with pytest.raises(Fenced, match=r"group\.instance\.id 'one'"):
            poll_until(first, lambda: False)
        assert "group.instance.id 'one'" in (first.departure or "")
    first.close()
