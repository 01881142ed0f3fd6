"""The output of `kafka-topics --describe`."""

from collections.abc import Mapping, Sequence
from typing import Any

from ottla.base.errors import ApiError, ErrorCode
from ottla.base.uuids import uuid_text
from ottla.client.admin import configs, replicas, topics
from ottla.client.admin.cluster import describe_cluster
from ottla.client.admin.replicas import Reassignment
from ottla.client.brokers import Brokers
from ottla.client.errors import Unsupported
from ottla.cluster.jvm_order import java_string_hash
from ottla_scripts.flags import Options
from ottla_scripts.java_order import hash_order
from ottla_scripts.printing import as_json, out

_MIN_ISR = "min.insync.replicas"
_NO_ID = bytes(16)
# Each shares a bucket of LogConfig's HashMap with an option that is defined later.
_DEFINED_EARLY = ("segment.bytes", "flush.messages", "max.compaction.lag.ms", "retention.bytes")
_REPORTS = (
    "under-replicated-partitions",
    "unavailable-partitions",
    "under-min-isr-partitions",
    "at-min-isr-partitions",
)
Moves = Mapping[tuple[str, int], Reassignment]


def describe(brokers: Brokers, described: Sequence[topics.Topic], options: Options) -> None:
    """Print topics with their own options, and their partitions."""
    live = {broker.node_id for broker in describe_cluster(brokers).brokers}
    moves = _reassignments(brokers) if described else {}
    reports = [name for name in _REPORTS if name in options]
    rows = []
    for topic in described:
        entries = configs.read_config(
            brokers,
            configs.Resource(configs.ResourceType.TOPIC, topic.name),
        )
        own = [
            entry
            for entry in _in_java_order(entries)
            if entry.source is not configs.ConfigSource.DEFAULT_CONFIG
        ]
        minimum = next((int(e.value or 1) for e in entries if e.name == _MIN_ISR), 1)
        partitions = [
            partition
            for partition in topic.partitions
            if not reports
            or _is_reported(
                partition, reports, minimum, live, moves.get((topic.name, partition.partition))
            )
        ]
        if options.is_json:
            rows.append(_as_row(topic, own, partitions))
            continue
        has_own = bool(own)
        if not reports and (has_own or "topics-with-overrides" not in options):
            out(_headline(topic, own, moves))
        if "topics-with-overrides" not in options:
            for partition in partitions:
                out(_line(topic.name, partition, moves.get((topic.name, partition.partition))))
    if options.is_json:
        as_json(rows)


def _reassignments(brokers: Brokers) -> Moves:
    """Return the reassignments under way; none if the cluster does not show them."""
    try:
        return replicas.list_partition_reassignments(brokers)
    except Unsupported:
        return {}
    except ApiError as error:
        if error.code is ErrorCode.CLUSTER_AUTHORIZATION_FAILED:
            return {}
        raise


def _in_java_order(entries: Sequence[configs.ConfigEntry]) -> Sequence[configs.ConfigEntry]:
    """Return options in the order of Apache Kafka's broker: Ottla's returns them by name."""
    by_name = {entry.name: entry for entry in entries}
    if list(by_name) != sorted(by_name):
        return entries
    names = sorted(by_name, key=lambda name: name not in _DEFINED_EARLY)
    return [by_name[name] for name in hash_order(names, java_string_hash)]


def _headline(topic: topics.Topic, own: Sequence[configs.ConfigEntry], moves: Moves) -> str:
    listed = ",".join(f"{entry.name}={entry.value}" for entry in own)
    parts = [f"Topic: {topic.name}"]
    if topic.topic_id != _NO_ID:
        parts.append(f"TopicId: {uuid_text(topic.topic_id)}")
    factor = _replication_factor(topic.partitions[0], moves.get((topic.name, 0)))
    return "\t".join(
        [
            *parts,
            f"PartitionCount: {len(topic.partitions)}",
            f"ReplicationFactor: {factor}",
            f"Configs: {listed}",
        ]
    )


def _line(name: str, partition: topics.Partition, move: Reassignment | None) -> str:
    leader = partition.leader if partition.leader >= 0 else "none"
    parts = [
        f"\tTopic: {name}",
        f"Partition: {partition.partition}",
        f"Leader: {leader}",
        f"Replicas: {_ids(partition.replicas)}",
        f"Isr: {_ids(partition.isr)}",
    ]
    if move is not None:
        parts += [
            f"Adding Replicas: {_ids(move.adding)}",
            f"Removing Replicas: {_ids(move.removing)}",
        ]
    # Eligible leader replicas (KIP-966) exist only with a KRaft controller.
    return "\t".join([*parts, "Elr: ", "LastKnownElr: "])


def _is_reported(
    partition: topics.Partition,
    reports: Sequence[str],
    minimum: int,
    live: set[int],
    move: Reassignment | None,
) -> bool:
    size, has_leader = len(partition.isr), partition.leader >= 0
    facts = {
        "under-replicated-partitions": _replication_factor(partition, move) > size,
        "unavailable-partitions": partition.leader not in live,
        "under-min-isr-partitions": not has_leader or size < minimum,
        "at-min-isr-partitions": size == minimum,
    }
    return any(facts[name] for name in reports)


def _replication_factor(partition: topics.Partition, move: Reassignment | None) -> int:
    if move is None or not set(partition.replicas) & {*move.adding, *move.removing}:
        return len(partition.replicas)
    return len(move.replicas) - len(move.adding)


def _ids(values: Sequence[int]) -> str:
    return ",".join(map(str, values))


def _as_row(
    topic: topics.Topic,
    own: Sequence[configs.ConfigEntry],
    partitions: Sequence[topics.Partition],
) -> dict[str, Any]:
    return {
        "topic": topic.name,
        "topic_id": uuid_text(topic.topic_id),
        "partition_count": len(topic.partitions),
        "replication_factor": topic.replication_factor,
        "configs": {entry.name: entry.value for entry in own},
        "partitions": [
            {
                "partition": partition.partition,
                "leader": partition.leader,
                "replicas": list(partition.replicas),
                "isr": list(partition.isr),
            }
            for partition in partitions
        ],
    }
