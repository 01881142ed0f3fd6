"""Partitions: the map of replicas, leaders and ISR, its skew, and elections of leaders."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ottla.base.errors import ApiError, ErrorCode
from ottla.client.admin import replicas
from ottla.client.admin.replicas import LogDirectory, ReplicaSize
from ottla.client.admin.topics import Partition, Topic
from ottla.operations import elections
from ottla.operations.changes import Change
from ottla.operations.survey.connections import ClusterConnection
from ottla.operations.survey.directories import read_topic_directories
from ottla.operations.survey.metadata import Key, leaders_of, read_metadata, read_topic
from ottla.operations.survey.offsets import Bounds, bounds_of
from ottla.operations.survey.options import read_topic_options

_MIN_ISR = "min.insync.replicas"
# The cache of all topics: its key, and for how many seconds it is new. The option rarely changes,
# and a change by the console empties the cache.
_MIN_ISR_CACHE = ("min-isr", 10.0)
_MIN_ISR_STALE_S = 600.0


@dataclass(frozen=True, slots=True)
class ReplicaRow:
    """A replica on one broker; size and lag are None if that broker does not report them."""

    broker: int
    is_leader: bool
    is_preferred: bool
    is_in_sync: bool
    is_offline: bool
    size_bytes: int | None
    offset_lag: int | None
    log_directory: str | None


@dataclass(frozen=True, slots=True)
class PartitionRow:
    """A partition; without a leader, `leader` is -1 and the offsets are None.

    `replicas` are in the order of the assignment: the first is the preferred leader.
    """

    topic: str
    partition: int
    leader: int
    leader_epoch: int
    replicas: tuple[ReplicaRow, ...]
    isr: tuple[int, ...]
    start_offset: int | None
    end_offset: int | None
    is_under_replicated: bool
    is_under_min_isr: bool
    is_reassigning: bool


@dataclass(frozen=True, slots=True)
class BrokerLoad:
    """The load of a broker: of one topic, or of the cluster."""

    broker: int
    leaders: int
    replicas: int
    size_bytes: int


@dataclass(frozen=True, slots=True)
class PartitionMap:
    """The partitions of a topic and their distribution.

    `leader_skew` and `replica_skew` are the largest deviation from the mean in percent;
    `size_skew` compares the largest partition with the mean.
    """

    topic: str
    partitions: tuple[PartitionRow, ...]
    loads: tuple[BrokerLoad, ...]
    leader_skew: float
    replica_skew: float
    size_skew: float


def read_map(connection: ClusterConnection, topic: str) -> PartitionMap:
    """Return a topic's partitions; ApiError UNKNOWN_TOPIC_OR_PARTITION if it does not exist."""
    described = read_topic(connection, topic)
    bounds = bounds_of(connection, leaders_of(described))
    directories = read_topic_directories(connection, described)
    context = _Context(
        bounds=bounds,
        replicas=_replicas(directories, topic),
        min_isr=_min_isr(connection, [topic]),
        moving=moving_partitions(connection) or frozenset(),
    )
    rows = tuple(_partition(topic, row, context) for row in described.partitions)
    brokers = sorted({*read_metadata(connection).nodes, *_assigned(described)})
    loads = _loads(rows, brokers)
    return PartitionMap(
        topic=topic,
        partitions=rows,
        loads=loads,
        leader_skew=skew([load.leaders for load in loads]),
        replica_skew=skew([load.replicas for load in loads]),
        size_skew=skew([_size(row) for row in rows]),
    )


def list_troubled(connection: ClusterConnection) -> list[PartitionRow]:
    """Return the partitions of all topics that are offline, under-replicated or under min ISR."""
    metadata = read_metadata(connection)
    suspects = [
        (topic, row)
        for topic in metadata.topics.values()
        for row in topic.partitions
        if len(row.isr) < len(row.replicas) or row.leader not in metadata.nodes
    ]
    # A partition whose ISR is complete can be under min ISR, too, if the option is too high.
    min_isr = known_min_isr(connection) or {}
    suspects += [
        (topic, row)
        for topic in metadata.topics.values()
        if min_isr.get(topic.name, 1) > topic.replication_factor
        for row in topic.partitions
        if len(row.isr) == len(row.replicas) and row.leader in metadata.nodes
    ]
    leaders = {
        (topic.name, row.partition): row.leader
        for topic, row in suspects
        if row.leader in metadata.nodes
    }
    bounds = bounds_of(connection, leaders)
    context = _Context(bounds, {}, min_isr, moving_partitions(connection) or frozenset())
    rows = [_partition(topic.name, row, context) for topic, row in suspects]
    return sorted(rows, key=lambda row: (row.topic, row.partition))


