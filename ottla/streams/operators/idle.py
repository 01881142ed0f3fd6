"""Closing windows while nothing comes: the stream's time then goes on with the wall clock.

Kafka has no such thing: there a window whose stream falls silent stays open until the next record.
"""

from typing import Any

from ottla.streams.model.records import NO_TIMESTAMP
from ottla.streams.processor.api import Processor, PunctuationType

# How often it is looked, in parts of the timeout.
_LOOKS = 4


class ClosesWhenIdle(Processor[Any, Any, Any, Any]):
    """A processor whose stream time goes on once no record came for a while.

    Its state is in plain fields of its own, which engines keep between micro-batches.
    """

    _stream_time = NO_TIMESTAMP
    _idle_timeout_ms: int | None = None
    _arrived_at = 0
    _time_then = NO_TIMESTAMP
    _closed_idle = NO_TIMESTAMP
    """How far time went on without records; what belongs before it comes too late."""

    def _watch(self, timeout_ms: int | None) -> None:
        """Look for silence, if there is a timeout; called by `init`."""
        self._idle_timeout_ms = timeout_ms
        if timeout_ms is not None:
            self._arrived_at = self.context.current_system_time_ms()
            interval_ms = max(1, timeout_ms // _LOOKS)
            self.context.schedule(interval_ms, PunctuationType.WALL_CLOCK_TIME, self._look)

    def _note_arrival(self) -> None:
        """Remember that a record came, after its time was taken."""
        if self._idle_timeout_ms is not None:
            self._arrived_at = self.context.current_system_time_ms()
            self._time_then = self._stream_time

    def _look(self, now: int) -> None:
        silent_ms = now - self._arrived_at
        assert self._idle_timeout_ms is not None
        if silent_ms >= self._idle_timeout_ms and self._time_then != NO_TIMESTAMP:
            self._closed_idle = self._stream_time = self._time_then + silent_ms
            self._close_idle()

    def _close_idle(self) -> None:
        """Let go on what is due at the stream's time."""
        raise TypeError(f"{type(self).__name__} does not say what is due")
