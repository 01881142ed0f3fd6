"""Marks in the folders of two logs with one name: which of the two stays after a crash.

They exist while a copy of a log in another directory replaces it. Raises OSError.
"""

from collections.abc import Mapping
from functools import partial

from ottla.base.files import FileSystem, run_whole
from ottla.storage.files.checkpoints import TopicPartition
from ottla.storage.log.log import Log

# A file in the folder of a log that is replaced by its copy in another directory. If a crash leaves
# both under the log's name, this one is removed; if only this one is left, the file has no effect.
_SUPERSEDED_FILE = "superseded"
# A file in the folder of a log whose copy failed in the last step: of two with that name, the other
# is removed.
_PREVAILING_FILE = "prevailing"


class ReplacementMarks:
    """The marks of the logs of one directory; `logs` is the directory's own dictionary."""

    def __init__(self, files: FileSystem, logs: Mapping[TopicPartition, Log]) -> None:
        self._files = files
        self._logs = logs
        self.superseded: set[TopicPartition] = set()
        self.prevailing: set[TopicPartition] = set()

    def load(self, key: TopicPartition, folder: str) -> None:
        """Read the marks of a log."""
        if self._files.exists(f"{folder}/{_SUPERSEDED_FILE}"):
            self.superseded.add(key)
        if self._files.exists(f"{folder}/{_PREVAILING_FILE}"):
            self.prevailing.add(key)

    async def prepare(self, key: TopicPartition) -> None:
        """Write the file of `mark_superseded` off the event loop; it has no effect yet."""
        path = f"{self._logs[key].directory}/{_SUPERSEDED_FILE}"
        await run_whole(self._files, partial(self._files.replace, path, b""))

    def withdraw(self, key: TopicPartition) -> None:
        """Remove a file that `prepare` wrote, unless the mark has taken effect.

        Not durable: the next start removes a file that a power failure brings back.
        """
        path = f"{self._logs[key].directory}/{_SUPERSEDED_FILE}"
        if key not in self.superseded and self._files.exists(path):
            self._files.remove(path)

    def mark_superseded(self, key: TopicPartition) -> None:
        """Note durably that this log is removed if there is another one with its name."""
        path = f"{self._logs[key].directory}/{_SUPERSEDED_FILE}"
        if not self._files.exists(path):
            self._files.replace(path, b"")
        self.superseded.add(key)

    def mark_prevailing(self, key: TopicPartition) -> None:
        """Note durably that this log, which was marked as superseded, stays and another with its
        name goes.
        """
        directory = self._logs[key].directory
        self._files.rename(f"{directory}/{_SUPERSEDED_FILE}", f"{directory}/{_PREVAILING_FILE}")
        self._files.sync_directory(directory)
        self.superseded.discard(key)
        self.prevailing.add(key)

    def rank(self, key: TopicPartition) -> int:
        """Return the rank of a log among two with one name: the one with the higher number stays."""
        return (key in self.prevailing) - (key in self.superseded)

    def unmark(self, key: TopicPartition) -> None:
        """Remove the marks of a log, because there is no other with its name any more."""
        directory = self._logs[key].directory
        for name in (_SUPERSEDED_FILE, _PREVAILING_FILE):
            if self._files.exists(f"{directory}/{name}"):
                self._files.remove(f"{directory}/{name}")
        self._files.sync_directory(directory)
        self.forget(key)

    def forget(self, key: TopicPartition) -> None:
        """Forget the marks of a log that is deleted with its folder."""
        self.superseded.discard(key)
        self.prevailing.discard(key)
