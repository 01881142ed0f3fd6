"""The producer for asyncio: the same records, futures of the event loop."""

import asyncio
import threading
from typing import Any

import pytest

from ottla.base.errors import ApiError
from ottla.client import AsyncProducer, Serdes
from ottla.client.errors import ClientError, Closed, SerializationError, TimedOut
from ottla.testing import Cluster
from tests.client.test_producer import Recorder, records_of


def producer_of(cluster: Cluster, **settings: Any) -> AsyncProducer:
    """Return a producer that does not linger; without idempotence librdkafka starts at once."""
    arguments = {
        "bootstrap_servers": cluster.bootstrap,
        "linger_ms": 0,
        "enable_idempotence": False,
    }
    return AsyncProducer(**(arguments | settings))


async def test_future_is_awaited(cluster: Cluster, topic: str) -> None:
    """`send` returns when the record is queued, the future when it is acknowledged."""
    async with producer_of(cluster) as producer:
        futures = [await producer.send(topic, b"%d" % n, partition=1) for n in range(100)]
        positions = [metadata.offset for metadata in await asyncio.gather(*futures)]
    assert positions == list(range(100))


async def test_pipeline_is_that_of_the_producer(cluster: Cluster, topic: str) -> None:
    """Interceptors, serializers, a partitioner and callbacks take part."""
    recorder, calls = Recorder("!"), []
    async with producer_of(
        cluster,
        interceptors=[recorder],
        value_serializer=Serdes.string(),
        partitioner=lambda key, partitions: partitions[-1],
    ) as producer:
        future = await producer.send(topic, "x", on_delivery=lambda *words: calls.append(words))
        metadata = await future
        with pytest.raises(SerializationError):
            await producer.send(topic, 5)
        assert await producer.partitions_for(topic) == [0, 1, 2]
    assert metadata.partition == 2
    assert calls == [(metadata, None)]
    assert [offset for offset, _ in recorder.results] == [0, -1]
    assert [record.value for record in records_of(cluster, topic)] == [b"x!"]


async def test_errors_are_in_the_future(cluster: Cluster, topic: str) -> None:
    """A record that is too large fails alone; a value without a serializer is not queued."""
    async with producer_of(cluster, max_request_size=1000) as producer:
        with pytest.raises(ApiError):
            await (await producer.send(topic, b"x" * 2000))
        with pytest.raises(SerializationError, match="value_serializer"):
            await producer.send(topic, {"a": 1})


async def test_full_queue_does_not_block_the_event_loop(cluster: Cluster, topic: str) -> None:
    """Other tasks run while `send` waits for room; without brokers it times out."""
    async with producer_of(cluster, queue_buffering_max_messages=10) as producer:
        futures = [await producer.send(topic, b"x") for _ in range(200)]
        await asyncio.gather(*futures)
    settings = {"bootstrap_servers": "127.0.0.1:1", "queue_buffering_max_messages": 1}
    lost = producer_of(cluster, **settings, max_block_ms=50, delivery_timeout_ms=200)
    await lost.send(topic, b"x", on_delivery=lambda *_: None)
    with pytest.raises(TimedOut, match=r"max\.block\.ms"):
        await lost.send(topic, b"x")
    await lost.close()


async def test_use_after_close_raises(cluster: Cluster, topic: str) -> None:
    """Sending and flushing raise; closing again is allowed."""
    producer = producer_of(cluster)
    await producer.close()
    await producer.close()
    with pytest.raises(Closed):
        await producer.send(topic, b"")
    with pytest.raises(Closed):
        await producer.flush()


def test_a_producer_belongs_to_one_event_loop(cluster: Cluster, topic: str) -> None:
    """Another loop may use it only when the first one is closed."""
    producer = producer_of(cluster)

    async def sent() -> int:
        return (await (await producer.send(topic, b"", partition=0))).offset

    async def sent_in_another_loop() -> None:
        await sent()
        with pytest.raises(ClientError, match="another event loop"):
            await asyncio.to_thread(lambda: asyncio.run(sent()))

    assert asyncio.run(sent()) == 0
    assert asyncio.run(sent()) == 1
    asyncio.run(sent_in_another_loop())
    asyncio.run(producer.close())


