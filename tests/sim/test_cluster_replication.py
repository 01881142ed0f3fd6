"""Replication between brokers in simulated time: acks=all, fail-over, and the ISR."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from ottla.base.errors import ErrorCode
from ottla.replication.partition import Partition
from ottla.testing.sim.world import World
from ottla.wire.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    DeleteRecordsTopic,
)
from ottla.wire.messages.fetch import (
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
    ReplicaState,
)
from ottla.wire.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)
from ottla.wire.records.records import Record, encode_batch

from .cluster import SimCluster

pytestmark = pytest.mark.slow

SEEDS = range(3)


def run(
    seed: int, scenario: Callable[[SimCluster], Coroutine[Any, Any, None]], **settings: str
) -> None:
    """Run a scenario with three brokers; the seed replays it."""
    print(f"seed {seed}")
    with World(seed) as world:
        names = {name.replace("_", "."): text for name, text in settings.items()}
        world.run(scenario(SimCluster(world, 3, names)))


async def produce(cluster: SimCluster, broker_id: int, value: bytes, acks: int = -1) -> int:
    """Produce one record to partition 0 of topic `t`; return the error code."""
    data = PartitionProduceData(index=0, records=encode_batch([Record(None, value, (), 1000)]))
    topic = TopicProduceData(name="t", partition_data=[data])
    request = ProduceRequest(acks=acks, timeout_ms=20_000, topic_data=[topic])
    response = await cluster.ask(broker_id, request, 9, ProduceResponse)
    return response.responses[0].partition_responses[0].error_code


def replicas(cluster: SimCluster) -> dict[int, Partition]:
    """Return the replicas of partition 0 of topic `t` on the brokers that run."""
    return {key: node.broker.replicas.get("t", 0) for key, node in cluster.nodes.items()}


def leader_of(cluster: SimCluster) -> int:
    """Return the broker that leads partition 0 of topic `t`, according to the others."""
    leaders = {
        node.broker.image.topics["t"].partitions[0].leader for node in cluster.nodes.values()
    }
    return leaders.pop() if len(leaders) == 1 else -1


def is_settled(cluster: SimCluster, end_offset: int, isr_count: int = 3) -> bool:
    """Return True if all replicas that run have the same end and high watermark."""
    ends = {(item.log.log_end_offset, item.high_watermark) for item in replicas(cluster).values()}
    isr = [node.broker.image.topics["t"].partitions[0].isr for node in cluster.nodes.values()]
    return ends == {(end_offset, end_offset)} and all(len(item) == isr_count for item in isr)


def logs(cluster: SimCluster) -> list[bytes]:
    """Return the bytes of each replica's log."""
    result = []
    for partition in replicas(cluster).values():
        end_offset = partition.log.log_end_offset
        fetched = partition.log.read(0, 1 << 24, max_offset=end_offset)
        assert fetched is not None
        result.append(bytes(fetched.data))
    return result


@pytest.mark.parametrize("seed", SEEDS)
def test_a_record_is_acknowledged_once_every_member_of_the_isr_has_it(seed: int) -> None:
    """With acks=all, all replicas have the record when the response arrives."""

    async def scenario(cluster: SimCluster) -> None:
        await cluster.start()
        await cluster.create(1, "t", 1, 3)
        leader = leader_of(cluster)
        for number in range(5):
            assert await produce(cluster, leader, b"%d" % number) == ErrorCode.NONE
            ends = [item.log.log_end_offset for item in replicas(cluster).values()]
            assert ends == [number + 1] * 3
        await cluster.until(lambda: is_settled(cluster, 5))
        first, *others = logs(cluster)
        assert all(log == first for log in others)

    run(seed, scenario)


@pytest.mark.parametrize("seed", SEEDS)
def test_a_new_partition_does_not_wait_for_the_fetches_of_others(seed: int) -> None:
    """A follower interrupts its waiting fetch for a new partition, so the first record does not
    wait 500 ms.
    """

    async def scenario(cluster: SimCluster) -> None:
        await cluster.start()
        await cluster.create(1, "other", 6, 3)
        await cluster.clock.sleep(2.0)
        await cluster.create(1, "t", 1, 3)
        started = cluster.clock.monotonic()
        assert await produce(cluster, leader_of(cluster), b"a") == ErrorCode.NONE
        assert cluster.clock.monotonic() - started < 0.2

    run(seed, scenario)


@pytest.mark.parametrize("seed", SEEDS)
def test_acknowledged_records_survive_the_death_of_their_leader(seed: int) -> None:
    """A follower takes over, the old leader returns as a follower, and the logs are identical."""

    async def scenario(cluster: SimCluster) -> None:
        await cluster.start()
        await cluster.create(1, "t", 1, 3)
        total = 0
        for _ in range(3):
            leader = leader_of(cluster)
            for _ in range(4):
                assert await produce(cluster, leader, b"%d" % total) == ErrorCode.NONE
                total += 1
            cluster.kill(leader)
            await cluster.until(lambda old=leader: leader_of(cluster) not in (-1, old))  # type: ignore[misc]
            assert await produce(cluster, leader_of(cluster), b"%d" % total) == ErrorCode.NONE
            total += 1
            await cluster.begin(leader)
            await cluster.until(lambda end=total: is_settled(cluster, end))  # type: ignore[misc]
        first, *others = logs(cluster)
        assert all(log == first for log in others)

    run(seed, scenario)


