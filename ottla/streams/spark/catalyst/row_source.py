"""The Data Source of a query whose steps run in the JVM: one row for each record read and for each
record to be written.

Input rows: ROWS. Output rows: `target` is the number of an output; `key` and `value` are bytes, or
values in `key<n>` and `value<n>` for the serde of output n. A record left to Python has its
original key and value, with `partition` and `offset`; its target is the number of its topic,
counted down from -1. The sub-topology processes it here, and its results are put among the others
in the order in which records were read.
"""

import functools
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark import cloudpickle
from pyspark.sql.datasource import (
    DataSourceStreamArrowWriter,
    DataSourceStreamReader,
    InputPartition,
)
from pyspark.sql.types import (
    BinaryType,
    IntegerType,
    LongType,
    StructField,
    StructType,
    TimestampType,
)

from ottla.client.fetcher import Fetcher
from ottla.streams.layout.layout import SubTopology
from ottla.streams.model.packing import pack, unpack
from ottla.streams.serdes import Serde
from ottla.streams.spark.catalyst.steps import Conversion, LoweredSource, topic_numbers
from ottla.streams.spark.connector.micro_batches import BatchRanges, MicroBatches
from ottla.streams.spark.connector.options import SparkOptions, Use
from ottla.streams.spark.connector.source import OttlaSource, StreamReader
from ottla.streams.spark.layout.envelopes import RECORDS
from ottla.streams.spark.stages.fused import PlainTask, TopicOutput
from ottla.streams.spark.stages.tasks import dropped_records, wall_clock_ms
from ottla.streams.spark.stages.topology_source import (
    READ_COLUMNS,
    BundledTasks,
    BundleTask,
    SourceSettings,
    TopologyBatches,
    topology_sink,
)
from ottla.wire.records.columnar import ColumnDecoder
from ottla.wire.records.columnar_arrays import HEADERS_TYPE
from ottla.wire.records.columnar_varints import Integers

ROWS = StructType(
    [
        StructField("topic_number", IntegerType()),
        StructField("partition", IntegerType()),
        StructField("offset", LongType()),
        StructField("timestamp", TimestampType()),
        StructField("key", BinaryType()),
        StructField("value", BinaryType()),
        StructField("headers", BinaryType()),
        StructField("plain", IntegerType()),
    ]
)
PLAIN = {"key": 1, "value": 2}
"""The bits of the column `plain`."""
_ASCII_MAX = 127
# A partition's number has at most this many bits, as in Kafka's protocol.
_PARTITION_BITS = 31
_TIME = pa.timestamp("us", "UTC")
_OUT = pa.schema(
    [
        ("topic", pa.dictionary(pa.int32(), pa.string())),
        ("partition", pa.int32()),
        ("timestamp", _TIME),
        ("key", pa.binary()),
        ("value", pa.binary()),
        ("headers", HEADERS_TYPE),
    ]
)


@dataclass(frozen=True)
class Target:
    """An output's topic, and the serdes of key and value if these arrive as values instead of
    bytes.
    """

    topic: str
    key: Serde[Any] | None
    value: Serde[Any] | None


@dataclass(frozen=True)
class Columns:
    """The settings of source and sink: the numbers of topics, and the targets of outputs (pickled)."""

    source_settings: SourceSettings
    topic_numbers: Mapping[str, int]
    sub_topologies: tuple[int, ...]
    """The sub-topology that reads each topic, by the topic's number."""
    targets: bytes


def columns_source(
    format_name: str, source_settings: SourceSettings, lowered: Sequence[LoweredSource]
) -> type[OttlaSource]:
    """Return the Data Source of one query; the settings are pickled with the class."""
    outputs = [output for part in lowered for output in part.outputs]
    targets = [
        Target(
            output.topic,
            output.serdes[0] if output.key is Conversion.SERDE else None,
            output.serdes[1] if output.value is Conversion.SERDE else None,
        )
        for output in outputs
    ]
    settings = Columns(
        source_settings,
        topic_numbers(lowered),
        tuple(part.kind for part in lowered for _ in part.topics),
        cast(Any, cloudpickle).dumps(targets),
    )

    class ColumnsSource(OttlaSource):
        @classmethod
        def name(cls) -> str:
            return format_name

        def schema(self) -> StructType:
            return ROWS

        def streamReader(self, schema: StructType) -> DataSourceStreamReader:
            options = SparkOptions(self.options, Use.STREAM_READ)
            batches = MicroBatches(options, TopologyBatches(source_settings))
            return StreamReader(batches, RowTaskReader(options, settings))

        def streamWriter(self, schema: StructType, overwrite: bool) -> DataSourceStreamArrowWriter:
            options = SparkOptions(self.options, Use.WRITE)
            return topology_sink(options, source_settings, FinishedRows(settings))

    return ColumnsSource


