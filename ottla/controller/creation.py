"""New topics and new partitions: checks in Kafka's order, and the writes they come to. Pure.

A topic is one write: its settings, its node and the state of every partition appear together or not
at all, so no other broker ever sees half a topic. Where it has too many partitions for that, the
states of the others follow; a controller that finds partitions without a state gives them one.
Follows ReplicationControlManager (checks, codes) and AdminZkClient (nodes).
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from ottla.base.errors import ApiError, ErrorCode
from ottla.base.options import Snapshot
from ottla.base.rng import Rng
from ottla.base.uuids import random_uuid
from ottla.cluster import election, names, placement
from ottla.cluster.image import (
    BrokerImage,
    ClusterImage,
    LeaderAndIsr,
    PartitionImage,
    ReplicaAssignment,
    TopicImage,
)
from ottla.cluster.options import TOPIC_OPTIONS
from ottla.cluster.zk.port import Create, Operation, SetData
from ottla.cluster.znodes import ConfigNode, PartitionsNode, PartitionStateNode, TopicNode
from ottla.controller import configs
from ottla.controller.requests import BY_DEFAULT, PartitionsRequest, TopicRequest

# Of one request: what more would do to the tree and to file descriptors is rarely meant.
PARTITIONS_MAX = 10_000
# What is written at once, two nodes each: ZooKeeper refuses packets above a megabyte, and a write
# stops the event loop for as long as the tree takes to change.
PARTITIONS_AT_ONCE = 1000
# About a millisecond of work.
_MADE_AT_ONCE = 300
# Kafka's metadata log: tools take a topic of this name for something else.
RESERVED_NAME = "__cluster_metadata"


class Write(NamedTuple):
    """One multi, and what the image holds once it is done.

    `parents` are empty nodes that may be missing or not; they are made sure of before.
    """

    operations: tuple[Operation, ...]
    topics: tuple[TopicImage, ...] = ()
    parents: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Environment:
    """What plans depend on beside the request."""

    image: ClusterImage
    options: Snapshot
    rng: Rng


class NewTopic(NamedTuple):
    """A topic that may be created, with its own settings and the content of its node."""

    topic: TopicImage
    config: dict[str, str]
    content: bytes

    @property
    def replication_factor(self) -> int:
        """The replicas of its first partition."""
        return len(self.topic.partitions[0].replicas)


class Placement(NamedTuple):
    """Replicas of new partitions, of which the first has the number `first`.

    The partitions are made of it some at a time: thousands take a while.
    """

    first: int
    replicas: Sequence[tuple[int, ...]]
    brokers: Mapping[int, BrokerImage]

    def parts(self) -> Iterator[list[PartitionImage]]:
        """Yield the partitions, a few hundred at a time."""
        for start in range(0, len(self.replicas), _MADE_AT_ONCE):
            some = self.replicas[start : start + _MADE_AT_ONCE]
            yield [
                new_partition(number, replicas, self.brokers)
                for number, replicas in enumerate(some, self.first + start)
            ]

    def partitions(self) -> list[PartitionImage]:
        """Return all of them."""
        return [partition for part in self.parts() for partition in part]


def plan_topic(request: TopicRequest, existing: Iterable[str], now: Environment) -> NewTopic:
    """Return the topic that `request` asks for; ApiError where it cannot be."""
    placed = place_topic(request, existing, now)
    return new_topic(request, placed.partitions(), now)


def place_topic(request: TopicRequest, existing: Iterable[str], now: Environment) -> Placement:
    """Return where a topic will be; ApiError where it cannot be.

    `existing` are the names that are taken, those of topics being deleted among them.
    """
    _check_name(request.name, existing)
    configs.check_topic(request.config, now.options)
    return Placement(0, _assignment(request, now), now.image.brokers)


def new_topic(
    request: TopicRequest, partitions: Iterable[PartitionImage], now: Environment
) -> NewTopic:
    """Return the topic of a request that `place_topic` has found to be possible."""
    topic = TopicImage(request.name, random_uuid(now.rng), tuple(partitions))
    config = {name: (value or "").strip() for name, value in request.config.items()}
    return NewTopic(topic, config, encode_topic(topic))


def _check_name(name: str, existing: Iterable[str]) -> None:
    names.validate_topic_name(name)
    if name == RESERVED_NAME:
        raise ApiError(ErrorCode.INVALID_REQUEST, f"The topic name {name} is reserved.")
    taken = existing if isinstance(existing, (set, frozenset, dict)) else set(existing)
    if name in taken:
        raise ApiError(ErrorCode.TOPIC_ALREADY_EXISTS, f"Topic '{name}' already exists.")
    # Only a name with one of the two characters can collide: others are spared the search.
    if "." in name or "_" in name:
        other = names.collides(name, taken)
        if other is not None:
            raise ApiError(
                ErrorCode.INVALID_TOPIC_EXCEPTION,
                f"Topic '{name}' differs from the existing topic '{other}' only in '.' and '_', "
                f"which metrics cannot tell apart",
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
    """Raise ApiError POLICY_VIOLATION where one request asks for too many partitions."""
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
        which = "replication factor" if request.replication_factor != BY_DEFAULT else "partitions"
        raise ApiError(
            ErrorCode.INVALID_REQUEST,
            f"With a replica assignment the number of {which} must be -1: the assignment says it",
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
    """Return a partition at its beginning: led by its first live replica, all live ones in sync."""
    state = election.initial_state(replicas, brokers)
    assert state is not None, f"partition {number} would have no live replica"
    return PartitionImage(
        partition=number,
        leader=state.leader,
        leader_epoch=state.leader_epoch,
        isr=state.isr,
        replicas=replicas,
        offline_replicas=tuple(item for item in replicas if item not in brokers),
        partition_epoch=state.partition_epoch,
    )


def write_topic(new: NewTopic, controller_epoch: int, *, config_exists: bool = False) -> Write:
    """Return the write of a new topic. Its settings may have been left behind by a former one.

    `write_rest` has the partitions for which there is no room in it.
    """
    topic = new.topic
    config_path = ConfigNode.path(ConfigNode.TOPICS, topic.name)
    config = ConfigNode.encode(new.config)
    # Settings first, as in Kafka: whoever sees the topic finds them.
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
    """Return the operations that make the nodes of one partition."""
    return [
        Create(PartitionsNode.partition_path(topic, partition.partition)),
        create_state(topic, partition, controller_epoch),
    ]


def create_state(topic: str, partition: PartitionImage, controller_epoch: int) -> Create:
    """Return the operation that makes a partition's first state."""
    return Create(
        PartitionStateNode.path(topic, partition.partition),
        PartitionStateNode.encode(leader_and_isr(partition), controller_epoch),
    )


