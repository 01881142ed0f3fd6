"""Creation of topics and partitions: the checks, in Kafka's order, and the writes. Pure.

A topic is created by one multi: its settings, its node and the state of every partition appear
together or not at all, so no broker sees half a topic. If a topic has too many partitions for one
multi, the states of the others are written afterwards; a new controller creates the states that are
missing. Follows ReplicationControlManager (checks, codes) and AdminZkClient (nodes).
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from ottla.base.errors import ApiError, ErrorCode
from ottla.base.options import Snapshot
from ottla.base.replicas import placement
from ottla.base.rng import Rng
from ottla.base.uuids import random_uuid
from ottla.cluster import election, names
from ottla.cluster.image import (
    BrokerImage,
    ClusterImage,
    LeaderAndIsr,
    PartitionImage,
    ReplicaAssignment,
    TopicImage,
)
from ottla.cluster.options.option_tables import TOPIC_OPTIONS
from ottla.cluster.zk.port import Create, Operation, SetData
from ottla.cluster.znodes import ConfigNode, PartitionsNode, PartitionStateNode, TopicNode
from ottla.controller.planning import configs
from ottla.controller.planning.requests import BY_DEFAULT, PartitionsRequest, TopicRequest

# Per request. A larger number is almost always a mistake, and would exhaust the tree and file
# descriptors.
PARTITIONS_MAX = 10_000
# Partitions per multi, with two nodes each: ZooKeeper rejects packets above one megabyte, and a
# write blocks the event loop until the tree has changed.
PARTITIONS_AT_ONCE = 1000
# About one millisecond of work.
_MADE_AT_ONCE = 300
# Kafka's tools treat a topic of this name as the metadata log.
RESERVED_NAME = "__cluster_metadata"


class Write(NamedTuple):
    """One multi, and the topics that the image contains once it is done.

    `parents` are empty nodes that may already exist; the caller ensures them before the multi.
    """

    operations: tuple[Operation, ...]
    topics: tuple[TopicImage, ...] = ()
    parents: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class Environment:
    """The inputs of a plan besides the request.

    `ignores_case`: a log directory is on a disk on which `A` and `a` are one folder.
    """

    image: ClusterImage
    options: Snapshot
    rng: Rng
    ignores_case: bool = False


class NewTopic(NamedTuple):
    """A topic that passed all checks, with its own settings and the content of its node."""

    topic: TopicImage
    config: dict[str, str]
    content: bytes

    @property
    def replication_factor(self) -> int:
        """The number of replicas of the first partition."""
        return len(self.topic.partitions[0].replicas)


class Placement(NamedTuple):
    """The replicas of new partitions; the first has the number `first`.

    PartitionImages are created in parts, because thousands of them take a while.
    """

    first: int
    replicas: Sequence[tuple[int, ...]]
    brokers: Mapping[int, BrokerImage]

    def parts(self) -> Iterator[list[PartitionImage]]:
        """Yield the partitions, a few hundred at a time."""
        for start in range(0, len(self.replicas), _MADE_AT_ONCE):
            slice_ = self.replicas[start : start + _MADE_AT_ONCE]
            yield [
                new_partition(number, replicas, self.brokers)
                for number, replicas in enumerate(slice_, self.first + start)
            ]

    def partitions(self) -> list[PartitionImage]:
        """Return all partitions."""
        return [partition for part in self.parts() for partition in part]


def plan_topic(request: TopicRequest, existing: Iterable[str], now: Environment) -> NewTopic:
    """Return the topic that `request` describes; ApiError if it cannot be created."""
    placed = place_topic(request, names.TopicNames(existing), now)
    return new_topic(request, placed.partitions(), now)


def place_topic(request: TopicRequest, existing: names.TopicNames, now: Environment) -> Placement:
    """Return the placement of a new topic; ApiError if it cannot be created.

    `existing` contains the names that are in use, including topics that are being deleted.
    """
    _check_name(request.name, existing, ignores_case=now.ignores_case)
    configs.check_topic(request.config, now.options)
    return Placement(0, _assignment(request, now), now.image.brokers)


def new_topic(
    request: TopicRequest, partitions: Iterable[PartitionImage], now: Environment
) -> NewTopic:
    """Return the topic of a request that passed `place_topic`."""
    topic = TopicImage(request.name, random_uuid(now.rng), tuple(partitions))
    config = {name: (value or "").strip() for name, value in request.config.items()}
    return NewTopic(topic, config, encode_topic(topic))


def _check_name(name: str, existing: names.TopicNames, *, ignores_case: bool) -> None:
    names.validate_topic_name(name)
    if name == RESERVED_NAME:
        raise ApiError(ErrorCode.INVALID_REQUEST, f"The topic name {name} is reserved.")
    if name in existing:
        raise ApiError(ErrorCode.TOPIC_ALREADY_EXISTS, f"Topic '{name}' already exists.")
    other = existing.collision(name)
    if other is not None:
        raise ApiError(
            ErrorCode.INVALID_TOPIC_EXCEPTION,
            f"Topic '{name}' differs from the existing topic '{other}' only in '.' and '_', "
            f"which metrics cannot distinguish",
        )
    other = existing.same_folder(name) if ignores_case else None
    if other is not None:
        raise ApiError(
            ErrorCode.INVALID_TOPIC_EXCEPTION,
            f"Topic '{name}' differs from the existing topic '{other}' only in case, which the "
            f"disk of the log directory ignores",
        )


def _assignment(request: TopicRequest, now: Environment) -> list[tuple[int, ...]]:
    if request.assignments:
        return _manual_assignment(request, now.image.brokers)
    factor, count = request.replication_factor, request.partitions
    if factor != BY_DEFAULT and factor < 1:
        raise ApiError(
            ErrorCode.INVALID_REPLICATION_FACTOR,
            "The replication factor must be at least 1, or -1 for the broker's default",
        )
    if count != BY_DEFAULT and count < 1:
        raise ApiError(
            ErrorCode.INVALID_PARTITIONS,
            "The number of partitions must be at least 1, or -1 for the broker's default",
        )
    if count == BY_DEFAULT:
        count = now.options.integer("num.partitions")
    if factor == BY_DEFAULT:
        factor = now.options.integer("default.replication.factor")
    check_count(count)
    return _placed(count, factor, now)


def check_count(new_partitions: int) -> None:
    """Raise ApiError POLICY_VIOLATION if one request creates too many partitions."""
    if new_partitions > PARTITIONS_MAX:
        raise ApiError(
            ErrorCode.POLICY_VIOLATION,
            f"{new_partitions} new partitions in one request: {PARTITIONS_MAX} are allowed",
        )


def _placed(count: int, factor: int, now: Environment) -> list[tuple[int, ...]]:
    assignment = placement.place_replicas(_racks(now.image), count, factor, rng=now.rng)
    return list(assignment.values())


def _racks(image: ClusterImage) -> dict[int, str | None]:
    return {broker.id: broker.rack for broker in image.brokers.values()}


def _manual_assignment(
    request: TopicRequest, brokers: Mapping[int, BrokerImage]
) -> list[tuple[int, ...]]:
    if request.replication_factor != BY_DEFAULT or request.partitions != BY_DEFAULT:
        subject = "replication factor" if request.replication_factor != BY_DEFAULT else "partitions"
        raise ApiError(
            ErrorCode.INVALID_REQUEST,
            f"With a replica assignment the number of {subject} must be -1: the assignment says it",
        )
    assignment = dict(request.assignments)
    if len(assignment) < len(request.assignments):
        raise ApiError(
            ErrorCode.INVALID_REPLICA_ASSIGNMENT, "A partition is assigned more than once"
        )
    placement.validate_assignment(assignment, brokers)
    check_count(len(assignment))
    return [assignment[number] for number in range(len(assignment))]


def new_partition(
    number: int, replicas: tuple[int, ...], brokers: Mapping[int, BrokerImage]
) -> PartitionImage:
    """Return a new partition: led by its first live replica, with all live replicas in the ISR."""
    state = election.initial_state(replicas, brokers)
    assert state is not None, f"partition {number} would have no live replica"
    return PartitionImage(
        partition=number,
        leader=state.leader,
        leader_epoch=state.leader_epoch,
        isr=state.isr,
        replicas=replicas,
        offline_replicas=tuple(replica for replica in replicas if replica not in brokers),
        partition_epoch=state.partition_epoch,
    )


def write_topic(new: NewTopic, controller_epoch: int, *, config_exists: bool = False) -> Write:
    """Return the write of a new topic; a deleted topic may have left a settings node behind.

    `write_rest` returns the writes of the partitions that do not fit into this one.
    """
    topic = new.topic
    config_path = ConfigNode.path(ConfigNode.TOPICS, topic.name)
    config = ConfigNode.encode(new.config)
    # Settings first, as in Kafka: a broker that sees the topic finds its settings.
    operations: list[Operation] = [
        SetData(config_path, config) if config_exists else Create(config_path, config),
        Create(TopicNode.path(topic.name), new.content),
        Create(PartitionsNode.path(topic.name)),
    ]
    for partition in topic.partitions[:PARTITIONS_AT_ONCE]:
        operations += create_partition(topic.name, partition, controller_epoch)
    return Write(tuple(operations), (topic,))


def write_rest(topic: TopicImage, first: int, controller_epoch: int) -> Iterator[Write]:
    """Yield the writes of a topic's partitions from number `first` on."""
    for start in range(first, len(topic.partitions), PARTITIONS_AT_ONCE):
        operations: list[Operation] = []
        for partition in topic.partitions[start : start + PARTITIONS_AT_ONCE]:
            operations += create_partition(topic.name, partition, controller_epoch)
        yield Write(tuple(operations), (topic,))


