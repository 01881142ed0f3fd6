"""The PySpark Data Source `ottla`: topics as data frames, in batch and streaming queries, without a
JAR.

Spark runs the three classes in three places: `OttlaSource` in the driver; a reader's planning
methods in a planner process beside it; and `read` in the executors' Python workers, where each task
fetches its own range and returns Arrow batches. Columns and options are those of Spark's Kafka
connector.
"""

import math
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa
from pyspark.sql.datasource import (
    DataSource,
    DataSourceArrowWriter,
    DataSourceReader,
    DataSourceStreamArrowWriter,
    DataSourceStreamReader,
    InputPartition,
)
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxBytes,
    ReadMaxRows,
    SupportsTriggerAvailableNow,
)
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
from ottla.client.brokers import Brokers
from ottla.client.fetcher import Fetcher
from ottla.streams.spark.connector.options import SparkOptions, Use
from ottla.streams.spark.connector.positions import Positions
from ottla.streams.spark.connector.ranges import (
    JsonOffsets,
    OffsetRange,
    Offsets,
    from_json,
    least,
    limit_offsets,
    split,
    to_json,
)
from ottla.streams.spark.connector.shadow_group import ShadowGroup
from ottla.streams.spark.connector.sink import BatchSink, StreamSink
from ottla.streams.spark.connector.workers import settle_after_work
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

# The pauses before `latestOffset` asks the brokers, by the number of polls without new records:
# Spark calls it again at once, about 60 times a second.
_TRIGGER_DELAY_MS = 900_000
_IDLE_PAUSES_S = (0.0, 0.01, 0.02, 0.05, 0.1)


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
        """Return the columns: those of Spark's Kafka connector, in its order."""
        with_headers = self.options.get("includeheaders", "false").strip().lower() == "true"
        names = [name for name in _COLUMNS if name != "headers" or with_headers]
        return StructType([StructField(name, _COLUMNS[name]) for name in names])

    def reader(self, schema: StructType) -> DataSourceReader:
        """Return the reader of one batch."""
        return BatchReader(SparkOptions(self.options, Use.BATCH_READ), _columns(schema))

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:
        """Return the reader of a stream."""
        return StreamReader(SparkOptions(self.options, Use.STREAM_READ), _columns(schema))

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceArrowWriter:
        """Return the writer of one batch; topics are only ever appended to."""
        if overwrite:
            raise ConfigError("A topic cannot be overwritten: write with mode('append').")
        return BatchSink(SparkOptions(self.options, Use.WRITE), schema)

    def streamWriter(self, schema: StructType, overwrite: bool) -> DataSourceStreamArrowWriter:
        """Return the writer of a stream; `overwrite` is Spark's name for the output mode complete."""
        return StreamSink(SparkOptions(self.options, Use.WRITE), schema)


def _columns(schema: StructType) -> list[str]:
    """Return the requested columns: `schema(...)` may name fewer of them, in any order."""
    known = {name: kind.simpleString() for name, kind in _COLUMNS.items()}
    for field in schema.fields:
        kind = field.dataType.simpleString()
        if known.get(field.name) != kind:
            offered = ", ".join(f"{name} {kind}" for name, kind in known.items())
            raise ConfigError(f"There is no column {field.name} {kind}; there are: {offered}.")
    return [str(name) for name in schema.fieldNames()]


class _RangeReader:
    """The part of both readers that runs in the executors: reads one range."""

    def __init__(self, options: SparkOptions, columns: Sequence[str]) -> None:
        self._options = options
        self._names = list(columns)

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Yield the records of a task's range as Arrow batches."""
        assert isinstance(partition, RangeTask)
        wanted = partition.range
        options = self._options
        with (
            Brokers(options.bootstrap, client_id=options.client_id) as brokers,
            Fetcher(brokers, options.fetch_settings) as fetcher,
        ):
            decoder = ColumnDecoder(wanted.topic, wanted.partition, self._names)
            yield from fetcher.fetch(decoder, wanted.start, wanted.end)
        settle_after_work()

    def _tasks(self, ranges: Sequence[OffsetRange]) -> list[InputPartition]:
        cut = split(
            ranges, self._options.get("minPartitions"), self._options.get("maxRecordsPerPartition")
        )
        return [RangeTask(item) for item in cut]


