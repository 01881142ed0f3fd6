"""Replicas that lose their place while their broker cannot be reached, in simulated time."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from ottla.base.errors import ErrorCode
from ottla.testing.sim.cluster.replicas import divergences
from ottla.testing.sim.world import World
from ottla.wire.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
    ReassignablePartition,
    ReassignableTopic,
)
from ottla.wire.messages.create_topics import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from ottla.wire.messages.delete_topics import (
    DeleteTopicsRequest,
    DeleteTopicsResponse,
    DeleteTopicState,
)

from .cluster import HOST, SimCluster
from .test_cluster_replication import produce

pytestmark = pytest.mark.slow

SEEDS = range(2)


def run(seed: int, scenario: Callable[[SimCluster], Coroutine[Any, Any, None]]) -> None:
    """Run a scenario with four brokers and a topic `t` on 3, 1 and 2; the seed replays it."""
    print(f"seed {seed}")

    async def prepared(cluster: SimCluster) -> None:
        await cluster.start()
        await create(cluster)
        assert await produce(cluster, 3, b"first") == ErrorCode.NONE
        await scenario(cluster)

    with World(seed) as world:
        settings = {"auto.leader.rebalance.enable": "false", "replica.fetch.backoff.ms": "100"}
        world.run(prepared(SimCluster(world, 4, settings)))


async def create(cluster: SimCluster) -> None:
    """Create the topic; its leader is broker 3."""
    assignment = CreatableReplicaAssignment(partition_index=0, broker_ids=[3, 1, 2])
    topic = CreatableTopic(
        name="t", num_partitions=-1, replication_factor=-1, assignments=[assignment]
    )
    request = CreateTopicsRequest(topics=[topic], timeout_ms=10_000)
    created = await cluster.ask(1, request, 7, CreateTopicsResponse)
    assert created.topics[0].error_code == ErrorCode.NONE


async def move(cluster: SimCluster, broker_ids: list[int] | None) -> None:
    """Ask for other replicas of the partition, or cancel the request before."""
    partition = ReassignablePartition(partition_index=0, replicas=broker_ids)
    topic = ReassignableTopic(name="t", partitions=[partition])
    request = AlterPartitionReassignmentsRequest(topics=[topic])
    response = await cluster.ask(1, request, 1, AlterPartitionReassignmentsResponse)
    assert response.responses[0].partitions[0].error_code == ErrorCode.NONE


async def reassign(cluster: SimCluster, *broker_ids: int) -> None:
    """Move the partition, and wait until a broker that runs reports its new replicas."""
    await move(cluster, list(broker_ids))
    await cluster.until(lambda: replicas(cluster) == broker_ids)


def replicas(cluster: SimCluster) -> tuple[int, ...]:
    """Return the replicas that broker 1 knows."""
    topic = cluster.nodes[1].broker.image.topic("t")
    return () if topic is None else topic.partitions[0].replicas


def leader(cluster: SimCluster) -> int:
    """Return the leader that broker 1 knows."""
    return cluster.nodes[1].broker.image.topics["t"].partitions[0].leader


async def kill(cluster: SimCluster) -> None:
    """Kill broker 3, and wait until another one leads."""
    cluster.kill(3, expires=True)
    await cluster.until(lambda: leader(cluster) not in (-1, 3))


async def leave_divergent_record(cluster: SimCluster) -> None:
    """Kill broker 3 when only it has the second record; another record takes its offset."""
    cluster.isolate(3, ["b1", "b2", "b4"])
    assert await produce(cluster, 3, b"divergent", acks=1) == ErrorCode.NONE
    await kill(cluster)
    cluster.heal()
    assert await produce(cluster, leader(cluster), b"second") == ErrorCode.NONE


def folders(cluster: SimCluster) -> list[str]:
    """Return the directories of broker 3 that belong to the partition, by what follows its name."""
    names = cluster.machine(3).files.list("/data")
    result = [name for name in names if name.startswith("t-0")]
    return sorted(name[:3] + name[-6:] if "." in name else name for name in result)


def is_whole(cluster: SimCluster) -> bool:
    """Return True if all replicas are in sync, and no broker has one that is not assigned to it."""
    return not cluster.problems()


@pytest.mark.parametrize("seed", SEEDS)
def test_replica_moved_away_while_its_broker_is_down(seed: int) -> None:
    """The broker that returns does not serve the replica, and keeps its log as a stray one."""

    async def scenario(cluster: SimCluster) -> None:
        await kill(cluster)
        await reassign(cluster, 4, 1, 2)
        await cluster.begin(3)
        await cluster.until(lambda: is_whole(cluster))
        assert folders(cluster) == ["t-0-stray"]
        assert await produce(cluster, 3, b"x") == ErrorCode.NOT_LEADER_OR_FOLLOWER
        # It is not found again, and does not hinder a new replica.
        cluster.kill(3, expires=True)
        await cluster.begin(3)
        await reassign(cluster, 3, 1, 2)
        await cluster.until(lambda: is_whole(cluster))
        assert folders(cluster) == ["t-0", "t-0-stray"]
        assert divergences(cluster) == []

    run(seed, scenario)


@pytest.mark.parametrize("seed", SEEDS)
def test_replica_moved_away_while_its_broker_is_cut_off(seed: int) -> None:
    """A leader that does not hear of the move stops to lead when it is connected again."""

    async def scenario(cluster: SimCluster) -> None:
        cluster.isolate(3, ["b1", "b2", "b4", HOST])
        await cluster.until(lambda: leader(cluster) not in (-1, 3))
        assert await produce(cluster, 3, b"divergent", acks=1) == ErrorCode.NONE
        await reassign(cluster, 4, 1, 2)
        cluster.heal()
        await cluster.until(lambda: is_whole(cluster))
        assert folders(cluster) == ["t-0-stray"]
        assert await produce(cluster, 3, b"x", acks=1) == ErrorCode.NOT_LEADER_OR_FOLLOWER
        assert divergences(cluster) == []

    run(seed, scenario)


@pytest.mark.parametrize("seed", SEEDS)
def test_replica_moved_back_as_soon_as_its_broker_returns(seed: int) -> None:
    """Whether or not its old log is used again, the records that no other replica has are gone."""

    async def scenario(cluster: SimCluster) -> None:
        await leave_divergent_record(cluster)
        await reassign(cluster, 4, 1, 2)
        start = cluster.begin(3)
        await cluster.until(lambda: 3 in cluster.nodes[1].broker.image.brokers)
        await reassign(cluster, 3, 1, 2)
        await start
        await cluster.until(lambda: is_whole(cluster))
        assert cluster.nodes[3].broker.replicas.get("t", 0).log.log_end_offset == 2
        assert divergences(cluster) == []

    run(seed, scenario)


@pytest.mark.parametrize("seed", SEEDS)
def test_move_cancelled_while_its_broker_is_down(seed: int) -> None:
    """The log is used again, without the records that no other replica has."""

    async def scenario(cluster: SimCluster) -> None:
        await leave_divergent_record(cluster)
        # The new replica cannot copy the log.
        cluster.isolate(4, ["b1", "b2"])
        # The responses wait until every live broker has been informed.
        begun = asyncio.ensure_future(move(cluster, [4, 1, 2]))
        await cluster.until(lambda: 4 in replicas(cluster))
        cancelled = asyncio.ensure_future(move(cluster, None))
        await cluster.until(lambda: replicas(cluster) == (1, 2, 3))
        cluster.heal()
        await asyncio.gather(begun, cancelled)
        await cluster.begin(3)
        await cluster.until(lambda: is_whole(cluster))
        assert folders(cluster) == ["t-0"]
        assert cluster.nodes[3].broker.replicas.get("t", 0).log.log_end_offset == 2
        assert divergences(cluster) == []

    run(seed, scenario)


@pytest.mark.parametrize("seed", SEEDS)
def test_topic_deleted_while_a_broker_is_down(seed: int) -> None:
    """The name can be used again at once; the broker sets its log aside when it returns."""

    async def scenario(cluster: SimCluster) -> None:
        await kill(cluster)
        names = DeleteTopicsRequest(topics=[DeleteTopicState(name="t")], timeout_ms=10_000)
        deleted = await cluster.ask(1, names, 6, DeleteTopicsResponse)
        assert deleted.responses[0].error_code == ErrorCode.NONE
        await create_elsewhere(cluster)
        await cluster.begin(3)
        await cluster.until(lambda: is_whole(cluster))
        assert folders(cluster) == ["t-0-stray"]
        await reassign(cluster, 3, 1, 2)
        await cluster.until(lambda: is_whole(cluster))
        assert cluster.nodes[3].broker.replicas.get("t", 0).log.log_end_offset == 0
        assert divergences(cluster) == []

    run(seed, scenario)


@pytest.mark.parametrize("seed", SEEDS)
def test_topic_deleted_and_created_again_while_a_broker_is_cut_off(seed: int) -> None:
    """The broker that led the deleted topic becomes a replica of the new one, with a new log."""

    async def scenario(cluster: SimCluster) -> None:
        cluster.isolate(3, ["b1", "b2", "b4", HOST])
        await cluster.until(lambda: leader(cluster) not in (-1, 3))
        assert await produce(cluster, 3, b"divergent", acks=1) == ErrorCode.NONE
        names = DeleteTopicsRequest(topics=[DeleteTopicState(name="t")], timeout_ms=10_000)
        deleted = await cluster.ask(1, names, 6, DeleteTopicsResponse)
        assert deleted.responses[0].error_code == ErrorCode.NONE
        await create_elsewhere(cluster)
        cluster.heal()
        await cluster.until(lambda: 3 in cluster.nodes[1].broker.image.brokers)
        await reassign(cluster, 3, 1, 2)
        await cluster.until(lambda: is_whole(cluster))
        assert folders(cluster) == ["t-0", "t-0-stray"]
        assert cluster.nodes[3].broker.replicas.get("t", 0).log.log_end_offset == 0
        assert divergences(cluster) == []

    run(seed, scenario)


@pytest.mark.parametrize("seed", SEEDS)
def test_topic_moved_away_deleted_and_created_again_while_a_broker_is_down(seed: int) -> None:
    """The log of the deleted topic is not served as a replica of its successor."""

    async def scenario(cluster: SimCluster) -> None:
        await kill(cluster)
        await reassign(cluster, 4, 1, 2)
        names = DeleteTopicsRequest(topics=[DeleteTopicState(name="t")], timeout_ms=10_000)
        deleted = await cluster.ask(1, names, 6, DeleteTopicsResponse)
        assert deleted.responses[0].error_code == ErrorCode.NONE
        await cluster.until(lambda: "t" not in cluster.nodes[1].broker.image.topics)
        await create_elsewhere(cluster)
        await cluster.begin(3)
        await cluster.until(lambda: is_whole(cluster))
        assert folders(cluster) == ["t-0-stray"]
        await reassign(cluster, 3, 1, 2)
        await cluster.until(lambda: is_whole(cluster))
        assert cluster.nodes[3].broker.replicas.get("t", 0).log.log_end_offset == 0

    run(seed, scenario)


async def create_elsewhere(cluster: SimCluster) -> None:
    """Create the topic on the brokers that run."""
    topic = CreatableTopic(name="t", num_partitions=1, replication_factor=3)
    request = CreateTopicsRequest(topics=[topic], timeout_ms=10_000)
    while True:
        created = await cluster.ask(1, request, 7, CreateTopicsResponse)
        if created.topics[0].error_code == ErrorCode.NONE:
            return
        await cluster.clock.sleep(0.1)