def create_partition(
    topic: str, partition: PartitionImage, controller_epoch: int
) -> list[Operation]:
    """Return the operations that create the nodes of one partition."""
    return [
        Create(PartitionsNode.partition_path(topic, partition.partition)),
        create_state(topic, partition, controller_epoch),
    ]


def create_state(topic: str, partition: PartitionImage, controller_epoch: int) -> Create:
    """Return the operation that creates a partition's first state."""
    return Create(
        PartitionStateNode.path(topic, partition.partition),
        PartitionStateNode.encode(leader_and_isr(partition), controller_epoch),
    )


def leader_and_isr(partition: PartitionImage) -> LeaderAndIsr:
    """Return the fields of a partition that its state node contains."""
    return LeaderAndIsr(
        leader=partition.leader,
        leader_epoch=partition.leader_epoch,
        isr=partition.isr,
        partition_epoch=partition.partition_epoch,
        is_recovering=partition.is_recovering,
    )


def encode_topic(topic: TopicImage) -> bytes:
    """Return the content of a topic's node."""
    assignment = {
        partition.partition: ReplicaAssignment(
            partition.replicas, partition.adding_replicas, partition.removing_replicas
        )
        for partition in topic.partitions
    }
    return TopicNode.encode(topic.topic_id, assignment)


