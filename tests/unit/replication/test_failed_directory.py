"""Failure of one of two log directories of a broker in a replicated cluster, in simulated time."""

import errno
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from ottla.base.errors import ErrorCode
from ottla.cluster.image import PartitionImage
from ottla.testing.sim.faults import Faults
from ottla.testing.sim.world import World
from ottla.wire.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)
from ottla.wire.records.records import Record, encode_batch
from tests.sim.cluster import SimCluster

PARTITIONS = 6
ALL = {1, 2, 3}
SETTINGS = {"log.dirs": "/one,/two", "min.insync.replicas": "2"}


def run(scenario: Callable[[SimCluster], Coroutine[Any, Any, None]], seed: int) -> None:
    """Run a scenario with three brokers of two log directories each."""
    print(f"seed {seed}")
    with World(seed) as world:
        world.run(scenario(SimCluster(world, 3, SETTINGS)))


def known_to(cluster: SimCluster, broker_id: int) -> tuple[PartitionImage, ...]:
    return tuple(cluster.nodes[broker_id].broker.image.topics["t"].partitions)


async def produce(cluster: SimCluster, number: int) -> int:
    """Write one record with acks=all to the partition's leader; return the error code."""
    observer = next(iter(cluster.nodes))
    leader = known_to(cluster, observer)[number].leader
    if leader < 0:
        return ErrorCode.LEADER_NOT_AVAILABLE
    batch = encode_batch([Record(None, b"x", (), 1000)])
    data = PartitionProduceData(index=number, records=batch)
    topic = TopicProduceData(name="t", partition_data=[data])
    request = ProduceRequest(acks=-1, timeout_ms=10_000, topic_data=[topic])
    response = await cluster.ask(leader, request, 9, ProduceResponse)
    return response.responses[0].partition_responses[0].error_code


async def write_everywhere(cluster: SimCluster) -> None:
    """Write a record to each partition; retry while the leader changes."""
    for number in range(PARTITIONS):
        while await produce(cluster, number) != ErrorCode.NONE:
            await cluster.clock.sleep(0.1)


def directory_of(cluster: SimCluster, broker_id: int, number: int) -> str:
    log = cluster.nodes[broker_id].broker.replicas.directories.get("t", number)
    assert log is not None
    return log.directory.rpartition("/")[0]


@pytest.mark.parametrize("error", [errno.ENOSPC, errno.EIO], ids=["full", "broken"])
@pytest.mark.parametrize("seed", range(2))
def test_failed_directory_affects_only_its_own_partitions(seed: int, error: int) -> None:
    """Other brokers lead the partitions of the failed directory; the broker continues with the
    other directory, and serves both after a restart.
    """

    async def scenario(cluster: SimCluster) -> None:
        await cluster.start()
        await cluster.create(1, "t", PARTITIONS, 3)
        await write_everywhere(cluster)
        await cluster.until(lambda: all(set(item.isr) == ALL for item in known_to(cluster, 1)))
        victim = known_to(cluster, 1)[0].leader
        failing = directory_of(cluster, victim, 0)
        paths = [directory_of(cluster, victim, number) for number in range(PARTITIONS)]
        assert set(paths) == {"/one", "/two"}
        before = [item.leader for item in known_to(cluster, victim)]
        cluster.machine(victim).files.faults.fail("append", path=failing, times=-1, error=error)
        await write_everywhere(cluster)
        observer = next(key for key in cluster.ids if key != victim)

        def is_moved() -> bool:
            return all(
                item.leader not in (-1, victim) and victim not in item.isr
                for item, directory in zip(known_to(cluster, observer), paths, strict=True)
                if directory == failing
            )

        await cluster.until(is_moved)
        await write_everywhere(cluster)
        for item, directory, leader in zip(known_to(cluster, observer), paths, before, strict=True):
            if directory != failing:
                assert (item.leader, set(item.isr)) == (leader, ALL)
        assert cluster.is_serving(victim)
        await resume(cluster, victim)
        assert_identical(cluster)

    async def resume(cluster: SimCluster, victim: int) -> None:
        cluster.kill(victim)
        cluster.machine(victim).files.faults = Faults()
        await cluster.begin(victim)
        await cluster.until(
            lambda: all(set(item.isr) == ALL for item in known_to(cluster, victim)), seconds=60
        )

    run(scenario, seed)


def assert_identical(cluster: SimCluster) -> None:
    for number in range(PARTITIONS):
        contents = set()
        for node in cluster.nodes.values():
            log = node.broker.replicas.get("t", number).log
            fetched = log.read(0, 1 << 20, max_offset=log.log_end_offset)
            assert fetched is not None
            contents.add(bytes(fetched.data))
        assert len(contents) == 1


def test_failed_directory_of_a_follower_leaves_the_isr() -> None:
    """Leaders continue without the followers of the failed directory; replicas in the other
    directory stay in sync.
    """

    async def scenario(cluster: SimCluster) -> None:
        await cluster.start()
        await cluster.create(1, "t", PARTITIONS, 3)
        await write_everywhere(cluster)
        leader = known_to(cluster, 1)[0].leader
        victim = next(key for key in cluster.ids if key != leader)
        failing = directory_of(cluster, victim, 0)
        cluster.machine(victim).files.faults.fail("append", path=failing, times=-1)
        await write_everywhere(cluster)
        await cluster.until(lambda: set(known_to(cluster, leader)[0].isr) == ALL - {victim})
        await write_everywhere(cluster)
        for number, item in enumerate(known_to(cluster, leader)):
            if directory_of(cluster, victim, number) != failing:
                assert set(item.isr) == ALL

    run(scenario, 1)