class BatchReader(_RangeReader, DataSourceReader):
    """Reads the records between the starting and ending offsets, as of the planning of the query."""

    def partitions(self) -> Sequence[InputPartition]:
        """Return the tasks."""
        with Positions(self._options) as positions:
            partitions = positions.partitions()
            starts, ends = positions.starting(partitions), positions.ending(partitions)
            tasks = self._tasks(positions.ranges(starts, ends))
        # For an empty list Spark makes one task without a range.
        return tasks or [RangeTask(OffsetRange("", 0, 0, 0))]


class StreamReader(_RangeReader, DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Plans micro-batches: the offsets that exist, and how many of them a batch takes.

    Lives as long as the query, in the planner process, which keeps its connections.
    """

    # The metadata of the offsets that show the progress.
    _progress_mark = ""

    def __init__(self, options: SparkOptions, columns: Sequence[str]) -> None:
        super().__init__(options, columns)
        self._positions: Positions | None = None
        self._latest: Offsets = {}
        self._target: Offsets | None = None
        self._idle_polls = 0
        # As in Spark's connector, the first batch does not wait for more records.
        self._triggered_at = -math.inf
        self._shadow: ShadowGroup | None = None

    def initialOffset(self) -> JsonOffsets:
        """Return the starting offsets that the options specify; called if there is no checkpoint
        yet.
        """
        positions = self._connected()
        return to_json(positions.starting(positions.partitions()))

    def getDefaultReadLimit(self) -> ReadLimit:
        """Return the limit of maxOffsetsPerTrigger and maxBytesPerTrigger."""
        rows = self._options.get("maxOffsetsPerTrigger")
        max_bytes = self._options.get("maxBytesPerTrigger")
        if rows is not None:
            return ReadMaxRows(rows)
        return ReadAllAvailable() if max_bytes is None else ReadMaxBytes(max_bytes)

    def latestOffset(self, start: Mapping[str, Mapping[str, int]], limit: ReadLimit) -> JsonOffsets:
        """Return the end of the next batch; `start` itself if there are no new records."""
        begin = from_json(start)
        end = self._available(begin)
        # Spark plans the next batch, so the last one is complete.
        self._show(begin)
        begin = self._beginning(begin, end)
        if self._is_delayed(begin, end):
            return to_json(from_json(start))
        rows = self._allowed(begin, end, limit)
        return to_json(end if rows is None else self._limited(begin, end, rows))

    def _allowed(self, begin: Offsets, end: Offsets, limit: ReadLimit) -> int | None:
        """Return the maximum number of rows of a batch; None if there is no limit."""
        if isinstance(limit, ReadAllAvailable):
            return None
        rows = limit.max_rows if isinstance(limit, ReadMaxRows) else None
        max_bytes = self._options.get("maxBytesPerTrigger")
        if max_bytes is None:
            return rows
        positions = self._connected()
        new = {key: end[key] - begin[key] for key in end if key in positions.known}
        return least(rows, positions.rows_of(max_bytes, new))

    def _is_delayed(self, begin: Offsets, end: Offsets) -> bool:
        """Return True if there are too few rows to start; always False once the query has a target
        to end at.
        """
        wanted = self._options.get("minOffsetsPerTrigger")
        if wanted is None or self._target is not None:
            return False
        now = time.monotonic()
        known = self._connected().known
        new = sum(end[key] - begin[key] for key in end if key in known)
        delay_s = self._options.get("maxTriggerDelay", _TRIGGER_DELAY_MS) / 1000
        if 0 < new < wanted and now < self._triggered_at + delay_s:
            return True
        if new:
            self._triggered_at = now
        return False

    def _limited(self, begin: Offsets, end: Offsets, max_rows: int) -> Offsets:
        """Return the end of a batch of at most about `max_rows` rows."""
        return limit_offsets(begin, end, max_rows)

    def reportLatestOffset(self) -> JsonOffsets | None:
        """Return the offsets of the last poll, for Spark's progress reports."""
        return to_json(self._latest) if self._latest else None

    def prepareForTriggerAvailableNow(self) -> None:
        """Store the current end offsets, at which the query stops."""
        self._target = self._ask_latest()

    def partitions(
        self, start: Mapping[str, Mapping[str, int]], end: Mapping[str, Mapping[str, int]]
    ) -> Sequence[InputPartition]:
        """Return the tasks of one micro-batch."""
        ends = from_json(end)
        starts = from_json(start)
        gone = sorted(set(starts) - set(ends))
        if gone:
            self._connected().report_data_loss(f"{gone[0][0]}-{gone[0][1]} no longer exists.")
        starts = self._held(self._beginning(starts, ends), ends)
        ranges = [OffsetRange(*key, starts[key], ends[key]) for key in sorted(ends)]
        for item in ranges:
            if item.size < 0:
                self._connected().report_data_loss(
                    f"{item.topic}-{item.partition} ends at {item.end}, but it was read up to "
                    f"{item.start}: the topic was deleted and created again, or has lost records."
                )
        return self._tasks(ranges)

    def commit(self, end: Mapping[str, Mapping[str, int]]) -> None:
        """Show the progress if a group is named; the checkpoint holds the progress itself."""
        self._show(from_json(end), at_once=True)

    def _show(self, offsets: Offsets, *, at_once: bool = False) -> None:
        if self._options.group_id is None:
            return
        if self._shadow is None:
            options = self._options
            self._shadow = ShadowGroup(
                options.bootstrap, options.group_id, options.client_id, self._progress_mark
            )
        known = self._connected().known
        real = {key: offset for key, offset in offsets.items() if key in known}
        self._shadow.follow(real, at_once=at_once)

    def stop(self) -> None:
        """Close the connections."""
        if self._shadow is not None:
            self._shadow.close()
            self._shadow = None
        if self._positions is not None:
            self._positions.close()
            self._positions = None

    def _connected(self) -> Positions:
        if self._positions is None:
            self._positions = Positions(self._options)
        return self._positions

    def _held(self, starts: Offsets, ends: Offsets) -> Offsets:
        """Return the starts, moved forward if the partitions no longer have them."""
        moving = [key for key in ends if starts[key] < ends[key]]
        for key, earliest in self._connected().earliest(moving).items():
            if starts[key] < earliest:
                self._connected().report_data_loss(
                    f"{key[0]}-{key[1]} begins at {earliest}: offsets {starts[key]} to "
                    f"{min(earliest, ends[key]) - 1} were deleted (by retention.ms, retention.bytes, or a "
                    "tool) before they were read."
                )
                starts = starts | {key: min(earliest, ends[key])}
        return starts

    def _beginning(self, begin: Offsets, end: Offsets) -> Offsets:
        """Return the start of every partition in `end`: new ones are read from their beginning."""
        new = [key for key in end if key not in begin]
        return begin | self._connected().earliest(new) if new else begin

    def _available(self, begin: Offsets) -> Offsets:
        if self._target is not None:
            # AvailableNow: ignore records since then, but never end before the checkpoint's
            # offsets.
            return {key: max(offset, begin.get(key, 0)) for key, offset in self._target.items()}
        time.sleep(_IDLE_PAUSES_S[min(self._idle_polls, len(_IDLE_PAUSES_S) - 1)])
        end = self._ask_latest()
        self._idle_polls = self._idle_polls + 1 if end == begin else 0
        return end

    def _ask_latest(self) -> Offsets:
        positions = self._connected()
        self._latest = positions.latest(positions.partitions())
        return self._latest
