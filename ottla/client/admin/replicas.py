"""Replicas: leader elections, reassignments and log directories (KIP-460, KIP-455, KIP-113)."""

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import IntEnum

from ottla.base.errors import ApiError, ErrorCode
from ottla.client.admin.answers import check, error_of
from ottla.client.brokers import Brokers
from ottla.wire.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
    ReassignablePartition,
    ReassignableTopic,
)
from ottla.wire.messages.alter_replica_log_dirs import (
    AlterReplicaLogDir,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirsResponse,
    AlterReplicaLogDirTopic,
)
from ottla.wire.messages.describe_log_dirs import DescribeLogDirsRequest, DescribeLogDirsResponse
from ottla.wire.messages.elect_leaders import (
    ElectLeadersRequest,
    ElectLeadersResponse,
    TopicPartitions,
)
from ottla.wire.messages.list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
    ListPartitionReassignmentsTopics,
)

Key = tuple[str, int]

# The folder of a log without a partition, which a broker of Ottla lists like a topic.
_STRAY = re.compile(r".+-[0-9]+\.[^.]+-stray")


class ElectionType(IntEnum):
    """The replica that becomes leader: the preferred one, or any if none is in sync."""

    PREFERRED = 0
    UNCLEAN = 1


@dataclass(frozen=True, slots=True)
class Reassignment:
    """A partition whose replicas are being moved."""

    replicas: tuple[int, ...]
    adding: tuple[int, ...]
    removing: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class ReplicaSize:
    """A replica in a log directory: its bytes, and how far a copy in progress is behind."""

    size: int
    offset_lag: int
    is_future: bool


@dataclass(frozen=True, slots=True)
class LogDirectory:
    """A log directory of a broker; sizes are -1 if the broker does not report them.

    `error_code` is not 0 if the directory is offline: then the broker does not know its replicas.
    `strays` are the bytes of logs that are not served, by the names of their folders.
    """

    path: str
    total_bytes: int
    usable_bytes: int
    replicas: Mapping[Key, ReplicaSize]
    error_code: int = 0
    strays: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ReplicaLogDirs:
    """The log directory of a replica, and the one to which it is being moved; None if absent."""

    current: str | None
    current_offset_lag: int
    future: str | None
    future_offset_lag: int


def elect_leaders(
    brokers: Brokers,
    partitions: Iterable[Key] | None = None,
    *,
    election_type: ElectionType = ElectionType.PREFERRED,
) -> list[Key]:
    """Elect leaders for these partitions, or all; return those whose leader changed.

    A partition whose leader is already the wanted one is no error.
    """
    request = _election(brokers, partitions, election_type)
    # A repeated request finds the leaders of the first one elected already.
    elected: dict[Key, None] = {}

    def attempt() -> list[Key]:
        results = _elect(brokers, request)
        elected.update(dict.fromkeys(key for key, error in results.items() if error is None))
        _raise_first(
            {
                key: error
                for key, error in results.items()
                if error is not None and error.code is not ErrorCode.ELECTION_NOT_NEEDED
            }
        )
        return list(elected)

    return brokers.retry(attempt)


def try_elections(
    brokers: Brokers,
    partitions: Iterable[Key] | None = None,
    *,
    election_type: ElectionType = ElectionType.PREFERRED,
) -> dict[Key, ApiError | None]:
    """Elect leaders for these partitions, or all; return None or the error of each partition.

    ELECTION_NOT_NEEDED is the error of a partition whose leader is already the wanted one. If all
    partitions are elected, the broker returns no such errors.
    """
    request = _election(brokers, partitions, election_type)
    return brokers.retry(lambda: _elect(brokers, request))


def _election(
    brokers: Brokers, partitions: Iterable[Key] | None, election_type: ElectionType
) -> ElectLeadersRequest:
    grouped: dict[str, list[int]] = defaultdict(list)
    for topic, partition in partitions or ():
        grouped[topic].append(partition)
    return ElectLeadersRequest(
        election_type=election_type,
        topic_partitions=None
        if partitions is None
        else [TopicPartitions(topic=name, partitions=rows) for name, rows in grouped.items()],
        timeout_ms=int(brokers.timeout_s * 1000),
    )


