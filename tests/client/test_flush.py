"""A flush waits for the records that were sent before it, and not for those that follow."""

import asyncio
import threading
from collections import deque

from ottla.testing import Cluster
from tests.client import test_async_producer, test_producer


def test_a_flush_does_not_wait_for_later_records(cluster: Cluster, topic: str) -> None:
    """It ends although another record follows each acknowledged one."""
    stopped = threading.Event()

    def send_next(*_: object) -> None:
        if not stopped.is_set():
            producer.send(topic, b"later", on_delivery=send_next)

    # The first record waits for the flush.
    with test_producer.producer_of(cluster, linger_ms=60_000) as producer:
        first = producer.send(topic, b"first", on_delivery=send_next)
        producer.flush(20)
        assert first.done()
        stopped.set()
    values = {record.value for record in test_producer.records_of(cluster, topic)}
    assert values == {b"first", b"later"}


async def test_a_flush_of_the_asyncio_producer_does_not_wait_for_later_records(
    cluster: Cluster, topic: str
) -> None:
    """It ends although another task always has unacknowledged records."""
    stopped = asyncio.Event()

    async def send_on() -> None:
        sent = deque([await producer.send(topic, b"later") for _ in range(1000)])
        while not stopped.is_set():
            sent.append(await producer.send(topic, b"later"))
            await sent.popleft()

    async with test_async_producer.producer_of(cluster) as producer:
        later = asyncio.create_task(send_on())
        first = await producer.send(topic, b"first")
        await producer.flush(5)
        assert first.done()
        stopped.set()
        await later
