"""TopologyTestDriver: runs a topology inside a test, record by record, in virtual time.

The driver starts no threads and needs no broker. When `pipe_input` returns, the record has passed
through the whole topology, including repartition topics. The wall clock only moves when
`advance_wall_clock_time` is called.
"""

import threading
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from types import TracebackType
from typing import Any, Generic, TypeVar

from ottla.base.errors import ApiError
from ottla.streams.driver.topic_serdes import TopicSerdes
from ottla.streams.model.durations import (
    Duration,
    Instant,
    check_whole,
    instant_ms,
    instant_of,
    milliseconds,
)
from ottla.streams.model.records import NO_TIMESTAMP, Header, Record
from ottla.streams.model.spelling import SnakeCase
from ottla.streams.model.user_errors import shorten
from ottla.streams.queries.requests import StateQueryRequest, StateQueryResult, StoreQueryParameters
from ottla.streams.queries.store_views import accessed, view_of
from ottla.streams.serdes import DefaultSerdes, Serde
from ottla.streams.settings.application import known_options, read_settings
from ottla.streams.settings.config import keywords
from ottla.streams.settings.handlers import ExceptionHandlers
from ottla.streams.stores.builders import StoreBuilder
from ottla.streams.task.metrics import DROPPED_RATE, DROPPED_TOTAL, Metrics, task_metrics
from ottla.streams.task.task import ProducedRecord, Task, TaskSettings, TopicRecord
from ottla.streams.topology.topology import (
    Topology,
    check_topology,
    unknown_store,
    visible_stores,
)

K = TypeVar("K")
V = TypeVar("V")
R = TypeVar("R")

_NOTHING: Any = object()


def _settings(settings: TaskSettings | Mapping[str, Any] | None) -> TaskSettings:
    if settings is None or isinstance(settings, TaskSettings):
        return settings or TaskSettings("test")
    named = keywords(settings, known_options())
    for name in ("bootstrap_servers", "security"):
        named.pop(name, None)
    application_id = named.pop("application_id", "test")
    options = read_settings(named)
    handlers = options.exception_handlers or ExceptionHandlers()
    return TaskSettings(
        application_id,
        options.defaults,
        default_timestamp_extractor=options.default_timestamp_extractor,
        statestore_cache_max_bytes=options.statestore_cache_max_bytes,
        exception_handlers=handlers,
        app_configs=options.app_configs,
    )


class TestRecord(Record[K, V], Generic[K, V]):
    """A record of a test: `TestRecord(key, value, headers, time)`, or `TestRecord(value)` without a
    key.

    It equals an output record with the same key, value, headers and time in ms. The time -1 means
    that it is not set.
    """

    __test__ = False
    __slots__ = ()

    def __new__(
        cls,
        key: Any,
        value: Any = _NOTHING,
        headers: Sequence[Header] = (),
        timestamp: Instant = NO_TIMESTAMP,
    ) -> "TestRecord[K, V]":
        """Create a record."""
        if value is _NOTHING:
            key, value = None, key
        fields = key, value, instant_ms(timestamp), headers
        return tuple.__new__(cls, fields)

    def __getnewargs__(self) -> tuple[Any, ...]:
        return self.key, self.value, self.headers, self.timestamp

    @property
    def record_time(self) -> datetime | None:
        """The timestamp in UTC; None if it is not set."""
        return None if self.timestamp < 0 else instant_of(self.timestamp)