class SlowRegistry:
    """A serializer whose first call for a topic waits until the event loop opens it."""

    def __init__(self) -> None:
        self.opened = threading.Event()
        self.known: set[str] = set()
        self.threads: list[int] = []

    def serialize(self, topic: str, value: str | None) -> bytes | None:
        """Return the value as bytes; None stays None, without a request."""
        if value is None:
            return None
        if topic not in self.known:
            assert self.opened.wait(10), "the event loop is blocked"
            self.known.add(topic)
        self.threads.append(threading.get_ident())
        return value.encode()


async def test_first_use_of_a_schema_does_not_block_the_event_loop(
    cluster: Cluster, topic: str
) -> None:
    """Other tasks run while a serializer asks a registry; later records use the event loop."""
    registry = SlowRegistry()
    async with producer_of(cluster, value_serializer=registry) as producer:
        # A tombstone needs no schema.
        await producer.send(topic, None, key=b"k")
        sent = asyncio.create_task(producer.send(topic, "a", key=b"k"))
        await asyncio.sleep(0)
        registry.opened.set()
        await (await sent)
        await (await producer.send(topic, "b", key=b"k"))
    own = threading.get_ident()
    assert [thread == own for thread in registry.threads] == [False, True]
    assert [record.value for record in records_of(cluster, topic)] == [None, b"a", b"b"]


async def test_records_wait_for_the_first_use_of_a_schema(cluster: Cluster, topic: str) -> None:
    """A record that is sent later does not overtake, and those that are cancelled are not sent."""
    registry = SlowRegistry()
    async with producer_of(cluster, value_serializer=registry) as producer:
        values = [f"{number}" for number in range(50)]
        tasks = [asyncio.create_task(producer.send(topic, value, key=b"k")) for value in values]
        await asyncio.sleep(0)
        for number in (0, 7):
            tasks[number].cancel()
        registry.opened.set()
        await tasks[1]
        await producer.send(topic, "last", key=b"k")
        await asyncio.wait(tasks)
    expected = [value.encode() for value in [*values, "last"] if value not in "07"]
    assert [record.value for record in records_of(cluster, topic)] == expected


async def test_failed_first_use_of_a_schema_is_tried_again(cluster: Cluster, topic: str) -> None:
    """A registry that is down fails the record that asked; those that wait for it ask again."""
    calls: list[str] = []

    def serialize(value: str) -> bytes:
        calls.append(value)
        if len(calls) == 1:
            raise SerializationError("the schema registry did not answer")
        return value.encode()

    async with producer_of(cluster, value_serializer=serialize) as producer:
        first, second = await asyncio.gather(
            producer.send(topic, "a"), producer.send(topic, "b"), return_exceptions=True
        )
        assert isinstance(first, SerializationError)
        assert not isinstance(second, BaseException)
        await second
    assert [record.value for record in records_of(cluster, topic)] == [b"b"]


async def test_order_is_kept_while_a_topic_is_looked_up(cluster: Cluster, topic: str) -> None:
    """A partitioner waits for the partitions of the topic; records sent before that wait, too."""
    async with producer_of(cluster, partitioner=lambda key, partitions: partitions[0]) as producer:
        await asyncio.gather(*[producer.send(topic, b"%d" % number) for number in range(50)])
    values = [record.value for record in records_of(cluster, topic)]
    assert values == [b"%d" % number for number in range(50)]


@pytest.mark.parametrize("settings", [{}, {"value_serializer": lambda value: value}])
async def test_order_is_kept_while_the_queue_is_full(
    cluster: Cluster, topic: str, settings: dict[str, Any]
) -> None:
    """Tasks that wait for room send in the order in which they called."""
    async with producer_of(cluster, queue_buffering_max_messages=10, **settings) as producer:
        await (await producer.send(topic, b"first", key=b"k"))
        sends = [producer.send(topic, b"%d" % number, key=b"k") for number in range(100)]
        await asyncio.gather(*await asyncio.gather(*sends))
    values = [record.value for record in records_of(cluster, topic)]
    assert values == [b"first", *(b"%d" % number for number in range(100))]
