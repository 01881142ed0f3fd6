"""The state that a flush of a log makes durable besides its segments, and the time of the last flush.

The log syncs its segments itself: it knows which of them are still its own after each wait.
"""

from collections.abc import Callable

from ottla.base.clock import Clock, steady_ms
from ottla.base.files import FileSystem
from ottla.storage.files.epoch_file import EpochFile
from ottla.storage.files.epochs import LeaderEpochs
from ottla.storage.files.unsynced import Unsynced


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

    def sync(self, epochs: LeaderEpochs) -> None:
        """Return once the epochs, the names and the small files are durable; raises OSError."""
        if epochs.is_dirty:
            self.store_epochs(epochs)
        self.unsynced.sync()

    async def sync_in_background(self, epochs: LeaderEpochs, is_usable: Callable[[], bool]) -> bool:
        """Do the same as `sync`, off the event loop.

        Returns False, with nothing promised, if the log failed (`is_usable`), moved to another folder
        or stored its epochs while this waited.
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
