"""The context of a node, with which a processor forwards records and accesses stores and clocks.

Follows ProcessorContextImpl.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Protocol, cast

from ottla.streams.expressions.arity import refuse_async
from ottla.streams.model.durations import Duration, Instant, instant_ms, milliseconds
from ottla.streams.model.errors import StreamsError
from ottla.streams.model.raw import TopicRecord
from ottla.streams.model.records import Header, Record, RecordMetadata
from ottla.streams.model.spelling import SnakeCase
from ottla.streams.processor.api import Part, Processor, PunctuationType
from ottla.streams.processor.punctuators import Schedule
from ottla.streams.task.caching import CachedTable
from ottla.streams.task.dropped_records import DroppedRecords
from ottla.streams.task.edges import Deliver
from ottla.streams.task.settings import TaskSettings, with_prefix
from ottla.streams.topology.topology import Topology


class TaskOfNode(Protocol):
    """The parts of a task that the contexts of its nodes use."""

    topology: Topology
    settings: TaskSettings
    clock: Callable[[], int]
    dropped: DroppedRecords
    partition: int
    stream_time: int
    metadata: RecordMetadata | None
    raw: TopicRecord | None
    now: int
    headers: Sequence[Header]
    stores: dict[str, Any]
    processors: dict[str, Processor[Any, Any, Any, Any]]
    commit_requested: bool

    def schedule(
        self,
        node: str,
        interval_ms: int,
        punctuation: PunctuationType,
        callback: Callable[[int], Any],
        start: int | None = None,
    ) -> Schedule:
        """Schedule a punctuator."""
        ...


_ANY_KEY: Any = object()


def _check_record(name: str, record: Any) -> None:
    if not isinstance(record, Record):
        raise TypeError(
            f"{name} forwards {record!r}: write forward(Record(key, value, timestamp)), or "
            "forward(record.with_value(…))"
        ) from None


class NodeContext(SnakeCase):
    """The ProcessorContext of one node."""

    def __init__(self, task: TaskOfNode, name: str, stores: frozenset[str]) -> None:
        self._task = task
        self._name = name
        self.stores = stores
        self._children: dict[str, Deliver] = {}
        self._deliveries: tuple[Deliver, ...] = ()
        self._part_names: list[str] = []
        self.application_id = task.settings.application_id
        self.default_serdes = task.settings.defaults
        self.key_serde, self.value_serde = self.default_serdes.key, self.default_serdes.value
        self.emit_interval_ms = task.settings.emit_interval_ms

    def add_child(self, name: str, deliver: Deliver) -> None:
        """Add a child that gets forwarded records."""
        self._children[name] = deliver
        self._deliveries = tuple(self._children.values())

    @property
    def record_metadata(self) -> RecordMetadata | None:
        """The topic, partition and offset of the current record; None in a punctuator."""
        return self._task.metadata

    @property
    def task_partition(self) -> int:
        """The number of the task within its sub-topology."""
        return self._task.partition

    def forward(self, record: Record[Any, Any], child: str | None = None) -> None:
        """Forward a record to all children, or to the named one."""
        task = self._task
        try:
            is_same = record.timestamp == task.now and record.headers is task.headers
        except AttributeError:
            _check_record(self._name, record)
            raise
        if is_same and child is None:
            for deliver in self._deliveries:
                deliver(record)
            return
        # The children write, including tombstones of tables, with the timestamp of the forwarded
        # record.
        before = task.now, task.headers
        task.now, task.headers = record.timestamp, record.headers
        try:
            self._send(record, child)
        finally:
            task.now, task.headers = before

    def _send(self, record: Record[Any, Any], child: str | None) -> None:
        if child is None:
            for deliver in self._deliveries:
                deliver(record)
        elif child in self._children:
            self._children[child](record)
        else:
            names = ", ".join(self._children) or "none"
            raise StreamsError(f"{self._name} has no child {child}; its children are: {names}")

    def schedule(
        self,
        interval: Duration,
        punctuation: PunctuationType,
        callback: Callable[[int], Any],
        *,
        start: Instant | None = None,
    ) -> Schedule:
        """Call `callback` with the time each time the interval has passed on one of the two clocks.

        The first call is due at `start`. By default it is due after one interval of wall-clock
        time, or at the first record on stream time.
        """
        if not isinstance(punctuation, PunctuationType) or not callable(callback):
            raise TypeError(
                "a punctuator is scheduled with (interval, PunctuationType, function of the time), and "
                "optionally start="
            )
        refuse_async(callback, "a punctuator")
        interval_ms = milliseconds(interval)
        if interval_ms < 1:
            raise ValueError("a punctuator's interval must be at least a millisecond")
        begins = None if start is None else instant_ms(start)
        return self._task.schedule(self._name, interval_ms, punctuation, callback, begins)

    def get_state_store(self, name: str) -> Any:
        """Return a store that is connected to this processor, or a global store."""
        if name in self.stores or name in self._task.topology.global_stores:
            return self._task.stores[name]
        names = ", ".join(sorted(self.stores)) or "none"
        raise StreamsError(
            f"processor {self._name} is not connected to store {name}; its stores are: {names}"
        )

    store = get_state_store

    def current_stream_time_ms(self) -> int:
        """Return the maximum timestamp of the records that this task has processed; -1 before the
        first.
        """
        return self._task.stream_time

    def current_system_time_ms(self) -> int:
        """Return the wall-clock time."""
        return self._task.clock()

    def app_configs(self) -> dict[str, Any]:
        """Return the application's own options, and its options that are numbers or strings."""
        return dict(self._task.settings.app_configs)

    def app_configs_with_prefix(self, prefix: str) -> dict[str, Any]:
        """Return the options whose names start with `prefix`, with the prefix removed."""
        return with_prefix(self._task.settings.app_configs, prefix)

    def commit(self) -> None:
        """Request a commit after the current record."""
        self._task.commit_requested = True

    def skip(self, reason: str, *, is_logged: bool = True, **facts: object) -> None:
        """Count and log the current record as dropped; the log line includes `facts`."""
        if not is_logged:
            self._task.dropped.count()
            return
        self._task.dropped.drop(self._name, reason, self._task.metadata, facts)

    def add_part(self, part: Part) -> Callable[[], Part]:
        """Keep an object, and close it, like a field of the processor; return its getter.

        Engines that end tasks store the processor's fields, and may replace the object.
        """
        fields = vars(self._task.processors[self._name])
        name = f"_part_{len(self._part_names)}"
        self._part_names.append(name)
        fields[name] = part
        return lambda: cast(Part, fields[name])

    def close_parts(self) -> None:
        """Close the objects that were added."""
        for name in self._part_names:
            vars(self._task.processors[self._name])[name].close()

    @contextmanager
    def as_of(self, metadata: RecordMetadata | None) -> Iterator[None]:
        """Return a context in which `metadata` is the current record's, for buffered records."""
        task = self._task
        before = task.metadata, task.raw
        task.metadata, task.raw = metadata, None
        try:
            yield
        finally:
            task.metadata, task.raw = before


