"""A restarted broker cleans its partitions, including those that receive no more records."""

from collections.abc import Mapping

import pytest

from ottla.base.errors import ErrorCode
from ottla.server.node import Node
from ottla.storage.log.log import Log
from ottla.testing.sim.nodes import node_on
from ottla.testing.sim.world import Machine, World
from ottla.wire.messages.create_topics import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from ottla.wire.records.records import Record, encode_batch

from .cluster import SimCluster
from .one_transaction import SETTINGS

pytestmark = pytest.mark.slow

AGE_MS = 600_000
MIB = 1024 * 1024
UPKEEP = {
    "log.initial.task.delay.ms": "1000",
    "log.retention.check.interval.ms": "1000",
    "log.cleaner.backoff.ms": "1000",
    "log.cleaner.min.cleanable.ratio": "0.01",
}
# No upkeep in the first run.
IDLE = {"log.initial.task.delay.ms": str(10 * AGE_MS), "log.cleaner.enable": "false"}
SEGMENTS = {"segment.bytes": str(MIB)}
HIGH_WATERMARKS = "/data/replication-offset-checkpoint"
POLICIES: dict[str, Mapping[str, str]] = {
    "time": {"retention.ms": str(AGE_MS)},
    "size": {"retention.bytes": str(MIB)},
    "compaction": {"cleanup.policy": "compact", "max.compaction.lag.ms": str(AGE_MS)},
}


async def start(machine: Machine, **settings: str) -> Node:
    """Start a broker on the machine's disk."""
    node = node_on(machine, SETTINGS | UPKEEP | settings)
    await node.start()
    return node


def log_of(node: Node) -> Log:
    """Return the log of the only topic."""
    return node.broker.replicas.get("t", 0).log


def fill(node: Node, machine: Machine, *, has_follower: bool = False) -> None:
    """Append records for about five segments to a partition that the broker leads."""
    partition = node.broker.replicas.get("t", 0)
    for number in range(100):
        record = Record(b"k", bytes(50_000), (), machine.clock.time_ms())
        partition.append_as_leader(encode_batch([record]), acks=-1)
        assert has_follower or partition.high_watermark == number + 1


@pytest.mark.parametrize("is_stored", [True, False], ids=["stored", "lost"])
@pytest.mark.parametrize("policy", POLICIES)
def test_an_idle_partition_is_cleaned_after_a_restart(policy: str, is_stored: bool) -> None:
    """Retention by time and by size, and compaction, do not wait for an append, even if the
    checkpoint of the high watermark is lost.
    """

    async def scenario(world: World) -> tuple[int, int]:
        machine = world.machine("broker")
        first = await start(machine, **IDLE)
        await first.broker.controller.ensure_topic("t", 1, SEGMENTS | POLICIES[policy])
        fill(first, machine)
        before = log_of(first).size_bytes
        await first.stop()
        if not is_stored:
            machine.files.remove(HIGH_WATERMARKS)
        await machine.clock.sleep(2 * AGE_MS / 1000)
        second = await start(machine)
        await machine.clock.sleep(60)
        after = log_of(second).size_bytes
        await second.stop()
        return before, after

    with World(1) as world:
        before, after = world.run(scenario(world))
    assert before > 4 * MIB
    assert after < 3 * MIB


@pytest.mark.parametrize("is_stored", [True, False], ids=["stored", "lost"])
@pytest.mark.parametrize("policy", POLICIES)
def test_an_idle_follower_is_cleaned_after_a_restart(policy: str, is_stored: bool) -> None:
    """A follower cleans its replica by itself, although its leader has not cleaned its own."""

    async def scenario(cluster: SimCluster) -> tuple[int, int]:
        await cluster.start()
        await create(cluster, SEGMENTS | POLICIES[policy])
        await cluster.until(lambda: cluster.agrees("t", count=1))
        fill(cluster.nodes[1], cluster.machine(1), has_follower=True)
        follower = cluster.nodes[2].broker.replicas.get("t", 0)
        await cluster.until(lambda: follower.high_watermark == 100)
        before = follower.log.size_bytes
        await cluster.stop(2)
        if not is_stored:
            cluster.machine(2).files.remove(HIGH_WATERMARKS)
        await cluster.clock.sleep(2 * AGE_MS / 1000)
        cluster._settings |= UPKEEP | {"log.cleaner.enable": "true"}
        await cluster.start(2)
        await cluster.clock.sleep(60)
        assert cluster.leader("t", 0) == 1
        assert log_of(cluster.nodes[1]).size_bytes == before
        return before, log_of(cluster.nodes[2]).size_bytes

    with World(1) as world:
        settings = IDLE | {"auto.leader.rebalance.enable": "false"}
        before, after = world.run(scenario(SimCluster(world, 2, settings)))
    assert before > 4 * MIB
    assert after < 3 * MIB


async def create(cluster: SimCluster, configs: Mapping[str, str]) -> None:
    """Create the topic on both brokers; its leader is broker 1."""
    topic = CreatableTopic(
        name="t",
        num_partitions=-1,
        replication_factor=-1,
        assignments=[CreatableReplicaAssignment(partition_index=0, broker_ids=[1, 2])],
        configs=[CreatableTopicConfig(name=name, value=value) for name, value in configs.items()],
    )
    request = CreateTopicsRequest(topics=[topic], timeout_ms=10_000)
    created = await cluster.ask(1, request, 7, CreateTopicsResponse)
    assert created.topics[0].error_code == ErrorCode.NONE
