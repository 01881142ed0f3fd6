"""Idle timeouts: without records, stream time advances with the wall clock, so that windows close.

Kafka has no equivalent: there a window of an idle stream stays open until the next record.
"""

from typing import Any

from ottla.streams.model.records import NO_TIMESTAMP
from ottla.streams.processor.api import Processor, PunctuationType

# The interval of the checks, as a fraction of the timeout.
_LOOKS = 4


class ClosesWhenIdle(Processor[Any, Any, Any, Any]):
    """A processor whose stream time advances after no record has arrived for a while.

    Its state is in plain fields, which engines store between micro-batches.
    """

    _stream_time = NO_TIMESTAMP
    _idle_timeout_ms: int | None = None
    _arrived_at = 0
    _time_then = NO_TIMESTAMP
    _closed_idle = NO_TIMESTAMP
    """The stream time that was reached without records; records before it are late."""

    def _watch(self, timeout_ms: int | None) -> None:
        """Start to check for idleness if there is a timeout; called by `init`."""
        self._idle_timeout_ms = timeout_ms
        if timeout_ms is not None:
            self._arrived_at = self.context.current_system_time_ms()
            interval_ms = max(1, timeout_ms // _LOOKS)
            self.context.schedule(interval_ms, PunctuationType.WALL_CLOCK_TIME, self._check_idle)

    def _note_arrival(self) -> None:
        """Note the arrival of a record, after stream time was updated."""
        if self._idle_timeout_ms is not None:
            self._arrived_at = self.context.current_system_time_ms()
            self._time_then = self._stream_time

    def _check_idle(self, now: int) -> None:
        silent_ms = now - self._arrived_at
        assert self._idle_timeout_ms is not None
        if silent_ms >= self._idle_timeout_ms and self._time_then != NO_TIMESTAMP:
            self._closed_idle = self._stream_time = self._time_then + silent_ms
            self._close_idle()

    def _close_idle(self) -> None:
        """Process the windows or records that are due at the current stream time."""
        raise TypeError(f"{type(self).__name__} must define _close_idle")
