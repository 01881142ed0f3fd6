"""Dropped records: counted as Kafka's `dropped-records`, logged at a limited rate.

Kafka Streams logs a line for each dropped record. Here a line is logged for the first record that a
node drops for a reason, and then at most one every ten seconds, with the number of records dropped
since the previous line.
"""

import logging
from collections import deque
from collections.abc import Callable
from typing import NamedTuple

from ottla.streams.model.records import RecordMetadata

_log = logging.getLogger(__name__)

_QUIET_MS = 10_000
# Kafka's metrics.sample.window.ms and metrics.num.samples.
_WINDOW_MS, _WINDOWS = 30_000, 2


class LoggedLine(NamedTuple):
    """The time of the next line of a node or store, and the count of records since the last."""

    due_ms: int
    unlogged: int


Lines = dict[tuple[str, str], LoggedLine]
"""The last log line of each node or store and reason."""


class DroppedRecords:
    """Counts dropped records. For one thread.

    `clock` returns the wall-clock time in ms. `lines` is the state of the log, which successive
    tasks of a process share.
    """

    def __init__(self, clock: Callable[[], int], lines: Lines | None = None) -> None:
        self.total = 0
        self._clock = clock
        self._lines: Lines = {} if lines is None else lines
        # The start of each window of the rate, and the number of records dropped in it.
        self._windows: deque[tuple[int, int]] = deque(maxlen=_WINDOWS)

    def count(self) -> None:
        """Count a dropped record that is logged elsewhere, such as by an exception handler."""
        now = self._clock()
        self.total += 1
        if self._windows and now - self._windows[-1][0] < _WINDOW_MS:
            began, count = self._windows[-1]
            self._windows[-1] = began, count + 1
        else:
            self._windows.append((now, 1))

    def drop(
        self, node: str, reason: str, metadata: RecordMetadata | None, facts: dict[str, object]
    ) -> None:
        """Count a dropped record, and log it unless a line for this node and reason was logged
        recently.
        """
        self._drop((node, reason), metadata, {**facts, "node": node})

    def drop_put(self, store: str, reason: str, metadata: RecordMetadata | None) -> None:
        """Count and log, as `drop` does, a record whose put a store has dropped."""
        self._drop((store, reason), metadata, {"store": store})

    def _drop(
        self, cause: tuple[str, str], metadata: RecordMetadata | None, facts: dict[str, object]
    ) -> None:
        self.count()
        now = self._clock()
        line = self._lines.get(cause)
        if line is not None and now < line.due_ms:
            self._lines[cause] = line._replace(unlogged=line.unlogged + 1)
            return
        self._lines[cause] = LoggedLine(now + _QUIET_MS, 0)
        topic, partition, offset = metadata or (None, -1, -1)
        fields = {"topic": topic, "partition": partition, "offset": offset, **facts}
        unlogged_text = (
            "" if line is None or not line.unlogged else f" ({line.unlogged} more like it before)"
        )
        _log.warning(
            "Skipping record %s. %s%s",
            cause[1],
            " ".join(f"{name}=[{value}]" for name, value in fields.items()),
            unlogged_text,
        )

    def rate(self) -> float:
        """Return the dropped records per second, over the last minute as Kafka's Rate does."""
        now = self._clock()
        recent = [window for window in self._windows if now - window[0] < _WINDOWS * _WINDOW_MS]
        if not recent:
            return 0.0
        # Kafka's Rate assumes that all windows but one have been complete.
        seconds = max(now - recent[0][0], (_WINDOWS - 1) * _WINDOW_MS) / 1000
        return sum(count for _, count in recent) / seconds
