"""Ctrl-C and SIGTERM as a question instead of an exception, for verbs that must not stop midway.

An exception could come between writing a record and noting that it was written. The first signal asks
to stop, and wakes whoever waits for input; a second one does not ask any more.
"""

import os
import select
import signal
from types import FrameType, TracebackType

_SIGNALS = (signal.SIGINT, signal.SIGTERM)


class StopSignals:
    """A context manager of the main thread; `requested` turns true with the first signal."""

    def __init__(self) -> None:
        self.requested = False
        self._wake_read = self._wake_write = self._former_fd = -1
        self._former: dict[signal.Signals, signal.Handlers | object] = {}

    def read(self, descriptor: int, size: int) -> bytes:
        """Return what there is to read; nothing at the end, and nothing once a stop is asked for."""
        if not self.requested:
            # The wake-up pipe has a byte as soon as a signal came, also just before this call.
            select.select([descriptor, self._wake_read], [], [])
        return b"" if self.requested else os.read(descriptor, size)

    def __enter__(self) -> "StopSignals":
        """Take the signals over."""
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
        """Give the signals back."""
        for number, handler in self._former.items():
            signal.signal(number, handler)  # type: ignore[arg-type]
        signal.set_wakeup_fd(self._former_fd)
        os.close(self._wake_read)
        os.close(self._wake_write)

    def _on_signal(self, number: int, frame: FrameType | None) -> None:
        if self.requested:
            raise KeyboardInterrupt
        self.requested = True
