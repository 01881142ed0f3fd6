"""The internal topics of an application, with the names, settings and partition counts of Kafka
Streams.

Repartition topics are shuffles in Spark and need no topic, unless they form a cycle. Changelogs are
topics only if an application enables them: one partition for each task, and for each key only its
last value of a micro-batch (of a versioned store, the last value of each timestamp).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ottla.base.errors import ApiError, ErrorCode
from ottla.client.admin.topics import create_topic
from ottla.client.brokers import Brokers
from ottla.streams.layout.layout import Application, Layout
from ottla.streams.model.durations import DAY_MS
from ottla.streams.model.errors import TopologyError
from ottla.streams.model.names import changelog_name
from ottla.streams.stores.builders import StoreBuilder
from ottla.streams.task.task import ProducedRecord

REPARTITION_CONFIG = {
    "cleanup.policy": "delete",
    "segment.bytes": str(50 * 1024 * 1024),
    "retention.ms": "-1",
    "retention.bytes": "-1",
}
# The largest value of retention.ms.
_FOREVER_MS = (1 << 63) - 1
_BY_TIME = ("window", "timestamped_window", "session")


@dataclass(frozen=True)
class InternalTopic:
    """A topic that must exist before a query starts."""

    name: str
    partitions: int
    config: Mapping[str, str]


def changelog_config(store: StoreBuilder, additional_ms: int) -> dict[str, str]:
    """Return the configuration of a store's changelog.

    Changelogs are compacted; changelogs of windows also delete by retention time, which is
    `additional_ms` longer than the store's. The store's own settings override both.
    """
    return _kept(store, additional_ms) | dict(store.log_config)


def _kept(store: StoreBuilder, additional_ms: int) -> dict[str, str]:
    if store.kind in _BY_TIME:
        retention_ms = min(store.retention_ms + additional_ms, _FOREVER_MS)
        return {"cleanup.policy": "compact,delete", "retention.ms": str(retention_ms)}
    if store.kind == "versioned":
        # Kafka has no option for this additional day.
        lag_ms = store.retention_ms + DAY_MS
        return {"cleanup.policy": "compact", "min.compaction.lag.ms": str(lag_ms)}
    return {"cleanup.policy": "compact"}


def changelogs_of(
    application: Application, stores: Mapping[str, StoreBuilder]
) -> dict[str, StoreBuilder]:
    """Return the stores with a changelog, by the name of the changelog."""
    if not application.settings.writes_changelogs:
        return {}
    owner = application.settings.application_id
    return {
        changelog_name(owner, name): store
        for name, store in stores.items()
        if store.logging_enabled
    }


def internal_topics(layout: Layout) -> list[InternalTopic]:
    """Return all topics that a layout needs on the broker."""
    results = [
        InternalTopic(topic, partitions, REPARTITION_CONFIG)
        for topic, partitions in layout.created.items()
    ]
    for sub_topology in layout.sub_topologies:
        if not sub_topology.application.keeps_changelogs:
            continue
        stores = sub_topology.topology.stores
        additional_ms = sub_topology.application.settings.additional_retention_ms
        for topic, store in changelogs_of(sub_topology.application, stores).items():
            config = changelog_config(store, additional_ms)
            results.append(InternalTopic(topic, sub_topology.partitions, config))
    return results


def check_partition_counts(topics: Sequence[InternalTopic], counts: Mapping[str, int]) -> None:
    """Raise TopologyError if a topic exists with another number of partitions."""
    for topic in topics:
        result = counts.get(topic.name, topic.partitions)
        if result != topic.partitions:
            raise TopologyError(
                f"internal topic {topic.name} has {result} partitions and needs {topic.partitions}; "
                "run `ottla streams reset`, or give the application another application_id"
            )


def create_internal_topics(
    brokers: Brokers,
    topics: Sequence[InternalTopic],
    counts: Mapping[str, int],
    replication_factor: int,
) -> None:
    """Create the topics that do not exist; raise TopologyError if one has another number of
    partitions.
    """
    check_partition_counts(topics, counts)
    for topic in topics:
        if topic.name in counts:
            continue
        try:
            create_topic(
                brokers,
                topic.name,
                partitions=topic.partitions,
                replication_factor=replication_factor,
                config=topic.config,
            )
        except ApiError as error:
            # Another instance created it first.
            if error.code is not ErrorCode.TOPIC_ALREADY_EXISTS:
                raise


def latest_changes(
    produced: list[ProducedRecord], logged: Mapping[str, StoreBuilder], partition: int
) -> list[ProducedRecord]:
    """Return a task's output with only the last change of each key of a changelog, in the task's
    partition.

    `logged` are the stores by changelog. A versioned store has a value for each timestamp of a key,
    in any order of arrival: the last change of each timestamp remains.
    """
    versioned = {topic for topic, store in logged.items() if store.kind == "versioned"}
    last: dict[tuple[str, bytes | None, int | None], int] = {}
    for number, record in enumerate(produced):
        if record.topic in logged:
            timestamp = record.timestamp if record.topic in versioned else None
            last[record.topic, record.key, timestamp] = number
    if not last:
        return produced
    latest = set(last.values())
    return [
        record if record.topic not in logged else record._replace(partition=partition)
        for number, record in enumerate(produced)
        if record.topic not in logged or number in latest
    ]
