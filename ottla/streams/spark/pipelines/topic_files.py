"""Loads files into a topic and exports a topic to files, in one batch of Spark."""

import json
import re
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import Column, DataFrame, Observation, SparkSession
from pyspark.sql import functions as sql
from pyspark.sql.types import StructType

from ottla.base.errors import ConfigError
from ottla.client.admin.offsets import TopicPartition
from ottla.client.config.access import ClusterAccess
from ottla.streams.spark.connector.options import cluster_options
from ottla.streams.spark.query.failures import QueryError, explain

_POLL_S = 0.2
# CSV as RFC 4180 and `ottla topic export` write it: Spark's defaults drop blanks, read line breaks
# as ends of rows, and escape quotes in a way of their own.
_CSV = {
    "header": "true",
    "multiLine": "true",
    "lineSep": "\n",
    "escape": '"',
    "ignoreLeadingWhiteSpace": "false",
    "ignoreTrailingWhiteSpace": "false",
}
# Spark reads an empty cell, and a quoted one, as null if that is the text of null: a text that no
# file has makes them differ.
_CSV_READING = _CSV | {"nullValue": "\x00null\x00"}
_RECORD = {
    "key": ("string", "binary"),
    "value": ("string", "binary"),
    "partition": ("int",),
    "timestamp": ("timestamp",),
    "headers": ("array<struct<key:string,value:binary>>",),
}
Report = Callable[[int, int], None]


@dataclass(frozen=True, kw_only=True)
class LoadSettings:
    """The mapping of files to records: columns for key, timestamp and value.

    By default the value is the whole row as a JSON object.
    """

    topic: str
    format: str
    schema: str = ""
    key: str = ""
    value: str = ""
    timestamp: str = ""
    is_records: bool = False
    options: Mapping[str, str] | None = None
    compression: str = "none"


@dataclass(frozen=True, kw_only=True)
class ExportSettings:
    """The part of a topic to export, by offsets, and its form: `schema` of JSON values, text or
    bytes.
    """

    topic: str
    folder: str
    format: str
    starts: Mapping[TopicPartition, int]
    ends: Mapping[TopicPartition, int]
    until_ms: int | None = None
    as_bytes: bool = False
    schema: str = ""
    overwrite: bool = False


def load(
    spark: SparkSession,
    access: ClusterAccess,
    files: Sequence[str],
    settings: LoadSettings,
    report: Report,
) -> int:
    """Write the rows of files to a topic; return their number. `report` receives finished and total
    tasks.

    Raises QueryError or ConfigError if it fails; records written by then stay in the topic.
    """
    reader = spark.read.format(settings.format)
    options = _reading(settings)
    reader = reader.options(**options, **(settings.options or {}))
    if settings.schema:
        reader = reader.schema(_columns(spark, settings.schema))
    elif settings.is_records and settings.format == "json":
        # Inference would make numbers of texts, and lacks columns that are null everywhere.
        reader = reader.schema(_columns(spark, _JSON_RECORD))
    counted = Observation()

    def write() -> None:
        records = _records(reader.load(list(files)), settings)
        writer = records.observe(counted, sql.count(sql.lit(1)).alias("rows")).write.format("ottla")
        writer = writer.options(**cluster_options(access)).option("topic", settings.topic)
        if "timestamp" in records.columns:
            writer = writer.option("includeTimestamp", "true")
        writer.option("kafka.compression.type", settings.compression).mode("append").save()

    _watched(spark, write, report)
    return int(counted.get["rows"])


_JSON_RECORD = (
    "key string, value string, key_base64 string, value_base64 string, partition int, "
    "timestamp timestamp, headers array<struct<key:string,value:binary>>"
)


def _reading(settings: LoadSettings) -> dict[str, str]:
    """Return the options of Spark's reader, without those that the caller sets."""
    # In Spark's default mode, a row that does not fit is loaded without its values.
    defaults = (_CSV_READING if settings.format == "csv" else {}) | {"mode": "FAILFAST"}
    chosen = {name.lower() for name in settings.options or {}}
    return {name: value for name, value in defaults.items() if name.lower() not in chosen}


def _records(rows: DataFrame, settings: LoadSettings) -> DataFrame:
    if settings.is_records:
        return _own_columns(rows)
    named = (settings.key, settings.value, settings.timestamp)
    missing = [name for name in named if name and name not in rows.columns]
    if missing:
        raise ConfigError(
            f"The files have no column {missing[0]!r}; they have: {', '.join(rows.columns)}."
        )
    kinds = {field.name: field.dataType.simpleString() for field in rows.schema}

    def text(name: str) -> Column:
        column = sql.col(f"`{name}`")
        return column if kinds[name] in ("string", "binary") else column.cast("string")

    whole = sql.struct(*(f"`{name}`" for name in rows.columns))
    row_as_json = sql.to_json(whole, {"ignoreNullFields": "false"})
    columns = [(text(settings.value) if settings.value else row_as_json).alias("value")]
    if settings.key:
        columns.append(text(settings.key).alias("key"))
    if settings.timestamp:
        columns.append(sql.col(f"`{settings.timestamp}`").cast("timestamp").alias("timestamp"))
    return rows.select(*columns)


