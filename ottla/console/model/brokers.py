"""The brokers of a cluster: roles, load, log directories, supported APIs."""

from dataclasses import dataclass

from ottla.console.model.connections import ClusterConnection, planned


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
    raise planned()


def describe_broker(connection: ClusterConnection, node_id: int) -> BrokerDetail:
    """Return a broker; ApiError BROKER_NOT_AVAILABLE if it is not running."""
    raise planned()


def list_api_versions(connection: ClusterConnection, node_id: int) -> list[ApiVersionRow]:
    """Return the APIs of a broker by key."""
    raise planned()
