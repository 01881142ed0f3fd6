"""Truncation of one log, at its end or as a whole, and moves of its start and end."""

from bisect import bisect_right

from ottla.base.errors import ApiError, ErrorCode
from ottla.storage.files.file_names import TXN_INDEX_SUFFIX
from ottla.storage.log import producers, recovery
from ottla.storage.log.flushing import Durability
from ottla.storage.log.rolling import Rolling
from ottla.storage.log.state import LogState


class Truncation:
    """Operations on one log that cut off records, or that change the range of its offsets."""

    __slots__ = ("_durability", "_log", "_rolling")

    def __init__(self, log: LogState, durability: Durability, rolling: Rolling) -> None:
        self._log = log
        self._durability = durability
        self._rolling = rolling

    def truncate_to(self, offset: int) -> None:
        """Cut off the batch that contains `offset` and all after it."""
        log = self._log
        log.refuse_if_failed()
        if offset >= log.log_end_offset:
            # A leader that appended nothing has left its epoch at the end of the log, and the next
            # leader does not know that epoch.
            log.epochs.truncate_from_end(offset)
            return
        if offset < log.bases[0]:
            self.truncate_fully_and_start_at(offset)
            return
        with log.disk(is_midway=True):
            keep = bisect_right(log.bases, offset)
            log.all_segments.void_ranges(keep)
            self._rolling.remove_segments(keep, len(log.segments))
            # Before the cut: a segment that reappears after a crash must not follow a gap.
            log.files.sync_directory(log.directory)
            active = log.active = log.segments[-1]
            # The start of the log may be inside the batch that is cut: it does not move back.
            floor = min(log.log_start_offset, offset)
            log.log_end_offset = max(active.truncate_to(offset), floor)
            active.transactions.clear(log.log_end_offset)
            self._durability.expect_sync_of(log.directory, active.files.path(TXN_INDEX_SUFFIX))
            # Otherwise a crash could restore the data that was cut.
            active.files.sync()
            log.log_start_offset = min(log.log_start_offset, log.log_end_offset)
            self._after_truncation()
            self._reload_producers()

    def _reload_producers(self) -> None:
        log = self._log
        start, end = log.log_start_offset, log.log_end_offset
        log_files = recovery.LogFiles(log.files, log.directory, start, end, log.clock.time_ms())
        log.producers, _ = recovery.load_producers(log_files, log.segments, end)

    def truncate_fully_and_start_at(self, offset: int) -> None:
        """Delete all records; the log is then empty and begins at `offset`."""
        log = self._log
        log.refuse_if_failed()
        with log.disk(is_midway=True):
            log.all_segments.void_ranges(0)
            self._rolling.remove_segments(0, len(log.segments))
            self._rolling.begin_segment(offset, log.clock.time_ms())
            log.log_start_offset = log.log_end_offset = offset
            self._after_truncation()
            log.epochs.clear()
            recovery.remove_snapshots(log.files, log.directory, lambda snapshot: True)
            log.producers = producers.ProducerState(offset)

    def _after_truncation(self) -> None:
        log = self._log
        end = log.log_end_offset
        log.truncations_count += 1
        log.recovery_point = min(log.recovery_point, end)
        log.first_dirty_offset = min(log.first_dirty_offset, end)
        log.epochs.truncate_from_end(end)
        self._durability.flush_state.store_epochs(log.epochs)
        recovery.remove_snapshots(log.files, log.directory, lambda snapshot: snapshot > end)

    def advance_log_start_offset(self, offset: int) -> bool:
        """Move the log start forward; return True if it moved. Retention deletes the segments.

        Raises OFFSET_OUT_OF_RANGE for an offset after the end of the log.
        """
        log = self._log
        if offset > log.log_end_offset:
            raise out_of_range(log, offset)
        if offset <= log.log_start_offset:
            return False
        log.log_start_offset = offset
        log.epochs.truncate_from_start(offset)
        log.producers.truncate_from_start(offset)
        return True

    def skip_to(self, offset: int) -> None:
        """Move the log end to `offset`, because no record has an offset before it any more."""
        log = self._log
        with log.disk(is_midway=True):
            log.log_end_offset = offset
            self._rolling.roll_at(offset, log.clock.time_ms())


def out_of_range(log: LogState, offset: int) -> ApiError:
    """Return the error for an offset that the log does not contain."""
    return ApiError(
        ErrorCode.OFFSET_OUT_OF_RANGE,
        f"Offset {offset} is not in {log.topic}-{log.partition}, which holds "
        f"{log.log_start_offset} to {log.log_end_offset}.",
    )
