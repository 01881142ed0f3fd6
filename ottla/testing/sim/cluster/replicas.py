"""Compares the replicas of a simulated cluster with each other, byte by byte."""

from collections.abc import Container, Iterator

from ottla.base.errors import ApiError
from ottla.replication.partition import Partition
from ottla.testing.sim.cluster.brokers import SimCluster
from ottla.wire.records.records import iterate_batches

_CHUNK_BYTES = 1024 * 1024


def divergences(cluster: SimCluster, compacted: Container[str] = ()) -> list[str]:
    """Return each partition whose replicas differ below the leader's high watermark.

    Each broker compacts at its own time, so the replicas of `compacted` topics differ.
    """
    differences: list[str] = []
    image = cluster.nodes[cluster.controllers[0]].broker.image
    for topic in sorted(name for name in image.topics if name not in compacted):
        for number, state in enumerate(image.topics[topic].partitions):
            replicas = dict(_replicas(cluster, topic, number))
            leader = replicas.get(state.leader)
            if leader is None:
                differences.append(f"{topic}-{number}: the leader {state.leader} has no replica")
                continue
            end = leader.high_watermark
            expected = batches(leader, end)
            for broker_id, replica in replicas.items():
                if broker_id not in state.replicas:
                    differences.append(f"{topic}-{number} is still on broker {broker_id}")
                    continue
                text = _difference(expected, batches(replica, end))
                if text:
                    differences.append(f"{topic}-{number} on broker {broker_id}: {text}")
    return differences


def _replicas(cluster: SimCluster, topic: str, number: int) -> Iterator[tuple[int, Partition]]:
    for broker_id, node in sorted(cluster.nodes.items()):
        try:
            yield broker_id, node.broker.replicas.get(topic, number)
        except ApiError:
            continue


def batches(replica: Partition, end: int) -> list[tuple[int, int, bytes]]:
    """Return the batches of a replica below an offset: base offset, leader epoch, bytes."""
    log = replica.log
    batches_found: list[tuple[int, int, bytes]] = []
    offset = log.log_start_offset
    while offset < min(end, log.log_end_offset):
        fetched = log.read(offset, _CHUNK_BYTES, max_offset=end, at_least_one=True)
        data = b"" if fetched is None else bytes(fetched.data)
        if not data:
            break
        for position, header in iterate_batches(data):
            content = data[position : position + header.size_bytes]
            batches_found.append((header.base_offset, header.leader_epoch, content))
            offset = header.last_offset + 1
    return batches_found


def _difference(
    expected: list[tuple[int, int, bytes]], actual: list[tuple[int, int, bytes]]
) -> str:
    for left, right in zip(expected, actual, strict=False):
        if left != right:
            return (
                f"offset {left[0]} in epoch {left[1]} differs from offset {right[0]} in epoch"
                f" {right[1]}"
            )
    if len(expected) != len(actual):
        return f"{len(actual)} batches instead of {len(expected)}"
    return ""
