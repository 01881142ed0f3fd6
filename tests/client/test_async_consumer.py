"""The consumer for asyncio: the same records, without blocking the event loop."""

import asyncio
import inspect
from contextlib import suppress
from typing import Any

import pytest

from ottla.client import AsyncConsumer, Consumer, RebalanceListener, TopicPartition
from ottla.client.consumer.assigned import AssignedPartitions
from ottla.client.errors import Closed
from ottla.testing import Cluster
from tests.client.test_consumer import fill, values_of


def consumer_of(cluster: Cluster, *topics: str, **settings: Any) -> AsyncConsumer:
    """Return a consumer that reads from the beginning."""
    arguments = {"bootstrap_servers": cluster.bootstrap, "auto_offset_reset": "earliest"}
    return AsyncConsumer(*topics, **(arguments | settings))


async def test_close_in_another_task_ends_the_iteration(cluster: Cluster, topic: str) -> None:
    """The loop ends, as with aiokafka; a loop over a closed consumer is an error."""
    consumer = AsyncConsumer(topic, group_id=topic, bootstrap_servers=cluster.bootstrap)

    async def count() -> int:
        return len([record async for record in consumer])

    task = asyncio.create_task(count())
    while not consumer.assignment:
        await asyncio.sleep(0)
    await consumer.close()
    assert await task == 0
    with pytest.raises(Closed):
        await count()


async def test_iteration_and_commit(cluster: Cluster, topic: str) -> None:
    """Only records that were yielded are committed."""
    fill(cluster, topic, [b"%d" % number for number in range(30)])
    seen = []
    async with consumer_of(cluster, topic, group_id=topic, enable_auto_commit=False) as consumer:
        async for record in consumer:
            seen.append(record.value)
            if len(seen) == 10:
                break
        committed = await consumer.commit()
        assert sum(row.offset for row in committed.values()) == 10
        assert await consumer.committed() == committed
    async with consumer_of(cluster, topic, group_id=topic) as consumer:
        while len(seen) < 30:
            seen += [record.value for record in await consumer.poll(1)]
    assert sorted(map(int, seen)) == list(range(30))


async def test_seek_pause_and_ends(cluster: Cluster, topic: str) -> None:
    """The methods of the consumer are coroutines."""
    fill(cluster, topic, [b"%d" % number for number in range(9)])
    async with consumer_of(cluster) as consumer:
        await consumer.assign([(topic, 0), (topic, 1)])
        await consumer.seek((topic, 0), 2)
        await consumer.pause([(topic, 1)])
        assert values_of(await consumer.poll(10)) == [b"6"]
        assert (await consumer.positions())[TopicPartition(topic, 0)] == 3
        await consumer.resume()
        assert len(await consumer.poll(10)) == 3
        await consumer.seek_to_time(1006, [(topic, 0)])
        assert values_of(await consumer.poll(10)) == [b"6"]
        assert await consumer.end_offsets([(topic, 0)]) == {(topic, 0): 3}


async def test_listener_may_be_asynchronous(cluster: Cluster, topic: str) -> None:
    """The rebalance waits for the coroutine, which runs on the event loop."""
    seen: list[Any] = []

    class Listener(RebalanceListener):
        async def on_partitions_assigned(  # type: ignore[override]
            self, partitions: list[TopicPartition]
        ) -> None:
            await asyncio.sleep(0)
            seen.append((asyncio.get_running_loop(), len(partitions)))

    async with consumer_of(cluster, topic, group_id=topic, listener=Listener()) as consumer:
        while not seen:
            await consumer.poll(0.1)
    async with consumer_of(cluster, group_id=f"{topic}-later", listener=Listener()) as consumer:
        await consumer.subscribe(topic)
        while len(seen) < 2:
            await consumer.poll(0.1)
    assert seen == [(asyncio.get_running_loop(), 3)] * 2


async def test_a_listener_may_use_its_consumer(cluster: Cluster, topic: str) -> None:
    """A coroutine seeks, looks offsets up and commits in the rebalance that waits for it."""
    fill(cluster, topic, [b"%d" % number for number in range(9)])
    ends: list[dict[TopicPartition, int]] = []

    class Listener(RebalanceListener):
        async def on_partitions_assigned(  # type: ignore[override]
            self, partitions: list[TopicPartition]
        ) -> None:
            await consumer.seek(partitions[0], 2)
            ends.append(await consumer.end_offsets(partitions[:1]))
            await consumer.commit({partitions[0]: 1})

    consumer = consumer_of(cluster, topic, group_id=topic, listener=Listener())
    async with asyncio.timeout(60), consumer:
        seen: list[bytes] = []
        while len(seen) < 7:
            seen += values_of(await consumer.poll(1))
        assert [b"0" in seen, b"3" in seen, b"6" in seen] == [False, False, True]
        assert ends == [{(topic, 0): 3}]
        assert (await consumer.committed())[TopicPartition(topic, 0)].offset == 1


async def test_methods_are_those_of_the_consumer() -> None:
    """Each is a coroutine, or a property."""
    for name, member in vars(AssignedPartitions).items() | vars(Consumer).items():
        if name[0] != "_" and name not in {"interrupt", "abandon", "fetch", "fetched", "unread"}:
            other = inspect.getattr_static(AsyncConsumer, name)
            assert isinstance(other, property) == isinstance(member, property)
            if not isinstance(other, property) and name != "group_metadata":
                assert inspect.iscoroutinefunction(other), name


async def test_other_tasks_run_while_a_poll_waits(cluster: Cluster, topic: str) -> None:
    """A poll without records does not block the event loop."""
    async with consumer_of(cluster) as consumer:
        await consumer.assign([(topic, 0)])
        poll = asyncio.create_task(consumer.poll(0.5))
        turns = 0
        while not poll.done():
            await asyncio.sleep(0)
            turns += 1
        assert poll.result() == []
        assert turns > 10


async def test_cancelled_poll_loses_no_record(cluster: Cluster, topic: str) -> None:
    """Records that arrive while a poll is being cancelled are returned by the next one."""
    fill(cluster, topic, [b"%d" % number for number in range(30)])
    seen: list[bytes] = []
    async with consumer_of(cluster, topic, group_id=topic, max_poll_records=1) as consumer:
        while len(seen) < 30:
            poll = asyncio.create_task(consumer.poll(10))
            # Enough turns for the poll to begin, or for its thread to end.
            for _ in range(len(seen) % 5 + 1):
                await asyncio.sleep(0)
            poll.cancel()
            with suppress(asyncio.CancelledError):
                seen += [record.value for record in await poll]
            seen += [record.value for record in await consumer.poll(1)]
    assert sorted(map(int, seen)) == list(range(30))


async def test_use_after_close_raises(cluster: Cluster, topic: str) -> None:
    """Polling raises; closing again is allowed."""
    consumer = consumer_of(cluster, topic, group_id=topic)
    await consumer.close()
    await consumer.close()
    with pytest.raises(Closed):
        await consumer.poll()
