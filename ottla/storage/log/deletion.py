"""Deletion of old records of one log: by retention, by compaction, and finally of the files."""

from collections.abc import Sequence

from ottla.base.clock import steady_ms
from ottla.base.files import remove_files
from ottla.storage.log import recovery, retention
from ottla.storage.log.rolling import Rolling
from ottla.storage.log.segment import Segment
from ottla.storage.log.state import LogState
from ottla.storage.log.truncation import Truncation


class Deletion:
    """The removal of segments of one log that are too old or that were compacted."""

    __slots__ = ("_log", "_rolling", "_truncation")

    def __init__(self, log: LogState, rolling: Rolling, truncation: Truncation) -> None:
        self._log = log
        self._rolling = rolling
        self._truncation = truncation

    def apply_retention(self, high_watermark: int, now_ms: int | None = None) -> int:
        """Delete segments that exceed the topic's retention; return how many."""
        log = self._log
        log.refuse_if_failed()
        start, end = log.log_start_offset, log.log_end_offset
        extent = retention.LogExtent(start, end, high_watermark, log.size_bytes)
        with log.disk(is_midway=True):
            now_ms = log.clock.time_ms() if now_ms is None else now_ms
            count = retention.plan(log.segments, extent, log.config, now_ms).segments_count
            if not count:
                return 0
            if count == len(log.segments):
                self._rolling.roll_at(end, now_ms)
            self._rolling.remove_segments(0, count)
            recovery.remove_snapshots(
                log.files, log.directory, lambda snapshot: snapshot < log.bases[0]
            )
        self._truncation.advance_log_start_offset(max(log.bases[0], start))
        return count

    def replace_segments(self, replaced: Sequence[Segment], cleaned: Segment) -> bool:
        """Replace adjacent segments by a cleaned one; see `Segments.replace`."""
        log = self._log
        if log.is_being_copied:
            return False
        with log.disk(is_midway=True):
            return log.all_segments.replace(replaced, cleaned, self._rolling.removal_ms())

    def take_deleted(self) -> list[str]:
        """Return the files of removed segments that are due for deletion, for the caller to delete."""
        return self._log.all_segments.take_deleted(steady_ms(self._log.clock))

    def remove_deleted(self) -> None:
        """Delete the files of all removed segments."""
        with self._log.disk():
            remove_files(self._log.files, self._log.all_segments.take_deleted())

    def close_idle_files(self) -> None:
        """Close the descriptors of durable segments except the last; a read opens them again."""
        self._log.all_segments.close_idle_files()
