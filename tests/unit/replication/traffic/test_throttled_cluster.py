"""Throttled reassignments between brokers, in simulated time (KIP-73)."""

from collections.abc import Callable, Coroutine, Mapping
from typing import Any

import pytest

from ottla.base.errors import ErrorCode
from ottla.server.monitoring.replication import replication
from ottla.server.monitoring.sources import Pace
from ottla.testing.sim.world import World
from ottla.wire.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
    ReassignablePartition,
    ReassignableTopic,
)
from ottla.wire.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)
from ottla.wire.records.records import Record, encode_batch
from tests.sim.cluster import SimCluster

TOPIC_RESOURCE, BROKER_RESOURCE = 2, 4
SET, DELETE = 0, 1
BATCH_BYTES = 20_000
BATCHES = 250
RATE = 500_000
SECONDS = BATCH_BYTES * BATCHES / RATE
LEADER_RATE = "leader.replication.throttled.rate"
FOLLOWER_RATE = "follower.replication.throttled.rate"
LEADERS = "leader.replication.throttled.replicas"
FOLLOWERS = "follower.replication.throttled.replicas"
SMALL_FETCHES = {"replica.fetch.max.bytes": "100000"}


def run(scenario: Callable[[SimCluster], Coroutine[Any, Any, None]]) -> None:
    """Run a scenario with two brokers."""
    with World(1) as world:
        world.run(scenario(SimCluster(world, 2, SMALL_FETCHES)))


async def configure(
    cluster: SimCluster, kind: int, name: str, settings: Mapping[str, str | None]
) -> None:
    """Set options, or delete those whose value is None."""
    configs = [
        AlterableConfig(name=key, config_operation=DELETE if text is None else SET, value=text)
        for key, text in settings.items()
    ]
    resource = AlterConfigsResource(resource_type=kind, resource_name=name, configs=configs)
    request = IncrementalAlterConfigsRequest(resources=[resource])
    broker = int(name) if kind == BROKER_RESOURCE else 1
    response = await cluster.ask(broker, request, 1, IncrementalAlterConfigsResponse)
    assert response.responses[0].error_code == ErrorCode.NONE, response.responses[0].error_message


async def prepare(cluster: SimCluster) -> None:
    """Write 5 MB to a topic whose only replica is on broker 1."""
    await cluster.start()
    await cluster.create(1, "t", 1, 2)
    await cluster.until(lambda: "t" in cluster.nodes[2].broker.image.topics)
    await reassign(cluster, [1])
    await cluster.until(lambda: isr_of(cluster) == {1})
    partition = cluster.nodes[1].broker.replicas.get("t", 0)
    for _ in range(BATCHES):
        record = Record(None, b"x" * (BATCH_BYTES - 70), (), 1000)
        partition.append_as_leader(encode_batch([record]), acks=1)


async def reassign(cluster: SimCluster, replicas: list[int]) -> None:
    item = ReassignablePartition(partition_index=0, replicas=replicas)
    topic = ReassignableTopic(name="t", partitions=[item])
    request = AlterPartitionReassignmentsRequest(topics=[topic])
    controller = next(
        key for key, node in cluster.nodes.items() if node.broker.controller.is_active
    )
    response = await cluster.ask(controller, request, 0, AlterPartitionReassignmentsResponse)
    assert response.responses[0].partitions[0].error_code == ErrorCode.NONE


def isr_of(cluster: SimCluster) -> set[int]:
    """Return the in-sync replicas of the partition, according to broker 2."""
    return set(cluster.nodes[2].broker.image.topics["t"].partitions[0].isr)


async def seconds_to_add_replica(cluster: SimCluster) -> float:
    """Move the partition to both brokers; return the time until it is complete."""
    started = cluster.clock.monotonic()
    await reassign(cluster, [1, 2])
    await cluster.until(lambda: isr_of(cluster) == {1, 2}, seconds=120)
    return cluster.clock.monotonic() - started


