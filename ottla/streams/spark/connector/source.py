"""The PySpark Data Source `ottla`: topics as data frames, in batch and streaming queries, without a
JAR.

Spark runs the three classes in three places: `OttlaSource` in the driver; a reader's planning
methods in a planner process beside it; and `read` in the executors' Python workers, where each task
fetches its own range and returns Arrow batches. Columns and options are the same as in Spark's
Kafka connector.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

import pyarrow as pa
from pyspark.sql.datasource import (
    DataSource,
    DataSourceArrowWriter,
    DataSourceReader,
    DataSourceStreamArrowWriter,
    DataSourceStreamReader,
    InputPartition,
)
from pyspark.sql.streaming.datasource import ReadLimit, SupportsTriggerAvailableNow
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    DataType,
    IntegerType,
    LongType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from ottla.base.errors import ConfigError
from ottla.client.fetcher import Fetcher
from ottla.streams.spark.connector.micro_batches import (
    BatchRanges,
    MicroBatches,
    TopicBatches,
)
from ottla.streams.spark.connector.options import SparkOptions, Use
from ottla.streams.spark.connector.positions import Positions
from ottla.streams.spark.connector.ranges import JsonOffsets, OffsetRange, StoredOffsets, split
from ottla.streams.spark.connector.sink import BatchSink, StreamSink, TaskWriter
from ottla.streams.spark.connector.workers import freeze_objects_after_first_task
from ottla.wire.records.columnar import ColumnDecoder

_HEADERS = ArrayType(
    StructType([StructField("key", StringType()), StructField("value", BinaryType())])
)
_COLUMNS: dict[str, DataType] = {
    "key": BinaryType(),
    "value": BinaryType(),
    "topic": StringType(),
    "partition": IntegerType(),
    "offset": LongType(),
    "timestamp": TimestampType(),
    "timestampType": IntegerType(),
    "headers": _HEADERS,
}


@dataclass
class RangeTask(InputPartition):
    """The offset range of one task."""

    range: OffsetRange


class OttlaSource(DataSource):
    """The class for `spark.dataSource.register`, which makes `format("ottla")` available."""

    @classmethod
    def name(cls) -> str:
        """Return the format's name."""
        return "ottla"

    def schema(self) -> StructType:
        """Return the columns: the same as in Spark's Kafka connector, in its order."""
        with_headers = self.options.get("includeheaders", "false").strip().lower() == "true"
        names = [name for name in _COLUMNS if name != "headers" or with_headers]
        return StructType([StructField(name, _COLUMNS[name]) for name in names])

    def reader(self, schema: StructType) -> DataSourceReader:
        """Return the reader of one batch."""
        return BatchReader(SparkOptions(self.options, Use.BATCH_READ), _columns(schema))

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:
        """Return the reader of a stream."""
        options = SparkOptions(self.options, Use.STREAM_READ)
        reader = RangeTaskReader(options, _columns(schema))
        return StreamReader(MicroBatches(options, TopicBatches()), reader)

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceArrowWriter:
        """Return the writer of one batch; topics are only ever appended to."""
        if overwrite:
            raise ConfigError("A topic cannot be overwritten: write with mode('append').")
        return BatchSink(SparkOptions(self.options, Use.WRITE), schema)

    def streamWriter(self, schema: StructType, overwrite: bool) -> DataSourceStreamArrowWriter:
        """Return the writer of a stream; `overwrite` is Spark's name for the output mode complete."""
        options = SparkOptions(self.options, Use.WRITE)
        return StreamSink(options, TaskWriter(options, schema))


def _columns(schema: StructType) -> list[str]:
    """Return the requested columns: `schema(...)` may name fewer of them, in any order."""
    column_types = {name: kind.simpleString() for name, kind in _COLUMNS.items()}
    for field in schema.fields:
        kind = field.dataType.simpleString()
        if column_types.get(field.name) != kind:
            offered = ", ".join(f"{name} {kind}" for name, kind in column_types.items())
            raise ConfigError(f"There is no column {field.name} {kind}; there are: {offered}.")
    return [str(name) for name in schema.fieldNames()]


