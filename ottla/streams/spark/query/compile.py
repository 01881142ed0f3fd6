"""Compiles topologies to Spark: one streaming query for each connected part of a topology.

A query is read → (stage → …) → write. The first steps run where topics are read. Each stage is one
transformWithState that runs the tasks of one level. The sink runs the remaining steps. See
layout.py for stages and tasks.py for the tasks in them. A topology gives the same results here as
in the TopologyTestDriver, record for record.

The following are rejected, with a message that says what to do: topics that do not exist; topics
that are joined by key but differ in their number of partitions; an existing internal topic with
another number of partitions; a checkpoint of another topology; a state store provider other than
RocksDB; sessions of Spark Connect; Columns of pyspark in steps that run in Python.

A stateless query whose steps are Column expressions has another form: catalyst/steps.py decides
when, catalyst/frame.py builds it.
"""

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from ottla.base.errors import ConfigError
from ottla.client.admin.topics import list_topics
from ottla.client.config.access import ClusterAccess
from ottla.streams.application.topic_checks import check_sinks
from ottla.streams.layout.internal_topics import create_internal_topics, internal_topics
from ottla.streams.layout.layout import Application, Layout, components, lay_out
from ottla.streams.model.errors import TopologyError
from ottla.streams.model.user_errors import UsersErrors
from ottla.streams.processor.api import PunctuationType
from ottla.streams.spark.catalyst.frame import columns_frame, spark_types
from ottla.streams.spark.catalyst.row_source import columns_source
from ottla.streams.spark.catalyst.steps import lower_layout
from ottla.streams.spark.connector.options import PYTHON_PATTERN, cluster_options
from ottla.streams.spark.connector.ranges import Offsets
from ottla.streams.spark.layout.envelopes import DDL
from ottla.streams.spark.query.batches import CheckpointBatches, compare_ledger
from ottla.streams.spark.query.checkpoint import Checkpoint
from ottla.streams.spark.query.folders import HadoopFolder
from ottla.streams.spark.query.starting_offsets import (
    first_positions,
    global_topics,
    starting_offsets,
)
from ottla.streams.spark.stages.dropped_counts import count_dropped
from ottla.streams.spark.stages.shipping import ship
from ottla.streams.spark.stages.state_processor import StageProcessor
from ottla.streams.spark.stages.topology_source import CLOCK_TOPIC, SourceSettings, topology_source
from ottla.streams.task.task import Task

_PROVIDER = "spark.sql.streaming.stateStore.providerClass"
_SHUFFLE_PARTITIONS = "spark.sql.shuffle.partitions"
_ISOLATION = "kafka.isolation.level"
_names = itertools.count(1)

Trigger = Mapping[str, Any]


@dataclass(frozen=True)
class QuerySettings:
    """The bootstrap servers, the checkpoint and the options of a query."""

    bootstrap: str
    checkpoint: str
    max_records: int = 100_000
    """The maximum number of records in a micro-batch; a task holds all of its records in memory."""
    trigger: Trigger = field(default_factory=lambda: {"processingTime": "100 milliseconds"})
    clock_topic: str | None = None
    """A topic whose records are the wall clock; by default the machine's clock is used if needed."""
    tick_interval_ms: int = 1000
    options: Mapping[str, str] = field(default_factory=dict)
    """More options of the source, by their documented names."""
    sink_options: Mapping[str, str] = field(default_factory=dict)
    keeps_changelogs: bool = False
    """True if changelogs are topics created for the application (layout.py's Application)."""
    replication_factor: int = -1
    """The replication factor of internal topics; -1 is the brokers' default."""
    uses_catalyst: bool = True
    """True if Column expressions run in the JVM when possible."""
    security: Mapping[str, str] = field(default_factory=dict, repr=False)
    """The options of Kafka's clients for TLS and SASL."""

    @property
    def access(self) -> ClusterAccess:
        """The bootstrap servers, with the options of TLS and SASL."""
        return ClusterAccess(self.bootstrap, self.security)


@dataclass(frozen=True)
class Compiled:
    """A query that is ready to start."""

    layout: Layout
    topics: tuple[str, ...]
    is_clocked: bool


def plan_queries(applications: Sequence[Application]) -> list[list[Application]]:
    """Return the applications of each query: one query for each connected part of a topology."""
    return [[part] for application in applications for part in components(application)]


def compile_query(
    applications: Sequence[Application], settings: QuerySettings, claimed: Sequence[int] = ()
) -> Compiled:
    """Lay out a query, and create the internal topics that it needs on the broker.

    `claimed` are the partition counts stored in its checkpoint. Raises TopologyError if topics do
    not exist or cannot be joined, and if a processor raises when its first task is created.
    """
    with settings.access.brokers(client_id="ottla-streams") as brokers:
        counts = {listed.name: len(listed.partitions) for listed in list_topics(brokers)}
        for application in applications:
            tasks = application.settings
            application.topology.check_copartitioning(counts)
            check_sinks(
                brokers,
                application.topology,
                tasks.application_id,
                counts,
                tasks.exception_handlers,
            )
        asks_clock = any(_uses_wall_clock(application) for application in applications)
        clock_topic = settings.clock_topic or (CLOCK_TOPIC if asks_clock else None)
        layout = lay_out(applications, counts, clock_topic, claimed)
        factor = settings.replication_factor
        create_internal_topics(brokers, internal_topics(layout), counts, factor)
    names = set(layout.routes) | {
        topic for topic in counts if layout.routes_of(topic) and not topic.startswith("__")
    }
    if settings.clock_topic is not None:
        names.add(settings.clock_topic)
    return Compiled(layout, tuple(sorted(names)), clock_topic == CLOCK_TOPIC)


