"""The `leader-epoch-checkpoint` of one log: always written as a whole, optionally off the event
loop.

A log stores it before its recovery point passes a new epoch's first batch, because a start reads
the epochs from this file, not from the batches. To sync off the event loop, the caller writes a
`draft`, syncs it elsewhere, and replaces the file with `adopt`; a `store` in between voids the
draft. There is no concurrency: all calls come from the log's loop.
"""

from typing import NamedTuple

from ottla.base.files import FileSystem
from ottla.storage.files import checkpoints
from ottla.storage.files.epochs import LeaderEpochs


class Draft(NamedTuple):
    """The new content of the file in a folder; `path` is to be synced before `adopt`."""

    folder: str
    path: str
    data: bytes


class EpochFile:
    """The file with the epochs of one log; the log passes the folder, which may be renamed."""

    __slots__ = ("_files", "_last")

    def __init__(self, files: FileSystem) -> None:
        self._files = files
        # The only draft that may be adopted: nothing has been written since.
        self._last: Draft | None = None

    def store(self, folder: str, epochs: LeaderEpochs) -> None:
        """Store the epochs; they are durable on return."""
        self._last = None
        self._files.replace(_path(folder), checkpoints.encode_epochs(epochs.entries))
        epochs.is_dirty = False

    def draft(self, folder: str, epochs: LeaderEpochs) -> Draft:
        """Write the epochs to a file beside the current one, which does not change."""
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
        """Replace the file by a draft that has been synced; return False if the draft is void.

        The caller syncs the folder next. Epochs that were added during the write leave `epochs`
        dirty.
        """
        if self._last is not draft or draft.folder != folder:
            return False
        self._last = None
        self._files.rename(draft.path, _path(folder))
        epochs.is_dirty = checkpoints.encode_epochs(epochs.entries) != draft.data
        return True


def _path(folder: str) -> str:
    return f"{folder}/{checkpoints.LEADER_EPOCH_FILE}"
