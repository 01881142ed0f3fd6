"""Topics: list, describe, create, copy, empty, delete, and statistics of their records."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import partial

from ottla.base.errors import ApiError, ConfigError, ErrorCode
from ottla.base.uuids import uuid_text
from ottla.client.admin import topics as admin
from ottla.client.admin.configs import ConfigEntry, ConfigSource, Resource, ResourceType
from ottla.client.admin.records import TO_THE_END
from ottla.client.admin.replicas import LogDirectory
from ottla.console.model.messages.statistics import TopicStatistics as TopicStatistics
from ottla.console.model.messages.statistics import read_statistics as read_statistics
from ottla.operations import topics as changes
from ottla.operations.changes import MASKED, Change, require_confirmation
from ottla.operations.numbers import INT_MAX
from ottla.operations.survey.connections import ClusterConnection
from ottla.operations.survey.directories import read_directories, read_topic_directories
from ottla.operations.survey.metadata import leaders_of, read_metadata, read_topic
from ottla.operations.survey.offsets import (
    Bounds,
    bounds_of,
    bounds_of_all,
    read_topic_bounds,
)
from ottla.operations.survey.options import read_options

# The time that a new topic may take to appear, and the pause between two requests.
_KNOWN_MS = 5_000
_PAUSE_S = 0.05
# The caches of numbers by topic: the key, and for how many seconds they are new.
_RECORDS = ("records", 1.0)
_SIZES = ("topic-sizes", 3.0)
# Callers that do not wait receive numbers of this age.
_OLD_S = 600.0
_REPLICAS_MAX = 2**15 - 1


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
    """A topic with the options that its page shows; the offsets of a partition without leader are
    None. So are the options if the cluster does not allow the console's user to describe them.
    """

    row: TopicRow
    cleanup_policy: str | None
    retention_ms: int | None
    retention_bytes: int | None
    min_insync_replicas: int | None
    overrides: Mapping[str, str]
    start_offsets: tuple[int | None, ...]
    end_offsets: tuple[int | None, ...]


@dataclass(frozen=True, slots=True)
class NewTopic:
    """A topic to create; -1 is the broker's default."""

    name: str
    partitions: int = -1
    replication_factor: int = -1
    config: Mapping[str, str] = field(default_factory=dict)


def list_topics(
    connection: ClusterConnection, *, include_internal: bool = False, is_patient: bool = True
) -> list[TopicRow]:
    """Return the topics by name, a few seconds old at most: one metadata request, and two for
    offsets and one for sizes to each broker, however many topics there are.

    With `is_patient` False, records and sizes may be minutes old, and are None if they are not
    known; another thread reads them for the next call.
    """
    metadata = read_metadata(connection)
    if is_patient:
        records, sizes = _topic_records(connection), _topic_sizes(connection)
    else:
        count, add = partial(_count_records, connection), partial(_add_sizes, connection)
        records = connection.peek(*_RECORDS, count, stale_s=_OLD_S) or {}
        sizes = connection.peek(*_SIZES, add, stale_s=_OLD_S) or {}
    live = frozenset(metadata.nodes)
    return [
        _row(topic, live, records.get(topic.name), sizes.get(topic.name))
        for topic in metadata.topics.values()
        if include_internal or not topic.is_internal
    ]


def describe_topic(connection: ClusterConnection, name: str) -> TopicDetail:
    """Return a topic; ApiError UNKNOWN_TOPIC_OR_PARTITION if it does not exist."""
    topic = read_topic(connection, name)
    bounds = bounds_of(connection, leaders_of(topic))
    options = _options(connection, name)
    keys = [(name, row.partition) for row in topic.partitions]
    # A leader that has responded is running.
    live = frozenset(row.leader for row in topic.partitions if (name, row.partition) in bounds.ends)
    sizes = _add(read_topic_directories(connection, topic))
    return TopicDetail(
        row=_row(topic, live, _records(bounds).get(name), sizes.get(name)),
        cleanup_policy=_option(options, "cleanup.policy", "delete"),
        retention_ms=_number(_option(options, "retention.ms", "-1")),
        retention_bytes=_number(_option(options, "retention.bytes", "-1")),
        min_insync_replicas=_number(_option(options, "min.insync.replicas", "1")),
        overrides={
            row.name: MASKED if row.is_sensitive else row.value or ""
            for row in (options or {}).values()
            if row.source == ConfigSource.DYNAMIC_TOPIC_CONFIG
        },
        start_offsets=tuple(bounds.starts.get(key) for key in keys),
        end_offsets=tuple(bounds.ends.get(key) for key in keys),
    )


def create_topic(
    connection: ClusterConnection, topic: NewTopic, *, validate_only: bool = False
) -> Change:
    """Create a topic; ApiError TOPIC_ALREADY_EXISTS, INVALID_CONFIG and others.

    With `validate_only` the cluster checks the topic and does not create it.
    """
    _check_number("partitions", topic.partitions, INT_MAX)
    _check_number("replicas", topic.replication_factor, _REPLICAS_MAX)
    with connection.brokers() as brokers:
        change = changes.create(
            brokers,
            topic.name,
            partitions=topic.partitions,
            replication_factor=topic.replication_factor,
            config=topic.config,
            validate_only=validate_only,
            cluster=connection.name,
        )
    connection.forget()
    if not validate_only:
        _wait_for_leaders(connection, topic.name)
    return change