@pytest.mark.parametrize("seed", SEEDS)
def test_a_follower_that_is_cut_off_leaves_the_isr_and_returns(seed: int) -> None:
    """Produce requests wait until replica.lag.time.max.ms; then two replicas are enough."""

    async def scenario(cluster: SimCluster) -> None:
        await cluster.start()
        await cluster.create(1, "t", 1, 3)
        leader = leader_of(cluster)
        slow = next(key for key in (3, 2) if key != leader)
        others = [f"b{key}" for key in cluster.ids if key != slow]
        assert await produce(cluster, leader, b"a") == ErrorCode.NONE
        cluster.isolate(slow, others)
        started = cluster.clock.monotonic()
        assert await produce(cluster, leader, b"b") == ErrorCode.NONE
        assert 3.0 <= cluster.clock.monotonic() - started < 10.0
        partition = replicas(cluster)[leader]
        assert partition.isr is not None
        assert slow not in partition.isr.isr
        cluster.heal()
        await cluster.until(lambda: is_settled(cluster, 2))

    # The session outlasts the partition, so that only the lag decides.
    run(seed, scenario, replica_lag_time_max_ms="5000", zookeeper_session_timeout_ms="60000")


@pytest.mark.parametrize("seed", SEEDS)
def test_too_few_replicas_refuse_records_with_acks_all(seed: int) -> None:
    """With min.insync.replicas=2 the last replica accepts acks=1 only."""

    async def scenario(cluster: SimCluster) -> None:
        await cluster.start()
        await cluster.create(1, "t", 1, 3)
        leader = leader_of(cluster)
        for key in [key for key in cluster.ids if key != leader]:
            cluster.kill(key, expires=True)
        await cluster.until(lambda: leader_of(cluster) >= 0 and len(cluster.controllers) == 1)
        await cluster.until(
            lambda: len(cluster.nodes[leader].broker.image.topics["t"].partitions[0].isr) == 1
        )
        assert await produce(cluster, leader, b"a") == ErrorCode.NOT_ENOUGH_REPLICAS
        assert await produce(cluster, leader, b"a", acks=1) == ErrorCode.NONE
        assert replicas(cluster)[leader].high_watermark == 0

    run(seed, scenario, min_insync_replicas="2")


@pytest.mark.parametrize("seed", SEEDS)
def test_a_restarted_follower_stores_its_records_before_it_counts(seed: int) -> None:
    """With flush.on.ack, a follower's first fetch counts for acks=all: its recovered log is flushed
    before.
    """

    async def scenario(cluster: SimCluster) -> None:
        await cluster.start()
        await cluster.create(1, "t", 1, 3)
        await cluster.until(lambda: cluster.agrees("t", count=1))
        leader = leader_of(cluster)
        follower = next(number for number in cluster.ids if number != leader)
        disk = cluster.machine(follower).files.disk
        disk.slowness = 1000.0
        request = asyncio.ensure_future(produce(cluster, leader, b"x"))
        await cluster.until(lambda: replicas(cluster)[follower].log.log_end_offset == 1)
        assert replicas(cluster)[follower].log.recovery_point == 0
        cluster.kill(follower)
        disk.slowness = 1.0
        await cluster.begin(follower)
        await cluster.until(lambda: is_settled(cluster, 1))
        assert replicas(cluster)[follower].log.recovery_point == 1
        assert await request == ErrorCode.NONE

    run(seed, scenario, log_flush_on_ack="true")


@pytest.mark.parametrize("seed", SEEDS)
def test_a_client_cannot_fetch_as_a_follower(seed: int) -> None:
    """A replica id without the proof of a broker is refused (CVE-2018-1288)."""

    async def scenario(cluster: SimCluster) -> None:
        await cluster.start()
        await cluster.create(1, "t", 1, 3)
        leader = leader_of(cluster)
        follower = next(key for key in cluster.ids if key != leader)
        topic_id = cluster.nodes[leader].broker.image.topics["t"].topic_id
        partition = FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=1000)
        request = FetchRequest(
            replica_state=ReplicaState(replica_id=follower),
            max_wait_ms=0,
            min_bytes=0,
            topics=[FetchTopic(topic_id=topic_id, partitions=[partition])],
        )
        response = await cluster.ask(leader, request, 17, FetchResponse)
        assert response.error_code == ErrorCode.CLUSTER_AUTHORIZATION_FAILED

    run(seed, scenario)


@pytest.mark.parametrize("seed", SEEDS)
def test_deleted_records_are_deleted_on_all_live_replicas_when_it_is_answered(seed: int) -> None:
    """The low watermark of the response is where the logs of all replicas start (KIP-107)."""

    async def scenario(cluster: SimCluster) -> None:
        await cluster.start()
        await cluster.create(1, "t", 1, 3)
        leader = leader_of(cluster)
        for number in range(5):
            assert await produce(cluster, leader, b"%d" % number) == ErrorCode.NONE
        delete_records_partition = DeleteRecordsPartition(partition_index=0, offset=-1)
        topic = DeleteRecordsTopic(name="t", partitions=[delete_records_partition])
        request = DeleteRecordsRequest(topics=[topic], timeout_ms=5000)
        response = await cluster.ask(leader, request, 2, DeleteRecordsResponse)
        row = response.topics[0].partitions[0]
        assert (row.error_code, row.low_watermark) == (ErrorCode.NONE, 5)
        assert {item.log.log_start_offset for item in replicas(cluster).values()} == {5}

    run(seed, scenario)