class TaskReader(Protocol):
    """The part of a reader that runs in the executors, and the tasks that it reads."""

    def tasks(self, batch: BatchRanges) -> list[InputPartition]:
        """Return the tasks of one batch."""
        ...

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Yield the records of one of these tasks as Arrow batches."""
        ...


class RangeTaskReader:
    """Reads one range per task, as rows of the connector's columns."""

    def __init__(self, options: SparkOptions, columns: Sequence[str]) -> None:
        self._options = options
        self._names = list(columns)

    def tasks(self, batch: BatchRanges) -> list[InputPartition]:
        """Return one task for each range, or more if the options ask for more."""
        cut = split(
            batch.ranges,
            self._options.get("minPartitions"),
            self._options.get("maxRecordsPerPartition"),
        )
        return [RangeTask(offset_range) for offset_range in cut]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Yield the records of a task's range as Arrow batches."""
        assert isinstance(partition, RangeTask)
        offsets, options = partition.range, self._options
        with (
            options.brokers() as brokers,
            Fetcher(brokers, options.fetch_settings) as fetcher,
        ):
            decoder = ColumnDecoder(offsets.topic, offsets.partition, self._names)
            yield from fetcher.fetch(decoder, offsets.start, offsets.end)
        freeze_objects_after_first_task()


class BatchReader(DataSourceReader):
    """Reads the records between the starting and ending offsets, as of the planning of the query."""

    def __init__(self, options: SparkOptions, columns: Sequence[str]) -> None:
        self._options = options
        self._task_reader = RangeTaskReader(options, columns)

    def partitions(self) -> Sequence[InputPartition]:
        """Return the tasks."""
        with Positions(self._options) as positions:
            partitions = positions.partitions()
            starts, ends = positions.starting(partitions), positions.ending(partitions)
            tasks = self._task_reader.tasks(BatchRanges(positions.ranges(starts, ends), {}))
        # For an empty list Spark makes one task without a range.
        return tasks or [RangeTask(OffsetRange("", 0, 0, 0))]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Yield the records of a task."""
        return self._task_reader.read(partition)


class StreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Spark's reader of a stream: `batches` plans in the planner process, `reader` reads in tasks."""

    def __init__(self, batches: MicroBatches, reader: TaskReader) -> None:
        self.batches = batches
        self._task_reader = reader

    def initialOffset(self) -> JsonOffsets:
        """Return the starting offsets that the options specify; called if there is no checkpoint
        yet.
        """
        return self.batches.initial()

    def getDefaultReadLimit(self) -> ReadLimit:
        """Return the limit that the options specify."""
        return self.batches.default_limit()

    def latestOffset(self, start: StoredOffsets, limit: ReadLimit) -> JsonOffsets:
        """Return the end of the next batch; `start` itself if there are no new records."""
        return self.batches.latest(start, limit)

    def reportLatestOffset(self) -> JsonOffsets | None:
        """Return the offsets of the last poll, for Spark's progress reports."""
        return self.batches.last_polled()

    def prepareForTriggerAvailableNow(self) -> None:
        """Store the current end offsets, at which the query stops."""
        self.batches.stop_at_present()

    def partitions(self, start: StoredOffsets, end: StoredOffsets) -> Sequence[InputPartition]:
        """Return the tasks of one micro-batch."""
        return self._task_reader.tasks(self.batches.ranges(start, end))

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Yield the records of a task."""
        return self._task_reader.read(partition)

    def commit(self, end: StoredOffsets) -> None:
        """Show the progress if a group is named; the checkpoint holds the progress itself."""
        self.batches.show(end)

    def stop(self) -> None:
        """Close the connections."""
        self.batches.stop()
