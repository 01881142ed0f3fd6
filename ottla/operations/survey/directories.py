"""Log directories and replica sizes of all brokers, cached for some seconds."""

from collections.abc import Mapping
from functools import partial

from ottla.client.admin.replicas import LogDirectory, directories_of
from ottla.client.admin.topics import Topic
from ottla.client.brokers import Brokers
from ottla.operations.survey.connections import ClusterConnection
from ottla.operations.survey.metadata import Key, read_metadata
from ottla.operations.survey.nodes import ask_nodes
from ottla.wire.messages.describe_log_dirs import (
    DescribableLogDirTopic,
    DescribeLogDirsRequest,
    DescribeLogDirsResponse,
)

_TTL_S = 3.0
_STALE_S = 30.0


def read_directories(
    connection: ClusterConnection, *, is_fresh: bool = False
) -> dict[int, list[LogDirectory]]:
    """Return the log directories by broker; brokers that do not respond or refuse are absent."""

    def load() -> dict[int, list[LogDirectory]]:
        return _answers(ask_nodes(connection, read_metadata(connection).nodes, _ask))

    if is_fresh:
        return load()
    return connection.cached("directories", _TTL_S, load, stale_s=_STALE_S)


def read_topic_directories(
    connection: ClusterConnection, topic: Topic
) -> dict[int, list[LogDirectory]]:
    """Return the log directories by broker, now, with the replicas of one topic only; as above."""
    numbers = [row.partition for row in topic.partitions]
    named = [DescribableLogDirTopic(topic=topic.name, partitions=numbers)]
    assigned = {node for row in topic.partitions for node in row.replicas}
    nodes = assigned & read_metadata(connection).nodes.keys()
    return _answers(ask_nodes(connection, nodes, partial(_ask, topics=named)))


def replica_sizes(directories: Mapping[int, list[LogDirectory]]) -> dict[tuple[int, str, int], int]:
    """Return the size of each replica by (broker, topic, partition), without copies in progress."""
    return {
        (node, *key): replica.size
        for node, rows in directories.items()
        for directory in rows
        for key, replica in directory.replicas.items()
        if not replica.is_future
    }


def leader_sizes(
    directories: Mapping[int, list[LogDirectory]], leaders: Mapping[Key, int]
) -> dict[Key, int]:
    """Return the size of each partition at its leader, without copies in progress."""
    return {
        key: replica.size
        for node, rows in directories.items()
        for directory in rows
        for key, replica in directory.replicas.items()
        if leaders.get(key) == node and not replica.is_future
    }


def _answers(results: Mapping[int, list[LogDirectory]]) -> dict[int, list[LogDirectory]]:
    """Return the results without those of brokers that refuse: each broker has a directory."""
    return {node: rows for node, rows in results.items() if rows}


def _ask(
    brokers: Brokers, node: int, topics: list[DescribableLogDirTopic] | None = None
) -> list[LogDirectory]:
    request = DescribeLogDirsRequest(topics=topics)
    return directories_of(brokers.ask_node(node, request, DescribeLogDirsResponse))
