"""Envelopes: the rows that flow between the stages of a query, each with many records.

Spark moves rows one at a time through the JVM and passes them one at a time to a stage in Python. A
row with thousands of records as one Arrow batch costs as much as a row with one record. An envelope
has records of one topic for one task, or for the sink (task -1). `slot` is the key of Spark's next
shuffle: the task, or, if the task is in a later stage, a carrier that forwards the envelope.
`origin` and `sequence` restore the order of envelopes: Spark's sort is not stable once it spills.
"""

from collections.abc import Iterable, Iterator, Sequence
from itertools import repeat
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from ottla.streams.layout.layout import Layout
from ottla.streams.model.records import Header
from ottla.streams.task.task import ProducedRecord, TopicRecord
from ottla.wire.records.columnar_arrays import HEADERS_TYPE
from ottla.wire.records.columnar_partitioner import partitions_of
from ottla.wire.records.columnar_varints import Integers

RECORDS = pa.schema(
    [
        ("partition", pa.int32()),
        ("offset", pa.int64()),
        ("timestamp", pa.int64()),
        ("key", pa.binary()),
        ("value", pa.binary()),
        ("headers", HEADERS_TYPE),
    ]
)
SCHEMA = pa.schema(
    [
        ("slot", pa.int32()),
        ("task", pa.int32()),
        ("topic", pa.string()),
        ("origin", pa.int32()),
        ("sequence", pa.int64()),
        ("records", pa.binary()),
    ]
)
DDL = "slot int, task int, topic string, origin int, sequence bigint, records binary"

SINK = -1
# The topic of envelopes without records, which count the records a task dropped. The name of a real
# topic cannot contain a space.
DROPPED_TOPIC = "dropped records"
# The topic of envelopes without records, which count the misplaced keys of one topic.
MISPLACED_TOPIC = "misplaced keys"
# The low bits of a slot are a task's number. The bits above are chosen so that Spark's hash
# distributes tasks evenly.
_TASK_BITS = 20
# The maximum number of records in an envelope; a task's output may be larger.
_RECORDS_MAX = 20_000


class Envelope(NamedTuple):
    """A row of SCHEMA."""

    slot: int
    task: int
    topic: str
    origin: int
    sequence: int
    records: bytes


class Slots:
    """The numbers that Spark groups rows by; task n is in shuffle partition n mod S."""

    def __init__(self, task_count: int, shuffle_partitions: int) -> None:
        self._task_count = task_count
        self._shuffle_partitions = shuffle_partitions
        count = task_count + shuffle_partitions
        assert count < 1 << _TASK_BITS, f"{task_count} tasks are too many"
        results = [_spread(number, shuffle_partitions) for number in range(count)]
        self.of_task: Integers = np.array(results[:task_count], np.int32)
        self._carriers = results[task_count:]

    def carrier(self, origin: int) -> int:
        """Return the slot that carries rows of an origin past a stage."""
        return self._carriers[origin % self._shuffle_partitions]

    def task(self, slot: int) -> int | None:
        """Return the task of a slot; None for a carrier."""
        number = slot & (1 << _TASK_BITS) - 1
        return number if number < self._task_count else None


def _spread(number: int, shuffle_partitions: int) -> int:
    """Return the smallest slot of a number that Spark's hash puts into the partition `number` mod
    S.
    """
    slot = number
    while _spark_hash(slot) % shuffle_partitions != number % shuffle_partitions:
        slot += 1 << _TASK_BITS
    return slot


def _spark_hash(value: int) -> int:
    """Return Spark's hash of an int (Murmur3 with seed 42), by which it chooses the shuffle
    partition.
    """
    mask = 0xFFFFFFFF
    word = value * 0xCC9E2D51 & mask
    word = (word << 15 | word >> 17) & mask
    word = word * 0x1B873593 & mask
    result = 42 ^ word
    result = (result << 13 | result >> 19) & mask
    result = result * 5 + 0xE6546B64 & mask
    result ^= 4
    result = (result ^ result >> 16) * 0x85EBCA6B & mask
    result = (result ^ result >> 13) * 0xC2B2AE35 & mask
    result ^= result >> 16
    # Spark takes the remainder of a signed number.
    return result - (1 << 32) if result >> 31 else result


def seal(records: pa.RecordBatch) -> bytes:
    """Return records (RECORDS) as the bytes of an envelope."""
    target = pa.BufferOutputStream()
    with pa.ipc.new_stream(target, RECORDS) as writer:
        writer.write_batch(records)
    sealed: bytes = target.getvalue().to_pybytes()
    return sealed


def open_sealed(sealed: bytes) -> pa.Table:
    """Return the records of an envelope."""
    return pa.ipc.open_stream(sealed).read_all()


def topic_records(sealed: bytes | pa.RecordBatch) -> Iterator[TopicRecord]:
    """Yield the records of an envelope, or of a batch, as a task takes them."""
    table = open_sealed(sealed) if isinstance(sealed, bytes) else sealed
    names = ("key", "value", "timestamp", "headers", "partition", "offset")
    columns = {name: table.column(name) for name in names}
    headers = columns.pop("headers")
    lists = {name: column.to_pylist() for name, column in columns.items()}
    lists["headers"] = (
        repeat(()) if headers.null_count == len(headers) else map(_headers, headers.to_pylist())
    )
    return map(TopicRecord, *(lists[name] for name in names))


