"""The live line of a measurement, on a terminal."""

import sys
import time

_INTERVAL_S = 0.1
_ERASE = "\r\x1b[K"


class LiveLine:
    """The records and their rate on standard error, at most ten times a second.

    Nothing is written if standard error is not a terminal: Apache Kafka's tools have no such line.
    """

    def __init__(self) -> None:
        self._is_shown = sys.stderr.isatty()
        self._start = time.monotonic()
        self._due = self._start + _INTERVAL_S

    def show(self, count: int) -> None:
        """Show that `count` records are done."""
        if not self._is_shown:
            return
        now = time.monotonic()
        if now < self._due:
            return
        self._due = now + _INTERVAL_S
        sys.stderr.write(f"{_ERASE}{count} records, {count / (now - self._start):.0f} records/sec")
        sys.stderr.flush()

    def clear(self) -> None:
        """Erase the line, before something else is printed."""
        if self._is_shown:
            sys.stderr.write(_ERASE)
            sys.stderr.flush()
