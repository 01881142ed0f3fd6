"""Ctrl-C and SIGTERM as a flag instead of an exception, for commands that must not stop midway.

An exception could be raised after a record was written but before its position was stored. The
first signal sets the flag and wakes a blocked read of the input; a second one has the default
effect. So has the first one, if the command does not end within its patience: it may wait for a
broker that is down.
"""

import os
import select
import signal
import threading
from types import FrameType, TracebackType

PATIENCE_S = 0.5
"""The patience of a command that stores a position when it is stopped."""
_SIGNALS = (signal.SIGINT, signal.SIGTERM)


class StopSignals:
    """A context manager for the main thread; `requested` is True after the first signal.

    `patience_s`: the seconds from the first signal to KeyboardInterrupt; without limit by default.
    """

    def __init__(self, patience_s: float | None = None) -> None:
        self.requested = False
        self.number = 0
        """The number of the first signal, or 0."""
        self._patience_s = patience_s
        self._timer: threading.Timer | None = None
        self._is_ended = False
        self._wake_read = self._wake_write = self._former_fd = -1
        self._former: dict[signal.Signals, signal.Handlers | object] = {}

    @property
    def exit_code(self) -> int:
        """The exit code of a Java program that the signal ends; 0 without a signal."""
        return 128 + self.number if self.number else 0

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
        self._is_ended = True
        if self._timer is not None:
            self._timer.cancel()
            self._timer.join()
        for number, handler in self._former.items():
            signal.signal(number, handler)  # type: ignore[arg-type]
        signal.set_wakeup_fd(self._former_fd)
        os.close(self._wake_read)
        os.close(self._wake_write)

    def _on_signal(self, number: int, frame: FrameType | None) -> None:
        if self._is_ended:
            return
        if self.requested:
            raise KeyboardInterrupt
        self.requested = True
        self.number = number
        if self._patience_s is not None:
            # The second signal comes from a thread.
            arguments = (threading.main_thread().ident, number)
            self._timer = threading.Timer(self._patience_s, signal.pthread_kill, arguments)
            self._timer.daemon = True
            self._timer.start()