def leader_and_isr(partition: PartitionImage) -> LeaderAndIsr:
    """Return what a partition's state node holds of it."""
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
        item.partition: ReplicaAssignment(
            item.replicas, item.adding_replicas, item.removing_replicas
        )
        for item in topic.partitions
    }
    return TopicNode.encode(topic.topic_id, assignment)


def plan_partitions(request: PartitionsRequest, topic: TopicImage, now: Environment) -> TopicImage:
    """Return the topic with the partitions that `request` asks for; ApiError where it cannot be."""
    return topic.with_partitions(place_partitions(request, topic, now).partitions())


def place_partitions(request: PartitionsRequest, topic: TopicImage, now: Environment) -> Placement:
    """Return where a topic's new partitions will be; ApiError where they cannot be."""
    had = len(topic.partitions)
    if request.count == had:
        raise ApiError(ErrorCode.INVALID_PARTITIONS, f"Topic already has {had} partitions.")
    if request.count < had:
        raise ApiError(
            ErrorCode.INVALID_PARTITIONS,
            f"The topic {topic.name} has {had} partitions; {request.count} would not be more.",
        )
    if any(partition.is_being_reassigned for partition in topic.partitions):
        raise ApiError(
            ErrorCode.REASSIGNMENT_IN_PROGRESS,
            f"The topic {topic.name} is being reassigned: wait until that is complete",
        )
    check_count(request.count - had)
    assignment = (
        _continued(topic, request.count - had, now.image)
        if request.assignments is None
        else _new_assignment(request, topic, now.image.brokers)
    )
    return Placement(had, assignment, now.image.brokers)


def _continued(topic: TopicImage, count: int, image: ClusterImage) -> list[tuple[int, ...]]:
    """Return replicas that go on where the first partition's leader began the round."""
    first = topic.partitions[0].replicas
    brokers = sorted(image.brokers)
    start = next((index for index, item in enumerate(brokers) if item >= first[0]), 0)
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
    """Return the write that takes a topic from `former` to more partitions; see `write_rest`."""
    operations: list[Operation] = [SetData(TopicNode.path(topic.name), encode_topic(topic))]
    had = len(former.partitions)
    for partition in topic.partitions[had : had + PARTITIONS_AT_ONCE]:
        operations += create_partition(topic.name, partition, controller_epoch)
    return Write(tuple(operations), (topic,))


class _InternalTopic(NamedTuple):
    """The broker options that one of the brokers' own topics is made by."""

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
    """Tell whether `internal_topic` knows what a topic of this name is to be."""
    return name in _INTERNAL


def internal_topic(name: str, options: Snapshot, live_brokers: int) -> TopicRequest:
    """Return the request for one of the brokers' own topics, after the broker's options.

    Where its replication factor is not configured, a cluster of fewer brokers takes what it has.
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
