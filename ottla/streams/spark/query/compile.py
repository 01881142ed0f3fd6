"""Compiles topologies to Spark: one streaming query for what hangs together.

A query is read → (stage → …) → write: the first steps run where topics are read, each stage is one transformWithState
that runs the tasks of a level, the sink takes what is left. DESIGN: layout.py says what a stage is, tasks.py what happens
in it. A topology runs here as it runs in the TopologyTestDriver, record for record.

Refused, with what to do: topics that are not there; topics that are joined by key and differ in their number of
partitions; an internal topic with other partitions; a checkpoint of another
topology; state that is not in RocksDB; sessions of Spark Connect; Columns of pyspark where Python runs.

A query without state whose steps are Column expressions has another shape: column_steps.py says when, column_frame.py which.
"""

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from ottla.base.errors import ConfigError
from ottla.client.admin.topics import list_topics
from ottla.client.brokers import Brokers
from ottla.streams.application.topic_checks import check_sinks
from ottla.streams.model.errors import TopologyError
from ottla.streams.model.user_errors import UsersErrors
from ottla.streams.processor.api import PunctuationType
from ottla.streams.spark.catalyst.frame import columns_frame, spark_types
from ottla.streams.spark.catalyst.row_source import columns_source
from ottla.streams.spark.catalyst.steps import lower_layout
from ottla.streams.spark.connector.ranges import Offsets
from ottla.streams.spark.layout.envelopes import DDL
from ottla.streams.spark.layout.internal_topics import create_internal_topics, internal_topics
from ottla.streams.spark.layout.layout import Application, Layout, components, lay_out
from ottla.streams.spark.query.checkpoint import Checkpoint
from ottla.streams.spark.query.starting_offsets import (
    first_positions,
    global_topics,
    starting_offsets,
)
from ottla.streams.spark.stages.dropped_counts import count_dropped
from ottla.streams.spark.stages.shipping import ship
from ottla.streams.spark.stages.state_processor import StageProcessor
from ottla.streams.spark.stages.topology_source import CLOCK_TOPIC, Reading, pipeline_source
from ottla.streams.task.task import Task

_PROVIDER = "spark.sql.streaming.stateStore.providerClass"
_SHUFFLE_PARTITIONS = "spark.sql.shuffle.partitions"
_names = itertools.count(1)

Trigger = Mapping[str, Any]


@dataclass(frozen=True)
class QuerySettings:
    """Where a query reads, writes and keeps its progress, and how it goes."""

    bootstrap: str
    checkpoint: str
    max_records: int = 100_000
    """How many records a micro-batch takes at most; those of a task are in memory together."""
    trigger: Trigger = field(default_factory=lambda: {"processingTime": "100 milliseconds"})
    clock_topic: str | None = None
    """A topic whose records are the wall clock; without one it is the machine's, where somebody asks."""
    tick_interval_ms: int = 1000
    options: Mapping[str, str] = field(default_factory=dict)
    """More options of the source, by their documented names."""
    sink_options: Mapping[str, str] = field(default_factory=dict)
    keeps_changelogs: bool = False
    """Whether changelogs are topics that are created for the application (layout.py's Application)."""
    replication_factor: int = -1
    """Of internal topics; -1: as the brokers say."""
    uses_catalyst: bool = True
    """Whether Column expressions run in the JVM, where they may."""


@dataclass(frozen=True)
class Compiled:
    """A query that is ready to start."""

    layout: Layout
    topics: tuple[str, ...]
    is_clocked: bool


def plan_queries(applications: Sequence[Application]) -> list[list[Application]]:
    """Return what runs in one query each: the parts of topologies that hang together."""
    return [[part] for each in applications for part in components(each)]


def compile_query(
    applications: Sequence[Application], settings: QuerySettings, claimed: Sequence[int] = ()
) -> Compiled:
    """Lay out a query, and create the internal topics that it needs on the broker.

    `claimed` are the partitions that its checkpoint has.
    TopologyError for topics that are not there or cannot be joined, and for what a processor says to its first task.
    """
    with Brokers(settings.bootstrap, client_id="ottla-streams") as brokers:
        counts = {each.name: len(each.partitions) for each in list_topics(brokers)}
        for each in applications:
            tasks = each.settings
            each.topology.check_copartitioning(counts)
            check_sinks(
                brokers, each.topology, tasks.application_id, counts, tasks.exception_handlers
            )
        asks_clock = any(_asks_clock(each) for each in applications)
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


def _asks_clock(application: Application) -> bool:
    """Tell whether a processor schedules on the wall clock when it starts: one is started to see."""
    settings = replace(application.settings, writes_changelogs=False)
    with UsersErrors("A processor or a store of the topology cannot begin.", TopologyError):
        task = Task(application.topology, settings, lambda _: None, lambda: 0)
    asks = any(True for _ in task.punctuators[PunctuationType.WALL_CLOCK_TIME])
    task.close()
    return asks


def start_query(
    spark: SparkSession, compiled: Compiled, settings: QuerySettings, name: str
) -> StreamingQuery:
    """Start a query; ConfigError where its checkpoint belongs to another topology."""
    if not isinstance(spark, SparkSession):
        raise ConfigError(
            "Topologies run in the process of Spark's driver: give a session of pyspark.sql, not one of "
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
    default = int(spark.conf.get(_SHUFFLE_PARTITIONS) or 1)
    claim = checkpoint.claim(compiled.layout, default, lambda: _first_positions(compiled, settings))
    shuffle_partitions = claim.shuffle_partitions
    shipment = ship(compiled.layout, shuffle_partitions)
    whole = frozenset(global_topics(compiled.layout))
    interval_ms = settings.tick_interval_ms if compiled.is_clocked else None
    format_name = f"ottla-pipeline-{next(_names)}"
    reading = Reading(shipment, whole, interval_ms)
    if in_jvm is None:
        spark.dataSource.register(pipeline_source(format_name, reading))
    else:
        spark.dataSource.register(columns_source(format_name, reading, in_jvm))
    options = _source_options(compiled, settings, claim.starts)
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
    sink = {"kafka.bootstrap.servers": settings.bootstrap, "includeTimestamp": "true"}
    writer = writer.options(**{**sink, **settings.sink_options})
    writer = writer.option("checkpointLocation", checkpoint.location)
    return writer.trigger(**settings.trigger).start()


def _first_positions(compiled: Compiled, settings: QuerySettings) -> Offsets:
    group_id = settings.options.get("kafka.group.id")
    return first_positions(compiled.layout, compiled.topics, settings.bootstrap, group_id)


def _source_options(compiled: Compiled, settings: QuerySettings, starts: Offsets) -> dict[str, str]:
    layout, topics = compiled.layout, compiled.topics
    options = {
        "kafka.bootstrap.servers": settings.bootstrap,
        "subscribe": ",".join(compiled.topics),
        "startingOffsets": starting_offsets(layout, topics, settings.bootstrap, starts),
        "maxOffsetsPerTrigger": str(settings.max_records),
        "kafka.isolation.level": "read_committed",
    }
    if compiled.layout.patterns:
        own = "|".join(f"(?:{pattern})" for pattern, _ in compiled.layout.patterns)
        named = "|".join(each.replace(".", r"\.") for each in compiled.topics)
        del options["subscribe"]
        options["subscribePattern"] = f"(?:{own}|{named})"
    return {**options, **settings.options}