def elect_leaders(
    connection: ClusterConnection,
    partitions: Sequence[tuple[str, int]] | None = None,
    *,
    unclean: bool = False,
) -> Change:
    """Elect preferred leaders of these partitions (None: all), or any live replica if `unclean`,
    which can lose records.
    """
    with connection.brokers() as brokers:
        change = elections.elect(brokers, partitions, unclean=unclean, cluster=connection.name)
    connection.forget()
    return change


def skew(amounts: Sequence[int]) -> float:
    """Return the largest deviation from the mean in percent; 0 if the mean is 0. Pure."""
    mean = sum(amounts) / len(amounts) if amounts else 0.0
    return max(abs(amount - mean) for amount in amounts) / mean * 100 if mean else 0.0


@dataclass(frozen=True, slots=True)
class _Context:
    """Facts about replicas that metadata does not contain, by (topic, partition)."""

    bounds: Bounds
    replicas: Mapping[tuple[int, int], tuple[str, ReplicaSize]]
    min_isr: Mapping[str, int]
    moving: frozenset[Key]


def _partition(topic: str, row: Partition, context: _Context) -> PartitionRow:
    key = topic, row.partition
    return PartitionRow(
        topic=topic,
        partition=row.partition,
        leader=row.leader,
        leader_epoch=row.leader_epoch,
        replicas=tuple(_replica(broker, row, context) for broker in row.replicas),
        isr=row.isr,
        start_offset=context.bounds.starts.get(key),
        end_offset=context.bounds.ends.get(key),
        is_under_replicated=len(row.isr) < len(row.replicas),
        is_under_min_isr=len(row.isr) < context.min_isr.get(topic, 1),
        is_reassigning=key in context.moving,
    )


def _replica(broker: int, row: Partition, context: _Context) -> ReplicaRow:
    directory, size = context.replicas.get((broker, row.partition), (None, None))
    return ReplicaRow(
        broker=broker,
        is_leader=broker == row.leader,
        is_preferred=broker == row.replicas[0],
        is_in_sync=broker in row.isr,
        is_offline=broker in row.offline,
        size_bytes=None if size is None else size.size,
        offset_lag=None if size is None else size.offset_lag,
        log_directory=directory,
    )


def _replicas(
    directories: Mapping[int, list[LogDirectory]], topic: str
) -> dict[tuple[int, int], tuple[str, ReplicaSize]]:
    return {
        (broker, number): (directory.path, size)
        for broker, rows in directories.items()
        for directory in rows
        for (name, number), size in directory.replicas.items()
        if name == topic and not size.is_future
    }


def _min_isr(connection: ClusterConnection, topics: list[str]) -> dict[str, int]:
    options = read_topic_options(connection, topics, [_MIN_ISR])
    return {name: int(values.get(_MIN_ISR) or 1) for name, values in options.items()}


def min_isr_of_all(connection: ClusterConnection) -> Mapping[str, int]:
    """Return min.insync.replicas by topic, some minutes old at most; new topics may be absent."""
    return connection.cached(
        *_MIN_ISR_CACHE, lambda: _load_min_isr(connection), stale_s=_MIN_ISR_STALE_S
    )


def _load_min_isr(connection: ClusterConnection) -> dict[str, int]:
    return _min_isr(connection, list(read_metadata(connection).topics))


def known_min_isr(connection: ClusterConnection) -> Mapping[str, int] | None:
    """Return min.insync.replicas by topic; None if the cluster is large and they are not known.

    Another thread reads them for the next call.
    """
    if not read_metadata(connection).is_large:
        return min_isr_of_all(connection)
    return connection.peek(
        *_MIN_ISR_CACHE, lambda: _load_min_isr(connection), stale_s=_MIN_ISR_STALE_S
    )


def moving_partitions(connection: ClusterConnection) -> frozenset[Key] | None:
    """Return the partitions that are being reassigned, some seconds old at most; None if the
    cluster does not allow the console's user to list them.
    """

    def load() -> frozenset[Key] | None:
        try:
            with connection.brokers() as brokers:
                return frozenset(replicas.list_partition_reassignments(brokers))
        except ApiError as error:
            if error.code is not ErrorCode.CLUSTER_AUTHORIZATION_FAILED:
                raise
            return None

    return connection.cached("moving", 1.0, load, stale_s=9.0)


def _assigned(topic: Topic) -> set[int]:
    return {broker for row in topic.partitions for broker in row.replicas}


def _loads(rows: Sequence[PartitionRow], brokers: Sequence[int]) -> tuple[BrokerLoad, ...]:
    return tuple(
        BrokerLoad(
            broker=broker,
            leaders=sum(row.leader == broker for row in rows),
            replicas=sum(replica.broker == broker for row in rows for replica in row.replicas),
            size_bytes=sum(
                replica.size_bytes or 0
                for row in rows
                for replica in row.replicas
                if replica.broker == broker
            ),
        )
        for broker in brokers
    )


def _size(row: PartitionRow) -> int:
    return max((replica.size_bytes or 0 for replica in row.replicas), default=0)