class FixedKeyContext(NodeContext):
    """The context of a fixed-key processor, which only forwards records with the current key."""

    _key: Any = _ANY_KEY

    def keeping(self, process: Deliver) -> Deliver:
        """Wrap `process` so that only the key of its record can be forwarded."""

        def take(record: Record[Any, Any]) -> None:
            self._key = record.key
            try:
                process(record)
            finally:
                # Punctuators may forward buffered records, with their own keys.
                self._key = _ANY_KEY

        return take

    def forward(self, record: Record[Any, Any], child: str | None = None) -> None:
        """Forward a record to all children, or to the named one. Raises StreamsError for another
        key.
        """
        if self._key is not _ANY_KEY and record.key is not self._key and record.key != self._key:
            raise StreamsError(
                f"{self._name} cannot change keys, but forwarded the key {record.key!r} for a record with "
                f"the key {self._key!r}: use a Processor with `process`"
            )
        super().forward(record, child)


class TableContext(NodeContext):
    """The context of a cached table's operator: its changes are forwarded at the next commit."""

    def __init__(
        self, task: TaskOfNode, name: str, stores: frozenset[str], table: CachedTable
    ) -> None:
        super().__init__(task, name, stores)
        self._table = table
        table.has_listeners = True

    def forward(self, record: Record[Any, Any], child: str | None = None) -> None:
        """Cache a change, which is forwarded to all children when it is flushed."""
        self._table.forward(record, super().forward)
