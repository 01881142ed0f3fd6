"""Truncation of a former leader's log, in simulated time, does not block its event loop."""

import asyncio
import gc
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from ottla.base.errors import StorageError
from ottla.base.tasks import Tasks
from ottla.replication import following
from ottla.replication.partition import Partition
from ottla.testing.sim.world import World
from ottla.wire.records.records import Record, encode_batch
from tests.handlers.logs import LogsBroker
from tests.sim.cluster import SimCluster
from tests.sim.test_loop_and_disk import watched

OTHER = 2


def run(scenario: Callable[[SimCluster], Coroutine[Any, Any, None]], seed: int) -> None:
    """Run a scenario with three brokers."""
    print(f"seed {seed}")
    with World(seed) as world:
        world.run(scenario(SimCluster(world, 3, {"log.cleaner.enable": "false"})))


def append(partition: Partition, count: int, size: int = 10) -> None:
    for _ in range(count):
        record = Record(None, b"x" * size, (), 1000)
        partition.append_as_leader(encode_batch([record]), acks=1)


@pytest.mark.parametrize("seed", range(3))
def test_former_leader_truncates_without_waiting_for_the_device(
    monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    """Two segments of records that no other replica has are cut off, and the logs are identical."""

    async def scenario(cluster: SimCluster) -> None:
        await cluster.start()
        await cluster.create(1, "t", 1, 3)
        leader = cluster.nodes[1].broker.image.topics["t"].partitions[0].leader
        others = [key for key in cluster.ids if key != leader]
        partition = cluster.nodes[leader].broker.replicas.get("t", 0)
        append(partition, 5)
        await cluster.until(lambda: partition.high_watermark == 5)
        cluster.isolate(leader)
        append(partition, 3)
        partition.log.rolling.roll()
        append(partition, 3)
        await cluster.until(lambda: leader_known_to(cluster, others[0]) in others, seconds=60)
        new = leader_known_to(cluster, others[0])
        successor = cluster.nodes[new].broker.replicas.get("t", 0)
        await cluster.until(lambda: successor.is_leader)
        append(successor, 2)
        with watched(monkeypatch) as actual:
            cluster.heal()
            await cluster.until(lambda: partition.log.log_end_offset == 7, seconds=60)
        assert partition.log.truncations_count > 0
        on_log = [line for line in actual if "/t-0" in line]
        assert on_log == []

    run(scenario, seed)


def leader_known_to(cluster: SimCluster, broker_id: int) -> int:
    return cluster.nodes[broker_id].broker.image.topics["t"].partitions[0].leader


async def test_replica_gets_its_role_after_a_truncation(broker: LogsBroker) -> None:
    """A replica leads only after its truncation: a crash could mix new records with truncated
    ones.
    """
    broker.create("t", replicas=(1, OTHER))
    broker.write("t", b"a", b"b")
    broker.create("t", replicas=(1, OTHER), leader=OTHER, leader_epoch=4)
    truncations = following.Truncations(Tasks(clock=broker.clock))
    partition = broker.partition("t")
    truncating = asyncio.ensure_future(truncations.run(partition, following.truncate, 1))
    await asyncio.sleep(0)
    truncating.cancel()
    assert await truncations.wait("t", 0)
    assert partition.log.log_end_offset == 1
    assert not await truncations.wait("t", 0)


async def test_failed_truncation_is_reported_to_its_fetcher(broker: LogsBroker) -> None:
    """The error of the device becomes the log directory's; waiting for the end does not raise it."""
    broker.create("t", replicas=(1, OTHER))
    broker.write("t", b"a", b"b")
    broker.files.faults.fail("sync", times=-1)
    tasks = Tasks(clock=broker.clock)
    truncations = following.Truncations(tasks)
    partition = broker.partition("t")
    truncating = asyncio.ensure_future(truncations.run(partition, following.truncate, 1))
    await asyncio.sleep(0)
    await truncations.wait("t", 0)
    with pytest.raises(StorageError):
        await truncating
    assert not tasks.failures


async def test_truncation_of_a_broker_that_is_closed_does_not_begin(broker: LogsBroker) -> None:
    """It leaves no coroutine behind of which Python would warn."""
    broker.create("t", replicas=(1, OTHER))
    broker.write("t", b"a", b"b")
    tasks = Tasks(clock=broker.clock)
    partition = broker.partition("t")
    running = following.Truncations(tasks).run(partition, following.truncate, 1)
    running.send(None)
    await tasks.close()
    running.close()
    del running
    await asyncio.sleep(0)
    # A warning would be an error of this test.
    gc.collect()
    assert partition.log.log_end_offset == 2
