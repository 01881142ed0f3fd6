"""MockProcessorContext: records the calls of a processor, for tests of one processor (KIP-267).

    context = MockProcessorContext()
    context.add_state_store(Stores.key_value("counts"))
    processor.init(context)
    processor.process(Record("a", 1, timestamp=0))
    assert [each.record for each in context.forwarded()] == [Record("a", 1, 0)]

Most tests should use a TopologyTestDriver, which runs the whole topology around the processor.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from ottla.streams.model.durations import Duration, Instant, instant_ms, milliseconds
from ottla.streams.model.errors import StreamsError
from ottla.streams.model.records import Record, RecordMetadata
from ottla.streams.model.spelling import SnakeCase
from ottla.streams.processor.api import Part, PunctuationType
from ottla.streams.serdes import DefaultSerdes
from ottla.streams.stores.builders import StateStore, StoreBuilder
from ottla.streams.task.settings import with_prefix


@dataclass(frozen=True)
class CapturedForward:
    """A record that was forwarded to all children, or to the child named `child_name`."""

    record: Record[Any, Any]
    child_name: str | None = None


@dataclass
class CapturedPunctuator:
    """A scheduled punctuator. A test calls `punctuator(time)` itself. Times are in ms."""

    interval: int
    type: PunctuationType
    punctuator: Callable[[int], Any]
    start_time: int | None = None
    cancelled: bool = False

    def cancel(self) -> None:
        """Mark the punctuator as cancelled."""
        self.cancelled = True


class MockProcessorContext(SnakeCase):
    """Records what a processor forwards, schedules and commits; clocks change only when they are
    set.
    """

    def __init__(
        self,
        application_id: str = "test",
        default_serdes: DefaultSerdes | None = None,
        app_configs: Mapping[str, Any] | None = None,
    ) -> None:
        self.application_id = application_id
        self.default_serdes = default_serdes or DefaultSerdes()
        self.key_serde, self.value_serde = self.default_serdes.key, self.default_serdes.value
        self._app_configs = dict(app_configs or {})
        self.skipped = 0
        self.emit_interval_ms = 0
        self.record_metadata: RecordMetadata | None = None
        self.task_partition = 0
        self.scheduled_punctuators: list[CapturedPunctuator] = []
        self.committed = False
        self._forwarded: list[CapturedForward] = []
        self._stores: dict[str, Any] = {}
        self._stream_time = self._system_time = 0

    def app_configs(self) -> dict[str, Any]:
        """Return the options that were passed to the constructor."""
        return dict(self._app_configs)

    def app_configs_with_prefix(self, prefix: str) -> dict[str, Any]:
        """Return the options whose names start with `prefix`, with the prefix removed."""
        return with_prefix(self._app_configs, prefix)

    def skip(self, reason: str, *, is_logged: bool = True, **facts: object) -> None:
        """Count the current record as dropped."""
        self.skipped += 1

    def set_record_metadata(self, topic: str, partition: int, offset: int) -> None:
        """Set the topic, partition and offset of the next records."""
        self.record_metadata = RecordMetadata(topic, partition, offset)

    def set_current_stream_time_ms(self, now: int) -> None:
        """Set the stream time."""
        self._stream_time = now

    def set_current_system_time_ms(self, now: int) -> None:
        """Set the wall clock."""
        self._system_time = now

    def current_stream_time_ms(self) -> int:
        """Return the stream time."""
        return self._stream_time

    def current_system_time_ms(self) -> int:
        """Return the wall-clock time."""
        return self._system_time

    def add_state_store(self, store: StoreBuilder | StateStore) -> None:
        """Add a store; a StoreBuilder is built without a changelog."""
        if isinstance(store, StoreBuilder):
            store = store.build(self.default_serdes, None, on_expired=self.skip)
        self._stores[store.name] = store

    def get_state_store(self, name: str) -> Any:
        """Return a store. Raises StreamsError if no store with this name was added."""
        if name not in self._stores:
            raise StreamsError(f"no store {name} was added; call add_state_store before init")
        return self._stores[name]

    store = get_state_store

    def schedule(
        self,
        interval: Duration,
        punctuation: PunctuationType,
        callback: Callable[[int], Any],
        *,
        start: Instant | None = None,
    ) -> CapturedPunctuator:
        """Record a punctuator."""
        begins = None if start is None else instant_ms(start)
        punctuator = CapturedPunctuator(milliseconds(interval), punctuation, callback, begins)
        self.scheduled_punctuators.append(punctuator)
        return punctuator

    def forward(self, record: Record[Any, Any], child: str | None = None) -> None:
        """Record a forwarded record."""
        self._forwarded.append(CapturedForward(record, child))

    def forwarded(self, child: str | None = None) -> list[CapturedForward]:
        """Return the forwarded records: all, or those that the named child would have received."""
        return [
            forwarded
            for forwarded in self._forwarded
            if child is None or forwarded.child_name in (child, None)
        ]

    def reset_forwards(self) -> None:
        """Clear the forwarded records."""
        self._forwarded.clear()

    def commit(self) -> None:
        """Record that a commit was requested."""
        self.committed = True

    def reset_commit(self) -> None:
        """Clear the recorded commit request."""
        self.committed = False

    def add_part(self, part: Part) -> Callable[[], Part]:
        """Return a function of the object; a test closes it itself."""
        return lambda: part

    @contextmanager
    def as_of(self, metadata: RecordMetadata | None) -> Iterator[None]:
        """Process a buffered record: `record_metadata` is `metadata` inside the context."""
        before, self.record_metadata = self.record_metadata, metadata
        try:
            yield
        finally:
            self.record_metadata = before
