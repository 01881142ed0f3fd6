"""The event loop does not wait for a device: syncs run in other threads.

The rare exception is a log that was moved to another directory (`replication.moving`).
"""

import threading
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

import pytest

from ottla.controller.planning.requests import TopicRequest
from ottla.testing.sim.client import connect
from ottla.testing.sim.files import SimFileSystem
from ottla.testing.sim.nodes import node_on
from ottla.testing.sim.world import World
from ottla.wire.messages import create_partitions, create_topics, delete_records, delete_topics
from ottla.wire.records.records import Record, encode_batch

from . import brokers
from .cluster import SimCluster
from .one_transaction import SETTINGS, Client, Later

pytestmark = pytest.mark.slow

T = TypeVar("T")
_WAITING = ("sync", "sync_directory", "replace")
# All periodic work is done every second.
OFTEN = {
    "log.initial.task.delay.ms": "1000",
    "log.retention.check.interval.ms": "1000",
    "log.flush.offset.checkpoint.interval.ms": "1000",
    "log.flush.start.offset.checkpoint.interval.ms": "1000",
    "replica.high.watermark.checkpoint.interval.ms": "1000",
    "log.flush.interval.ms": "1000",
    "log.roll.ms": "2000",
    "log.cleaner.enable": "false",
    "log.segment.delete.delay.ms": "1000",
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": "1000",
}