def _elect(brokers: Brokers, request: ElectLeadersRequest) -> dict[Key, ApiError | None]:
    response = brokers.ask_controller(request, ElectLeadersResponse)
    check(response.error_code)
    return {
        (topic.topic, row.partition_id): error_of(row.error_code, row.error_message)
        for topic in response.replica_election_results
        for row in topic.partition_result
    }


def alter_partition_reassignments(
    brokers: Brokers,
    targets: Mapping[Key, Sequence[int] | None],
    *,
    allow_replication_factor_change: bool = True,
) -> None:
    """Move partitions to these replicas, the preferred leader first; None cancels a move.

    Without `allow_replication_factor_change` another number of replicas is an error (KIP-860).
    """
    request = _reassignment(brokers, targets)
    request.allow_replication_factor_change = allow_replication_factor_change
    brokers.retry(lambda: _raise_first(_reassign(brokers, request)))


def try_reassignments(
    brokers: Brokers,
    targets: Mapping[Key, Sequence[int] | None],
    *,
    keeps_factor: bool = False,
) -> dict[Key, ApiError]:
    """Start moves as `alter_partition_reassignments` does; return the errors by partition.

    With `keeps_factor` a partition must not get another number of replicas (KIP-860).
    """
    request = _reassignment(brokers, targets)
    request.allow_replication_factor_change = not keeps_factor
    return brokers.retry(lambda: _reassign(brokers, request))


def _reassignment(
    brokers: Brokers, targets: Mapping[Key, Sequence[int] | None]
) -> AlterPartitionReassignmentsRequest:
    grouped: dict[str, list[ReassignablePartition]] = defaultdict(list)
    for (topic, partition), replicas in targets.items():
        chosen = None if replicas is None else list(replicas)
        grouped[topic].append(ReassignablePartition(partition_index=partition, replicas=chosen))
    return AlterPartitionReassignmentsRequest(
        timeout_ms=int(brokers.timeout_s * 1000),
        topics=[ReassignableTopic(name=name, partitions=rows) for name, rows in grouped.items()],
    )


def _reassign(brokers: Brokers, request: AlterPartitionReassignmentsRequest) -> dict[Key, ApiError]:
    response = brokers.ask_controller(request, AlterPartitionReassignmentsResponse)
    check(response.error_code, response.error_message)
    errors = {
        (topic.name, row.partition_index): error_of(row.error_code, row.error_message)
        for topic in response.responses
        for row in topic.partitions
    }
    return {key: error for key, error in errors.items() if error is not None}


def _raise_first(errors: Mapping[Key, ApiError]) -> None:
    for (topic, partition), error in errors.items():
        raise ApiError(error.code, f"{topic}-{partition}: {error}")


def list_partition_reassignments(
    brokers: Brokers, partitions: Iterable[Key] | None = None
) -> dict[Key, Reassignment]:
    """Return the partitions, among these or all, whose replicas are being moved."""
    topics = None
    if partitions is not None:
        grouped: dict[str, list[int]] = defaultdict(list)
        for name, partition in partitions:
            grouped[name].append(partition)
        topics = [
            ListPartitionReassignmentsTopics(name=name, partition_indexes=rows)
            for name, rows in grouped.items()
        ]
    request = ListPartitionReassignmentsRequest(
        timeout_ms=int(brokers.timeout_s * 1000), topics=topics
    )

    def attempt() -> dict[Key, Reassignment]:
        response = brokers.ask_controller(request, ListPartitionReassignmentsResponse)
        check(response.error_code, response.error_message)
        return {
            (topic.name, row.partition_index): Reassignment(
                tuple(row.replicas), tuple(row.adding_replicas), tuple(row.removing_replicas)
            )
            for topic in response.topics
            for row in topic.partitions
        }

    return brokers.retry(attempt)