class RowTaskReader:
    """Reads the ranges of a task as rows (ROWS)."""

    def __init__(self, options: SparkOptions, settings: Columns) -> None:
        self._options = options
        self._topic_numbers = settings.topic_numbers
        self._bundled = BundledTasks(settings.source_settings)

    def tasks(self, batch: BatchRanges) -> list[InputPartition]:
        """Return the tasks of one batch."""
        return self._bundled.tasks(batch)

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Yield the records of a task's ranges."""
        assert isinstance(partition, BundleTask)
        options = self._options
        with (
            options.brokers() as brokers,
            Fetcher(brokers, options.fetch_settings) as fetcher,
        ):
            for offsets in partition.ranges:
                if offsets.topic not in self._topic_numbers:
                    # The range is empty, but Spark requires a task.
                    continue
                decoder = ColumnDecoder(offsets.topic, offsets.partition, READ_COLUMNS)
                for batch in fetcher.fetch(decoder, offsets.start, offsets.end):
                    yield _rows(self._topic_numbers[offsets.topic], offsets.partition, batch)


def _rows(topic_number: int, partition: int, batch: pa.RecordBatch) -> pa.RecordBatch:
    count = batch.num_rows
    headers = batch.column("headers")
    packed: Any = pa.nulls(count, pa.binary())
    if headers.null_count < count:
        packed = pa.array(map(_packed, headers.to_pylist()), pa.binary())
    columns = {
        "topic_number": pa.repeat(pa.scalar(topic_number, pa.int32()), count),
        "partition": pa.repeat(pa.scalar(partition, pa.int32()), count),
        **{name: batch.column(name) for name in ("offset", "timestamp", "key", "value")},
        "headers": packed,
        "plain": plain_bits(batch.column("key"), batch.column("value")),
    }
    return pa.RecordBatch.from_pydict(columns)


def plain_bits(keys: pa.Array, values: pa.Array) -> pa.Array:
    """Return for each record if its key (PLAIN["key"]) and value are pure ASCII, so that the JVM
    need not check.
    """
    result = _are_plain(keys) * PLAIN["key"] + _are_plain(values) * PLAIN["value"]
    return pa.array(result.astype(np.int32))


def _are_plain(column: pa.Array) -> Integers:
    plain = np.ones(len(column), np.int64)
    _, offsets, bytes_buffer = column.buffers()
    if not len(column) or bytes_buffer is None:
        return plain
    ends = np.frombuffer(offsets, np.int32)[column.offset : column.offset + len(column) + 1]
    letters = np.frombuffer(bytes_buffer, np.uint8)[ends[0] : ends[-1]]
    if len(letters) and letters.max() > _ASCII_MAX:
        non_ascii_counts = np.zeros(len(letters) + 1, np.int32)
        np.cumsum(letters > _ASCII_MAX, out=non_ascii_counts[1:])
        plain[np.diff(non_ascii_counts[ends - ends[0]]) > 0] = 0
    return plain


def _packed(headers: list[dict[str, Any]] | None) -> bytes | None:
    return pack([(header["key"], header["value"]) for header in headers]) if headers else None


@dataclass(frozen=True)
class FinishedRows:
    """Converts the frame's rows to records, for the sink; pickled with it."""

    settings: Columns

    def __call__(
        self, batches: Iterator[pa.RecordBatch], dropped: Counter[int]
    ) -> Iterator[pa.RecordBatch]:
        """Return the records of a task's batches: those from the JVM, and the others processed
        here.
        """
        return map(Finishing(self.settings, dropped).finish, batches)


@functools.lru_cache(maxsize=16)
def _unpickled(targets: bytes) -> list[Target]:
    result: list[Target] = cast(Any, cloudpickle).loads(targets)
    return result