class TestInputTopic(SnakeCase, Generic[K, V]):
    """Pipes records into a topic; records without a timestamp get the topic's, which may advance."""

    __test__ = False

    def __init__(
        self,
        driver: "TopologyTestDriver",
        serdes: TopicSerdes[K, V],
        start: int,
        auto_advance_ms: int,
    ) -> None:
        self._driver = driver
        self._serdes = serdes
        self._time = start
        self._auto_advance_ms = auto_advance_ms

    def pipe_input(
        self,
        key: K | V | Record[Any, Any] | None,
        value: V | None = _NOTHING,
        timestamp: Instant | None = None,
        headers: Sequence[Header] = (),
    ) -> None:
        """Pipe a record: a key and a value, only a value (`pipe_input(value)`), or a TestRecord."""
        if value is _NOTHING and isinstance(key, Record):
            self.pipe_record(key)
            return
        if value is _NOTHING:
            key, value = None, key
        if timestamp is None:
            timestamp = self._time
            self._time += self._auto_advance_ms
        key_bytes, value_bytes = self._serdes.write(key, value)  # type: ignore[arg-type]
        record = TopicRecord(key_bytes, value_bytes, instant_ms(timestamp), headers)
        self._driver.pipe(self._serdes.topic, record)

    def pipe_record(self, record: Record[Any, Any]) -> None:
        """Pipe a record with its headers and timestamp. If the timestamp is -1, the topic's is
        used.
        """
        has_time = record.timestamp >= 0 or not isinstance(record, TestRecord)
        timestamp = record.timestamp if has_time else None
        self.pipe_input(record.key, record.value, timestamp, record.headers)

    def pipe_record_list(self, records: Iterable[Record[Any, Any]]) -> None:
        """Pipe several records, each with its timestamp and headers."""
        for record in records:
            self.pipe_record(record)

    def pipe_key_value_list(
        self,
        records: Iterable[tuple[K | None, V | None]],
        start: Instant | None = None,
        advance: Duration = 0,
    ) -> None:
        """Pipe several keys and values; with `start`, each is `advance` later than the one before."""
        first = None if start is None else instant_ms(start)
        step = milliseconds(advance)
        for number, (key, value) in enumerate(records):
            self.pipe_input(key, value, None if first is None else first + number * step)

    def pipe_value_list(
        self, values: Iterable[V | None], start: Instant | None = None, advance: Duration = 0
    ) -> None:
        """Pipe several values without keys."""
        self.pipe_key_value_list(((None, value) for value in values), start, advance)

    def advance_time(self, advance: Duration) -> None:
        """Advance the timestamp of the records that follow."""
        self._time += milliseconds(advance)


class TestOutputTopic(SnakeCase, Generic[K, V]):
    """Reads the records that were written to a topic, in order; each record is read once."""

    __test__ = False

    def __init__(self, driver: "TopologyTestDriver", serdes: TopicSerdes[K, V]) -> None:
        self._driver = driver
        self._topic = serdes.topic
        self._serdes = serdes

    def read_record(self) -> TestRecord[K | None, V | None]:
        """Read a record.

        Raises LookupError if no record is left, and DeserializationError if a serde cannot read it.
        """
        queue = self._driver.produced(self._topic)
        if not queue:
            raise LookupError(f"topic {self._topic} has no more records")
        raw = queue.popleft()
        key, value = self._serdes.read(raw)
        return TestRecord(key, value, raw.headers, raw.timestamp)

    def read_key_value(self) -> tuple[K | None, V | None]:
        """Read the key and value of a record."""
        record = self.read_record()
        return record.key, record.value

    def read_value(self) -> V | None:
        """Read the value of a record."""
        return self.read_record().value

    def read_records_to_list(self) -> list[TestRecord[K | None, V | None]]:
        """Read all remaining records."""
        return [self.read_record() for _ in range(self.queue_size)]

    def read_key_values_to_list(self) -> list[tuple[K | None, V | None]]:
        """Read the keys and values of all remaining records."""
        return [self.read_key_value() for _ in range(self.queue_size)]

    def read_key_values_to_map(self) -> dict[K | None, V | None]:
        """Read all remaining records into a dict with the last value of each key.

        Raises ValueError if a record has no key.
        """
        records = self.read_key_values_to_list()
        if any(key is None for key, _ in records):
            raise ValueError(
                f"topic {self._topic!r} has a record without a key: call read_key_values_to_list()"
            )
        return dict(records)

    def read_values_to_list(self) -> list[V | None]:
        """Read the values of all remaining records."""
        return [self.read_value() for _ in range(self.queue_size)]

    @property
    def queue_size(self) -> int:
        """The number of records that have not been read."""
        return len(self._driver.produced(self._topic))

    def is_empty(self) -> bool:
        """Return True if all records have been read."""
        return self.queue_size == 0


