"""The task: runs a topology record by record, with its stores, clocks and punctuators.

A task is pure Python and single-threaded. It reads and writes bytes: the caller adds records of
topics, receives the output of sinks and changelogs, and provides the wall clock. Of the buffered
records, the task processes the one with the smallest timestamp first; if timestamps are equal, the
record of the source that was added first.

Not done: transactions and restoring, which the caller of the task implements; standby tasks;
Kafka's order of topics whose next records have the same timestamp and of punctuators that are due
at the same time. Kafka's order comes from Java's heap; here it is the order in which they were
added.
"""

import heapq
import re
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

from ottla.streams.model.errors import StreamsError
from ottla.streams.model.raw import ProducedRecord, TopicRecord
from ottla.streams.model.records import NO_TIMESTAMP, Header, Record, RecordMetadata
from ottla.streams.model.user_errors import frames_of, note_record, note_source_record
from ottla.streams.processor.api import FixedKeyProcessor, Processor, PunctuationType
from ottla.streams.processor.punctuators import Punctuators, Schedule
from ottla.streams.serdes import resolve
from ottla.streams.settings.handlers import SerializationOrigin
from ottla.streams.stores.builders import StateStore, StoreBuilder
from ottla.streams.stores.ordered import OpenMap, open_memory
from ottla.streams.task.caching import CACHED_KINDS, CurrentRecord, RecordCache
from ottla.streams.task.dropped_records import DroppedRecords
from ottla.streams.task.edges import Deliver, Failures, Reader, Writer
from ottla.streams.task.node_context import FixedKeyContext, NodeContext, TableContext
from ottla.streams.task.settings import TaskSettings
from ottla.streams.topology.topology import ProcessorNode, Sink, Source, Topology, TopologyNode

__all__ = [
    "NodeContext",
    "ProducedRecord",
    "Punctuators",
    "Schedule",
    "Task",
    "TaskSettings",
    "TopicRecord",
]


@dataclass
class _Waiting:
    """The buffered records of a partition; the first one has been deserialized."""

    reader: Reader
    topic_partition: tuple[str, int]
    records: deque[TopicRecord] = field(default_factory=deque)
    head: Record[Any, Any] | None = None
    head_raw: TopicRecord | None = None

    def fill(self) -> None:
        while self.head is None and self.records:
            raw = self.records.popleft()
            try:
                self.head = self.reader.read(self.topic_partition[0], raw)
            except Exception as error:
                metadata = RecordMetadata(self.topic_partition[0], raw.partition, raw.offset)
                note_source_record(error, metadata, self.reader.name)
                raise
            self.head_raw = raw


