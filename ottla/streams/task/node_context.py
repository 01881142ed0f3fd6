"""The context of a node: how a processor forwards records and reaches its stores, clocks and settings.

Follows ProcessorContextImpl.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Protocol

from ottla.streams.model.durations import Duration, Instant, instant_ms, milliseconds
from ottla.streams.model.errors import StreamsError
from ottla.streams.model.raw import TopicRecord
from ottla.streams.model.records import Header, Record, RecordMetadata
from ottla.streams.model.spelling import SnakeCase
from ottla.streams.processor.api import PunctuationType
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
    commit_requested: bool

    def schedule(
        self,
        node: str,
        interval_ms: int,
        punctuation: PunctuationType,
        callback: Callable[[int], Any],
        start: int | None = None,
    ) -> Schedule:
        """Add a punctuator."""
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
        self.application_id = task.settings.application_id
        self.default_serdes = task.settings.defaults
        self.key_serde, self.value_serde = self.default_serdes.key, self.default_serdes.value
        self.emit_interval_ms = task.settings.emit_interval_ms

    def add_child(self, name: str, deliver: Deliver) -> None:
        """Forward to a node as well."""
        self._children[name] = deliver
        self._deliveries = tuple(self._children.values())

    @property
    def record_metadata(self) -> RecordMetadata | None:
        """Where the current record was read; None in a punctuator."""
        return self._task.metadata

    @property
    def task_partition(self) -> int:
        """The number of the task within its sub-topology."""
        return self._task.partition

    def forward(self, record: Record[Any, Any], child: str | None = None) -> None:
        """Send a record to all children, or to one by its name."""
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
        # What is written below, tombstones of tables among it, has the time of the record that is forwarded.
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
            known = ", ".join(self._children) or "none"
            raise StreamsError(f"{self._name} has no child {child}; its children are: {known}")

    def schedule(
        self,
        interval: Duration,
        punctuation: PunctuationType,
        callback: Callable[[int], Any],
        *,
        start: Instant | None = None,
    ) -> Schedule:
        """Call back with the time whenever the interval passed on one of the two clocks, from `start` on."""
        if not isinstance(punctuation, PunctuationType) or not callable(callback):
            raise TypeError(
                "a punctuator is scheduled with (interval, PunctuationType, function of the time); when it "
                "begins is told with start="
            )
        interval_ms = milliseconds(interval)
        if interval_ms < 1:
            raise ValueError("a punctuator's interval is at least a millisecond")
        begins = None if start is None else instant_ms(start)
        return self._task.schedule(self._name, interval_ms, punctuation, callback, begins)

    def get_state_store(self, name: str) -> Any:
        """Return a store that is connected to this processor, or a global one."""
        if name in self.stores or name in self._task.topology.global_stores:
            return self._task.stores[name]
        known = ", ".join(sorted(self.stores)) or "none"
        raise StreamsError(
            f"processor {self._name} is not connected to store {name}; its stores are: {known}"
        )

    store = get_state_store

    def current_stream_time_ms(self) -> int:
        """Return the largest time of any record this task took; -1 before the first."""
        return self._task.stream_time

    def current_system_time_ms(self) -> int:
        """Return the wall clock."""
        return self._task.clock()

    def app_configs(self) -> dict[str, Any]:
        """Return the options of the application: its own, and those that are numbers and text."""
        return dict(self._task.settings.app_configs)

    def app_configs_with_prefix(self, prefix: str) -> dict[str, Any]:
        """Return the options whose names start with a prefix, without it."""
        return with_prefix(self._task.settings.app_configs, prefix)

    def commit(self) -> None:
        """Ask for a commit as soon as this record is done."""
        self._task.commit_requested = True

    def skip(self, reason: str, **facts: object) -> None:
        """Count and log that the current record is dropped; `facts` are added to the log line."""
        self._task.dropped.drop(self._name, reason, self._task.metadata, facts)

    @contextmanager
    def as_of(self, metadata: RecordMetadata | None) -> Iterator[None]:
        """Make `metadata` that of the current record, for a record that waited."""
        task = self._task
        before = task.metadata, task.raw
        task.metadata, task.raw = metadata, None
        try:
            yield
        finally:
            task.metadata, task.raw = before


class FixedKeyContext(NodeContext):
    """The context of a fixed-key processor: it forwards records with the key of the current one only."""

    _key: Any = _ANY_KEY

    def keeping(self, process: Deliver) -> Deliver:
        """Wrap `process` so that only the key of the current record can be forwarded."""

        def take(record: Record[Any, Any]) -> None:
            self._key = record.key
            try:
                process(record)
            finally:
                # Punctuators forward records that they kept, under keys of their own.
                self._key = _ANY_KEY

        return take

    def forward(self, record: Record[Any, Any], child: str | None = None) -> None:
        """Send a record to all children, or to one by its name; StreamsError if it has another key."""
        if self._key is not _ANY_KEY and record.key is not self._key and record.key != self._key:
            raise StreamsError(
                f"{self._name} keeps keys, and forwards {record.key!r} for a record of {self._key!r}; "
                "a Processor in `process` may change them"
            )
        super().forward(record, child)


class TableContext(NodeContext):
    """The context of a cached table's operator: its changes wait for a commit."""

    def __init__(
        self, task: TaskOfNode, name: str, stores: frozenset[str], table: CachedTable
    ) -> None:
        super().__init__(task, name, stores)
        self._table = table
        table.has_listeners = True

    def forward(self, record: Record[Any, Any], child: str | None = None) -> None:
        """Let the cache send a change to all children once it is written."""
        self._table.forward(record, super().forward)
