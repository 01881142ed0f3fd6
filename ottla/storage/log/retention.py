"""The plan of retention: which segments are to be deleted. Pure, from values to a number.

Only whole segments at the start of the log are deleted, never one with records at or past the high
watermark. Files are renamed at once and deleted after a delay; `PendingDeletions` lists them until
then. Follows UnifiedLog.deleteOldSegments and its three reasons.
"""

from collections.abc import Callable, Iterable, Sequence
from enum import Enum
from typing import NamedTuple, Protocol

from ottla.storage.config import LogConfig


class Reason(Enum):
    """The reason for which a segment is deleted."""

    LOG_START = "before the log start offset"
    SIZE = "over retention.bytes"
    TIME = "over retention.ms"


class Aged(Protocol):
    """The properties of a segment that the plan depends on."""

    @property
    def base_offset(self) -> int:
        """First offset that the segment can contain."""
        ...

    @property
    def size_bytes(self) -> int:
        """Bytes of its log file."""
        ...

    @property
    def newest_ms(self) -> int:
        """Largest timestamp (ms) of its records; if they have no timestamp, the time the file was
        written.
        """
        ...


class LogExtent(NamedTuple):
    """The properties of the log that the plan depends on; `size_bytes` is the sum of all segments."""

    log_start_offset: int
    log_end_offset: int
    high_watermark: int
    size_bytes: int


class ExpiredSegments(NamedTuple):
    """The number of segments to delete, from the oldest on."""

    segments_count: int
    reason: Reason | None


class PendingDeletions:
    """Paths that are no longer used and are deleted after a delay (file.delete.delay.ms)."""

    def __init__(self) -> None:
        self._paths: list[tuple[int, str]] = []

    def add(self, paths: Iterable[str], due_ms: int) -> None:
        """Schedule the deletion of paths at `due_ms`."""
        self._paths += [(due_ms, path) for path in paths]

    def take_due(self, now_ms: int | None = None) -> list[str]:
        """Return the paths that are due, each once; all of them without a time."""
        if not self._paths:
            return []
        due = {path: None for due_ms, path in self._paths if now_ms is None or due_ms <= now_ms}
        if due:
            self._paths = [entry for entry in self._paths if entry[1] not in due]
        return list(due)

    def forget(self) -> None:
        """Forget the paths, because the whole folder that contains them is deleted."""
        self._paths.clear()


def plan(
    segments: Sequence[Aged], state: LogExtent, config: LogConfig, now_ms: int
) -> ExpiredSegments:
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
    best = ExpiredSegments(0, None)
    for reason, is_due in rules:
        count = _count(segments, state, is_due)
        if count > best.segments_count:
            best = ExpiredSegments(count, reason)
    return best


def _count(segments: Sequence[Aged], state: LogExtent, is_due: Callable[[int], bool]) -> int:
    for at in range(len(segments)):
        is_last = at == len(segments) - 1
        if is_last and not segments[at].size_bytes:
            return at
        if _end(segments, at, state) > state.high_watermark or not is_due(at):
            return at
    return len(segments)


def _end(segments: Sequence[Aged], at: int, state: LogExtent) -> int:
    """Return the offset after the last one of the segment."""
    return segments[at + 1].base_offset if at + 1 < len(segments) else state.log_end_offset


def _running_sizes(segments: Sequence[Aged]) -> list[int]:
    total, sizes = 0, []
    for segment in segments:
        total += segment.size_bytes
        sizes.append(total)
    return sizes
