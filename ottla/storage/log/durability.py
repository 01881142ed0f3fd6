"""Flushing of one log: its records, and the files that are needed to find them, become durable."""

from ottla.storage.config import LONG_MAX
from ottla.storage.log.flushing import FlushState
from ottla.storage.log.state import LogState


class Durability:
    """The flushes of one log; they move its recovery point."""

    __slots__ = ("_log", "flush_state")

    def __init__(self, log: LogState) -> None:
        self._log = log
        log_directory = log.dependencies.log_directory
        self.flush_state = FlushState(log.files, log.clock, log.directory, log_directory)

    def flush(self) -> None:
        """Make every record durable, and the files that are needed to find it."""
        log = self._log
        log.refuse_if_failed()
        if log.recovery_point == log.log_end_offset:
            return
        with log.disk():
            for segment in log.segments:
                if not segment.is_synced:
                    segment.sync()
            self.flush_state.sync(log.epochs)
        self._note_flush(log.log_end_offset)

    async def flush_in_background(self, *, sealed_only: bool = False) -> int:
        """Flush off the event loop; return the offset before which all records are durable then.

        With `sealed_only` the last segment is not flushed, only rolled ones. Raises the failure of
        a log that has failed: a caller that repeats this until all is durable would otherwise never
        stop.
        """
        log = self._log
        log.refuse_if_failed()
        end = log.active.base_offset if sealed_only else log.log_end_offset
        truncations = log.truncations_count
        chosen = log.segments[:-1] if sealed_only else log.segments
        pending = [
            (segment, segment.file, segment.size_bytes)
            for segment in chosen
            if not segment.is_synced
        ]
        with log.disk():
            if not await self.flush_state.sync_in_background(log.epochs, lambda: not log.failure):
                return log.recovery_point
        if truncations != log.truncations_count or log.failure is not None:
            return log.recovery_point
        for segment, file, size in pending:
            try:
                await log.files.in_background(file.sync)
            except OSError as error:
                if log.failure is None and segment.holds(file):
                    raise log.fail(error) from error
                # The segment was removed from the log meanwhile, or another flush made it durable.
                return log.recovery_point
            if truncations != log.truncations_count:
                return log.recovery_point
            segment.synced_bytes = max(segment.synced_bytes, size)
        self._note_flush(end)
        return log.recovery_point

    def _note_flush(self, end: int) -> None:
        self.flush_state.note_flush()
        self._log.recovery_point = max(self._log.recovery_point, end)

    def needs_flush(self) -> bool:
        """True if flush.ms has passed since the last flush and there are records to flush."""
        log = self._log
        if log.recovery_point == log.log_end_offset or log.config.flush_ms == LONG_MAX:
            return False
        return self.flush_state.age_ms >= log.config.flush_ms

    def owes_sealed(self) -> bool:
        """True if a segment was rolled and is not durable yet."""
        return self._log.recovery_point < self._log.active.base_offset

    def expect_sync_of(self, *paths: str) -> None:
        """Have the next flush make the names in folders, or files, durable as well."""
        self.flush_state.unsynced.expect(*paths)