@contextmanager
def watched(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """Record the calls that wait for a device on the event loop."""
    texts: list[str] = []
    beside = threading.local()
    enter, in_background = SimFileSystem.enter, SimFileSystem.in_background

    def noting(self: SimFileSystem, operation: str, path: str, *details: object) -> None:
        if operation in _WAITING and not getattr(beside, "depth", 0):
            texts.append(f"{operation} {path}")
        enter(self, operation, path, *details)

    def marking(self: SimFileSystem, work: Callable[[], T]) -> Awaitable[T]:
        def do() -> T:
            beside.depth = 1
            try:
                return work()
            finally:
                beside.depth = 0

        return in_background(self, do)

    with monkeypatch.context() as patch:
        patch.setattr(SimFileSystem, "enter", noting)
        patch.setattr(SimFileSystem, "in_background", marking)
        yield texts


async def administer(client: Client) -> None:
    """Create a topic, add partitions, delete records, and delete it."""
    topic = create_topics.CreatableTopic(name="new", num_partitions=3, replication_factor=1)
    request: Any = create_topics.CreateTopicsRequest(topics=[topic])
    created = await client.ask(request, 5, create_topics.CreateTopicsResponse)
    assert created.topics[0].error_code == 0
    grown = create_partitions.CreatePartitionsTopic(name="new", count=5, assignments=None)
    request = create_partitions.CreatePartitionsRequest(topics=[grown], timeout_ms=5000)
    more = await client.ask(request, 1, create_partitions.CreatePartitionsResponse)
    assert more.results[0].error_code == 0
    cut = delete_records.DeleteRecordsPartition(partition_index=0, offset=1)
    topic_request = delete_records.DeleteRecordsTopic(name="a", partitions=[cut])
    request = delete_records.DeleteRecordsRequest(topics=[topic_request], timeout_ms=5000)
    records = await client.ask(request, 1, delete_records.DeleteRecordsResponse)
    assert records.topics[0].partitions[0].error_code == 0
    request = delete_topics.DeleteTopicsRequest(topic_names=["new"], timeout_ms=5000)
    deleted = await client.ask(request, 5, delete_topics.DeleteTopicsResponse)
    assert deleted.responses[0].error_code == 0


async def ready(world: World, step: Callable[[], Awaitable[T]]) -> T:
    """Repeat a step while the broker is not ready for it."""
    while True:
        try:
            return await step()
        except Later:
            await world.machine("broker").clock.sleep(0.1)


def test_busy_broker_does_not_wait_for_a_device(monkeypatch: pytest.MonkeyPatch) -> None:
    """Transactions, offsets, new and deleted topics, segment rolls and upkeep of a minute do not
    wait.
    """

    async def transact(world: World, client: Client, number: int) -> None:
        producer = await ready(world, client.init)
        await ready(world, lambda: client.write(producer, str(number)))
        if number % 2:
            await ready(world, lambda: client.end(producer, is_commit=True))

    async def scenario(world: World) -> list[str]:
        machine = world.machine("broker")
        await brokers.start(machine, SETTINGS | OFTEN)
        connection = await connect(world.network.host("client"), "broker", 9092, "client")
        client = Client(connection, machine.clock)
        with watched(monkeypatch) as output:
            await ready(world, client.prepare)
            for number in range(1, 6):
                await transact(world, client, number)
                await machine.clock.sleep(3)
                if number == 3:
                    await administer(client)
            await machine.clock.sleep(45)
            return list(output)

    with World(1) as world:
        output = world.run(scenario(world))
    assert output == []


def test_clean_stop_does_not_wait_for_a_device(monkeypatch: pytest.MonkeyPatch) -> None:
    """Logs are flushed and closed, and checkpoints are written, off the event loop."""

    async def scenario(world: World) -> list[str]:
        machine = world.machine("broker")
        node = node_on(machine, SETTINGS | OFTEN)
        await node.start()
        connection = await connect(world.network.host("client"), "broker", 9092, "client")
        client = Client(connection, machine.clock)
        await ready(world, client.prepare)
        producer = await ready(world, client.init)
        await ready(world, lambda: client.write(producer, "1"))
        with watched(monkeypatch) as output:
            await node.stop()
        assert machine.files.exists("/data/.kafka_cleanshutdown")
        return output

    with World(1) as world:
        output = world.run(scenario(world))
    assert output == []


PARTITIONS = 14


def test_rolls_after_a_restart_do_not_wait_for_a_device(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first roll of each log waited for the folder's names: of 14 partitions, one after the
    other.
    """

    async def scenario(world: World) -> list[str]:
        machine = world.machine("broker")
        node = node_on(machine, SETTINGS)
        await node.start()
        options = {"internal.segment.bytes": "1000"}
        await node.broker.controller.ensure_topic("t", PARTITIONS, options)

        def append(count: int) -> int:
            for number in range(PARTITIONS):
                partition = node.broker.replicas.get("t", number)
                for _ in range(count):
                    record = Record(b"k", bytes(200), (), machine.clock.time_ms())
                    partition.append_as_leader(encode_batch([record]), acks=1)
            return sum(
                partition.log.segments_count for partition in node.broker.replicas.partitions()
            )

        append(2)
        await node.stop()
        node = node_on(machine, SETTINGS)
        await node.start()
        with watched(monkeypatch) as output:
            assert append(20) > 5 * PARTITIONS
            await machine.clock.sleep(5)
            assert append(20) > 9 * PARTITIONS
            await node.stop()
        return output

    with World(1) as world:
        output = world.run(scenario(world))
    assert output == []


def test_leaders_and_followers_do_not_wait_for_a_device(monkeypatch: pytest.MonkeyPatch) -> None:
    """Clean restarts of three brokers, one after the other, while segments of 14 partitions roll."""

    async def scenario(cluster: SimCluster, world: World) -> list[str]:
        await cluster.start(*cluster.ids)
        options = {"internal.segment.bytes": "1000"}
        clock = cluster.clock
        while not cluster.controllers:
            await clock.sleep(0.1)
        (number,) = cluster.controllers
        request = TopicRequest("t", PARTITIONS, 3, (), options)
        controller = cluster.nodes[number].broker.controller
        (created,) = await cluster.machine(number).run(lambda: controller.create_topics([request]))
        assert created.error is None
        await clock.sleep(5)

        async def write(seconds: int) -> int:
            appended = 0
            for _ in range(10 * seconds):
                for node in cluster.nodes.values():
                    for partition in node.broker.replicas.partitions() if node.has_broker else ():
                        if partition.topic == "t" and partition.is_leader:
                            record = Record(b"k", bytes(200), (), clock.time_ms())
                            partition.append_as_leader(encode_batch([record]), acks=1)
                            appended += 1
                await clock.sleep(0.1)
            return appended

        await write(2)
        # Work in the background that has begun by now would count as work on the loop.
        await clock.sleep(1)
        with watched(monkeypatch) as output:
            for number in cluster.ids:
                await cluster.stop(number)
                assert await write(3) > 10 * PARTITIONS
                await cluster.start(number)
                assert await write(3) > 10 * PARTITIONS
        return list(output)

    with World(1) as world:
        cluster = SimCluster(world, 3, OFTEN | {"log.roll.ms": "600000"})
        output = world.run(scenario(cluster, world))
    assert output == []


def test_compacted_segment_replaces_others_off_the_loop(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Reads continue during the replacement, and afterwards the files have their final names."""

    async def scenario(world: World) -> tuple[list[str], int]:
        machine = world.machine("broker")
        options = OFTEN | {"log.cleaner.enable": "true", "log.cleaner.backoff.ms": "1000"}
        node = node_on(machine, SETTINGS | options)
        await node.start()
        settings = {"cleanup.policy": "compact", "min.cleanable.dirty.ratio": "0.01"}
        await node.broker.controller.ensure_topic("c", 1, settings)
        partition = node.broker.replicas.get("c", 0)
        with watched(monkeypatch) as actual:
            for number in range(30):
                record = Record(b"k", b"%d" % number, (), machine.clock.time_ms())
                partition.append_as_leader(encode_batch([record]), acks=1)
                await machine.clock.sleep(1)
                last = partition.log.read(number, 1000, max_offset=partition.log.log_end_offset)
                assert last is not None
                assert last.records
            await machine.clock.sleep(20)
        names = machine.files.list(partition.log.directory)
        assert not [name for name in names if name.endswith((".swap", ".cleaned"))]
        rounds = node.sources.cleaner.passes_count if node.sources.cleaner else 0
        await node.stop()
        return actual, rounds

    with World(1) as world:
        actual, rounds = world.run(scenario(world))
    assert rounds > 3
    assert actual == []
