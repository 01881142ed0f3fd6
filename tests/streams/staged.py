"""Run applications in stages over state pages, like Spark, but in this process and without Spark.

Every micro-batch creates its tasks again from their state. `pipe` runs a micro-batch of one record,
and further ones until no records return.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

import pyarrow as pa

from ottla.streams import Serdes
from ottla.streams.layout.layout import Application, Layout, lay_out
from ottla.streams.serdes import DefaultSerdes
from ottla.streams.spark.layout.envelopes import (
    DROPPED_TOPIC,
    MISPLACED_TOPIC,
    RECORDS,
    SINK,
    Envelope,
    Slots,
    topic_records,
)
from ottla.streams.spark.stages.tasks import SourceStage, Stage
from ottla.streams.task.task import ProducedRecord, TopicRecord
from ottla.wire.records.murmur2 import murmur2

Batch = Mapping[tuple[str, int], Iterable[TopicRecord]]

CLOCK = "clock"
STRINGS = DefaultSerdes(Serdes.string(), Serdes.string())


def partition_of(key: bytes | None, count: int) -> int:
    """Return the partition of a key as chosen by Kafka's default partitioner; 0 without a key."""
    return 0 if key is None else (murmur2(key) & 0x7FFFFFFF) % count


class Pages(dict[str, bytes]):
    """The state of one task."""

    def put(self, name: str, page: bytes) -> None:
        """Write a page."""
        self[name] = page

    def remove(self, name: str) -> None:
        """Remove a page."""
        self.pop(name, None)


class StagedRun:
    """A query; `topics` are on the broker, `claimed` are the partitions of a checkpoint's tasks."""

    def __init__(
        self,
        application: Application,
        *,
        topics: Mapping[str, int],
        shuffle_partitions: int = 3,
        claimed: Sequence[int] = (),
    ) -> None:
        self.layout: Layout = lay_out([application], topics, CLOCK, claimed)
        self._counts = {**topics, **self.layout.created}
        self._slots = Slots(self.layout.task_count, shuffle_partitions)
        self._state: dict[tuple[int, int], Pages] = {}
        self._offsets: dict[tuple[str, int], int] = {}
        self._returning: list[tuple[str, TopicRecord]] = []
        self.produced: dict[str, list[ProducedRecord]] = {}
        self.dropped = 0
        """The number of records that its tasks dropped."""
        self.misplaced = 0
        """The number of misplaced keys among those that were checked."""

    def set_partitions(self, topic: str, count: int) -> None:
        """Change the number of partitions of a topic on the broker."""
        self._counts[topic] = count

    def tick(self, now: int) -> None:
        """Set the wall clock in a separate micro-batch."""
        self.run({(CLOCK, 0): [TopicRecord(None, None, now)]})

    def pipe(self, topic: str, record: TopicRecord) -> None:
        """Process one record of a topic."""
        self.run({(topic, record.partition): [record]})

    def run(self, batch: Batch) -> None:
        """Run a micro-batch, and further ones for the records that return through topics."""
        self.run_once(batch)
        self.drain()

    def drain(self) -> None:
        """Run micro-batches of returned records until none returns."""
        while self._returning:
            self.run_once({})

    def run_once(self, batch: Batch, returned: int | None = None) -> None:
        """Run one micro-batch with the given number of returned records (default: all)."""
        count = len(self._returning) if returned is None else returned
        _returning, self._returning = self._returning[:count], self._returning[count:]
        self._run_with(batch, _returning)

    def run_partly(self, batch: Batch, size: Callable[[], int]) -> bool:
        """Run one micro-batch that reads `size()` records of each partition of returned records.

        Return True if returned records are left.
        """
        waiting: dict[tuple[str, int], list[TopicRecord]] = {}
        for topic, record in self._returning:
            waiting.setdefault((topic, record.partition), []).append(record)
        taken, left = [], []
        for key, records in waiting.items():
            count = size()
            taken += [(key[0], record) for record in records[:count]]
            left += [(key[0], record) for record in records[count:]]
        self._returning = left
        self._run_with(batch, taken)
        return bool(self._returning)

    def _run_with(self, batch: Batch, returned: Iterable[tuple[str, TopicRecord]]) -> None:
        whole = {topic_partition: list(records) for topic_partition, records in batch.items()}
        for topic, record in returned:
            whole.setdefault((topic, record.partition), []).append(record)
        for envelope in list(self._micro_batch(whole)):
            self.produced.setdefault(envelope.topic, []).append(envelope)
            if self.layout.routes_of(envelope.topic):
                record = TopicRecord(
                    envelope.key, envelope.value, envelope.timestamp, envelope.headers
                )
                partition = self._partition(envelope)
                self._returning.append((envelope.topic, record._replace(partition=partition)))

    def _partition(self, record: ProducedRecord) -> int:
        count = self.layout.created.get(record.topic, 1)
        if record.partition is not None:
            assert record.partition < count, record
            return record.partition
        return partition_of(record.key, count)

    def _micro_batch(self, batch: Batch) -> Iterator[ProducedRecord]:
        entry = SourceStage(self.layout, self._slots)
        envelopes = [
            envelope
            for (topic, partition), records in batch.items()
            for envelope in entry.take(
                topic,
                partition,
                self._batch(topic, partition, records),
                self._counts.get(topic, 0),
            )
        ]
        for level in range(1, self.layout.levels + 1):
            # Spark delivers the rows of a slot in any order.
            by_slot: dict[int, list[Envelope]] = {}
            for envelope in reversed(envelopes):
                by_slot.setdefault(envelope.slot, []).append(envelope)
            stage, envelopes = Stage(self.layout, self._slots, level), []
            for slot, rows in sorted(by_slot.items()):
                pages = self._state.setdefault((level, slot), Pages())
                envelopes += stage.handle(slot, rows, pages)
        for envelope in envelopes:
            assert envelope.task == SINK, envelope
            if envelope.topic == DROPPED_TOPIC:
                self.dropped += envelope.sequence
                continue
            if envelope.topic == MISPLACED_TOPIC:
                self.misplaced += envelope.sequence
                continue
            for record in topic_records(envelope.records):
                partition = None if record.partition < 0 else record.partition
                yield ProducedRecord(
                    envelope.topic,
                    record.key,
                    record.value,
                    record.timestamp,
                    record.headers,
                    partition,
                )

    def _batch(self, topic: str, partition: int, records: Iterable[TopicRecord]) -> pa.RecordBatch:
        rows = list(records)
        start = self._offsets.get((topic, partition), 0)
        self._offsets[topic, partition] = start + len(rows)
        headers = [[{"key": k, "value": v} for k, v in row.headers] or None for row in rows]
        columns = [
            [partition] * len(rows),
            list(range(start, start + len(rows))),
            [row.timestamp for row in rows],
            [row.key for row in rows],
            [row.value for row in rows],
            headers,
        ]
        arrays = [pa.array(each, field.type) for each, field in zip(columns, RECORDS, strict=True)]
        return pa.RecordBatch.from_arrays(arrays, schema=RECORDS)
