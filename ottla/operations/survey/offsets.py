"""Offsets of many partitions: one request to each leader, whatever the number of topics."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from ottla.client.admin.offsets import (
    EARLIEST,
    LATEST,
    READ_COMMITTED,
    READ_UNCOMMITTED,
    FoundOffset,
    list_offsets_requests,
)
from ottla.client.brokers import Brokers
from ottla.operations.survey.connections import ClusterConnection
from ottla.operations.survey.metadata import Key, leaders_of, read_metadata, read_topic
from ottla.operations.survey.nodes import ask_nodes
from ottla.wire.messages.list_offsets import ListOffsetsPartitionResponse, ListOffsetsResponse


@dataclass(frozen=True, slots=True)
class Bounds:
    """Log start offsets and high watermarks; a partition without a running leader is absent."""

    starts: Mapping[Key, int]
    ends: Mapping[Key, int]


def find_offsets(
    connection: ClusterConnection,
    leaders: Mapping[Key, int],
    timestamps: Mapping[Key, int] | int,
    *,
    is_committed: bool = False,
) -> dict[Key, FoundOffset]:
    """Return the first offset at or after a timestamp (ms, or -1 latest, -2 earliest, -3 maximum).

    Partitions that fail, because their leader is down or moves, are absent.
    """
    found = _found(connection, leaders, timestamps, is_committed=is_committed)
    return {
        (topic, item.partition_index): FoundOffset(item.offset, item.timestamp, item.leader_epoch)
        for topic, item in found
    }


def bounds_of_all(connection: ClusterConnection) -> Bounds:
    """Return the current bounds of all partitions."""
    return bounds_of(connection, read_metadata(connection).leaders())


def read_topic_bounds(connection: ClusterConnection, topic: str) -> Bounds:
    """Return the current bounds of a topic; ApiError UNKNOWN_TOPIC_OR_PARTITION if it does not
    exist.
    """
    return bounds_of(connection, leaders_of(read_topic(connection, topic)))


def bounds_of(connection: ClusterConnection, leaders: Mapping[Key, int]) -> Bounds:
    """Return the current bounds of some partitions."""
    keys = {key: key for key in leaders}
    return Bounds(
        _offsets(connection, leaders, EARLIEST, keys), _offsets(connection, leaders, LATEST, keys)
    )


def starts_of(connection: ClusterConnection, leaders: Mapping[Key, int]) -> dict[Key, int]:
    """Return the log start offsets of some partitions."""
    return _offsets(connection, leaders, EARLIEST, {key: key for key in leaders}) if leaders else {}


def ends_of(connection: ClusterConnection, leaders: Mapping[Key, int]) -> dict[Key, int]:
    """Return the current high watermarks of some partitions."""
    return _offsets(connection, leaders, LATEST, {key: key for key in leaders})


def _offsets(
    connection: ClusterConnection, leaders: Mapping[Key, int], moment: int, keys: Mapping[Key, Key]
) -> dict[Key, int]:
    """Return offsets by the keys of `keys`: many results share them, which saves memory."""
    found = _found(connection, leaders, moment, is_committed=False)
    return {keys[topic, item.partition_index]: item.offset for topic, item in found}


def _found(
    connection: ClusterConnection,
    leaders: Mapping[Key, int],
    timestamps: Mapping[Key, int] | int,
    *,
    is_committed: bool,
) -> Iterator[tuple[str, ListOffsetsPartitionResponse]]:
    level = READ_COMMITTED if is_committed else READ_UNCOMMITTED
    requests = list_offsets_requests(leaders, timestamps, level)

    def ask(brokers: Brokers, node: int) -> ListOffsetsResponse:
        requests[node].timeout_ms = int(brokers.timeout_s * 1000)
        return brokers.ask_node(node, requests[node], ListOffsetsResponse)

    for response in ask_nodes(connection, requests, ask).values():
        for topic in response.topics:
            for item in topic.partitions:
                if not item.error_code:
                    yield topic.name, item
