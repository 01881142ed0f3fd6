"""Flushing of one log: its records, and the files that are needed to find them, become durable."""

from collections.abc import Callable, Iterator

from ottla.base.clock import Clock, steady_ms
from ottla.base.files import FileSystem
from ottla.storage.config import LONG_MAX
from ottla.storage.files.epoch_file import Draft, EpochFile
from ottla.storage.files.epochs import LeaderEpochs
from ottla.storage.files.unsynced import Unsynced
from ottla.storage.log.state import LogState

# After this time, the names of a log are synced without a flush.
_NAMES_AGE_MS = 60_000


class FlushState:
    """The leader epochs, names and small files of one log that are not durable yet."""

    def __init__(self, files: FileSystem, clock: Clock, directory: str, log_directory: str) -> None:
        # The last process may have ended before the names that it made were durable.
        self.unsynced = Unsynced(files, directory, log_directory)
        self._directory = directory
        self._epoch_file = EpochFile(files)
        self._clock = clock
        self._flushed_ms = steady_ms(clock)

    @property
    def age_ms(self) -> int:
        """Milliseconds since the last flush, or since the log was opened."""
        return steady_ms(self._clock) - self._flushed_ms

    def note_flush(self) -> None:
        """Restart `age_ms`: a flush has ended."""
        self._flushed_ms = steady_ms(self._clock)

    def renamed(self, directory: str) -> None:
        """Follow the log's folder, which has another name now."""
        self.unsynced.renamed(self._directory, directory)
        self._directory = directory

    def store_epochs(self, epochs: LeaderEpochs) -> None:
        """Return once the epochs are durable; raises OSError."""
        self._epoch_file.store(self._directory, epochs)

    def draft(self, epochs: LeaderEpochs) -> Draft | None:
        """Write epochs that are not stored yet to a file of their own; raises OSError."""
        return self._epoch_file.draft(self._directory, epochs) if epochs.is_dirty else None

    def adopt(self, draft: Draft | None, epochs: LeaderEpochs) -> None:
        """Put a synced draft, if there is one, in the place of the epoch file; raises OSError."""
        if draft is not None:
            self._epoch_file.adopt(draft, self._directory, epochs)

    def sync(self, epochs: LeaderEpochs) -> None:
        """Return once the epochs, the names and the small files are durable; raises OSError."""
        if epochs.is_dirty:
            self.store_epochs(epochs)
        self.unsynced.sync()

    async def sync_in_background(self, epochs: LeaderEpochs, is_usable: Callable[[], bool]) -> bool:
        """Do the same as `sync`, off the event loop.

        Returns False, with nothing promised, if the log failed (`is_usable`), moved to another
        folder or stored its epochs while this waited.
        """
        if epochs.is_dirty and not await self._store_epochs_in_background(epochs, is_usable):
            return False
        await self.unsynced.sync_in_background()
        return True

    async def _store_epochs_in_background(
        self, epochs: LeaderEpochs, is_usable: Callable[[], bool]
    ) -> bool:
        """Put a synced draft in the place of the epoch file; the next sync makes its name durable."""
        draft = self._epoch_file.draft(self._directory, epochs)
        self.unsynced.expect(draft.path)
        await self.unsynced.sync_in_background()
        self.unsynced.expect(self._directory)
        return is_usable() and self._epoch_file.adopt(draft, self._directory, epochs)


class Durability:
    """The flushes of one log; they move its recovery point."""

    __slots__ = ("_log", "flush_state")

    def __init__(self, log: LogState, flush_state: FlushState) -> None:
        self._log = log
        self.flush_state = flush_state

    def flush(self) -> None:
        """Make every record durable, and the files that are needed to find it."""
        log = self._log
        log.refuse_if_failed()
        if log.recovery_point == log.log_end_offset:
            return
        started = log.clock.monotonic()
        with log.disk():
            for segment in log.segments:
                if not segment.files.is_synced:
                    segment.files.sync()
            self.flush_state.sync(log.epochs)
        self._note_flush(log.log_end_offset, started)

    @property
    def is_due(self) -> bool:
        """True if there are records to flush, and the log has not failed."""
        return self._log.failure is None and self._log.recovery_point < self._log.log_end_offset

    def steps(self) -> Iterator[None]:
        """Do the same as `flush`, but leave the syncing to the caller.

        At each step it makes the whole file system durable, for many logs at once. The log must not
        be used until it returns.
        """
        log, state = self._log, self.flush_state
        started = log.clock.monotonic()
        with log.disk():
            draft = state.draft(log.epochs)
        yield
        with log.disk():
            state.adopt(draft, log.epochs)
        yield
        for segment in log.segments:
            segment.files.note_sync()
        state.unsynced.clear()
        self._note_flush(log.log_end_offset, started)

    async def flush_in_background(self, *, sealed_only: bool = False) -> int:
        """Flush off the event loop; return the offset before which all records are durable then.

        With `sealed_only` the last segment is not flushed, only rolled ones. Raises the failure of
        a log that has failed: a caller that repeats this until all is durable would otherwise never
        stop.
        """
        log = self._log
        log.refuse_if_failed()
        started = log.clock.monotonic()
        end = log.active.base_offset if sealed_only else log.log_end_offset
        truncations = log.truncations_count
        chosen = log.segments[:-1] if sealed_only else log.segments
        pending = [
            (segment, segment.file, segment.size_bytes)
            for segment in chosen
            if not segment.files.is_synced
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
                if log.failure is None and segment.files.opened is file:
                    raise log.fail(error) from error
                # The segment was removed from the log during the flush, or another flush made it
                # durable.
                return log.recovery_point
            if truncations != log.truncations_count:
                return log.recovery_point
            segment.files.synced_bytes = max(segment.files.synced_bytes, size)
        self._note_flush(end, started)
        return log.recovery_point

    def _note_flush(self, end: int, started: float) -> None:
        self.flush_state.note_flush()
        self._log.dependencies.on_flush(self._log.clock.monotonic() - started)
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

    def must_sync_names(self) -> bool:
        """True if the name of the next segment must not outlive the names of the present ones.

        Without its first segment a log would seem to begin later. Recovery cuts a log at any other
        gap, except a compacted one, in which gaps are no damage.
        """
        log = self._log
        is_exposed = len(log.segments) <= 1 or log.config.is_compacted
        return is_exposed and log.directory in self.flush_state.unsynced

    def owes_names(self) -> bool:
        """True if the next roll would wait for the device, and is near or may be by its time.

        A new log is given some time: most get their names with the first flush.
        """
        log = self._log
        size = log.active.size_bytes
        is_near = 2 * size >= log.config.segment_bytes or self.flush_state.age_ms >= _NAMES_AGE_MS
        return size > 0 and is_near and self.must_sync_names()

    async def sync_names_in_background(self) -> None:
        """Make the names of the log durable, off the event loop."""
        with self._log.disk():
            await self.flush_state.unsynced.sync_in_background()

    def expect_sync_of(self, *paths: str) -> None:
        """Have the next flush make the names in folders, or files, durable as well."""
        self.flush_state.unsynced.expect(*paths)
