"""Starts the query of a pipeline's sink. The delivery guarantees after a restart are:

* topic, mirror: exactly once (transactions of the sink `ottla`);
* files: exactly once (the log of Spark's file sink);
* jdbc: exactly once (the batch number is written in the transaction of its rows);
* topic with mode update: at least once, because each change of a total is written in its batch;
* console: none.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from pyspark.sql import DataFrame
from pyspark.sql import functions as sql
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.streaming.readwriter import DataStreamWriter

from ottla.client.config.access import ClusterAccess
from ottla.streams.pipelines.model import (
    ConsoleSink,
    FileSink,
    JdbcSink,
    MirrorSink,
    Sink,
    TopicSink,
)
from ottla.streams.pipelines.security import resolved_security
from ottla.streams.spark.connector.options import cluster_options
from ottla.streams.spark.pipelines.avro import encoded
from ottla.streams.spark.pipelines.jdbc import JdbcTable

_PATTERNS = {"year": "yyyy", "month": "yyyy-MM", "day": "yyyy-MM-dd", "hour": "yyyy-MM-dd-HH"}
_ONCE = {"processingGuarantee": "exactly_once"}
_RECORD = ("key", "value", "partition", "headers", "timestamp")


@dataclass(frozen=True)
class SinkSettings:
    """The settings that all sinks of a run share; `checkpoint` is the folder of all of them."""

    access: ClusterAccess
    checkpoint: str
    trigger: str
    once: bool


def start_sink(frame: DataFrame, sink: Sink, name: str, settings: SinkSettings) -> StreamingQuery:
    """Start the query that writes a frame to a sink."""
    writer = _STARTERS[type(sink)](frame, sink, settings)
    writer = writer.queryName(name).option(
        "checkpointLocation", f"{settings.checkpoint}/{sink.name}"
    )
    if settings.once:
        writer = writer.trigger(availableNow=True)
    elif settings.trigger:
        writer = writer.trigger(processingTime=settings.trigger)
    return writer.start()


def prepare(frame: DataFrame, sink: Sink) -> DataFrame:
    """Return the columns that a sink writes: records for topics, the folder's column for files."""
    if isinstance(sink, TopicSink):
        return records_of(frame, sink)
    if isinstance(sink, FileSink) and sink.time is not None:
        column = sql.date_format(sql.expr(sink.time.text), _PATTERNS[sink.by])
        return frame.withColumn(sink.by, column)
    return frame


def records_of(frame: DataFrame, sink: TopicSink) -> DataFrame:
    """Return a frame's rows as records; columns that begin with _ are left out of JSON."""
    if sink.format == "record":
        return frame.select(*(name for name in _RECORD if name in frame.columns))
    names = [name for name in frame.columns if not name.startswith("_")]
    if sink.avro is not None:
        value = encoded(frame, names, sink.avro, sink.topic.text).alias("value")
    else:
        value = sql.to_json(sql.struct(*(f"`{name}`" for name in names))).alias("value")
    if sink.key is None:
        return frame.select(value)
    key = sql.expr(sink.key.text)
    is_binary = frame.select(key).schema[0].dataType.simpleString() == "binary"
    return frame.select((key if is_binary else key.cast("string")).alias("key"), value)


def access_of(sink: TopicSink | MirrorSink, access: ClusterAccess) -> ClusterAccess:
    """Return the access to the cluster that a sink writes to; `access` is the pipeline's."""
    if not sink.bootstrap:
        return access
    return ClusterAccess(sink.bootstrap, resolved_security(sink.security, f"sink {sink.name}"))


def topic_options(sink: TopicSink | MirrorSink, access: ClusterAccess) -> Mapping[str, str]:
    """Return the options with which `format("ottla")` writes a sink's topic."""
    options = {**cluster_options(access_of(sink, access)), "topic": sink.topic.text}
    if isinstance(sink, TopicSink) and sink.compression:
        options["kafka.compression.type"] = sink.compression
    return options


def _topic(frame: DataFrame, sink: Sink, settings: SinkSettings) -> DataStreamWriter:
    assert isinstance(sink, TopicSink)
    records = records_of(frame, sink)
    options = dict(topic_options(sink, settings.access))
    if "timestamp" in records.columns:
        options["includeTimestamp"] = "true"
    if sink.mode == "append":
        return records.writeStream.format("ottla").options(**options | _ONCE)

    def write(batch: DataFrame, batch_id: int) -> None:
        batch.write.format("ottla").options(**options).mode("append").save()

    return records.writeStream.outputMode(sink.mode).foreachBatch(write)


def _mirror(frame: DataFrame, sink: Sink, settings: SinkSettings) -> DataStreamWriter:
    assert isinstance(sink, MirrorSink)
    options = {**topic_options(sink, settings.access), "includeTimestamp": "true", **_ONCE}
    return frame.writeStream.format("ottla").options(**options)


def _files(frame: DataFrame, sink: Sink, settings: SinkSettings) -> DataStreamWriter:
    assert isinstance(sink, FileSink)
    columns = [text.text for text in sink.partition_by]
    if sink.time is not None:
        columns.append(sink.by)
    options = {name: text.text for name, text in sink.options.items()}
    if sink.format == "csv":
        options = {"header": "true"} | options
    writer = prepare(frame, sink).writeStream.format(sink.format).options(**options)
    writer = writer.option("path", sink.path.text)
    return writer.partitionBy(*columns) if columns else writer


def _jdbc(frame: DataFrame, sink: Sink, settings: SinkSettings) -> DataStreamWriter:
    assert isinstance(sink, JdbcSink)
    table = JdbcTable(sink)
    return frame.writeStream.outputMode(sink.mode).foreachBatch(table.write)


def _console(frame: DataFrame, sink: Sink, settings: SinkSettings) -> DataStreamWriter:
    assert isinstance(sink, ConsoleSink)
    writer = frame.writeStream.format("console").outputMode(sink.mode)
    return writer.option("numRows", sink.rows).option("truncate", "false")


_Starter = Callable[[DataFrame, Sink, SinkSettings], DataStreamWriter]
_STARTERS: Mapping[type[Sink], _Starter] = {
    TopicSink: _topic,
    MirrorSink: _mirror,
    FileSink: _files,
    JdbcSink: _jdbc,
    ConsoleSink: _console,
}
