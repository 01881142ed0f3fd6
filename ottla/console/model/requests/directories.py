"""Log directories and replica sizes of all brokers, cached for some seconds."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial

from ottla.base.errors import ERRORS, ErrorCode
from ottla.client.admin.topics import Topic
from ottla.client.brokers import Brokers
from ottla.console.model.connections import ClusterConnection
from ottla.console.model.requests.metadata import Key, read_metadata
from ottla.console.model.requests.nodes import ask_nodes
from ottla.wire.messages.describe_log_dirs import (
    DescribableLogDirTopic,
    DescribeLogDirsRequest,
    DescribeLogDirsResponse,
    DescribeLogDirsResult,
)

_TTL_S = 3.0
_STALE_S = 30.0


@dataclass(frozen=True, slots=True)
class ReplicaSize:
    """A replica in a directory; `is_future` while it is copied there from another directory."""

    size_bytes: int
    offset_lag: int
    is_future: bool


@dataclass(frozen=True, slots=True)
class Directory:
    """A log directory; totals are None if the broker does not report them."""

    path: str
    total_bytes: int | None
    usable_bytes: int | None
    replicas: Mapping[Key, ReplicaSize]
    error: str


def read_directories(
    connection: ClusterConnection, *, is_fresh: bool = False
) -> dict[int, list[Directory]]:
    """Return the log directories by broker; brokers that do not respond or refuse are absent."""

    def load() -> dict[int, list[Directory]]:
        return _answers(ask_nodes(connection, read_metadata(connection).nodes, _ask))

    if is_fresh:
        return load()
    return connection.cached("directories", _TTL_S, load, stale_s=_STALE_S)


def read_topic_directories(
    connection: ClusterConnection, topic: Topic
) -> dict[int, list[Directory]]:
    """Return the log directories by broker, now, with the replicas of one topic only; as above."""
    numbers = [row.partition for row in topic.partitions]
    named = [DescribableLogDirTopic(topic=topic.name, partitions=numbers)]
    assigned = {node for row in topic.partitions for node in row.replicas}
    nodes = assigned & read_metadata(connection).nodes.keys()
    return _answers(ask_nodes(connection, nodes, partial(_ask, topics=named)))


def replica_sizes(directories: Mapping[int, list[Directory]]) -> dict[tuple[int, str, int], int]:
    """Return the size of each replica by (broker, topic, partition), without copies in progress."""
    return {
        (node, *key): replica.size_bytes
        for node, rows in directories.items()
        for directory in rows
        for key, replica in directory.replicas.items()
        if not replica.is_future
    }


def leader_sizes(
    directories: Mapping[int, list[Directory]], leaders: Mapping[Key, int]
) -> dict[Key, int]:
    """Return the size of each partition at its leader, without copies in progress."""
    return {
        key: replica.size_bytes
        for node, rows in directories.items()
        for directory in rows
        for key, replica in directory.replicas.items()
        if leaders.get(key) == node and not replica.is_future
    }


def _answers(results: Mapping[int, list[Directory]]) -> dict[int, list[Directory]]:
    """Return the results without those of brokers that refuse: each broker has a directory."""
    return {node: rows for node, rows in results.items() if rows}


def _ask(
    brokers: Brokers, node: int, topics: list[DescribableLogDirTopic] | None = None
) -> list[Directory]:
    request = DescribeLogDirsRequest(topics=topics)
    response = brokers.ask_node(node, request, DescribeLogDirsResponse)
    return [_directory(row) for row in response.results]


def _directory(row: DescribeLogDirsResult) -> Directory:
    error = ""
    if row.error_code:
        known = row.error_code in ERRORS
        error = ErrorCode(row.error_code).message if known else f"error {row.error_code}"
    return Directory(
        path=row.log_dir,
        total_bytes=None if row.total_bytes < 0 else row.total_bytes,
        usable_bytes=None if row.usable_bytes < 0 else row.usable_bytes,
        replicas={
            (topic.name, item.partition_index): ReplicaSize(
                item.partition_size, item.offset_lag, item.is_future_key
            )
            for topic in row.topics
            for item in topic.partitions
        },
        error=error,
    )
