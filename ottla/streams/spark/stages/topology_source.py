"""The Data Source of a topology's query: reads topics as envelopes for its tasks, and writes
envelopes to topics.

The first steps of a topology run in the worker that fetches the records, the last ones in the
worker that sends them, so records do not pass through the JVM one by one. A topology with
wall-clock punctuators also reads the clock: an internal topic that exists on no broker and whose
offsets count intervals, so that a repeated micro-batch sees the same time.
"""

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
from ottla.client.brokers import Brokers
from ottla.client.fetcher import Fetcher
from ottla.streams.spark.connector.options import SparkOptions, Use
from ottla.streams.spark.connector.ranges import (
    JsonOffsets,
    OffsetRange,
    Offsets,
    from_json,
    to_json,
)
from ottla.streams.spark.connector.refusals import Refusals
from ottla.streams.spark.connector.sink import StreamSink, Written
from ottla.streams.spark.connector.source import OttlaSource, RangeTask, StreamReader
from ottla.streams.spark.connector.time_order import TimeOrder
from ottla.streams.spark.connector.workers import settle_after_work
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
_READ = ("offset", "timestamp", "key", "value", "headers")
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


@dataclass
class BundleTask(InputPartition):
    """The offset ranges of one task, and the topics' partition counts in this micro-batch."""

    ranges: tuple[OffsetRange, ...]
    counts: Mapping[str, int]


def pipeline_source(format_name: str, source_settings: SourceSettings) -> type[OttlaSource]:
    """Return the Data Source of one query; the settings are pickled with the class."""

    class PipelineSource(OttlaSource):
        @classmethod
        def name(cls) -> str:
            return format_name

        def schema(self) -> StructType:
            return _ENVELOPES

        def streamReader(self, schema: StructType) -> DataSourceStreamReader:
            return PipelineReader(SparkOptions(self.options, Use.STREAM_READ), source_settings)

        def streamWriter(self, schema: StructType, overwrite: bool) -> DataSourceStreamArrowWriter:
            return PipelineSink(SparkOptions(self.options, Use.WRITE), source_settings.shipment)

    return PipelineSource


