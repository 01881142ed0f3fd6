"""The Data Source of a topology's query: reads topics as envelopes for its tasks, and writes
envelopes to topics.

The first steps of a topology run in the worker that fetches the records, the last ones in the
worker that sends them, so records do not pass through the JVM one by one. A topology with
wall-clock punctuators also reads the clock: an internal topic that exists on no broker and whose
offsets count intervals, so that a repeated micro-batch sees the same time.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql.datasource import (
    DataSourceStreamArrowWriter,
    DataSourceStreamReader,
    InputPartition,
)
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    IntegerType,
    LongType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from ottla.client.admin.offsets import PROGRESS
from ottla.client.fetcher import Fetcher
from ottla.streams.spark.connector.micro_batches import BatchRanges, MicroBatches
from ottla.streams.spark.connector.options import SparkOptions, Use
from ottla.streams.spark.connector.positions import Positions
from ottla.streams.spark.connector.ranges import OffsetRange, Offsets, limit_offsets
from ottla.streams.spark.connector.sink import Opened, StreamSink, TaskWriter
from ottla.streams.spark.connector.source import OttlaSource, StreamReader
from ottla.streams.spark.connector.time_order import TimeOrder
from ottla.streams.spark.connector.workers import freeze_objects_after_first_task
from ottla.streams.spark.layout.envelopes import RECORDS, as_arrow, open_sealed
from ottla.streams.spark.stages.shipping import Shipment
from ottla.streams.spark.stages.tasks import wall_clock_ms
from ottla.wire.records.columnar import ColumnDecoder
from ottla.wire.records.columnar_arrays import HEADERS_TYPE

# The name of a real topic cannot contain a space.
CLOCK_TOPIC = "wall clock"

_ENVELOPES = StructType(
    [
        StructField("slot", IntegerType()),
        StructField("task", IntegerType()),
        StructField("topic", StringType()),
        StructField("origin", IntegerType()),
        StructField("sequence", LongType()),
        StructField("records", BinaryType()),
    ]
)
READ_COLUMNS = ("offset", "timestamp", "key", "value", "headers")
WRITTEN = StructType(
    [
        StructField("topic", StringType()),
        StructField("partition", IntegerType()),
        StructField("timestamp", TimestampType()),
        StructField("key", BinaryType()),
        StructField("value", BinaryType()),
        StructField(
            "headers",
            ArrayType(
                StructType([StructField("key", StringType()), StructField("value", BinaryType())])
            ),
        ),
    ]
)


@dataclass(frozen=True)
class SourceSettings:
    """The settings of a topology's source besides its options."""

    shipment: Shipment
    whole_topics: frozenset[str] = frozenset()
    """Global topics: a micro-batch reads all of their records before those of other topics."""
    tick_interval_ms: int | None = None
    sink_counts_path: str | None = None
    """The file of the driver for the number of records that the sink drops (sink_counts.py)."""


@dataclass
class BundleTask(InputPartition):
    """The offset ranges of one task, and the topics' partition counts in this micro-batch."""

    ranges: tuple[OffsetRange, ...]
    counts: Mapping[str, int]


def topology_source(format_name: str, source_settings: SourceSettings) -> type[OttlaSource]:
    """Return the Data Source of one query; the settings are pickled with the class."""

    class TopologySource(OttlaSource):
        @classmethod
        def name(cls) -> str:
            return format_name

        def schema(self) -> StructType:
            return _ENVELOPES

        def streamReader(self, schema: StructType) -> DataSourceStreamReader:
            return topology_reader(SparkOptions(self.options, Use.STREAM_READ), source_settings)

        def streamWriter(self, schema: StructType, overwrite: bool) -> DataSourceStreamArrowWriter:
            options = SparkOptions(self.options, Use.WRITE)
            return topology_sink(options, source_settings, opened_envelopes)

    return TopologySource


def topology_reader(options: SparkOptions, settings: SourceSettings) -> StreamReader:
    """Return the reader of a topology's query, which reads envelopes."""
    batches = MicroBatches(options, TopologyBatches(settings))
    return StreamReader(batches, EnvelopeTaskReader(options, settings))


class TopologyBatches:
    """The policy of micro-batches that follow the order of time (`TimeOrder`), with the clock."""

    progress_mark = PROGRESS

    def __init__(self, settings: SourceSettings) -> None:
        self._settings = settings
        self._time_order = TimeOrder()

    @property
    def own_topic(self) -> str | None:
        """The clock's topic, if a task has a wall-clock punctuator."""
        return None if self._settings.tick_interval_ms is None else CLOCK_TOPIC

    def own_end(self) -> int:
        """Return the number of intervals since 1970."""
        assert self._settings.tick_interval_ms is not None
        return wall_clock_ms() // self._settings.tick_interval_ms

    def limit(self, begin: Offsets, end: Offsets, max_rows: int, positions: Positions) -> Offsets:
        """Return ends of about `max_rows` rows; global topics and the clock are read whole."""
        unlimited = {key for key in end if key[0] in (*self._settings.whole_topics, CLOCK_TOPIC)}
        limited = {key: offset for key, offset in end.items() if key not in unlimited}
        return self._in_order(begin, limited, max_rows, positions) | {
            key: end[key] for key in unlimited
        }

    def _in_order(
        self, begin: Offsets, end: Offsets, max_rows: int, positions: Positions
    ) -> Offsets:
        if len({topic for topic, _ in end}) < 2:
            return limit_offsets(begin, end, max_rows)
        begin = {key: begin.get(key, offset) for key, offset in end.items()}
        return self._time_order.limit(
            begin, end, max_rows, wall_clock_ms(), lambda time_ms: positions.at(end, time_ms)
        )


