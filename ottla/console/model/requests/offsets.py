"""Offsets of many partitions: one request to each leader, whatever the number of topics."""

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial

from ottla.client.admin.offsets import (
    EARLIEST,
    LATEST,
    READ_COMMITTED,
    READ_UNCOMMITTED,
    FoundOffset,
)
from ottla.client.brokers import Brokers
from ottla.console.model.connections import ClusterConnection
from ottla.console.model.requests.metadata import Key, leaders_of, read_metadata, read_topic
from ottla.console.model.requests.nodes import ask_nodes
from ottla.wire.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
)

_TTL_S = 1.0
_STALE_S = 10.0
_FROM_A_CLIENT = -1


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
    by_leader: dict[int, dict[str, list[ListOffsetsPartition]]] = defaultdict(
        lambda: defaultdict(list)
    )
    for (topic, number), leader in leaders.items():
        moment = timestamps if isinstance(timestamps, int) else timestamps[topic, number]
        row = ListOffsetsPartition(partition_index=number, timestamp=moment)
        by_leader[leader][topic].append(row)
    isolation = READ_COMMITTED if is_committed else READ_UNCOMMITTED
    ask = partial(_ask, by_leader, isolation)
    offsets: dict[Key, FoundOffset] = {}
    for response in ask_nodes(connection, by_leader, ask).values():
        for topic_row in response.topics:
            for item in topic_row.partitions:
                if not item.error_code:
                    offsets[topic_row.name, item.partition_index] = FoundOffset(
                        item.offset, item.timestamp, item.leader_epoch
                    )
    return offsets


def read_bounds(connection: ClusterConnection) -> Bounds:
    """Return the bounds of all partitions, at most a second old, or some seconds under load."""

    def load() -> Bounds:
        leaders = read_metadata(connection).leaders()
        return bounds_of(connection, leaders)

    return connection.cached("bounds", _TTL_S, load, stale_s=_STALE_S)


def read_topic_bounds(connection: ClusterConnection, topic: str) -> Bounds:
    """Return the current bounds of a topic; ApiError UNKNOWN_TOPIC_OR_PARTITION if there is none."""
    return bounds_of(connection, leaders_of(read_topic(connection, topic)))


def bounds_of(connection: ClusterConnection, leaders: Mapping[Key, int]) -> Bounds:
    """Return the current bounds of some partitions."""
    starts = find_offsets(connection, leaders, EARLIEST)
    ends = find_offsets(connection, leaders, LATEST)
    return Bounds(
        {key: row.offset for key, row in starts.items()},
        {key: row.offset for key, row in ends.items()},
    )


def _ask(
    by_leader: Mapping[int, Mapping[str, list[ListOffsetsPartition]]],
    isolation: int,
    brokers: Brokers,
    node: int,
) -> ListOffsetsResponse:
    request = ListOffsetsRequest(
        replica_id=_FROM_A_CLIENT,
        isolation_level=isolation,
        topics=[
            ListOffsetsTopic(name=name, partitions=rows) for name, rows in by_leader[node].items()
        ],
        timeout_ms=int(brokers.timeout_s * 1000),
    )
    return brokers.ask_node(node, request, ListOffsetsResponse)