class PipelineReader(StreamReader):
    """Plans micro-batches, and reads them as envelopes."""

    _progress_mark = PROGRESS

    def __init__(self, options: SparkOptions, source_settings: SourceSettings) -> None:
        super().__init__(options, _READ)
        self._source_settings = source_settings
        self._time_order = TimeOrder()

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Yield the envelopes of a task's ranges."""
        assert isinstance(partition, BundleTask)
        stage, options = self._source_settings.shipment.source_stage(), self._options
        with (
            Brokers(options.bootstrap, client_id=options.client_id) as brokers,
            Fetcher(brokers, options.fetch_settings) as fetcher,
        ):
            for wanted in partition.ranges:
                topic, count = wanted.topic, partition.counts.get(wanted.topic, 0)
                for records in self._fetch(fetcher, wanted):
                    yield as_arrow(stage.take(topic, wanted.partition, records, count))
        settle_after_work()

    def _fetch(self, fetcher: Fetcher, wanted: OffsetRange) -> Iterator[pa.RecordBatch]:
        if wanted.topic == CLOCK_TOPIC:
            yield self._tick(wanted)
            return
        decoder = ColumnDecoder(wanted.topic, wanted.partition, self._names)
        for batch in fetcher.fetch(decoder, wanted.start, wanted.end):
            yield _records(wanted.partition, batch)

    def _tick(self, wanted: OffsetRange) -> pa.RecordBatch:
        """Return the latest time of a range as a record."""
        assert self._source_settings.tick_interval_ms is not None
        time = wanted.end * self._source_settings.tick_interval_ms
        row = {"partition": 0, "offset": wanted.end - 1, "timestamp": time}
        empty = dict.fromkeys(("key", "value", "headers"))
        return pa.RecordBatch.from_pylist([{**row, **empty}], schema=RECORDS)

    def initialOffset(self) -> JsonOffsets:
        """Return the starting offsets according to the options."""
        return to_json(from_json(super().initialOffset()) | self._clock(-1))

    def _clock(self, shift: int = 0) -> Offsets:
        interval_ms = self._source_settings.tick_interval_ms
        if interval_ms is None:
            return {}
        return {(CLOCK_TOPIC, 0): wall_clock_ms() // interval_ms + shift}

    def _ask_latest(self) -> Offsets:
        self._latest = super()._ask_latest() | self._clock()
        return self._latest

    def _beginning(self, begin: Offsets, end: Offsets) -> Offsets:
        clock = {key: offset - 1 for key, offset in end.items() if key[0] == CLOCK_TOPIC}
        return super()._beginning(clock | begin, end)

    def _limited(self, begin: Offsets, end: Offsets, max_rows: int) -> Offsets:
        whole = {key for key in end if key[0] in (*self._source_settings.whole_topics, CLOCK_TOPIC)}
        rest = {key: offset for key, offset in end.items() if key not in whole}
        return self._in_order(begin, rest, max_rows) | {key: end[key] for key in whole}

    def _in_order(self, begin: Offsets, end: Offsets, max_rows: int) -> Offsets:
        if len({topic for topic, _ in end}) < 2:
            return super()._limited(begin, end, max_rows)
        positions = self._connected()
        begin = {key: begin.get(key, offset) for key, offset in end.items()}
        return self._time_order.limit(
            begin, end, max_rows, wall_clock_ms(), lambda time_ms: positions.at(end, time_ms)
        )

    def partitions(
        self, start: Mapping[str, Mapping[str, int]], end: Mapping[str, Mapping[str, int]]
    ) -> Sequence[InputPartition]:
        """Return the tasks of one micro-batch: at most as many as a stage has, each with some
        ranges.
        """
        rest = [
            {topic: each[topic] for topic in each if topic != CLOCK_TOPIC} for each in (start, end)
        ]
        ranges = [each.range for each in super().partitions(*rest) if isinstance(each, RangeTask)]
        if CLOCK_TOPIC in end:
            last = end[CLOCK_TOPIC]["0"]
            first = start.get(CLOCK_TOPIC, {}).get("0", last - 1)
            ranges += [OffsetRange(CLOCK_TOPIC, 0, first, last)] if first < last else []
        counts = {topic: len(offsets) for topic, offsets in rest[1].items()}
        bundles = bundle(ranges, self._source_settings.shipment.shuffle_partitions)
        return [BundleTask(each, counts) for each in bundles]


def bundle(ranges: Sequence[OffsetRange], count: int) -> list[tuple[OffsetRange, ...]]:
    """Distribute ranges over at most `count` bundles of about the same size, with each partition's
    ranges in order.
    """
    sizes = [0] * count
    found: list[list[OffsetRange]] = [[] for _ in range(count)]
    for each in sorted(ranges, key=lambda each: (-each.size, each.topic, each.partition)):
        index = sizes.index(min(sizes))
        found[index].append(each)
        # An empty fetch has a cost, too.
        sizes[index] += each.size + 1
    in_order = (
        sorted(each, key=lambda one: (one.topic, one.partition, one.start)) for each in found
    )
    return [tuple(each) for each in in_order if each]


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


class PipelineSink(StreamSink):
    """Writes the records of envelopes; the application's handlers see the records that brokers
    reject.
    """

    def __init__(self, options: SparkOptions, shipment: Shipment) -> None:
        super().__init__(options, WRITTEN)
        self._shipment = shipment

    def _refusals(self) -> Refusals:
        return Refusals(self._shipment.exception_handlers())

    def write(self, iterator: Iterator[pa.RecordBatch]) -> Written:
        """Write all envelopes of a task, in their order."""
        return super().write(self._opened(iterator))

    def _opened(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield the records in the batches that Spark passes."""
        for batch in batches:
            yield from _records_in(batch)


def _records_in(batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
    names, sealed = batch.column("topic").to_pylist(), batch.column("records").to_pylist()
    for topic, each in zip(names, sealed, strict=True):
        for records in open_sealed(each).to_batches():
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
