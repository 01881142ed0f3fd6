"""Moving of logs between the directories of a broker (KIP-113).

A copy of the log is made in the other directory and replaces the log when it is complete. A crash
at any moment leaves one of the two. The records are copied by the code above this package.
"""

import logging
from contextlib import suppress
from typing import NamedTuple

from ottla.base.errors import StorageError
from ottla.storage.directories.failures import DirectoryFailures
from ottla.storage.directories.log_directory import LogDirectory
from ottla.storage.files.checkpoints import TopicPartition
from ottla.storage.log.log import Log

# The maximum number of remembered preferences for logs that do not exist.
_PREFERRED_MAX = 10_000

_log = logging.getLogger(__name__)


class Placement(NamedTuple):
    """The logs of a broker, and the directory of each."""

    logs: dict[TopicPartition, Log]
    directories: dict[TopicPartition, LogDirectory]


class LogMoves:
    """The copies of logs that are to replace them, and the preferred directories of new logs."""

    def __init__(self, placement: Placement, failures: DirectoryFailures) -> None:
        self._logs, self._directories = placement
        self._failures = failures
        # The preferred directories of logs that do not exist yet.
        self._preferred: dict[TopicPartition, LogDirectory] = {}

    def future(self, topic: str, partition: int) -> Log | None:
        """Return the unfinished copy of a log, in any directory."""
        directory = self._future_directory(topic, partition)
        return None if directory is None else directory.futures[topic, partition]

    def _future_directory(self, topic: str, partition: int) -> LogDirectory | None:
        key = (topic, partition)
        online = self._failures.online()
        return next((directory for directory in online if key in directory.futures), None)

    def prefer(self, topic: str, partition: int, directory: LogDirectory) -> None:
        """Set the directory in which a log is created, unless it exists there already."""
        key = (topic, partition)
        if key in directory.logs or key in directory.futures:
            return
        self._preferred[key] = directory
        if len(self._preferred) > _PREFERRED_MAX:
            del self._preferred[next(iter(self._preferred))]

    def preferred(self, key: TopicPartition) -> LogDirectory | None:
        """Return the directory that was set for a log by `prefer`."""
        return self._preferred.get(key)

    def forget_preferred(self, key: TopicPartition) -> None:
        """Forget the preferred directory of a log, because the log exists now."""
        self._preferred.pop(key, None)

    def begin(self, topic: str, partition: int, directory: LogDirectory) -> Log | None:
        """Create a copy of a log in another directory; None if the log or a copy is there already.

        An unfinished copy in another directory is deleted. Raises StorageError while a directory is
        offline, because it may contain a copy already.
        """
        key = (topic, partition)
        if self._future_directory(topic, partition) is directory:
            return None
        self.cancel(topic, partition)
        if self._directories[key] is directory:
            return None
        for other in self._failures.directories:
            if other.failure is not None:
                raise other.failure
        log = self._logs[key]
        with self._failures.disk(directory):
            future = directory.create_future(key, log.topic_id, log.config)
        future.first_dirty_offset = log.first_dirty_offset
        self.forget_preferred(key)
        log.is_being_copied = True
        return future

    def cancel(self, topic: str, partition: int) -> None:
        """Delete the unfinished copy of a log, if there is one; StorageError if its directory
        fails.
        """
        key = (topic, partition)
        directory = self._future_directory(topic, partition)
        try:
            if directory is not None:
                with self._failures.disk(directory):
                    directory.delete_future(key)
        finally:
            # A copy in a directory that failed may resume at the next start.
            is_gone = directory is None or directory.failure is None
            if is_gone and key in self._logs:
                self._logs[key].is_being_copied = False

    async def prepare(self, topic: str, partition: int) -> None:
        """Do, off the event loop, the part of `finish` that can be done before.

        It has no effect on a log that stays; `withdraw` undoes it. Raises StorageError.
        """
        key = (topic, partition)
        log, source = self._logs[key], self._directories[key]
        try:
            await source.marks.prepare(key)
        except OSError as error:
            if self._logs.get(key) is log:
                raise self._failures.note(source, error) from error
            # The log was deleted during the move, with its folder.

    def withdraw(self, topic: str, partition: int) -> None:
        """Undo `prepare`, because the log stays in its directory; idempotent."""
        key = (topic, partition)
        directory = self._directories.get(key)
        if directory is not None and directory.failure is None:
            with suppress(StorageError), self._failures.disk(directory):
                directory.marks.withdraw(key)

    def finish(self, topic: str, partition: int) -> Log:
        """Replace the log by its copy, which is complete and durable; return the copy.

        The former log is still in its directory: call `remove_superseded` next. A crash at any
        moment leaves one of the two. After a StorageError the log stays in its directory.
        """
        key = (topic, partition)
        source, target = self._directories[key], self._future_directory(topic, partition)
        assert target is not None
        former = self._logs[key]
        target.futures[key].take_over(former)
        target.checkpoints.high_watermarks[key] = former.high_watermark
        with self._failures.disk(source):
            source.marks.mark_superseded(key)
        try:
            with self._failures.disk(target):
                log = target.promote(key)
        except StorageError:
            # The copy may have the log's name nevertheless, once its directory is online again.
            with self._failures.disk(source):
                source.marks.mark_prevailing(key)
            raise
        self._logs[key], self._directories[key] = log, target
        return log

    def remove_superseded(self, topic: str, partition: int) -> None:
        """Delete the log that a copy has replaced; an error takes its directory offline."""
        key = (topic, partition)
        for directory in self._failures.online():
            if key in directory.marks.superseded:
                with suppress(StorageError), self._failures.disk(directory):
                    directory.delete(key)
                    directory.settle_deletions()

    async def remove_superseded_in_background(self, topic: str, partition: int) -> None:
        """Call `remove_superseded`, with the sync off the event loop."""
        key = (topic, partition)
        for directory in self._failures.online():
            if key in directory.marks.superseded:
                with suppress(StorageError), self._failures.disk(directory):
                    directory.delete(key)
                    await directory.settle_deletions_in_background()

    # At the start of the broker

    def finish_interrupted(self) -> None:
        """Finish replacements of logs by their copies that a crash interrupted."""
        for directory in self._failures.online():
            for key in sorted(directory.marks.superseded | directory.marks.prevailing):
                if not self._failures.has_failed_directory:
                    with suppress(StorageError), self._failures.disk(directory):
                        directory.marks.unmark(key)
                elif key in directory.marks.superseded:
                    # Its copy may be in the failed directory and have more records.
                    del self._logs[key], self._directories[key]
            for key in list(directory.futures):
                self._finish_interrupted_copy(key, directory)

    def _finish_interrupted_copy(self, key: TopicPartition, directory: LogDirectory) -> None:
        current = self._logs.get(key)
        if current is None and self._failures.has_failed_directory:
            return
        with suppress(StorageError), self._failures.disk(directory):
            if current is None:
                # A log is deleted after its copy, so it was not deleted: it is lost, or damaged.
                _log.warning("log lost, its incomplete copy replaces it partition=%s-%d", *key)
                self._logs[key], self._directories[key] = directory.promote(key), directory
            elif self.future(*key) is directory.futures[key]:
                current.is_being_copied = True
                _cut_uncertain_records(directory.futures[key], current)
            else:
                directory.delete_future(key)


def _cut_uncertain_records(future: Log, current: Log) -> None:
    """Cut off records that the log may have lost, rewritten or compacted since they were copied."""
    if current.config.is_compacted and current.first_dirty_offset != future.first_dirty_offset:
        # The copy may have a key's old value whose deletion is no longer in the log.
        future.truncation.truncate_fully_and_start_at(current.log_start_offset)
        future.first_dirty_offset = current.first_dirty_offset
        return
    epoch, end_offset = current.end_offset_for_epoch(future.epochs.latest)
    sure = min(current.recovery_point, end_offset if epoch >= 0 else 0)
    future.truncation.truncate_to(sure)
