"""Suppress: changes of a table wait, so that only the last one of a while, or of a window, goes on."""

from dataclasses import dataclass
from typing import Any

from ottla.streams.errors import StreamsError
from ottla.streams.processor import Processor, ProcessorContext
from ottla.streams.records import NO_TIMESTAMP, Record
from ottla.streams.stores.buffers import Held
from ottla.streams.stores.builders import StoreBuilder

AnyProcessor = Processor[Any, Any, Any, Any]


@dataclass(frozen=True)
class Suppress:
    """Holds changes for `wait_ms` of stream time, counted from the window's end if `until_close`.

    A full buffer emits its first changes early, or fails if `fails_when_full`.
    """

    store: StoreBuilder
    wait_ms: int
    until_close: bool
    max_records: int | None = None
    max_bytes: int | None = None
    fails_when_full: bool = False

    @property
    def stores(self) -> tuple[StoreBuilder, ...]:
        """The buffer."""
        return (self.store,)

    def __call__(self) -> AnyProcessor:
        """Make the processor."""
        return _SuppressProcessor(self)


class _SuppressProcessor(AnyProcessor):
    def __init__(self, operator: Suppress) -> None:
        self._operator = operator
        self._stream_time = NO_TIMESTAMP

    def init(self, context: ProcessorContext) -> None:
        super().init(context)
        self._buffer = context.store(self._operator.store.name)

    def process(self, record: Record[Any, Any]) -> None:
        self._stream_time = max(self._stream_time, record.timestamp)
        time = record.key.window.end if self._operator.until_close else record.timestamp
        self._buffer.put(time, Held(record, self.context.record_metadata))
        due = self._stream_time - self._operator.wait_ms
        while len(self._buffer) and self._buffer.min_timestamp <= due:
            self._emit(self._buffer.pop())
        self._keep_in_bounds()

    def _is_full(self) -> bool:
        operator, buffer = self._operator, self._buffer
        too_many = operator.max_records is not None and len(buffer) > operator.max_records
        return too_many or (
            operator.max_bytes is not None and buffer.size_bytes > operator.max_bytes
        )

    def _keep_in_bounds(self) -> None:
        while self._is_full():
            if self._operator.fails_when_full:
                raise StreamsError(
                    f"buffer {self._operator.store.name} is full: {len(self._buffer)} records, "
                    f"{self._buffer.size_bytes} bytes; give it more room or let it emit early"
                )
            self._emit(self._buffer.pop())

    def _emit(self, held: Held) -> None:
        # A window that never had a value needs no tombstone: nobody has heard of it.
        if self._operator.until_close and held.record.value.new_value is None:
            return
        with self.context.as_of(held.metadata):
            self.context.forward(held.record)