@pytest.mark.parametrize(
    ("rate", "replicas", "broker", "value"),
    [(LEADER_RATE, LEADERS, "1", "0:1"), (FOLLOWER_RATE, FOLLOWERS, "2", "*")],
    ids=["leader", "follower"],
)
def test_reassignment_keeps_to_the_limit(rate: str, replicas: str, broker: str, value: str) -> None:
    """A limit of the leader or of the follower keeps the transfer to that rate."""

    async def scenario(cluster: SimCluster) -> None:
        await prepare(cluster)
        await configure(cluster, BROKER_RESOURCE, broker, {rate: str(RATE)})
        await configure(cluster, TOPIC_RESOURCE, "t", {replicas: value})
        assert await seconds_to_add_replica(cluster) == pytest.approx(SECONDS, rel=0.2)

    run(scenario)


def test_replica_that_the_topic_does_not_name_is_not_limited() -> None:
    """A replica that the topic does not name is not limited, whatever the rate is."""

    async def scenario(cluster: SimCluster) -> None:
        await prepare(cluster)
        for broker in ("1", "2"):
            rates = {LEADER_RATE: str(RATE), FOLLOWER_RATE: str(RATE)}
            await configure(cluster, BROKER_RESOURCE, broker, rates)
        await configure(cluster, TOPIC_RESOURCE, "t", {LEADERS: "0:2", FOLLOWERS: "0:1"})
        assert await seconds_to_add_replica(cluster) < SECONDS / 5

    run(scenario)


def test_limit_that_is_removed_ends_the_wait() -> None:
    """The tool removes limits at the end, or when an operator wants the rest quickly."""

    async def scenario(cluster: SimCluster) -> None:
        await prepare(cluster)
        await configure(cluster, BROKER_RESOURCE, "2", {FOLLOWER_RATE: "1000"})
        await configure(cluster, TOPIC_RESOURCE, "t", {FOLLOWERS: "*"})
        await reassign(cluster, [1, 2])
        await cluster.clock.sleep(30)
        assert isr_of(cluster) == {1}
        await configure(cluster, BROKER_RESOURCE, "2", {FOLLOWER_RATE: None})
        await cluster.until(lambda: isr_of(cluster) == {1, 2}, seconds=5)

    run(scenario)


def test_replica_in_sync_is_not_limited() -> None:
    """A limit must not remove replicas from the ISR, nor delay acks=all."""

    async def scenario(cluster: SimCluster) -> None:
        await prepare(cluster)
        await seconds_to_add_replica(cluster)
        await configure(cluster, BROKER_RESOURCE, "1", {LEADER_RATE: "1"})
        await configure(cluster, BROKER_RESOURCE, "2", {FOLLOWER_RATE: "1"})
        await configure(cluster, TOPIC_RESOURCE, "t", {LEADERS: "*", FOLLOWERS: "*"})
        leader, follower = (cluster.nodes[key].broker.replicas.get("t", 0) for key in (1, 2))
        for _ in range(10):
            record = Record(None, b"x" * 1000, (), 1000)
            leader.append_as_leader(encode_batch([record]), acks=1)
            end = leader.log.log_end_offset
            await cluster.until(lambda end=end: follower.log.log_end_offset == end, seconds=1)  # type: ignore[misc]

    run(scenario)


def test_replication_is_counted() -> None:
    """Both brokers count the bytes once, the bytes of the reassignment apart, and none as produced."""

    async def scenario(cluster: SimCluster) -> None:
        await prepare(cluster)
        leader, follower = (cluster.nodes[key].broker.replicas for key in (1, 2))
        before = follower.replication.received_bytes
        await seconds_to_add_replica(cluster)
        size = leader.get("t", 0).log.size_bytes
        assert follower.replication.received_bytes - before == size
        assert follower.replication.reassigned_received_bytes == size
        assert leader.replication.reassigned_sent_bytes == size
        assert follower.traffic().produced_bytes == 0
        assert leader.traffic().produced_bytes == size
        beans = await replication(cluster.nodes[2].broker, Pace(cluster.clock))
        (lags,) = (list(rows) for bean, rows in beans if bean.name == "ConsumerLag")
        samples = [(key.text, lag) for key, lag in lags if 'topic="t"' in key.text]
        assert samples == [('{clientId="ReplicaFetcherThread-0-1",topic="t",partition="0"}', 0)]

    run(scenario)