def _headers(entries: Sequence[dict[str, Any]] | None) -> tuple[Header, ...]:
    return tuple((entry["key"], entry["value"]) for entry in entries or ())


def as_arrow(envelopes: Iterable[Envelope]) -> pa.RecordBatch:
    """Return envelopes in the form in which Spark reads them from a source."""
    rows = list(envelopes)
    arrays = [
        pa.array([row[index] for row in rows], field.type) for index, field in enumerate(SCHEMA)
    ]
    return pa.RecordBatch.from_arrays(arrays, schema=SCHEMA)


class Outbox:
    """Packs the output of a task into envelopes, for the task that reads the topic or for the sink."""

    def __init__(self, layout: Layout, slots: Slots, level: int) -> None:
        self._layout = layout
        self._slots = slots
        self._next_level = level + 1

    def envelopes(
        self, origin: int, produced: Sequence[ProducedRecord], first: int = 0
    ) -> Iterator[Envelope]:
        """Yield the envelopes of a task's records by topic and task, in order; sequences start at
        `first`.
        """
        by_topic: dict[str, list[ProducedRecord]] = {}
        for record in produced:
            by_topic.setdefault(record.topic, []).append(record)
        for topic, records in by_topic.items():
            yield from self.of_batch(origin, topic, batch_of(records), first)

    def of_batch(
        self, origin: int, topic: str, records: pa.RecordBatch, first: int = 0
    ) -> Iterator[Envelope]:
        """Yield the envelopes of records (RECORDS) of one topic, in order; offsets start at
        `first`.
        """
        for start in range(0, records.num_rows, _RECORDS_MAX):
            part = records.slice(start, _RECORDS_MAX)
            offsets = np.arange(first + start, first + start + part.num_rows, dtype=np.int64)
            numbered = part.set_column(1, RECORDS.field(1), pa.array(offsets))
            yield from self._of_topic(origin, topic, first + start, numbered)

    def _of_topic(
        self, origin: int, topic: str, start: int, batch: pa.RecordBatch
    ) -> Iterator[Envelope]:
        number = self._layout.shuffled.get(topic)
        if number is None:
            slot = self._slots.carrier(origin)
            yield Envelope(slot, SINK, topic, origin, start, seal(batch))
            return
        sub_topology = self._layout.sub_topologies[number]
        explicit = np.asarray(batch.column("partition"))
        hashed = partitions_of(
            batch.column("key"), sub_topology.partitions, origin % sub_topology.partitions
        )
        partitions = np.where(explicit < 0, hashed, explicit % sub_topology.partitions)
        for partition in np.unique(partitions).tolist():
            chosen = np.flatnonzero(partitions == partition)
            part = batch.take(pa.array(chosen)).set_column(
                0, RECORDS.field(0), pa.array(np.full(len(chosen), partition, np.int32))
            )
            yield self.envelope(sub_topology.first_task + partition, topic, origin, start, part)

    def envelope(
        self, task: int, topic: str, origin: int, sequence: int, records: pa.RecordBatch
    ) -> Envelope:
        """Return an envelope for a task."""
        is_next = self._layout.sub_topology_of(task).level == self._next_level
        slot = int(self._slots.of_task[task]) if is_next else self._slots.carrier(origin)
        return Envelope(slot, task, topic, origin, sequence, seal(records))

    def dropped(self, task: int, count: int) -> Iterator[Envelope]:
        """Yield an envelope with the number of records that a task dropped, unless it is 0."""
        if count:
            yield Envelope(self._slots.carrier(task), SINK, DROPPED_TOPIC, task, count, b"")

    def misplaced(self, number: int, count: int) -> Iterator[Envelope]:
        """Yield an envelope with the number of misplaced keys of the topic with this number, unless
        it is 0.
        """
        if count:
            yield Envelope(self._slots.carrier(number), SINK, MISPLACED_TOPIC, number, count, b"")

    def forward(self, envelope: Envelope) -> Envelope:
        """Return an envelope for the next stage, after a carrier."""
        if (
            envelope.task == SINK
            or self._layout.sub_topology_of(envelope.task).level > self._next_level
        ):
            return envelope
        return envelope._replace(slot=int(self._slots.of_task[envelope.task]))


def batch_of(records: Sequence[ProducedRecord]) -> pa.RecordBatch:
    """Return produced records as RECORDS; partition -1 if the key determines the partition."""
    partitions = [-1 if record.partition is None else record.partition for record in records]
    headers: Any = None
    if any(record.headers for record in records):
        headers = [
            [{"key": key, "value": value} for key, value in record.headers] or None
            for record in records
        ]
    columns = [
        pa.array(partitions, pa.int32()),
        pa.array(np.arange(len(records), dtype=np.int64)),
        pa.array([record.timestamp for record in records], pa.int64()),
        pa.array([record.key for record in records], pa.binary()),
        pa.array([record.value for record in records], pa.binary()),
        pa.nulls(len(records), HEADERS_TYPE)
        if headers is None
        else pa.array(headers, HEADERS_TYPE),
    ]
    return pa.RecordBatch.from_arrays(columns, schema=RECORDS)
