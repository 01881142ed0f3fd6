"""Topics: list, describe, create, copy, empty, delete, and statistics of their records."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from ottla.console.model.changes import Change
from ottla.console.model.connections import ClusterConnection, planned


@dataclass(frozen=True, slots=True)
class TopicRow:
    """A topic in the list.

    `records` is end minus start of all partitions: an upper bound if the topic is compacted or
    transactional. `size_bytes` counts every replica; both are None if unknown.
    """

    name: str
    topic_id: str
    is_internal: bool
    partitions: int
    replication_factor: int
    under_replicated: int
    offline: int
    records: int | None
    size_bytes: int | None


@dataclass(frozen=True, slots=True)
class TopicDetail:
    """A topic with the options that its page shows."""

    row: TopicRow
    cleanup_policy: str
    retention_ms: int
    retention_bytes: int
    min_insync_replicas: int
    overrides: Mapping[str, str]
    start_offsets: tuple[int, ...]
    end_offsets: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class NewTopic:
    """A topic to create; -1 is the broker's default."""

    name: str
    partitions: int = -1
    replication_factor: int = -1
    config: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class TopicStatistics:
    """Statistics of the newest `scanned` records; rates are per second over their time span.

    `distinct_keys` is exact up to `keys_limit` and None above. `size_percentiles_bytes` maps 50, 90,
    99 and 100 to the serialized size of key and value.
    """

    topic: str
    scanned: int
    total: int
    first_timestamp_ms: int | None
    last_timestamp_ms: int | None
    records_per_s: float | None
    bytes_per_s: float | None
    null_keys: int
    tombstones: int
    distinct_keys: int | None
    keys_limit: int
    superseded: int
    size_percentiles_bytes: Mapping[int, int]
    codecs: Mapping[str, int]
    records_by_partition: tuple[int, ...]


def list_topics(connection: ClusterConnection, *, include_internal: bool = False) -> list[TopicRow]:
    """Return the topics by name, at most a second old: one metadata request and one request to each
    broker for offsets, however many topics there are.
    """
    raise planned()


def describe_topic(connection: ClusterConnection, name: str) -> TopicDetail:
    """Return a topic; ApiError UNKNOWN_TOPIC_OR_PARTITION if there is none."""
    raise planned()


def create_topic(
    connection: ClusterConnection, topic: NewTopic, *, validate_only: bool = False
) -> Change:
    """Create a topic; ApiError TOPIC_ALREADY_EXISTS, INVALID_CONFIG and others."""
    raise planned()


def add_partitions(connection: ClusterConnection, name: str, total: int) -> Change:
    """Increase a topic to `total` partitions; keys move to other partitions."""
    raise planned()


def delete_topic(connection: ClusterConnection, name: str, *, confirmation: str) -> Change:
    """Delete a topic; ConfigError unless `confirmation` is its name."""
    raise planned()


def empty_topic(connection: ClusterConnection, name: str, *, confirmation: str) -> Change:
    """Delete all records of a topic; ConfigError unless `confirmation` is its name."""
    raise planned()


def delete_records(connection: ClusterConnection, name: str, before: Mapping[int, int]) -> Change:
    """Delete the records before an offset in each partition (-1: all)."""
    raise planned()


def copy_topic(
    connection: ClusterConnection,
    source: str,
    target: str,
    *,
    with_records: bool = False,
    cancelled: Callable[[], bool] = lambda: False,
    on_progress: Callable[[int, int], None] = lambda copied, total: None,
) -> Change:
    """Create `target` with the partitions and overrides of `source`, optionally with its records.

    Records keep partition, key, headers and timestamp, not their offsets. `cancelled` is polled
    between batches; `on_progress` receives copied and total records.
    """
    raise planned()


def read_statistics(
    connection: ClusterConnection,
    name: str,
    *,
    scan_limit: int = 100_000,
    cancelled: Callable[[], bool] = lambda: False,
) -> TopicStatistics:
    """Scan the newest records of a topic; memory is bounded by the number of distinct keys."""
    raise planned()