def _wait_for_leaders(connection: ClusterConnection, name: str) -> None:
    """Wait for a topic just created: in KRaft, brokers know it later than the controller."""
    deadline_ms = connection.now_ms() + _KNOWN_MS
    while connection.now_ms() < deadline_ms:
        try:
            topic = read_topic(connection, name)
        except ApiError as error:
            if error.code != ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
                raise
        else:
            if len(leaders_of(topic)) == len(topic.partitions):
                return
        connection.pause(_PAUSE_S)


def add_partitions(connection: ClusterConnection, name: str, total: int) -> Change:
    """Increase a topic to `total` partitions; keys move to other partitions.

    ApiError INVALID_PARTITIONS if it is not an increase.
    """
    _check_number("partitions", total, INT_MAX)
    topic = read_topic(connection, name)
    with connection.brokers() as brokers:
        change = changes.extend(brokers, topic, total, cluster=connection.name)
    connection.forget()
    return change


def delete_topic(connection: ClusterConnection, name: str, *, confirmation: str) -> Change:
    """Delete a topic; ConfigError unless `confirmation` is its name."""
    require_confirmation(name, confirmation, verb="delete the topic", kind="its name")
    topic = read_topic(connection, name)
    with connection.brokers() as brokers:
        change = changes.delete(brokers, topic, cluster=connection.name)
    connection.forget()
    return change


def empty_topic(connection: ClusterConnection, name: str, *, confirmation: str) -> Change:
    """Delete all records of a topic; ConfigError unless `confirmation` is its name.

    ApiError POLICY_VIOLATION if the topic is only compacted.
    """
    require_confirmation(name, confirmation, verb="empty the topic", kind="its name")
    topic = read_topic(connection, name)
    before = {row.partition: TO_THE_END for row in topic.partitions}
    return replace(delete_records(connection, name, before), action="topic.empty")


def delete_records(connection: ClusterConnection, name: str, before: Mapping[int, int]) -> Change:
    """Delete the records before an offset in each partition (-1: all)."""
    if not before:
        raise ConfigError("the request names no partition: name at least one")
    old = read_topic_bounds(connection, name).starts
    for partition in before:
        if (name, partition) not in old:
            raise ApiError(
                ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
                f"Topic {name!r} has no partition {partition} with a leader.",
            )
    targets = {(name, partition): offset for partition, offset in before.items()}
    with connection.brokers() as brokers:
        (change,) = changes.trim(brokers, targets, old, cluster=connection.name)
    connection.forget()
    return change


def _check_number(noun: str, number: int, most: int) -> None:
    """Refuse what the protocol cannot hold; the cluster has a lower limit of its own."""
    if number > most:
        raise ConfigError(f"{number} {noun} are not possible: use a smaller number")


def _records(bounds: Bounds) -> dict[str, int]:
    counts: dict[str, int] = {}
    starts = bounds.starts
    for key, end in bounds.ends.items():
        counts[key[0]] = counts.get(key[0], 0) + end - starts.get(key, 0)
    return counts


def _topic_records(connection: ClusterConnection) -> dict[str, int]:
    return connection.cached(*_RECORDS, partial(_count_records, connection), stale_s=9.0)


def _count_records(connection: ClusterConnection) -> dict[str, int]:
    return _records(bounds_of_all(connection))


def _topic_sizes(connection: ClusterConnection) -> dict[str, int]:
    return connection.cached(*_SIZES, partial(_add_sizes, connection), stale_s=30.0)


def _add_sizes(connection: ClusterConnection) -> dict[str, int]:
    return _add(read_directories(connection))


def _add(directories: Mapping[int, list[LogDirectory]]) -> dict[str, int]:
    sizes: dict[str, int] = {}
    for rows in directories.values():
        for directory in rows:
            for (topic, _), replica in directory.replicas.items():
                sizes[topic] = sizes.get(topic, 0) + replica.size
    return sizes


def _row(
    topic: admin.Topic, live: frozenset[int], count: int | None, size_bytes: int | None
) -> TopicRow:
    partitions = topic.partitions
    return TopicRow(
        name=topic.name,
        topic_id=uuid_text(topic.topic_id),
        is_internal=topic.is_internal,
        partitions=len(partitions),
        replication_factor=topic.replication_factor,
        under_replicated=sum(len(row.isr) < len(row.replicas) for row in partitions),
        offline=sum(row.leader not in live for row in partitions),
        records=count,
        size_bytes=size_bytes,
    )


def _options(connection: ClusterConnection, name: str) -> Mapping[str, ConfigEntry] | None:
    try:
        return {
            row.name: row for row in read_options(connection, Resource(ResourceType.TOPIC, name))
        }
    except ApiError as error:
        if error.code is not ErrorCode.TOPIC_AUTHORIZATION_FAILED:
            raise
        return None


def _option(options: Mapping[str, ConfigEntry] | None, name: str, otherwise: str) -> str | None:
    if options is None:
        return None
    return (options[name].value or otherwise) if name in options else otherwise


def _number(text: str | None) -> int | None:
    return None if text is None else int(text)