def place_partitions(request: PartitionsRequest, topic: TopicImage, now: Environment) -> Placement:
    """Return the placement of a topic's new partitions; ApiError if they cannot be added."""
    former_count = len(topic.partitions)
    if request.count == former_count:
        raise ApiError(
            ErrorCode.INVALID_PARTITIONS, f"Topic already has {former_count} partitions."
        )
    if request.count < former_count:
        raise ApiError(
            ErrorCode.INVALID_PARTITIONS,
            f"The topic {topic.name} has {former_count} partitions; {request.count} would not be more.",
        )
    if any(partition.is_being_reassigned for partition in topic.partitions):
        raise ApiError(
            ErrorCode.REASSIGNMENT_IN_PROGRESS,
            f"The topic {topic.name} is being reassigned: wait until that is complete",
        )
    check_count(request.count - former_count)
    assignment = (
        _continued(topic, request.count - former_count, now.image)
        if request.assignments is None
        else _new_assignment(request, topic, now.image.brokers)
    )
    return Placement(former_count, assignment, now.image.brokers)


def _continued(topic: TopicImage, count: int, image: ClusterImage) -> list[tuple[int, ...]]:
    """Return replicas that continue the round robin of the first partition's leader."""
    first = topic.partitions[0].replicas
    brokers = sorted(image.brokers)
    start = next((index for index, broker in enumerate(brokers) if broker >= first[0]), 0)
    assignment = placement.place_replicas(
        _racks(image), count, len(first), start=start, first_partition=len(topic.partitions)
    )
    return list(assignment.values())


