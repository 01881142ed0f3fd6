"""Runs applications as Spark would, stage by stage over state pages, in this process and without Spark.

Every micro-batch builds its tasks anew from what was kept. `pipe` is one micro-batch of one record, and what
follows of it, until nothing comes back.
"""

from collections import deque
from collections.abc import Iterable, Iterator, Mapping

import pyarrow as pa

from ottla.streams import Serdes
from ottla.streams.runtime import ProducedRecord, TopicRecord
from ottla.streams.spark.envelopes import (
    DROPPED_TOPIC,
    RECORDS,
    SINK,
    Envelope,
    Slots,
    topic_records,
)
from ottla.streams.spark.layout import Application, Layout, lay_out
from ottla.streams.spark.tasks import Entry, Stage
from ottla.streams.stores.builders import DefaultSerdes

CLOCK = "clock"
STRINGS = DefaultSerdes(Serdes.string(), Serdes.string())


class Pages(dict[str, bytes]):
    """The state of one task."""

    def put(self, name: str, page: bytes) -> None:
        """Set a page."""
        self[name] = page

    def remove(self, name: str) -> None:
        """Remove a page."""
        self.pop(name, None)


class StagedRun:
    """One query; `partitions` are those of topics on the broker, one where it does not say."""

    def __init__(
        self,
        application: Application,
        *,
        topics: Mapping[str, int],
        shuffle_partitions: int = 3,
    ) -> None:
        self.layout: Layout = lay_out([application], topics, CLOCK)
        self._slots = Slots(self.layout.task_count, shuffle_partitions)
        self._state: dict[tuple[int, int], Pages] = {}
        self._offsets: dict[tuple[str, int], int] = {}
        self.produced: dict[str, list[ProducedRecord]] = {}
        self.dropped = 0
        """How many records its tasks dropped."""

    def tick(self, now: int) -> None:
        """Let the wall clock show a time: a micro-batch of its own."""
        self.run({(CLOCK, 0): [TopicRecord(None, None, now)]})

    def pipe(self, topic: str, record: TopicRecord) -> None:
        """Take one record of a topic."""
        self.run({(topic, record.partition): [record]})

    def run(self, batch: Mapping[tuple[str, int], Iterable[TopicRecord]]) -> None:
        """Take a micro-batch, and those that follow of the topics that come back."""
        pending = deque([batch])
        while pending:
            written = list(self._micro_batch(pending.popleft()))
            again: dict[tuple[str, int], list[TopicRecord]] = {}
            for each in written:
                self.produced.setdefault(each.topic, []).append(each)
                if self.layout.routes_of(each.topic):
                    record = TopicRecord(each.key, each.value, each.timestamp, each.headers)
                    again.setdefault((each.topic, 0), []).append(record)
            if again:
                pending.append(again)

    def _micro_batch(
        self, batch: Mapping[tuple[str, int], Iterable[TopicRecord]]
    ) -> Iterator[ProducedRecord]:
        entry = Entry(self.layout, self._slots)
        envelopes = [
            each
            for (topic, partition), records in batch.items()
            for each in entry.take(topic, partition, self._batch(topic, partition, records))
        ]
        for level in range(1, self.layout.levels + 1):
            # Spark hands the rows of a slot over in any order.
            by_slot: dict[int, list[Envelope]] = {}
            for each in reversed(envelopes):
                by_slot.setdefault(each.slot, []).append(each)
            stage, envelopes = Stage(self.layout, self._slots, level), []
            for slot, rows in sorted(by_slot.items()):
                pages = self._state.setdefault((level, slot), Pages())
                envelopes += stage.handle(slot, rows, pages)
        for each in envelopes:
            assert each.task == SINK, each
            if each.topic == DROPPED_TOPIC:
                self.dropped += each.sequence
                continue
            for record in topic_records(each.records):
                partition = None if record.partition < 0 else record.partition
                yield ProducedRecord(
                    each.topic,
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
        headers = [[{"key": k, "value": v} for k, v in each.headers] or None for each in rows]
        columns = [
            [partition] * len(rows),
            list(range(start, start + len(rows))),
            [each.timestamp for each in rows],
            [each.key for each in rows],
            [each.value for each in rows],
            headers,
        ]
        arrays = [pa.array(each, field.type) for each, field in zip(columns, RECORDS, strict=True)]
        return pa.RecordBatch.from_arrays(arrays, schema=RECORDS)