def describe_log_dirs(brokers: Brokers, node_id: int) -> list[LogDirectory]:
    """Return the log directories of a broker, with the replicas in each.

    Raises ApiError KAFKA_STORAGE_ERROR if one of them is offline.
    """

    def attempt() -> list[LogDirectory]:
        directories = _log_dirs(brokers, [node_id])[node_id]
        for directory in directories:
            check(directory.error_code, subject=directory.path)
        return directories

    return brokers.retry(attempt)


def list_log_dirs(brokers: Brokers, node_id: int) -> list[LogDirectory]:
    """Return the log directories of a broker; those that are offline have an error code."""
    return list_all_log_dirs(brokers, [node_id])[node_id]


def list_all_log_dirs(brokers: Brokers, node_ids: Iterable[int]) -> dict[int, list[LogDirectory]]:
    """Return the log directories of several brokers, as `list_log_dirs` does."""
    chosen = list(node_ids)
    return brokers.retry(lambda: _log_dirs(brokers, chosen))


def _log_dirs(brokers: Brokers, node_ids: Iterable[int]) -> dict[int, list[LogDirectory]]:
    requests = dict.fromkeys(node_ids, DescribeLogDirsRequest(topics=None))
    responses = brokers.ask_nodes(requests, DescribeLogDirsResponse)
    for response in responses.values():
        check(response.error_code)
    return {node_id: directories_of(response) for node_id, response in responses.items()}


def directories_of(response: DescribeLogDirsResponse) -> list[LogDirectory]:
    """Return the log directories of a response."""
    return [
        LogDirectory(
            result.log_dir,
            result.total_bytes,
            result.usable_bytes,
            {
                (topic.name, row.partition_index): ReplicaSize(
                    row.partition_size, row.offset_lag, row.is_future_key
                )
                for topic in result.topics
                if not _STRAY.fullmatch(topic.name)
                for row in topic.partitions
            },
            result.error_code,
            {
                topic.name: sum(row.partition_size for row in topic.partitions)
                for topic in result.topics
                if _STRAY.fullmatch(topic.name)
            },
        )
        for result in response.results
    ]


def describe_replica_log_dirs(
    brokers: Brokers, targets: Iterable[tuple[str, int, int]]
) -> dict[tuple[str, int, int], ReplicaLogDirs]:
    """Return the log directories of replicas: each is a topic, a partition and a broker.

    A replica that the broker does not have is in no directory, with a lag of -1.
    """
    chosen = list(targets)
    directories = {
        node_id: describe_log_dirs(brokers, node_id) for node_id in {row[2] for row in chosen}
    }
    result = {}
    for topic, partition, node_id in chosen:
        found: dict[bool, tuple[str | None, int]] = {}
        for directory in directories[node_id]:
            size = directory.replicas.get((topic, partition))
            if size is not None:
                found[size.is_future] = directory.path, size.offset_lag
        current, future = found.get(False, (None, -1)), found.get(True, (None, -1))
        result[topic, partition, node_id] = ReplicaLogDirs(*current, *future)
    return result


def move_replicas(brokers: Brokers, node_id: int, targets: Mapping[Key, str]) -> None:
    """Move replicas of a broker to other log directories of it (KIP-113); copying takes time.

    Raises ApiError LOG_DIR_NOT_FOUND for an unknown directory, REPLICA_NOT_AVAILABLE for a replica
    that is not on this broker. `describe_log_dirs` shows the copies while they grow.
    """
    by_path: dict[str, dict[str, list[int]]] = defaultdict(lambda: defaultdict(list))
    for (topic, partition), path in targets.items():
        by_path[path][topic].append(partition)
    request = AlterReplicaLogDirsRequest(
        dirs=[
            AlterReplicaLogDir(
                path=path,
                topics=[
                    AlterReplicaLogDirTopic(name=name, partitions=rows)
                    for name, rows in topics.items()
                ],
            )
            for path, topics in by_path.items()
        ]
    )

    def attempt() -> None:
        response = brokers.ask_node(node_id, request, AlterReplicaLogDirsResponse)
        for topic in response.results:
            for row in topic.partitions:
                check(row.error_code, subject=f"{topic.topic_name}-{row.partition_index}")

    brokers.retry(attempt)