class BundledTasks:
    """The tasks of a micro-batch: at most as many as a stage has, each with some ranges."""

    def __init__(self, settings: SourceSettings) -> None:
        self._settings = settings

    def tasks(self, batch: BatchRanges) -> list[InputPartition]:
        """Return the tasks of one batch."""
        bundles = bundle(batch.ranges, self._settings.shipment.shuffle_partitions)
        return [BundleTask(ranges, batch.partition_counts) for ranges in bundles]


class EnvelopeTaskReader:
    """Reads the ranges of a task, and passes them through the first steps of the topology."""

    def __init__(self, options: SparkOptions, settings: SourceSettings) -> None:
        self._options = options
        self._settings = settings
        self._bundled = BundledTasks(settings)

    def tasks(self, batch: BatchRanges) -> list[InputPartition]:
        """Return the tasks of one batch."""
        return self._bundled.tasks(batch)

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Yield the envelopes of a task's ranges."""
        assert isinstance(partition, BundleTask)
        stage, options = self._settings.shipment.source_stage(), self._options
        with (
            options.brokers() as brokers,
            Fetcher(brokers, options.fetch_settings) as fetcher,
        ):
            for offsets in partition.ranges:
                topic, count = offsets.topic, partition.counts.get(offsets.topic, 0)
                for records in self._fetch(fetcher, offsets):
                    yield as_arrow(stage.take(topic, offsets.partition, records, count))
        freeze_objects_after_first_task()

    def _fetch(self, fetcher: Fetcher, offsets: OffsetRange) -> Iterator[pa.RecordBatch]:
        if offsets.topic == CLOCK_TOPIC:
            yield self._tick(offsets)
            return
        decoder = ColumnDecoder(offsets.topic, offsets.partition, READ_COLUMNS)
        for batch in fetcher.fetch(decoder, offsets.start, offsets.end):
            yield _records(offsets.partition, batch)

    def _tick(self, offsets: OffsetRange) -> pa.RecordBatch:
        """Return the latest time of a range as a record."""
        assert self._settings.tick_interval_ms is not None
        time = offsets.end * self._settings.tick_interval_ms
        row = {"partition": 0, "offset": offsets.end - 1, "timestamp": time}
        empty = dict.fromkeys(("key", "value", "headers"))
        return pa.RecordBatch.from_pylist([{**row, **empty}], schema=RECORDS)


def bundle(ranges: Sequence[OffsetRange], count: int) -> list[tuple[OffsetRange, ...]]:
    """Distribute ranges over at most `count` bundles of about the same size, with each partition's
    ranges in order.
    """
    sizes = [0] * count
    bundles: list[list[OffsetRange]] = [[] for _ in range(count)]
    for offset_range in sorted(
        ranges,
        key=lambda offset_range: (-offset_range.size, offset_range.topic, offset_range.partition),
    ):
        index = sizes.index(min(sizes))
        bundles[index].append(offset_range)
        # An empty fetch has a cost, too.
        sizes[index] += offset_range.size + 1
    in_order = (
        sorted(
            ranges,
            key=lambda offset_range: (
                offset_range.topic,
                offset_range.partition,
                offset_range.start,
            ),
        )
        for ranges in bundles
    )
    return [tuple(ranges) for ranges in in_order if ranges]


def _records(partition: int, batch: pa.RecordBatch) -> pa.RecordBatch:
    count = batch.num_rows
    columns = [
        pa.repeat(pa.scalar(partition, pa.int32()), count),
        batch.column("offset"),
        pc.divide(batch.column("timestamp").cast(pa.int64()), 1000),
        batch.column("key"),
        batch.column("value"),
        batch.column("headers").cast(HEADERS_TYPE),
    ]
    return pa.RecordBatch.from_arrays(columns, schema=RECORDS)


def topology_sink(options: SparkOptions, settings: SourceSettings, opened: Opened) -> StreamSink:
    """Return a sink of records that `opened` returns.

    The application's handlers receive the records that brokers reject.
    """
    writer = TaskWriter(options, WRITTEN, settings.shipment.exception_handlers)
    return StreamSink(options, writer, opened, settings.sink_counts_path)


def opened_envelopes(
    batches: Iterator[pa.RecordBatch], _dropped: Counter[int]
) -> Iterator[pa.RecordBatch]:
    """Yield the records in the envelopes that Spark passes, in their order."""
    for batch in batches:
        yield from _records_in(batch)


def _records_in(batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
    names, sealed = batch.column("topic").to_pylist(), batch.column("records").to_pylist()
    for topic, sealed_records in zip(names, sealed, strict=True):
        for records in open_sealed(sealed_records).to_batches():
            yield _as_written(topic, records)


def _as_written(topic: str, records: pa.RecordBatch) -> pa.RecordBatch:
    partitions = records.column("partition")
    times = pc.multiply(records.column("timestamp"), 1000)
    columns = {
        "topic": pa.repeat(pa.scalar(topic, pa.string()), records.num_rows),
        "partition": pc.if_else(pc.less(partitions, 0), None, partitions),
        "timestamp": times.cast(pa.timestamp("us", "UTC")),
        "key": records.column("key"),
        "value": records.column("value"),
        "headers": records.column("headers"),
    }
    return pa.RecordBatch.from_pydict(columns)
