"""Runs tasks inside Spark's workers: a micro-batch of envelopes in, envelopes out. This module does
not use Spark.

`SourceStage` runs where the source is read: it runs stateless sub-topologies and addresses all
other records to tasks. `Stage` runs the tasks of one level, with their stores over state pages. A
task restores its memory, processes the records in Kafka's order (of the topics' next records the
one with the earliest timestamp), and writes its changes.
"""

import heapq
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa

from ottla.streams.layout.internal_topics import changelogs_of, latest_changes
from ottla.streams.layout.layout import Layout, Routing, SubTopology, TaskRoute
from ottla.streams.model.packing import pack, unpack
from ottla.streams.spark.layout.envelopes import Envelope, Outbox, Slots, topic_records
from ottla.streams.spark.stages.fused import PlainTask
from ottla.streams.spark.stages.pages import PagedMaps, PageStore
from ottla.streams.spark.stages.placement import (
    PROCESS_PLACEMENT,
    KeyPlacement,
    PartitionCounts,
)
from ottla.streams.spark.stages.task_memory import TaskMemory
from ottla.streams.task.dropped_records import DroppedRecords, Lines
from ottla.streams.task.task import ProducedRecord, Task, TopicRecord
from ottla.streams.topology.topology import Source
from ottla.wire.records.columnar_partitioner import partitions_of

# The name of the page with a task's state besides its maps.
_MEMORY = "task"
# The sequence of a batch's output is the batch's first offset, shifted. No batch has more records
# than these bits count.
_SEQUENCE_BITS = 20


def wall_clock_ms() -> int:
    """Return the current time in milliseconds."""
    return time.time_ns() // 1_000_000


# Shared by the process, as its tasks only live for a micro-batch: limits the rate of logging.
_LOGGED: Lines = {}


def dropped_records() -> DroppedRecords:
    """Return a counter of dropped records; all counters of this process share one limit of logging."""
    return DroppedRecords(wall_clock_ms, _LOGGED)


class SourceStage:
    """Takes batches of source topics; lives as long as one of Spark's reading tasks."""

    def __init__(
        self, layout: Layout, slots: Slots, placement: KeyPlacement = PROCESS_PLACEMENT
    ) -> None:
        self._layout = layout
        self._placement = placement
        self._outbox = Outbox(layout, slots, 0)
        self._topics = sorted(layout.routes)
        self._tasks: dict[int, PlainTask] = {}

    def take(
        self, topic: str, partition: int, records: pa.RecordBatch, partition_count: int = 0
    ) -> Iterator[Envelope]:
        """Yield the envelopes for a batch (RECORDS) of one partition.

        If the topic's number of partitions is not a multiple of the number of tasks, because
        partitions were added or the topic was created later than the tasks, records go to the tasks
        that murmur2 chooses for their keys. If it is a multiple, `partition % tasks` is the task of
        a key for any hash.
        """
        if not records.num_rows:
            return
        if topic == self._layout.clock_topic:
            for number in self._layout.clocked:
                for task in self._layout.sub_topologies[number].tasks:
                    yield self._address(task, topic, partition, records)
            return
        routes = self._layout.routes_of(topic)
        misplaced = self._check_keys(routes, topic, (partition, records), partition_count)
        yield from self._outbox.misplaced(self._number(topic), misplaced)
        for route in routes:
            sub_topology = self._layout.sub_topologies[route.sub_topology_number]
            if sub_topology.level == 0:
                yield from self._run(route.sub_topology_number, topic, partition, records)
            else:
                if (
                    route.routing is Routing.BY_PARTITION
                    and partition_count % sub_topology.partitions
                ):
                    route = replace(route, routing=Routing.BY_KEY)
                yield from self._send(sub_topology, route, topic, (partition, records))

    def _check_keys(
        self,
        routes: Iterable[TaskRoute],
        topic: str,
        batch: tuple[int, pa.RecordBatch],
        partition_count: int,
    ) -> int:
        """Check the partitions of keys if other topics or state must be in their tasks; return the
        number of misplaced keys among those that were checked.
        """
        partition, records = batch
        for route in routes:
            if topic in self._layout.created or route.routing is Routing.TO_ALL:
                continue
            sub_topology = self._layout.sub_topologies[route.sub_topology_number]
            tasks = sub_topology.partitions
            count = partition_count or tasks
            if route.routing is Routing.BY_PARTITION and count % tasks == 0:
                is_checked = route.sub_topology_number in self._layout.co_partitioned
                has_moved = False
            else:
                # The tasks have the state of the partitions that the topic had at the first start.
                has_moved = route.routing is Routing.BY_PARTITION or count > tasks
                is_checked = has_moved and bool(sub_topology.topology.stores)
            if is_checked:
                counts = PartitionCounts(count, tasks, has_moved)
                return self._placement.check(topic, partition, records.column("key"), counts)
        return 0

    def _number(self, topic: str) -> int:
        """Return the number of a topic; those that are not named in the layout share one."""
        return self._topics.index(topic) if topic in self._topics else len(self._topics)

    def _address(self, task: int, topic: str, partition: int, records: pa.RecordBatch) -> Envelope:
        first = records.column("offset")[0].as_py()
        return self._outbox.envelope(task, topic, partition, first, records)

    def _send(
        self,
        sub_topology: SubTopology,
        route: TaskRoute,
        topic: str,
        batch: tuple[int, pa.RecordBatch],
    ) -> Iterator[Envelope]:
        partition, records = batch
        own = partition % sub_topology.partitions
        if route.routing is Routing.TO_ALL:
            for task in sub_topology.tasks:
                yield self._address(task, topic, partition, records)
        elif route.routing is Routing.BY_PARTITION:
            yield self._address(sub_topology.first_task + own, topic, partition, records)
        else:
            result = partitions_of(records.column("key"), sub_topology.partitions, own)
            for partition_number in np.unique(result).tolist():
                chosen = records.take(pa.array(np.flatnonzero(result == partition_number)))
                yield self._address(
                    sub_topology.first_task + partition_number, topic, partition, chosen
                )

    def _run(
        self, number: int, topic: str, partition: int, records: pa.RecordBatch
    ) -> Iterator[Envelope]:
        """Run a stateless sub-topology."""
        sub_topology = self._layout.sub_topologies[number]
        if number not in self._tasks:
            self._tasks[number] = PlainTask(sub_topology, wall_clock_ms, dropped_records())
        plain = self._tasks[number]
        before = plain.dropped_count
        # Each source topic is an origin of its own: the order of its output is restored separately.
        number_of_topic = self._number(topic)
        origin = sub_topology.first_task + partition % sub_topology.partitions
        origin += number_of_topic * self._layout.task_count
        first = records.column("offset")[0].as_py() << _SEQUENCE_BITS
        for output in plain.run(topic, records):
            yield from self._outbox.of_batch(origin, output.topic, output.records, first)
        task = sub_topology.first_task + partition % sub_topology.partitions
        yield from self._outbox.dropped(task, plain.dropped_count - before)


