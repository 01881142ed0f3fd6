"""The `leader-epoch-checkpoint` of one log: written anew as a whole, also without waiting for the disk.

A log stores it before its recovery point passes a new epoch's first batch: a start reads the epochs
from here, not from the batches. Whoever waits on the event loop makes a `draft`, has it synced
elsewhere, and lets it take its place by `adopt`; a `store` in between makes the draft void. Nothing
here runs beside anything else: all calls come from the log's loop.
"""

from typing import NamedTuple

from ottla.base.files import FileSystem
from ottla.storage.files import checkpoints
from ottla.storage.files.epochs import LeaderEpochs


class Draft(NamedTuple):
    """What is to take the place of the file in a folder; `path` is to be synced first."""

    folder: str
    path: str
    data: bytes


class EpochFile:
    """Where the epochs of one log are kept; the log says in which folder it is now."""

    __slots__ = ("_files", "_last")

    def __init__(self, files: FileSystem) -> None:
        self._files = files
        # The only one that may be adopted: nothing has been written since.
        self._last: Draft | None = None

    def store(self, folder: str, epochs: LeaderEpochs) -> None:
        """Return when the epochs are durable."""
        self._last = None
        self._files.replace(_path(folder), checkpoints.encode_epochs(epochs.entries))
        epochs.is_dirty = False

    def draft(self, folder: str, epochs: LeaderEpochs) -> Draft:
        """Write the epochs beside their file, which stays as it is."""
        data = checkpoints.encode_epochs(epochs.entries)
        self._last = Draft(folder, _path(folder) + ".tmp", data)
        file = self._files.open(self._last.path, create=True)
        try:
            file.truncate(0)
            file.append(data)
        finally:
            file.close()
        return self._last

    def adopt(self, draft: Draft, folder: str, epochs: LeaderEpochs) -> bool:
        """Put a draft that has been synced in the place of the file; False if it is void.

        The folder is to be synced next. Epochs that have come meanwhile leave `epochs` dirty.
        """
        if self._last is not draft or draft.folder != folder:
            return False
        self._last = None
        self._files.rename(draft.path, _path(folder))
        epochs.is_dirty = checkpoints.encode_epochs(epochs.entries) != draft.data
        return True


def _path(folder: str) -> str:
    return f"{folder}/{checkpoints.LEADER_EPOCH_FILE}"
