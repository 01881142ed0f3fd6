"""Truncation of one log, at its end or as a whole, and moves of its start and end.

The variants `…_in_background` wait for the device off the event loop. Each of their steps leaves a
complete log in memory, and what a step does becomes durable before the next one.
"""

from bisect import bisect_right
from collections.abc import Callable

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
            self._remove_segments(bisect_right(log.bases, offset))
            # Before the cut: a segment that reappears after a crash must not follow a gap.
            log.files.sync_directory(log.directory)
            self._cut(offset)
            # Otherwise a crash could restore the data that was cut.
            log.active.files.sync()
            self._durability.flush_state.store_epochs(log.epochs)

    async def truncate_to_in_background(self, offset: int, is_wanted: Callable[[], bool]) -> None:
        """Cut off the batch that contains `offset` and all after it, like `truncate_to`.

        Nothing may be appended before this returns: after a crash, records that were cut could
        follow newer ones. Ends early if `is_wanted` returns False, because the log was deleted or
        replaced.
        """
        log = self._log
        log.refuse_if_failed()
        if offset >= log.log_end_offset:
            log.epochs.truncate_from_end(offset)
            return
        if offset < log.bases[0]:
            await self.restart_in_background(offset, is_wanted)
            return
        keep = bisect_right(log.bases, offset)
        if keep < len(log.segments):
            with log.disk(is_midway=True):
                self._remove_segments(keep)
            self._durability.expect_sync_of(log.directory)
            await self._sync_names(is_wanted)
        if is_wanted():
            log.refuse_if_failed()
            with log.disk(is_midway=True):
                self._cut(offset)
            await self._sync_cut(is_wanted)

    async def restart_in_background(self, offset: int, is_wanted: Callable[[], bool]) -> None:
        """Delete all records and begin at `offset`, like `truncate_fully_and_start_at`.

        The rules of `truncate_to_in_background` apply.
        """
        # Or a new segment's file would have to wait for the names of others.
        await self._sync_names(is_wanted)
        if is_wanted():
            self._log.refuse_if_failed()
            self._restart(offset)
            await self._sync_names(is_wanted)

    async def _sync_names(self, is_wanted: Callable[[], bool]) -> None:
        log = self._log
        with log.disk():
            await self._durability.flush_state.sync_in_background(
                log.epochs, lambda: is_wanted() and log.failure is None
            )

    async def _sync_cut(self, is_wanted: Callable[[], bool]) -> None:
        log = self._log
        active, file = log.active, log.active.file
        try:
            await log.files.in_background(file.sync)
        except OSError as error:
            if is_wanted() and log.failure is None and active.files.opened is file:
                raise log.fail(error) from error
            return
        if is_wanted():
            await self._sync_names(is_wanted)

    def _remove_segments(self, keep: int) -> None:
        """Remove the segments from index `keep` on; the log ends where the last of the others does."""
        log = self._log
        if keep == len(log.segments):
            return
        end = log.bases[keep]
        log.all_segments.void_ranges(keep)
        self._rolling.remove_segments(keep, len(log.segments))
        log.active = log.segments[-1]
        log.log_end_offset = end
        self._after_truncation()

    def _cut(self, offset: int) -> None:
        """Cut the last segment at `offset`."""
        log = self._log
        active = log.active
        active.void_ranges()
        # The start of the log may be inside the batch that is cut: it does not move back.
        floor = min(log.log_start_offset, offset)
        log.log_end_offset = max(active.truncate_to(offset), floor)
        active.transactions.clear(log.log_end_offset)
        self._durability.expect_sync_of(log.directory, active.files.path(TXN_INDEX_SUFFIX))
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
        self._log.refuse_if_failed()
        self._restart(offset)
        with self._log.disk(is_midway=True):
            self._durability.flush_state.store_epochs(self._log.epochs)

    def _restart(self, offset: int) -> None:
        log = self._log
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
