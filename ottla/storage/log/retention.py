"""Which segments have outlived their topic's retention: pure planning, from values to a number.

Only whole segments at the start of the log go, never one with records at or past the high watermark.
What goes is renamed at once and removed after a while; `Doomed` remembers it until then.
Follows UnifiedLog.deleteOldSegments and its three reasons.
"""

from collections.abc import Callable, Iterable, Sequence
from enum import Enum
from typing import NamedTuple, Protocol

from ottla.storage.config import LogConfig


class Reason(Enum):
    """Why a segment goes."""

    LOG_START = "before the log start offset"
    SIZE = "over retention.bytes"
    TIME = "over retention.ms"


class Aged(Protocol):
    """What the plan asks of a segment."""

    @property
    def base_offset(self) -> int:
        """First offset that the segment can hold."""
        ...

    @property
    def size_bytes(self) -> int:
        """Bytes of its log file."""
        ...

    @property
    def newest_ms(self) -> int:
        """Largest timestamp of its records, or when it was written if they have none."""
        ...


class LogState(NamedTuple):
    """What the plan asks of the log; `size_bytes` is that of all segments."""

    log_start_offset: int
    log_end_offset: int
    high_watermark: int
    size_bytes: int


class Plan(NamedTuple):
    """Delete this many segments, from the oldest on."""

    segments_count: int
    reason: Reason | None


class Doomed:
    """Paths that are out of use and are to be removed after a while (file.delete.delay.ms)."""

    def __init__(self) -> None:
        self._paths: list[tuple[int, str]] = []

    def add(self, paths: Iterable[str], due_ms: int) -> None:
        """Have paths removed at a time (ms)."""
        self._paths += [(due_ms, path) for path in paths]

    def take_due(self, now_ms: int | None = None) -> list[str]:
        """Return the paths whose time has come, each once; all of them if no time is given."""
        if not self._paths:
            return []
        due = {path: None for due_ms, path in self._paths if now_ms is None or due_ms <= now_ms}
        if due:
            self._paths = [each for each in self._paths if each[1] not in due]
        return list(due)

    def forget(self) -> None:
        """Leave the paths alone, because the folder they are in goes as a whole."""
        self._paths.clear()


def plan(segments: Sequence[Aged], state: LogState, config: LogConfig, now_ms: int) -> Plan:
    """Return how many of `segments` (oldest first) to delete now; the last one only if it has data."""
    rules: list[tuple[Reason, Callable[[int], bool]]] = [
        (Reason.LOG_START, lambda at: _end(segments, at, state) <= state.log_start_offset)
    ]
    if config.deletes_by_retention:
        if config.retention_bytes >= 0:
            excess = state.size_bytes - config.retention_bytes
            sizes = _running_sizes(segments)
            rules.append((Reason.SIZE, lambda at: sizes[at] <= excess))
        if config.retention_ms >= 0:
            oldest = now_ms - config.retention_ms
            rules.append((Reason.TIME, lambda at: segments[at].newest_ms < oldest))
    best = Plan(0, None)
    for reason, is_due in rules:
        count = _count(segments, state, is_due)
        if count > best.segments_count:
            best = Plan(count, reason)
    return best


def _count(segments: Sequence[Aged], state: LogState, is_due: Callable[[int], bool]) -> int:
    for at in range(len(segments)):
        is_last = at == len(segments) - 1
        if is_last and not segments[at].size_bytes:
            return at
        if _end(segments, at, state) > state.high_watermark or not is_due(at):
            return at
    return len(segments)


def _end(segments: Sequence[Aged], at: int, state: LogState) -> int:
    """Return the offset behind the segment."""
    return segments[at + 1].base_offset if at + 1 < len(segments) else state.log_end_offset


def _running_sizes(segments: Sequence[Aged]) -> list[int]:
    total, sizes = 0, []
    for segment in segments:
        total += segment.size_bytes
        sizes.append(total)
    return sizes