class TopologyTestDriver(SnakeCase):
    """Runs a topology in the calling thread. All topics have one partition.

    `start` is the initial wall-clock time. `emit_interval_ms` is how often closed windows are
    emitted: 0 (the default) at each record, 1000 once per second of wall-clock time, as in Kafka.
    `settings` has the other options of the application: a TaskSettings or a mapping with Kafka's
    names (config.py). Options that only apply to Spark have no effect. The other parameters
    override `settings`.
    """

    __test__ = False

    def __init__(
        self,
        topology: Topology,
        settings: TaskSettings | Mapping[str, Any] | None = None,
        start: Instant = 0,
        *,
        application_id: str | None = None,
        default_key_serde: Serde[Any] | None = None,
        default_value_serde: Serde[Any] | None = None,
        emit_interval_ms: int = 0,
    ) -> None:
        check_topology(topology, "a driver")
        driver_settings = _settings(settings)
        plain = driver_settings.defaults
        self._defaults = DefaultSerdes(
            default_key_serde or plain.key, default_value_serde or plain.value
        )
        check_whole("emit_interval_ms", emit_interval_ms)
        self._now = self._committed = instant_ms(start)
        self._offsets: dict[str, int] = {}
        self._produced: dict[str, deque[ProducedRecord]] = {}
        self._pending: deque[ProducedRecord] = deque()
        task_settings = replace(
            driver_settings,
            application_id=application_id or driver_settings.application_id,
            defaults=self._defaults,
            emit_interval_ms=emit_interval_ms or driver_settings.emit_interval_ms,
        )
        topology.check_copartitioning(task_settings.partitions_of)
        self._refusals: dict[str, Callable[[ProducedRecord], ApiError | None]] = {}
        try:
            self._task = Task(topology, task_settings, self._write, lambda: self._now)
        except Exception as error:
            shorten(error)
            raise

    def __enter__(self) -> "TopologyTestDriver":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def create_input_topic(
        self,
        topic: str,
        key: Serde[K] | None = None,
        value: Serde[V] | None = None,
        start: Instant | None = None,
        auto_advance: Duration = 0,
    ) -> TestInputTopic[K, V]:
        """Return an input topic. If `start` is None, timestamps begin at the wall-clock time."""
        first = self._now if start is None else instant_ms(start)
        serdes = TopicSerdes(topic, key, value, self._defaults)
        return TestInputTopic(self, serdes, first, milliseconds(auto_advance))

    def create_output_topic(
        self, topic: str, key: Serde[K] | None = None, value: Serde[V] | None = None
    ) -> TestOutputTopic[K, V]:
        """Return an output topic."""
        return TestOutputTopic(self, TopicSerdes(topic, key, value, self._defaults))

    def pipe(self, topic: str, record: TopicRecord) -> None:
        """Pipe a record of bytes into a topic and process it completely."""
        if not self._task.reads(topic):
            read = ", ".join(sorted(self._task.source_topics)) or "none"
            raise ValueError(f"no source reads topic {topic}; those that are read: {read}")
        try:
            self._add(topic, record)
            self._run()
        except Exception as error:
            shorten(error)
            raise
        finally:
            # Records that were written before an error, including dead letters, can be read.
            self._collect()

    def _add(self, topic: str, record: TopicRecord) -> None:
        offset = self._offsets.get(topic, 0)
        self._offsets[topic] = offset + 1
        self._task.add(topic, record._replace(offset=offset))

    def refuse(self, topic: str, judge: Callable[[ProducedRecord], ApiError | None]) -> None:
        """Simulate a broker that rejects records of a topic.

        `judge` returns the error for a record, or None to accept it.
        """
        self._refusals[topic] = judge

    def _write(self, record: ProducedRecord) -> None:
        judge = self._refusals.get(record.topic)
        error = None if judge is None else judge(record)
        if error is not None:
            raise error
        self._pending.append(record)

    def _run(self) -> None:
        self._collect()
        while self._task.process_next():
            self._task.punctuate_stream_time()
            self._commit_if_due()
            self._collect()

    def _collect(self) -> None:
        """Collect the records that were written, and process those that a source reads."""
        while self._pending:
            record = self._pending.popleft()
            self._produced.setdefault(record.topic, deque()).append(record)
            if self._task.reads(record.topic):
                key, value = record.key, record.value
                self._add(record.topic, TopicRecord(key, value, record.timestamp, record.headers))

    def advance_wall_clock_time(self, advance: Duration) -> None:
        """Advance the wall clock and call each punctuator that is due once."""
        self._now += milliseconds(advance)
        try:
            self._task.punctuate_wall_clock_time()
            self._commit_if_due()
            self._run()
        except Exception as error:
            shorten(error)
            raise

    def _commit_if_due(self) -> None:
        commit_at = self._committed + self._task.settings.commit_interval_ms
        if self._task.commit_requested or self._now >= commit_at:
            self._committed = self._now
            self._task.commit()

    def commit(self) -> None:
        """Commit: flush the record caches of tables."""
        self._task.commit()
        self._run()

    def produced(self, topic: str) -> deque[ProducedRecord]:
        """Return the records of a topic that have not been read."""
        return self._produced.setdefault(topic, deque())

    @property
    def produced_topic_names(self) -> set[str]:
        """The topics that have been written to, including repartition topics and changelogs."""
        return set(self._produced)

    def get_state_store(self, name: str) -> Any:
        """Return a store of any kind, as processors access it. Raises LookupError if it does not
        exist.

        Kafka's method rejects the built-in types of stores; here all stores are built in.
        """
        return self._task.stores[name]

    def store(self, name: str | StoreQueryParameters, *, with_timestamps: bool = False) -> Any:
        """Return a read-only view of a store, as `KafkaStreams.store` does.

        Raises StreamsError, with the names of all stores, if the store does not exist.
        """
        if isinstance(name, StoreQueryParameters):
            timed = name.queryable_store_type.with_timestamps
            return name.narrow(self.store(name.store_name, with_timestamps=timed))
        builder, store = self._store(name)
        return view_of(builder, [store], with_timestamps=with_timestamps)

    def _store(self, name: str) -> tuple[StoreBuilder, Any]:
        topology = self._task.topology
        builder = topology.stores.get(name) or topology.global_stores.get(name)
        if builder is None:
            raise unknown_store(topology, name)
        return builder, self._task.stores[name]

    def query(self, request: StateQueryRequest[R]) -> StateQueryResult[R]:
        """Query a store, as `KafkaStreams.query` does (KIP-796, queries.py)."""
        is_global = request.store_name in self._task.topology.global_stores
        return request.answer(self.store(request.store_name), is_global=is_global)

    # As in Kafka, these methods return writable stores and raise ValueError for a store of another
    # kind.

    def get_key_value_store(self, name: str) -> Any:
        """Return a key-value store. Values of tables have no timestamps; `put` sets the timestamp
        -1.
        """
        return accessed(*self._store(name), "get_key_value_store")

    def get_timestamped_key_value_store(self, name: str) -> Any:
        """Return the key-value store of a table; its values are ValueAndTimestamps."""
        return accessed(*self._store(name), "get_timestamped_key_value_store")

    def get_versioned_key_value_store(self, name: str) -> Any:
        """Return a versioned key-value store."""
        return accessed(*self._store(name), "get_versioned_key_value_store")

    def get_window_store(self, name: str) -> Any:
        """Return a window store. Values of tables have no timestamps; `put` sets the timestamp -1."""
        return accessed(*self._store(name), "get_window_store")

    def get_timestamped_window_store(self, name: str) -> Any:
        """Return the window store of a windowed table; its values are ValueAndTimestamps."""
        return accessed(*self._store(name), "get_timestamped_window_store")

    def get_session_store(self, name: str) -> Any:
        """Return a session store."""
        return accessed(*self._store(name), "get_session_store")

    def metrics(self) -> Metrics:
        """Return the metrics of the task: the total and the rate (per second) of dropped records."""
        dropped = self._task.dropped
        values = {DROPPED_TOTAL: float(dropped.total), DROPPED_RATE: dropped.rate()}
        return task_metrics(threading.current_thread().name, "0_0", values)

    @property
    def state_stores(self) -> Mapping[str, Any]:
        """All stores by name, including global stores."""
        visible = visible_stores(self._task.topology)
        return {name: self._task.stores[name] for name in visible}

    def get_all_state_stores(self) -> dict[str, Any]:
        """Return all stores by name, including global stores."""
        return dict(self.state_stores)

    def close(self) -> None:
        """Close the processors and stores."""
        self._task.close()