def _new_assignment(
    request: PartitionsRequest, topic: TopicImage, brokers: Mapping[int, BrokerImage]
) -> list[tuple[int, ...]]:
    assignments = list(request.assignments or ())
    missing = request.count - len(topic.partitions)
    if len(assignments) != missing:
        raise _bad_assignment(f"it names {len(assignments)} of {missing} new partitions")
    placement.validate_assignment(dict(enumerate(assignments)), brokers)
    factor = len(topic.partitions[0].replicas)
    if len(assignments[0]) != factor:
        raise _bad_assignment(
            f"a new partition has {len(assignments[0])} replicas, the others have {factor}"
        )
    return assignments


def _bad_assignment(reason: str) -> ApiError:
    return ApiError(
        ErrorCode.INVALID_REPLICA_ASSIGNMENT, f"The replica assignment is not usable: {reason}"
    )


def write_partitions(former: TopicImage, topic: TopicImage, controller_epoch: int) -> Write:
    """Return the write that grows a topic from `former` to `topic`; see `write_rest`."""
    operations: list[Operation] = [SetData(TopicNode.path(topic.name), encode_topic(topic))]
    former_count = len(former.partitions)
    for partition in topic.partitions[former_count : former_count + PARTITIONS_AT_ONCE]:
        operations += create_partition(topic.name, partition, controller_epoch)
    return Write(tuple(operations), (topic,))


class _InternalTopic(NamedTuple):
    """The broker options that configure one internal topic."""

    partitions: str
    replication_factor: str
    segment_bytes: str
    config: Mapping[str, str]
    in_sync: str | None = None


_INTERNAL = {
    names.GROUP_OFFSETS_TOPIC: _InternalTopic(
        "offsets.topic.num.partitions",
        "offsets.topic.replication.factor",
        "offsets.topic.segment.bytes",
        {"cleanup.policy": "compact", "compression.type": "producer", "flush.on.ack": "true"},
    ),
    names.TRANSACTION_STATE_TOPIC: _InternalTopic(
        "transaction.state.log.num.partitions",
        "transaction.state.log.replication.factor",
        "transaction.state.log.segment.bytes",
        {
            "cleanup.policy": "compact",
            "compression.type": "uncompressed",
            "flush.on.ack": "true",
            "unclean.leader.election.enable": "false",
        },
        "transaction.state.log.min.isr",
    ),
}


def is_made_by_brokers(name: str) -> bool:
    """Return True if `internal_topic` knows the configuration of this topic."""
    return name in _INTERNAL


def internal_topic(name: str, options: Snapshot, live_brokers: int) -> TopicRequest:
    """Return the request that creates an internal topic as the broker options configure it.

    If its replication factor is not configured, it is at most the number of brokers.
    """
    row = _INTERNAL[name]
    factor = options.integer(row.replication_factor)
    if row.replication_factor not in options.explicit:
        factor = max(1, min(factor, live_brokers))
    config: dict[str, str | None] = dict(row.config)
    segment_bytes = options.integer(row.segment_bytes)
    smallest = TOPIC_OPTIONS.row("segment.bytes").minimum or 0
    size = "segment.bytes" if segment_bytes >= smallest else "internal.segment.bytes"
    config[size] = str(segment_bytes)
    if row.in_sync is not None:
        config["min.insync.replicas"] = str(min(factor, options.integer(row.in_sync)))
    return TopicRequest(name, options.integer(row.partitions), factor, config=config)


def needed_topic(
    name: str,
    options: Snapshot,
    brokers_count: int,
    partitions: int | None = None,
    config: Mapping[str, str] | None = None,
) -> TopicRequest:
    """Return the request for a topic that a client or a broker needs; None means the defaults."""
    if is_made_by_brokers(name) and partitions is None and config is None:
        return internal_topic(name, options, brokers_count)
    count = BY_DEFAULT if partitions is None else partitions
    return TopicRequest(name, count, config=dict(config or {}))
