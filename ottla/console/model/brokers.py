"""The brokers of a cluster: roles, load, log directories, supported APIs."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from ottla.base.errors import ApiError, ErrorCode
from ottla.client.admin.answers import error_of
from ottla.client.admin.cluster import Broker, describe_apis
from ottla.client.admin.replicas import LogDirectory
from ottla.console.model.controllers import read_controller_id
from ottla.operations.survey.connections import ClusterConnection
from ottla.operations.survey.directories import read_directories
from ottla.operations.survey.metadata import Metadata, read_metadata
from ottla.wire.api_keys import ApiKey


@dataclass(frozen=True, slots=True)
class BrokerRow:
    """A running broker.

    `leader_skew` and `replica_skew` are the deviation from the mean in percent (0 is balanced).
    Sizes are None if the broker does not report them.
    """

    node_id: int
    host: str
    port: int
    rack: str | None
    is_controller: bool
    leaders: int
    replicas: int
    out_of_sync: int
    leader_skew: float
    replica_skew: float
    size_bytes: int | None
    disk_total_bytes: int | None
    disk_usable_bytes: int | None


@dataclass(frozen=True, slots=True)
class AbsentBroker:
    """A broker that is not running: its replicas, and the last time at which it was registered.

    `seen_ms` is None if it has not run since the console keeps its history.
    """

    node_id: int
    replicas: int
    seen_ms: int | None


@dataclass(frozen=True, slots=True)
class ReplicaInDirectory:
    """A replica in a log directory; `is_future` while it is copied there from another one."""

    topic: str
    partition: int
    size_bytes: int
    offset_lag: int
    is_future: bool


@dataclass(frozen=True, slots=True)
class LogDirectoryRow:
    """A log directory; totals are None if unknown, `error` is empty unless it is offline."""

    path: str
    total_bytes: int | None
    usable_bytes: int | None
    replicas: tuple[ReplicaInDirectory, ...]
    error: str = ""
    # The folders and bytes of logs that belong to no replica of the broker.
    strays: tuple[tuple[str, int], ...] = ()


@dataclass(frozen=True, slots=True)
class BrokerDetail:
    """A broker with its log directories."""

    row: BrokerRow
    log_directories: tuple[LogDirectoryRow, ...]


@dataclass(frozen=True, slots=True)
class ApiVersionRow:
    """The versions of a Kafka API that a broker serves; `name` is empty for an unknown key."""

    api_key: int
    name: str
    min_version: int
    max_version: int


def list_brokers(connection: ClusterConnection) -> list[BrokerRow]:
    """Return the running brokers by id; brokers that replicas name but that are down are absent."""
    metadata = read_metadata(connection)
    directories = read_directories(connection)
    controller_id = read_controller_id(connection, metadata)
    leaders: Counter[int] = Counter()
    replicas: Counter[int] = Counter()
    out_of_sync: Counter[int] = Counter()
    for (leader, assigned, isr), count in metadata.states().items():
        leaders[leader] += count
        for node in assigned:
            replicas[node] += count
        for node in {*assigned} - {*isr}:
            out_of_sync[node] += count
    return [
        BrokerRow(
            node_id=node.node_id,
            host=node.host,
            port=node.port,
            rack=node.rack,
            is_controller=node.node_id == controller_id,
            leaders=leaders[node.node_id],
            replicas=replicas[node.node_id],
            out_of_sync=out_of_sync[node.node_id],
            leader_skew=_deviation(leaders, node.node_id, metadata.nodes),
            replica_skew=_deviation(replicas, node.node_id, metadata.nodes),
            size_bytes=_replica_bytes(directories.get(node.node_id)),
            disk_total_bytes=_sum(directories.get(node.node_id), lambda row: row.total_bytes),
            disk_usable_bytes=_sum(directories.get(node.node_id), lambda row: row.usable_bytes),
        )
        for node in metadata.nodes.values()
    ]


def list_absent(metadata: Metadata, seen: Mapping[int, int]) -> list[AbsentBroker]:
    """Return the brokers by id that have replicas or were seen, but are not registered. Pure.

    `seen` has the last times (ms) at which brokers were registered.
    """
    replicas: Counter[int] = Counter()
    for (_, assigned, _), count in metadata.states().items():
        for node in assigned:
            replicas[node] += count
    absent = sorted({*replicas, *seen} - {*metadata.nodes})
    return [AbsentBroker(node, replicas[node], seen.get(node)) for node in absent]


def describe_broker(connection: ClusterConnection, node_id: int) -> BrokerDetail:
    """Return a broker; ApiError BROKER_NOT_AVAILABLE if it is not running."""
    broker = next((row for row in list_brokers(connection) if row.node_id == node_id), None)
    if broker is None:
        raise ApiError(
            ErrorCode.BROKER_NOT_AVAILABLE,
            f"Broker {node_id} is not running. Start it, or choose another one from the list.",
        )
    directories = read_directories(connection, is_fresh=True).get(node_id, [])
    return BrokerDetail(broker, tuple(_directory_row(row) for row in directories))


def list_api_versions(connection: ClusterConnection, node_id: int) -> list[ApiVersionRow]:
    """Return the APIs of a broker by key; ApiError BROKER_NOT_AVAILABLE if it is not running."""
    with connection.brokers() as brokers:
        ranges = describe_apis(brokers, node_id)
    return [ApiVersionRow(key, _api_name(key), *ranges[key]) for key in sorted(ranges)]


def _api_name(key: int) -> str:
    """Return "ListOffsets" for 2; empty for a key that this version does not know."""
    try:
        return ApiKey(key).name.title().replace("_", "")
    except ValueError:
        return ""


def _deviation(counts: Mapping[int, int], node_id: int, nodes: Mapping[int, Broker]) -> float:
    mean = sum(counts[node] for node in nodes) / len(nodes)
    return round((counts[node_id] - mean) / mean * 100, 1) if mean else 0.0


def _replica_bytes(directories: Sequence[LogDirectory] | None) -> int | None:
    if directories is None:
        return None
    return sum(size.size for row in directories for size in row.replicas.values())


def _sum(
    directories: Sequence[LogDirectory] | None, amount: Callable[[LogDirectory], int]
) -> int | None:
    amounts = [amount(row) for row in directories or () if not row.error_code]
    return sum(amounts) if amounts and min(amounts) >= 0 else None


def _directory_row(row: LogDirectory) -> LogDirectoryRow:
    replicas = [
        ReplicaInDirectory(topic, number, size.size, size.offset_lag, size.is_future)
        for (topic, number), size in sorted(row.replicas.items())
    ]
    total, usable = (None if size < 0 else size for size in (row.total_bytes, row.usable_bytes))
    error = error_of(row.error_code)
    strays = tuple(sorted(row.strays.items()))
    return LogDirectoryRow(row.path, total, usable, tuple(replicas), str(error or ""), strays)
