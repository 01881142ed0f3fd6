"""The records that a task drops: counted as Kafka's `dropped-records`, logged at a limited rate.

Kafka Streams logs one line for each dropped record. Here a line is logged for the first record that a node drops for a
reason, and then at most one in ten seconds, with the number of records that were dropped since the line before.
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
    """When the next line of a node and a reason is due, and how many records were dropped since the last one."""

    due_ms: int
    unlogged: int


Lines = dict[tuple[str, str], LoggedLine]
"""The last line of each node and reason."""


class DroppedRecords:
    """Counts dropped records. For one thread.

    `clock` is the wall clock in ms. `lines` is what was logged, for tasks that follow one another in a process.
    """

    def __init__(self, clock: Callable[[], int], lines: Lines | None = None) -> None:
        self.total = 0
        self._clock = clock
        self._lines: Lines = {} if lines is None else lines
        # When each window of the rate began, and what was dropped in it.
        self._windows: deque[tuple[int, int]] = deque(maxlen=_WINDOWS)

    def count(self) -> None:
        """Count a record whose loss is logged elsewhere, such as by an exception handler."""
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
        """Count a record that a node drops, and log it unless the same was logged a moment ago."""
        self.count()
        now, cause = self._clock(), (node, reason)
        line = self._lines.get(cause)
        if line is not None and now < line.due_ms:
            self._lines[cause] = line._replace(unlogged=line.unlogged + 1)
            return
        self._lines[cause] = LoggedLine(now + _QUIET_MS, 0)
        topic, partition, offset = metadata or (None, -1, -1)
        said = {"topic": topic, "partition": partition, "offset": offset, **facts, "node": node}
        more = (
            "" if line is None or not line.unlogged else f" ({line.unlogged} more like it before)"
        )
        _log.warning(
            "Skipping record %s. %s%s",
            reason,
            " ".join(f"{name}=[{value}]" for name, value in said.items()),
            more,
        )

    def rate(self) -> float:
        """Return how many records are dropped a second, over the last minute as Kafka's Rate."""
        now = self._clock()
        recent = [each for each in self._windows if now - each[0] < _WINDOWS * _WINDOW_MS]
        if not recent:
            return 0.0
        # Kafka's rate counts at least all windows but one as if they were over.
        seconds = max(now - recent[0][0], (_WINDOWS - 1) * _WINDOW_MS) / 1000
        return sum(count for _, count in recent) / seconds