def _own_columns(rows: DataFrame) -> DataFrame:
    """Return the columns of records, in files that `export` wrote or that have the same column
    names.
    """
    for name in ("key", "value"):
        coded = f"{name}_base64"
        if coded in rows.columns:
            plain = [sql.col(name).cast("binary")] if name in rows.columns else []
            rows = rows.withColumn(name, sql.coalesce(*plain, sql.unbase64(sql.col(coded))))
    kinds = {field.name: field.dataType.simpleString() for field in rows.schema}
    if "value" not in kinds:
        raise ConfigError("These files are not records: they have no column value.")
    for name, kind in kinds.items():
        if name in _RECORD and name not in ("timestamp", "partition") and kind not in _RECORD[name]:
            raise ConfigError(f"Column {name} is {kind}: it must be {' or '.join(_RECORD[name])}.")
    casts = {"timestamp": "timestamp", "partition": "int"}
    names = [name for name in _RECORD if name in kinds]
    return rows.select(
        *(sql.col(name).cast(casts[name]) if name in casts else sql.col(name) for name in names)
    )


def export(
    spark: SparkSession, access: ClusterAccess, settings: ExportSettings, report: Report
) -> int:
    """Write the records of a topic to files in a folder; return their number. `report` as for
    `load`.
    """
    options = {
        **cluster_options(access),
        "assign": _by_topic(settings.starts, as_list=True),
        "startingOffsets": _by_topic(settings.starts),
        "endingOffsets": _by_topic(settings.ends),
        "includeHeaders": "true",
        "kafka.isolation.level": "read_committed",
    }
    records = spark.read.format("ottla").options(**options).load()
    if settings.until_ms is not None:
        records = records.where(
            sql.col("timestamp") < sql.timestamp_millis(sql.lit(settings.until_ms))
        )
    columns = _columns(spark, settings.schema) if settings.schema else None
    counted = Observation()
    rows = _exported(records, settings, columns).observe(
        counted, sql.count(sql.lit(1)).alias("rows")
    )
    writer = rows.write.format(settings.format).mode("overwrite" if settings.overwrite else "error")
    if settings.format == "csv":
        writer = writer.options(**_CSV)
    elif settings.format == "json":
        writer = writer.option("ignoreNullFields", "false")
    _watched(spark, lambda: writer.save(settings.folder), report)
    return int(counted.get["rows"])


def _columns(spark: SparkSession, text: str) -> StructType:
    """Return the columns of a schema; ConfigError has the reason why it is none."""
    try:
        return spark.createDataFrame([], text).schema
    except PySparkException as error:
        reason, _, _ = str(error).partition("\n")
        raise ConfigError(
            f"--schema {text!r}: {reason} Write columns with their types, as in 'origin string, delay "
            "int'."
        ) from None


def _exported(
    records: DataFrame, settings: ExportSettings, columns: StructType | None
) -> DataFrame:
    key = _data("key", settings).alias("key")
    own = [key, sql.col("partition"), sql.col("offset"), sql.col("timestamp")]
    if columns is not None:
        value = sql.from_json(_data("value", settings), columns)
        renamed = [column.alias(f"_{name}") for column, name in zip(own, _OWN, strict=True)]
        return records.select(value.alias("value"), *renamed).select(
            "value.*", *(f"_{name}" for name in _OWN)
        )
    # CSV only has plain columns.
    headers = [] if settings.format == "csv" else [sql.col("headers")]
    suffix = "_base64" if settings.as_bytes and settings.format != "parquet" else ""
    data = [_data(name, settings).alias(f"{name}{suffix}") for name in ("key", "value")]
    return records.select(*data, *own[1:], *headers)


def _data(name: str, settings: ExportSettings) -> Column:
    """Return keys or values as bytes, or as text; bytes that are no text fail the export."""
    if not settings.as_bytes:
        return sql.validate_utf8(sql.col(name).cast("string"))
    return sql.col(name) if settings.format == "parquet" else sql.base64(sql.col(name))


_OWN = ("key", "partition", "offset", "timestamp")


def _by_topic(offsets: Mapping[TopicPartition, int], *, as_list: bool = False) -> str:
    topics = sorted({topic for topic, _ in offsets})
    if as_list:
        return json.dumps({name: sorted(p for t, p in offsets if t == name) for name in topics})
    return json.dumps(
        {name: {str(p): n for (t, p), n in offsets.items() if t == name} for name in topics}
    )


def _watched(spark: SparkSession, work: Callable[[], None], report: Report) -> None:
    """Run `work`, and report the number of finished tasks of Spark at intervals."""
    is_done = threading.Event()

    def watch() -> None:
        while not is_done.wait(_POLL_S):
            report(*_tasks(spark))

    # The work stays in this thread, which has the session with the format and which Ctrl-C
    # interrupts.
    watcher = threading.Thread(target=watch, name="ottla-tasks", daemon=True)
    watcher.start()
    try:
        work()
    except (PySparkException, Py4JJavaError) as error:
        raise QueryError(_reason(str(error))) from None
    finally:
        is_done.set()
        watcher.join()


def _reason(text: str) -> str:
    """Return the part of Spark's error that users need."""
    if "INVALID_UTF8_STRING" in text:
        return "a key or value is not UTF-8, so that it cannot be exported as text: add --bytes"
    misfit = re.search(r"Malformed records are detected in record parsing: (.*?)\.?\n", text)
    if misfit is None:
        return explain(text)
    return (
        f"a row does not fit the columns: {misfit[1]}. --engine process reports its file, line and "
        "column, and --bad-rows receives such rows"
    )


def _tasks(spark: SparkSession) -> tuple[int, int]:
    tracker = spark.sparkContext.statusTracker()
    stages = [tracker.getStageInfo(stage) for stage in tracker.getActiveStageIds()]
    stage_infos = [stage for stage in stages if stage is not None]
    return sum(s.numCompletedTasks for s in stage_infos), sum(s.numTasks for s in stage_infos)
