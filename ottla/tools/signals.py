"""Ctrl-C and SIGTERM as a flag instead of an exception, for commands that must not stop midway.

An exception could be raised after a record was written but before its position was stored. The
first signal sets the flag and wakes a blocked read of the input; a second one has the default
effect.
"""

import os
import select
import signal
from types import FrameType, TracebackType

_SIGNALS = (signal.SIGINT, signal.SIGTERM)


class StopSignals:
    """A context manager for the main thread; `requested` is True after the first signal."""

    def __init__(self) -> None:
        self.requested = False
        self._wake_read = self._wake_write = self._former_fd = -1
        self._former: dict[signal.Signals, signal.Handlers | object] = {}

    def read(self, descriptor: int, size: int) -> bytes:
        """Return the available bytes; empty at the end of the input or after a stop was requested."""
        if not self.requested:
            # The wake-up pipe has a byte as soon as a signal came, also just before this call.
            select.select([descriptor, self._wake_read], [], [])
        return b"" if self.requested else os.read(descriptor, size)

    def wait(self, seconds: float) -> None:
        """Pause; return at once after a stop was requested."""
        if not self.requested:
            select.select([self._wake_read], [], [], max(seconds, 0.0))

    def __enter__(self) -> "StopSignals":
        """Install the signal handlers."""
        self._wake_read, self._wake_write = os.pipe()
        os.set_blocking(self._wake_write, False)
        self._former_fd = signal.set_wakeup_fd(self._wake_write, warn_on_full_buffer=False)
        self._former = {number: signal.signal(number, self._on_signal) for number in _SIGNALS}
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Restore the previous signal handlers."""
        for number, handler in self._former.items():
            signal.signal(number, handler)  # type: ignore[arg-type]
        signal.set_wakeup_fd(self._former_fd)
        os.close(self._wake_read)
        os.close(self._wake_write)

    def _on_signal(self, number: int, frame: FrameType | None) -> None:
        if self.requested:
            raise KeyboardInterrupt
        self.requested = True