def _uses_wall_clock(application: Application) -> bool:
    """Return True if a processor schedules on the wall clock when it starts; starts a task to see."""
    settings = replace(application.settings, writes_changelogs=False)
    with UsersErrors(
        "A processor or a store of the topology cannot be initialised.", TopologyError
    ):
        task = Task(application.topology, settings, lambda _: None, lambda: 0)
    asks = any(True for _ in task.punctuators[PunctuationType.WALL_CLOCK_TIME])
    task.close()
    return asks


def start_query(
    spark: SparkSession,
    compiled: Compiled,
    settings: QuerySettings,
    name: str,
    sink_counts_path: str | None = None,
) -> StreamingQuery:
    """Start a query; raise ConfigError if its checkpoint belongs to another topology.

    The query appends the number of records that its sink drops to the file `sink_counts_path`.
    """
    if not isinstance(spark, SparkSession):
        raise ConfigError(
            "Topologies run in the process of Spark's driver: use a session of pyspark.sql, not one of "
            "Spark Connect."
        )
    provider = spark.conf.get(_PROVIDER, "")
    if "RocksDB" not in (provider or "") and compiled.layout.levels:
        raise ConfigError(
            f"State is kept in RocksDB: set {_PROVIDER} to org.apache.spark.sql.execution.streaming."
            "state.RocksDBStateStoreProvider, or use the session of ottla.streams.spark.session.session."
        )
    lowered = lower_layout(compiled.layout, spark_types(spark))
    in_jvm = lowered if settings.uses_catalyst else None
    checkpoint = Checkpoint(spark, settings.checkpoint)
    if settings.sink_options.get("processingGuarantee") == "exactly_once":
        batches = CheckpointBatches.read(HadoopFolder(spark, checkpoint.location))
        with settings.access.brokers() as brokers:
            compare_ledger(brokers, batches, f"Query {name}")
    default = int(spark.conf.get(_SHUFFLE_PARTITIONS) or 1)
    owner = checkpoint.claim(compiled.layout, default, lambda: _first_positions(compiled, settings))
    shuffle_partitions = owner.shuffle_partitions
    shipment = ship(compiled.layout, shuffle_partitions)
    whole_topics = frozenset(global_topics(compiled.layout))
    interval_ms = settings.tick_interval_ms if compiled.is_clocked else None
    format_name = f"ottla-pipeline-{next(_names)}"
    source_settings = SourceSettings(shipment, whole_topics, interval_ms, sink_counts_path)
    if in_jvm is None:
        spark.dataSource.register(topology_source(format_name, source_settings))
    else:
        spark.dataSource.register(columns_source(format_name, source_settings, in_jvm))
    options = _source_options(compiled, settings, owner.starts)
    rows = spark.readStream.format(format_name).options(**options).load()
    if in_jvm is not None:
        rows = columns_frame(rows, in_jvm)
    for level in range(1, compiled.layout.levels + 1):
        rows = rows.groupBy("slot").transformWithState(
            StageProcessor(shipment, level), DDL, "Append", "None"
        )
    if in_jvm is None:
        rows = count_dropped(rows)
    writer = rows.writeStream.format(format_name).outputMode("append").queryName(name)
    sink = {**cluster_options(settings.access), "includeTimestamp": "true"}
    writer = writer.options(**{**sink, **settings.sink_options})
    writer = writer.option("checkpointLocation", checkpoint.location)
    return writer.trigger(**settings.trigger).start()


def _first_positions(compiled: Compiled, settings: QuerySettings) -> Offsets:
    group_id = settings.options.get("kafka.group.id")
    return first_positions(compiled.layout, compiled.topics, settings.access, group_id)


def _source_options(compiled: Compiled, settings: QuerySettings, starts: Offsets) -> dict[str, str]:
    layout, topics = compiled.layout, compiled.topics
    options = {
        **cluster_options(settings.access),
        **_subscription(compiled),
        "startingOffsets": starting_offsets(layout, topics, settings.access, starts),
        "maxOffsetsPerTrigger": str(settings.max_records),
        _ISOLATION: "read_committed",
    }
    return {**options, **settings.options}


def end_options(compiled: Compiled, settings: QuerySettings) -> dict[str, str]:
    """Return the options of a source that looks up the ends of the topics that a query reads."""
    isolation = settings.options.get(_ISOLATION, "read_committed")
    access = cluster_options(settings.access)
    return {**access, **_subscription(compiled), _ISOLATION: isolation}


def _subscription(compiled: Compiled) -> dict[str, str]:
    if not compiled.layout.patterns:
        return {"subscribe": ",".join(compiled.topics)}
    own = "|".join(f"(?:{pattern})" for pattern, _ in compiled.layout.patterns)
    named = "|".join(topic.replace(".", r"\.") for topic in compiled.topics)
    return {"subscribePattern": f"{PYTHON_PATTERN}(?:{own}|{named})"}
