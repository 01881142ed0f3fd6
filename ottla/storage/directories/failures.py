"""Failures of log directories: which are online, and what happens when one is not any more.

If a directory fails, the broker is notified and its logs reject every operation; the other
directories stay online. A lack of descriptors fails no directory.
"""

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager

from ottla.base.clock import Clock
from ottla.base.errors import OutOfDescriptorsError, StorageError
from ottla.base.platform.descriptors import is_exhausted
from ottla.storage.directories.log_directory import LogDirectory
from ottla.storage.files.checkpoints import TopicPartition
from ottla.storage.log.log import Log

OnOffline = Callable[[str, StorageError], None]

# At most one log line about a lack of descriptors in this time.
_WARNING_SECONDS = 60.0

_log = logging.getLogger(__name__)


class DirectoryFailures:
    """The directories of a broker with their failures, and the damage of their logs.

    `on_offline` is called if a directory fails while others stay online.
    """

    def __init__(self, clock: Clock, on_offline: OnOffline) -> None:
        self.directories: Sequence[LogDirectory] = ()
        self._clock = clock
        self._on_offline = on_offline
        self._warned_at = float("-inf")
        # Logs in which damaged bytes were found; `damaged` checks whether they still exist.
        self._damaged: dict[TopicPartition, None] = {}
        # Collected from other threads while the logs are closed.
        self._while_closing: list[StorageError] | None = None

    def online(self) -> list[LogDirectory]:
        """Return the directories that have not failed."""
        return [directory for directory in self.directories if directory.failure is None]

    @property
    def has_failed_directory(self) -> bool:
        """True if there may be logs in a directory that has failed."""
        return len(self.online()) < len(self.directories)

    def first_failure(self) -> Exception:
        """Return the error to raise if no directory is online."""
        return self.directories[0].failure or AssertionError("a directory failed silently")

    @contextmanager
    def disk(self, directory: LogDirectory) -> Iterator[None]:
        """Turn an OSError of the block into a StorageError, as `note` does."""
        try:
            yield
        except OSError as error:
            raise self.note(directory, error) from error

    def note(self, directory: LogDirectory, error: OSError | StorageError) -> StorageError:
        """Take a directory offline after an error, unless descriptors ran out; return the error."""
        if isinstance(error, OSError):
            reason = str(error.strerror or error)
            is_ours = is_exhausted(error)
            error = (OutOfDescriptorsError if is_ours else StorageError)(directory.path, reason)
        if isinstance(error, OutOfDescriptorsError):
            self._warn_of_descriptors(error)
        else:
            self.fail(directory, error)
        return error

    def _warn_of_descriptors(self, error: OutOfDescriptorsError) -> None:
        """Log, once a minute, that work is postponed; the caller retries later."""
        now = self._clock.monotonic()
        if now - self._warned_at >= _WARNING_SECONDS:
            self._warned_at = now
            _log.error("no descriptor is free, raise its limit (ulimit -n) error=%s", error)

    def failed(self, failure: StorageError) -> None:
        """Take the directory that the error names offline, after an error in one of its logs."""
        if self._while_closing is not None:
            self._while_closing.append(failure)
            return
        for directory in self.directories:
            if directory.path == failure.directory:
                self.fail(directory, failure)

    def fail(self, directory: LogDirectory, failure: StorageError) -> None:
        """Take a directory and its logs offline, unless it is offline already."""
        if directory.failure is None:
            _log.error("log directory offline path=%s reason=%s", directory.path, failure)
            directory.fail(failure)
            self._on_offline(directory.path, failure)

    @contextmanager
    def collected(self) -> Iterator[list[StorageError]]:
        """Collect failures that other threads report during the block; they take effect after it."""
        failures = self._while_closing = []
        try:
            yield failures
        finally:
            self._while_closing = None
            for failure in failures:
                self.failed(failure)

    def note_damage(self, topic: str, partition: int) -> None:
        """Remember that a log is damaged; it stays online."""
        self._damaged[topic, partition] = None

    def damaged(self, logs: Mapping[TopicPartition, Log]) -> dict[TopicPartition, str]:
        """Return where `logs` are damaged, as far as reads, upkeep and loading have found it."""
        damages: dict[TopicPartition, str] = {}
        for key in list(self._damaged):
            damage = logs[key].damage if key in logs else None
            if damage is None:
                del self._damaged[key]
            else:
                damages[key] = damage
        return damages
