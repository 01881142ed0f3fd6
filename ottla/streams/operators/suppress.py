"""Suppress: delay a table's changes, and forward only the last one of a time span or a window."""

from dataclasses import dataclass
from typing import Any

from ottla.streams.model.errors import StreamsError
from ottla.streams.model.records import NO_TIMESTAMP, Record
from ottla.streams.operators.idle import ClosesWhenIdle
from ottla.streams.operators.windowed import OnLate
from ottla.streams.processor.api import Processor, ProcessorContext
from ottla.streams.stores.buffers import BufferedRecord
from ottla.streams.stores.builders import StoreBuilder

AnyProcessor = Processor[Any, Any, Any, Any]


@dataclass(frozen=True)
class Suppress:
    """Buffers changes for `wait_ms` of stream time, counted from the window's end if `until_close`.

    A full buffer emits its first changes early, or raises if `fails_when_full`. If no record
    arrives for `idle_timeout_ms` of wall-clock time, stream time advances with the wall clock;
    `on_late` is then called for changes of windows that this has closed.
    """

    store: StoreBuilder
    wait_ms: int
    until_close: bool
    max_records: int | None = None
    max_bytes: int | None = None
    fails_when_full: bool = False
    idle_timeout_ms: int | None = None
    on_late: OnLate | None = None

    @property
    def stores(self) -> tuple[StoreBuilder, ...]:
        """Return the buffer."""
        return (self.store,)

    def __call__(self) -> AnyProcessor:
        """Create the processor."""
        return _SuppressProcessor(self)


class _SuppressProcessor(ClosesWhenIdle):
    def __init__(self, operator: Suppress) -> None:
        self._operator = operator
        self._stream_time = NO_TIMESTAMP

    def init(self, context: ProcessorContext) -> None:
        super().init(context)
        self._buffer = context.store(self._operator.store.name)
        self._watch(self._operator.idle_timeout_ms)

    def process(self, record: Record[Any, Any]) -> None:
        self._stream_time = max(self._stream_time, record.timestamp)
        self._note_arrival()
        if self._is_late(record):
            self.context.skip(
                "for expired window",
                timestamp=record.timestamp,
                window=f"{record.key.window.start},{record.key.window.end}",
                expiration=self._closed_idle - self._operator.wait_ms,
                streamTime=self._stream_time,
            )
            if self._operator.on_late is not None:
                self._operator.on_late(record)
            return
        time = record.key.window.end if self._operator.until_close else record.timestamp
        self._buffer.put(time, BufferedRecord(record, self.context.record_metadata))
        self._emit_due()
        self._keep_in_bounds()

    def _is_late(self, record: Record[Any, Any]) -> bool:
        """Return True if a window was closed by the idle timeout."""
        if not self._operator.until_close or self._closed_idle == NO_TIMESTAMP:
            return False
        ends: int = record.key.window.end
        return ends + self._operator.wait_ms <= self._closed_idle

    def _emit_due(self) -> None:
        latest_due = self._stream_time - self._operator.wait_ms
        while len(self._buffer) and self._buffer.min_timestamp <= latest_due:
            self._emit(self._buffer.pop())

    def _close_idle(self) -> None:
        self._emit_due()

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
                    f"{self._buffer.size_bytes} bytes; increase its size or let it emit early"
                )
            self._emit(self._buffer.pop())

    def _emit(self, buffered: BufferedRecord) -> None:
        # A window that never had a value needs no tombstone: no downstream operator has seen it.
        if self._operator.until_close and buffered.record.value.new_value is None:
            return
        with self.context.as_of(buffered.metadata):
            self.context.forward(buffered.record)