class Finishing:
    """Converts a frame's rows to the sink's records; lives as long as one of Spark's writing tasks.

    It adds the records that it drops to `dropped`, by task.
    """

    def __init__(self, settings: Columns, dropped: Counter[int] | None = None) -> None:
        self._settings = settings
        self._dropped: Counter[int] = Counter() if dropped is None else dropped
        self._targets = _unpickled(settings.targets)
        self._topics = list(settings.topic_numbers)
        self._tasks: dict[int, tuple[SubTopology, PlainTask]] = {}

    def finish(self, rows: pa.RecordBatch) -> pa.RecordBatch:
        """Return rows as records of topics."""
        targets = np.asarray(rows.column("target"))
        is_rest = targets < 0
        if not is_rest.any():
            return self._ready(rows)
        parts = self._run(rows, np.flatnonzero(is_rest))
        ready = np.flatnonzero(~is_rest)
        parts.append((ready, self._ready(rows.take(pa.array(ready)))))
        order = np.argsort(
            np.concatenate([order_of_part for order_of_part, _ in parts]), kind="stable"
        )
        table = pa.Table.from_batches([rows for _, rows in parts]).unify_dictionaries()
        if not table.num_rows:
            return parts[-1][1]
        return table.combine_chunks().take(pa.array(order)).to_batches()[0]

    def _ready(self, rows: pa.RecordBatch) -> pa.RecordBatch:
        """Return the records that the JVM processed."""
        numbers = rows.column("target")
        topics = pa.array([target.topic for target in self._targets], pa.string())
        columns = [
            pa.DictionaryArray.from_arrays(numbers, topics),
            pa.nulls(rows.num_rows, pa.int32()),
            rows.column("timestamp").cast(_TIME),
            self._side(rows, "key", lambda target: target.key),
            self._side(rows, "value", lambda target: target.value),
            _headers(rows.column("headers")),
        ]
        return pa.RecordBatch.from_arrays(columns, schema=_OUT)

    def _side(
        self, rows: pa.RecordBatch, name: str, serde_of: Callable[[Target], Serde[Any] | None]
    ) -> pa.Array:
        result = rows.column(name)
        numbers = None
        for number, target in enumerate(self._targets):
            serde = serde_of(target)
            if serde is None:
                continue
            numbers = np.asarray(rows.column("target")) if numbers is None else numbers
            column_values = rows.column(f"{name}{number}").to_pylist()
            is_of_target = numbers == number
            written = [
                serde.to_bytes(column_value) if is_own else None
                for is_own, column_value in zip(is_of_target, column_values, strict=True)
            ]
            result = pc.if_else(pa.array(is_of_target), pa.array(written, pa.binary()), result)
        return result

    def _run(
        self, rows: pa.RecordBatch, row_numbers: Integers
    ) -> list[tuple[Integers, pa.RecordBatch]]:
        """Process rows with their sub-topologies; return the output, with the row number of each
        record's source.
        """
        chosen = rows.take(pa.array(row_numbers))
        numbers = -1 - np.asarray(chosen.column("target"), np.int64)
        # Each partition is processed separately, because each one has a task that counts.
        origins = numbers << _PARTITION_BITS | np.asarray(chosen.column("partition"))
        records, results = _read(chosen), []
        for origin in np.unique(origins).tolist():
            of_origin = np.flatnonzero(origins == origin)
            read = records.take(pa.array(of_origin))
            number, partition = origin >> _PARTITION_BITS, origin & (1 << _PARTITION_BITS) - 1
            for produced in self._run_task(number, partition, read):
                results.append(
                    (
                        row_numbers[of_origin[produced.row_numbers]],
                        _written(produced.topic, produced.records),
                    )
                )
        return results

    def _run_task(
        self, topic_number: int, partition: int, read: pa.RecordBatch
    ) -> Iterator[TopicOutput]:
        number = self._settings.sub_topologies[topic_number]
        if number not in self._tasks:
            layout = self._settings.source_settings.shipment.unpacked()
            sub_topology = layout.sub_topologies[number]
            plain_task = PlainTask(sub_topology, wall_clock_ms, dropped_records())
            self._tasks[number] = sub_topology, plain_task
        sub_topology, task = self._tasks[number]
        before = task.dropped_count
        yield from task.run(self._topics[topic_number], read)
        if task.dropped_count > before:
            task_number = sub_topology.first_task + partition % sub_topology.partitions
            self._dropped[task_number] += task.dropped_count - before


def _read(rows: pa.RecordBatch) -> pa.RecordBatch:
    """Return rows as records (RECORDS) as they were read."""
    times = pc.divide(rows.column("timestamp").cast(pa.int64()), 1000)
    read = {name: rows.column(name) for name in ("partition", "offset", "key", "value")}
    columns = [read["partition"], read["offset"], times, read["key"], read["value"]]
    return pa.RecordBatch.from_arrays([*columns, _headers(rows.column("headers"))], schema=RECORDS)


def _written(topic: str, records: pa.RecordBatch) -> pa.RecordBatch:
    """Return records of a topic in the sink's form."""
    count = records.num_rows
    partitions = records.column("partition")
    columns = [
        pa.DictionaryArray.from_arrays(pa.array(np.zeros(count, np.int32)), pa.array([topic])),
        pc.if_else(pc.less(partitions, 0), None, partitions),
        pc.multiply(records.column("timestamp"), 1000).cast(_TIME),
        *(records.column(name) for name in ("key", "value", "headers")),
    ]
    return pa.RecordBatch.from_arrays(columns, schema=_OUT)


def _headers(packed: pa.Array) -> pa.Array:
    if packed.null_count == len(packed):
        return pa.nulls(len(packed), HEADERS_TYPE)
    entries = [
        None
        if headers is None
        else [{"key": key, "value": value} for key, value in unpack(headers)]
        for headers in packed.to_pylist()
    ]
    return pa.array(entries, HEADERS_TYPE)