class Stage:
    """Runs the tasks of one level."""

    def __init__(
        self,
        layout: Layout,
        slots: Slots,
        level: int,
        clock: Callable[[], int] = wall_clock_ms,
    ) -> None:
        self._layout = layout
        self._slots = slots
        self._outbox = Outbox(layout, slots, level)
        self._clock = clock

    def handle(
        self, slot: int, envelopes: Iterable[Envelope], pages: PageStore
    ) -> Iterator[Envelope]:
        """Yield the output for all envelopes of a slot; a carrier forwards the envelopes in order."""
        ordered = sorted(
            envelopes, key=lambda envelope: (envelope.topic, envelope.origin, envelope.sequence)
        )
        task = self._slots.task(slot)
        if task is None:
            yield from map(self._outbox.forward, ordered)
            return
        run = _Run(self._layout, task, pages, self._clock())
        yield from self._outbox.envelopes(task, run.take(ordered))
        yield from self._outbox.dropped(task, run.dropped.total)


class _Run:
    """One task in one micro-batch."""

    def __init__(self, layout: Layout, number: int, pages: PageStore, now: int) -> None:
        self._layout = layout
        self._sub_topology = layout.sub_topology_of(number)
        self._partition = number - self._sub_topology.first_task
        self._pages = pages
        self._produced: list[ProducedRecord] = []
        self.dropped = dropped_records()
        stored = pages.get(_MEMORY)
        document: dict[str, Any] = {} if stored is None else unpack(stored)
        self._remembered: bytes | None = document.get("remembered")
        # The number of records received from each internal topic, which is the next record's
        # offset.
        self._arrived: dict[str, int] = document.get("arrived", {})
        self._maps = PagedMaps(pages, document.get("maps", {}))
        self._clock_time: int | None = document.get("told")
        self._now = now if self._clock_time is None else self._clock_time

    def take(self, envelopes: list[Envelope]) -> list[ProducedRecord]:
        """Process all records of a micro-batch; return the task's output."""
        by_topic: dict[str, dict[int, list[Envelope]]] = {}
        for envelope in envelopes:
            by_topic.setdefault(envelope.topic, {}).setdefault(envelope.origin, []).append(envelope)
        ticks = by_topic.pop(self._layout.clock_topic or "", {})
        latest_tick = max((time for time in _times(ticks)), default=None)
        if latest_tick is not None and self._remembered is None:
            self._now = latest_tick
        settings, topology = self._sub_topology.application.settings, self._sub_topology.topology
        output, open_map = self._produced.append, self._maps.open_map
        task = Task(topology, settings, output, self._time, open_map, self.dropped)
        task.partition = self._partition
        memory = TaskMemory(task)
        if self._remembered is not None:
            memory.recall(self._remembered)
        self._process(task, by_topic)
        if latest_tick is not None:
            self._clock_time = self._now = latest_tick
            task.punctuate_wall_clock_time()
        task.commit()
        self._keep(memory.remember())
        task.close()
        application = self._sub_topology.application
        if not application.keeps_changelogs:
            return self._produced
        changelogs = changelogs_of(application, self._sub_topology.topology.stores)
        return latest_changes(self._produced, changelogs, self._partition)

    def _time(self) -> int:
        return self._now

    def _process(self, task: Task, by_topic: dict[str, dict[int, list[Envelope]]]) -> None:
        names = by_topic.keys()
        nodes = self._sub_topology.topology.nodes.values()
        filled = [node for node in nodes if isinstance(node, Source) and node.is_global]
        first = {topic for source in filled for topic in source.topics} & names
        remaining = sorted(names - first)
        for topic in sorted(first):
            self._fill_globals(task, topic, by_topic[topic])
        if len(remaining) == 1 and (
            remaining[0] in self._layout.shuffled or len(by_topic[remaining[0]]) == 1
        ):
            # A single partition is in order already.
            task.process_alone(remaining[0], self._records(remaining[0], by_topic[remaining[0]]))
            return
        for topic in remaining:
            for record in self._records(topic, by_topic[topic]):
                task.add(topic, record)
        while task.process_next():
            task.punctuate_stream_time()

    def _fill_globals(self, task: Task, topic: str, origins: dict[int, list[Envelope]]) -> None:
        """Apply the records of a global topic, which every task reads.

        Only the first task calls exception handlers, counts dropped records and writes dead
        letters: Kafka Streams reads global topics once.
        """
        produced, dropped = len(self._produced), self.dropped.total
        routes = self._layout.routes_of(topic)
        readers = (route for route in routes if route.routing is Routing.TO_ALL)
        reader = self._layout.sub_topologies[next(readers).sub_topology_number]
        is_first = (reader.first_task, 0) == (self._sub_topology.first_task, self._partition)
        add = task.add if is_first else task.follow
        for record in self._records(topic, origins):
            add(topic, record)
        if not is_first:
            del self._produced[produced:]
            self.dropped.total = dropped

    def _records(self, topic: str, origins: dict[int, list[Envelope]]) -> Iterator[TopicRecord]:
        queues: list[Iterator[TopicRecord]] = [
            (record for envelope in envelopes for record in topic_records(envelope.records))
            for _, envelopes in sorted(origins.items())
        ]
        if topic not in self._layout.shuffled:
            for queue in queues:
                yield from queue
            return
        for record in _by_time(queues):
            offset = self._arrived.get(topic, 0)
            self._arrived[topic] = offset + 1
            yield record._replace(partition=self._partition, offset=offset)

    def _keep(self, remembered: bytes) -> None:
        document = {
            "remembered": remembered,
            "arrived": self._arrived,
            "maps": self._maps.flush(),
            "told": self._clock_time,
        }
        self._pages.put(_MEMORY, pack(document))


def _times(ticks: dict[int, list[Envelope]]) -> Iterator[int]:
    for envelopes in ticks.values():
        for envelope in envelopes:
            yield from (record.timestamp for record in topic_records(envelope.records))


def _by_time(queues: list[Iterator[TopicRecord]]) -> Iterator[TopicRecord]:
    """Merge queues of records: of their next records yield the one with the earliest timestamp."""
    if len(queues) == 1:
        yield from queues[0]
        return
    heap: list[tuple[int, int, TopicRecord]] = []
    for number, queue in enumerate(queues):
        for record in queue:
            heap.append((record.timestamp, number, record))
            break
    heapq.heapify(heap)
    while heap:
        _, number, record = heap[0]
        yield record
        following = next(queues[number], None)
        if following is None:
            heapq.heappop(heap)
        else:
            heapq.heapreplace(heap, (following.timestamp, number, following))
