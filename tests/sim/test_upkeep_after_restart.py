"""A restarted broker cleans its partitions, including those that receive no more records."""

from collections.abc import Mapping

import pytest

from ottla.server.node import Node
from ottla.storage.log.log import Log
from ottla.testing.sim.world import Machine, World
from ottla.wire.records.records import Record, encode_batch

from .one_transaction import SETTINGS

HOUR_MS = 3_600_000
MIB = 1024 * 1024
UPKEEP = {
    "log.initial.task.delay.ms": "1000",
    "log.retention.check.interval.ms": "1000",
    "log.cleaner.backoff.ms": "1000",
    "log.cleaner.min.cleanable.ratio": "0.01",
}
POLICIES: dict[str, Mapping[str, str]] = {
    "time": {"retention.ms": str(HOUR_MS)},
    "size": {"retention.bytes": str(MIB)},
    "compaction": {"cleanup.policy": "compact", "max.compaction.lag.ms": str(HOUR_MS)},
}


async def start(machine: Machine, **settings: str) -> Node:
    """Start a broker on the machine's disk."""
    node = Node(
        SETTINGS | UPKEEP | settings,
        clock=machine.clock,
        rng=machine.rng(),
        files=machine.files,
        net=machine.net,
    )
    await node.start()
    return node


def log_of(node: Node) -> Log:
    """Return the log of the only topic."""
    return node.broker.replicas.get("t", 0).log


@pytest.mark.parametrize("policy", POLICIES)
def test_an_idle_partition_is_cleaned_after_a_restart(policy: str) -> None:
    """Retention by time and by size, and compaction, do not wait for an append."""

    async def scenario(world: World) -> tuple[int, int]:
        machine = world.machine("broker")
        # No upkeep in the first run.
        idle = {"log.initial.task.delay.ms": str(HOUR_MS), "log.cleaner.enable": "false"}
        first = await start(machine, **idle)
        await first.broker.controller.ensure_topic(
            "t", 1, {"segment.bytes": str(MIB)} | POLICIES[policy]
        )
        partition = first.broker.replicas.get("t", 0)
        for number in range(100):
            record = Record(b"k", bytes(50_000), (), machine.clock.time_ms())
            partition.append_as_leader(encode_batch([record]), acks=-1)
            assert partition.high_watermark == number + 1
        before = partition.log.size_bytes
        await first.stop()
        await machine.clock.sleep(2 * HOUR_MS / 1000)
        second = await start(machine)
        await machine.clock.sleep(60)
        after = log_of(second).size_bytes
        await second.stop()
        return before, after

    with World(1) as world:
        before, after = world.run(scenario(world))
    assert before > 4 * MIB
    assert after < 3 * MIB