class Task:
    """A running topology. `output` receives the records of sinks and changelogs; `clock` is the
    wall clock.
    """

    def __init__(
        self,
        topology: Topology,
        settings: TaskSettings,
        output: Callable[[ProducedRecord], None],
        clock: Callable[[], int],
        open_map: OpenMap = open_memory,
        dropped: DroppedRecords | None = None,
    ) -> None:
        self.topology, self.settings, self.clock = topology, settings, clock
        self.dropped = dropped or DroppedRecords(clock)
        self.stream_time = NO_TIMESTAMP
        self.partition = 0
        self.metadata: RecordMetadata | None = None
        self.raw: TopicRecord | None = None
        """The bytes of the current record; None if they are no longer known."""
        self.stores: dict[str, StateStore] = {}
        self.processors: dict[str, Processor[Any, Any, Any, Any]] = {}
        self.punctuators = {punctuation: Punctuators() for punctuation in PunctuationType}
        self._output = output
        self.failures = Failures(settings.exception_handlers, self)
        self.now = NO_TIMESTAMP
        """The timestamp of the current record or punctuation."""
        self.headers: Sequence[Header] = ()
        """The headers of the current record."""
        self.commit_requested = False
        """If a processor has requested a commit since the last one."""
        self._cache = RecordCache(settings.statestore_cache_max_bytes, self)
        self.contexts: dict[str, NodeContext] = {}
        self._readers: dict[str, Reader] = {}
        self._patterns: list[tuple[re.Pattern[str], Reader]] = []
        self._global_topics: set[str] = set()
        self._waiting: dict[tuple[str, int], _Waiting] = {}
        # The partitions with a buffered record, by its timestamp, then by source, topic and
        # partition.
        self._ready: list[tuple[int, int, tuple[str, int], _Waiting]] = []
        for builder in (*topology.stores.values(), *topology.global_stores.values()):
            self._open_store(self._bound(builder), open_map)
        self._build()

    def _open_store(self, builder: StoreBuilder, open_map: OpenMap) -> None:
        log, defaults = self._changelog(builder), self.settings.defaults
        if self._is_cached(builder):
            value = resolve(builder.value, defaults.value)
            cached = self._cache.table(builder.name, builder.kind, log, value)
            log, open_map = cached.log, cached.opening(open_map)
        name, time = builder.name, lambda: self.stream_time

        def on_expired(reason: str) -> None:
            self.dropped.drop_put(name, reason, self.metadata)

        self.stores[name] = builder.build(defaults, log, open_map, time, on_expired)

    def _is_cached(self, builder: StoreBuilder) -> bool:
        if not (builder.caching_enabled and self.settings.statestore_cache_max_bytes > 0):
            return False
        # Results that are emitted on close are emitted once and need no cache. Each version counts.
        is_plain = not builder.by_time and builder.kind != "versioned"
        return is_plain and builder.name not in self.topology.global_stores

    def current_record(self) -> CurrentRecord:
        """Return the current record: metadata, bytes, timestamp and headers."""
        return self.metadata, self.raw, self.now, self.headers

    @contextmanager
    def at(self, current: CurrentRecord) -> Iterator[None]:
        """Return a context in which that record is the current one."""
        before = self.current_record()
        self.metadata, self.raw, self.now, self.headers = current
        try:
            yield
        finally:
            self.metadata, self.raw, self.now, self.headers = before

    def commit(self) -> None:
        """Flush the caches; the caller then commits the records that the task wrote."""
        self.commit_requested = False
        self._cache.flush()

    def topic_name(self, topic: str) -> str:
        """Return the full name of a topic; internal topics get the application's name."""
        internal = topic in self.topology.internal_topics
        return f"{self.settings.application_id}-{topic}" if internal else topic

    def partition_count(self, topic: str) -> int:
        """Return the number of partitions of a topic."""
        return self.settings.partition_count(topic)

    def _bound(self, builder: StoreBuilder) -> StoreBuilder:
        """Return the description of a store with the serdes of its changelog."""
        topic = self._changelog_topic(builder)
        defaults = self.settings.defaults
        key, value = resolve(builder.key, defaults.key), resolve(builder.value, defaults.value)
        if key.bind is None and value.bind is None:
            return builder
        key, value = key.of(topic, is_key=True), value.of(topic, is_key=False)
        return replace(builder, key=key, value=value)

    def _changelog_topic(self, builder: StoreBuilder) -> str:
        return f"{self.settings.application_id}-{builder.name}-changelog"

    def _changelog(
        self, builder: StoreBuilder
    ) -> Callable[[bytes, bytes | None, int | None], None] | None:
        if not (builder.logging_enabled and self.settings.writes_changelogs):
            return None
        topic = self._changelog_topic(builder)

        # As in Kafka Streams 4.3, the buffered records of a stream join keep their headers.
        keeps_headers = builder.kind == "join_window"

        def log(key: bytes, value: bytes | None, timestamp: int | None) -> None:
            time = self.now if timestamp is None else timestamp
            if time < 0:
                # Without a current record there is no timestamp; Kafka writes 0.
                time = 0
            headers = self.headers if keeps_headers else ()
            self._output(ProducedRecord(topic, key, value, time, headers))

        return log

    def _build(self) -> None:
        for name, node in self.topology.nodes.items():
            stores = frozenset(self.topology.connected.get(name, ()))
            self.contexts[name] = self._context(node, stores)
            if isinstance(node, Source):
                self._add_source(node)
            elif isinstance(node, Sink):
                self._connect(name, node.parents, self._writer(node))
            else:
                self._add_processor(node)
        for name, processor in self.processors.items():
            try:
                processor.init(self.contexts[name])
            except Exception as error:
                note_record(error, None, name)
                raise

    def _context(self, node: TopologyNode, stores: frozenset[str]) -> NodeContext:
        if isinstance(node, ProcessorNode) and hasattr(node.supplier, "send_old_values"):
            # The operator of a table; its own store, if it has one, is in its description.
            builder = getattr(node.supplier, "store", None)
            if builder is not None and builder.name in stores and builder.kind in CACHED_KINDS:
                table = self._cache.find(builder.name)
                if table is not None:
                    table.sends_old_values = node.supplier.send_old_values
                    return TableContext(self, node.name, stores, table)
        return NodeContext(self, node.name, stores)

    def _writer(self, sink: Sink) -> Deliver:
        return Writer(sink, self.settings.defaults, self.failures, self).write

    def _add_source(self, source: Source) -> None:
        order = len(self.contexts)
        defaults, extractor = self.settings.defaults, self.settings.default_timestamp_extractor
        internal = any(topic in self.topology.internal_topics for topic in source.topics)
        own_extractor = None if internal else extractor
        reader = Reader(source, defaults, self.failures, order, own_extractor)
        for topic in source.topics:
            self._readers[self.topic_name(topic)] = reader
            if source.is_global:
                self._global_topics.add(topic)
        if source.pattern is not None:
            self._patterns.append((re.compile(source.pattern), reader))

    def _add_processor(self, node: ProcessorNode) -> None:
        processor = self.processors[node.name] = node.supplier()
        process: Deliver = processor.process
        if isinstance(processor, FixedKeyProcessor):
            context = FixedKeyContext(self, node.name, self.contexts[node.name].stores)
            self.contexts[node.name], process = context, context.keeping(process)
        self._connect(node.name, node.parents, self.failures.guard(node.name, process))

    def _connect(self, name: str, parents: Sequence[str], deliver: Deliver) -> None:
        for parent in parents:
            self.contexts[parent].add_child(name, deliver)

    @property
    def source_topics(self) -> set[str]:
        """The names and patterns of the topics that sources read."""
        return {*self._readers, *(pattern.pattern for pattern, _ in self._patterns)}

    def reads(self, topic: str) -> bool:
        """Return True if a source reads the topic."""
        return self._reader(topic) is not None

    def _reader(self, topic: str) -> Reader | None:
        if topic in self._readers:
            return self._readers[topic]
        return next(
            (reader for pattern, reader in self._patterns if pattern.fullmatch(topic)), None
        )

    def add(self, topic: str, raw: TopicRecord) -> None:
        """Add a record of a topic; records of global topics are processed immediately."""
        reader = self._reader(topic)
        if reader is None:
            raise StreamsError(f"no source reads topic {topic}")
        if topic in self._global_topics:
            single = _Waiting(reader, (topic, raw.partition), deque([raw]))
            single.fill()
            if single.head is not None:
                self._deliver(reader, topic, single.head, raw)
            return
        key = topic, raw.partition
        waiting = self._waiting.get(key)
        if waiting is None:
            waiting = self._waiting[key] = _Waiting(reader, key)
        waiting.records.append(raw)
        if waiting.head is None:
            self._advance(waiting)

    def buffered(self, topic: str, partition: int) -> int:
        """Return the number of records of a partition that are buffered."""
        waiting = self._waiting.get((topic, partition))
        return 0 if waiting is None else len(waiting.records) + (waiting.head is not None)

    def next_offset(self, topic: str, partition: int) -> int | None:
        """Return the offset of a partition's first buffered record; None if none is buffered."""
        waiting = self._waiting.get((topic, partition))
        raw = None if waiting is None or waiting.head is None else waiting.head_raw
        return None if raw is None else raw.offset

    def follow(self, topic: str, raw: TopicRecord) -> None:
        """Add a record of a global topic that another task reads, too: only the exception handlers
        of that task are called.
        """
        self.failures.follows = True
        try:
            self.add(topic, raw)
        finally:
            self.failures.follows = False

    def _advance(self, waiting: _Waiting) -> None:
        waiting.fill()
        if waiting.head is not None:
            entry = waiting.head.timestamp, waiting.reader.order, waiting.topic_partition, waiting
            heapq.heappush(self._ready, entry)

    def process_next(self) -> bool:
        """Process the buffered record with the smallest timestamp; return False if no record is
        buffered.
        """
        if not self._ready:
            return False
        waiting = heapq.heappop(self._ready)[3]
        record, raw = waiting.head, waiting.head_raw
        assert record is not None
        assert raw is not None
        waiting.head = None
        self._advance(waiting)
        self.stream_time = max(self.stream_time, record.timestamp)
        self._deliver(waiting.reader, waiting.topic_partition[0], record, raw)
        return True

    def process_alone(self, topic: str, records: Iterable[TopicRecord]) -> None:
        """Process the records of one partition in order, and punctuate by stream time.

        No other records may be buffered.
        """
        assert not self._ready, "others wait"
        reader = self._reader(topic)
        if reader is None:
            raise StreamsError(f"no source reads topic {topic}")
        read, forward = reader.read, self.contexts[reader.name].forward
        schedules = self.punctuators[PunctuationType.STREAM_TIME]
        for raw in records:
            try:
                record = read(topic, raw)
            except Exception as error:
                metadata = RecordMetadata(topic, raw.partition, raw.offset)
                note_source_record(error, metadata, reader.name)
                raise
            if record is None:
                continue
            self.now = time = record.timestamp
            self.headers = record.headers
            self.stream_time = max(self.stream_time, time)
            self.metadata = RecordMetadata(topic, raw.partition, raw.offset)
            self.raw = raw
            try:
                forward(record)
            except Exception as error:
                self._add_note(error)
                raise
            finally:
                self.metadata = self.raw = None
            if schedules:
                self.punctuate_stream_time()

    def _deliver(
        self, reader: Reader, topic: str, record: Record[Any, Any], raw: TopicRecord
    ) -> None:
        self.metadata = RecordMetadata(topic, raw.partition, raw.offset)
        self.now, self.headers = record.timestamp, record.headers
        self.raw = raw
        try:
            self.contexts[reader.name].forward(record)
        except Exception as error:
            self._add_note(error)
            raise
        finally:
            self.metadata = self.raw = None

    def _add_note(self, error: Exception) -> None:
        """Add the current record and node to an error as a note."""
        names = {id(processor): name for name, processor in self.processors.items()}
        stores = {id(store): name for name, store in self.stores.items()}
        node = store = None
        for frame in frames_of(error):
            owner = frame.f_locals.get("self")
            node = owner.name if isinstance(owner, Writer) else names.get(id(owner), node)
            # A store calls its serdes; a cached store also calls the operators below its table.
            follows = isinstance(owner, Writer) or id(owner) in names
            store = None if follows else stores.get(id(owner), store)
        note_record(
            error, self.metadata, node, None if store is None else self._store_serde_hint(store)
        )

    def _store_serde_hint(self, name: str) -> str:
        """Return the hint for an error of a store's serdes."""
        topology, defaults = self.topology, self.settings.defaults
        builder = topology.stores.get(name) or topology.global_stores[name]
        key, value = (
            f"{default}, the default" if own is None else f"{own}"
            for own, default in ((builder.key, defaults.key), (builder.value, defaults.value))
        )
        return (
            f"The store {name!r} writes keys with {key}, and values with {value}: give its table others with "
            "materialized=Materialized.with_(key, value)."
        )

    def handle_unwritable(
        self,
        sink: Sink,
        topic: str,
        record: Record[Any, Any],
        error: Exception,
        origin: SerializationOrigin,
    ) -> None:
        """Pass a record that cannot be serialized to the handlers. Raises SerializationError if
        they fail.
        """
        Writer(sink, self.settings.defaults, self.failures, self).refuse(
            topic, record, error, origin
        )

    def write(self, record: ProducedRecord) -> None:
        """Pass a record that a sink wrote to the caller."""
        self._output(record)

    def schedule(
        self,
        node: str,
        interval_ms: int,
        punctuation: PunctuationType,
        callback: Callable[[int], Any],
        start: int | None = None,
    ) -> Schedule:
        """Schedule a punctuator. On stream time it is due at the first record, or at `start` (ms)."""
        is_timed = punctuation is PunctuationType.WALL_CLOCK_TIME
        now = self.clock() if is_timed else self.stream_time
        due_ms = start
        if due_ms is None:
            due_ms = now + interval_ms if is_timed else 0
        schedule = Schedule(node, punctuation, due_ms, interval_ms, callback)
        if start is not None and start < now:
            schedule.advance(now)
        self.punctuators[punctuation].add(schedule)
        return schedule

    def punctuate_stream_time(self) -> None:
        """Call the punctuators that are due by stream time."""
        if self.stream_time != NO_TIMESTAMP:
            self.now, self.headers = self.stream_time, ()
            self.punctuators[PunctuationType.STREAM_TIME].run(
                self.stream_time, self.failures.punctuate
            )

    def punctuate_wall_clock_time(self) -> None:
        """Call the punctuators that are due by the wall clock."""
        self.now = now = self.clock()
        self.headers = ()
        self.punctuators[PunctuationType.WALL_CLOCK_TIME].run(now, self.failures.punctuate)

    def close(self) -> None:
        """Close the processors, then the stores."""
        for name, processor in self.processors.items():
            processor.close()
            self.contexts[name].close_parts()
        for store in self.stores.values():
            store.close()
