"""The log directories of a broker: their owner, their logs, and the files beside the logs.

`LogDirectories.open` locks the directories, checks their owner and loads every log; `close` shuts
them down cleanly. If a directory fails, the broker is notified and its logs reject every operation;
the other directories stay online. The owner calls `upkeep.maintain` regularly. Follows
org.apache.kafka LogManager.
"""

import asyncio
import os.path
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, suppress
from operator import attrgetter
from types import MappingProxyType
from typing import Required, TypedDict, Unpack

from ottla.base import uuids
from ottla.base.clock import Clock
from ottla.base.errors import (
    ApiError,
    ConfigError,
    ErrorCode,
    OutOfDescriptorsError,
    StorageError,
)
from ottla.base.files import FileSystem, run_whole
from ottla.base.platform.descriptors import is_exhausted
from ottla.base.rng import Rng
from ottla.metrics.histogram import Histogram
from ottla.storage.config import LogConfig
from ottla.storage.directories.failures import DirectoryFailures, OnOffline
from ottla.storage.directories.log_directory import (
    LogDirectory,
    Owner,
    directory_name,
    ignores_case,
    lock_directory,
)
from ottla.storage.directories.moves import LogMoves, Placement
from ottla.storage.directories.strays import StrayReason
from ottla.storage.directories.upkeep import LogUpkeep
from ottla.storage.files.checkpoints import TopicPartition
from ottla.storage.log import recovery
from ottla.storage.log.log import Dependencies, Log

# A device completes several concurrent flushes in hardly more time than one.
_CLOSERS = 8


class Opening(TypedDict, total=False):
    """The parameters of `LogDirectories.open` besides the paths and the ports.

    `is_kraft`: the owner of new directories is written in the form of KRaft nodes.
    `topic_config` returns a topic's settings; `default_config` is for topics that it is not called
    for. `on_offline` is called if a directory fails while others stay online. If `is_wanted`
    returns False, opening is aborted with StorageError.
    """

    cluster_id: str | None
    broker_id: Required[int]
    is_kraft: bool
    default_config: LogConfig
    topic_config: Callable[[str], LogConfig]
    on_offline: OnOffline
    is_wanted: Callable[[], bool]


class LogDirectories:
    """All log directories of a broker, on its event loop.

    `moves` replaces logs by copies in other directories; `upkeep` is the regular work on the logs.
    """

    def __init__(self, clock: Clock, on_offline: OnOffline) -> None:
        self.cluster_id: str | None = None
        # Durations of flushes in microseconds.
        self.flush_times = Histogram()
        self._clock = clock
        self._directories: list[LogDirectory] = []
        self._logs: dict[TopicPartition, Log] = {}
        self._where: dict[TopicPartition, LogDirectory] = {}
        self._failures = DirectoryFailures(clock, on_offline)
        self.moves = LogMoves(Placement(self._logs, self._where), self._failures)
        self.upkeep = LogUpkeep(self._logs, self._failures, clock)

    @classmethod
    def open(
        cls,
        paths: Sequence[str],
        *,
        files: FileSystem,
        clock: Clock,
        rng: Rng,
        **opening: Unpack[Opening],
    ) -> "LogDirectories":
        """Lock, check and load the directories; missing ones are created.

        Raises ConfigError or StorageError with a message for the administrator.
        """
        if not paths:
            raise ConfigError("log.dirs names no directory")
        directories = cls(clock, opening.get("on_offline", _ignore))
        failures = directories._failures
        ports = Dependencies(
            files,
            clock,
            rng,
            failures.failed,
            on_damage=failures.note_damage,
            on_flush=directories.note_flush,
        )
        with ExitStack() as undo:
            # Clients receive and send absolute paths.
            for path in dict.fromkeys(map(os.path.abspath, paths)):
                lock = lock_directory(files, path)
                directory = LogDirectory(path, ports._replace(log_directory=path), lock)
                directory.ignores_case = ignores_case(files, path)
                undo.callback(directory.release)
                directories._directories.append(directory)
            failures.directories = directories._directories
            directories._load(opening)
            undo.pop_all()
        return directories

    def note_flush(self, seconds: float) -> None:
        """Record the duration of a flush."""
        self.flush_times.observe(int(seconds * 1_000_000))

    def _load(self, opening: Opening) -> None:
        default = opening.get("default_config") or LogConfig()
        topic_config = opening.get("topic_config", lambda topic: default)
        is_kraft = opening.get("is_kraft", False)
        owner = Owner(opening.get("cluster_id"), opening["broker_id"], is_kraft)
        progress = recovery.LoadProgress(self._clock, opening.get("is_wanted", lambda: True))
        for directory in self._directories:
            try:
                cluster_id = directory.check_owner(owner)
                owner = owner._replace(cluster_id=cluster_id)
                directory.load(topic_config, progress)
            except OSError as error:
                reason = f"it cannot be read or written: {error.strerror or error}"
                if is_exhausted(error):
                    reason += ". Raise the limit of open files (ulimit -n)."
                    raise OutOfDescriptorsError(directory.path, reason) from error
                self._failures.fail(directory, StorageError(directory.path, reason))
            for key in list(directory.logs):
                self._register(key, directory)
        self.cluster_id = owner.cluster_id
        if self.is_lost:
            raise self._failures.first_failure()
        self.moves.finish_interrupted()

    def _register(self, key: TopicPartition, directory: LogDirectory) -> None:
        """Register a log that was found; of a log and its copy, register the copy."""
        other = self._where.get(key)
        if directory.logs[key].damage is not None:
            self._failures.note_damage(*key)
        if other is not None:
            if other.marks.rank(key) == directory.marks.rank(key):
                raise ConfigError(
                    f"{directory_name(*key)} is both in {other.path} and in {directory.path}; "
                    f"move the one that is out of date away."
                )
            old = other if other.marks.rank(key) < directory.marks.rank(key) else directory
            with suppress(StorageError), self._failures.disk(old):
                old.delete(key)
                old.settle_deletions()
            directory = directory if old is other else other
        self._where[key], self._logs[key] = directory, directory.logs[key]

    # Logs

    def directories(self) -> Sequence[LogDirectory]:
        """Return every directory, failed ones as well."""
        return tuple(self._directories)

    def logs(self) -> Mapping[TopicPartition, Log]:
        """Return every log, those in failed directories as well."""
        return MappingProxyType(self._logs)

    def get(self, topic: str, partition: int) -> Log | None:
        """Return a log, or None if the partition has no log."""
        return self._logs.get((topic, partition))

    def create(self, topic: str, partition: int, topic_id: bytes, config: LogConfig) -> Log:
        """Create a log in the directory with the fewest; return an existing log unchanged.

        A log without a topic id (lost, or older than KIP-516) gets this one. Raises
        INCONSISTENT_TOPIC_ID for a log of an earlier topic with that name, KAFKA_STORAGE_ERROR for
        a log whose folder belongs to another topic on a disk that ignores case, or StorageError.
        """
        key = (topic, partition)
        existing = self._logs.get(key)
        if existing is not None:
            if existing.topic_id not in (topic_id, uuids.ZERO_UUID):
                raise ApiError(ErrorCode.INCONSISTENT_TOPIC_ID)
            if existing.topic_id != topic_id:
                existing.topic_id = topic_id
                with self._failures.disk(self._where[key]):
                    self._where[key].store_topic_id(existing)
            return existing
        online = self._failures.online()
        if not online:
            raise self._failures.first_failure()
        directory = self.moves.preferred(key) or min(online, key=attrgetter("logs_count"))
        if directory.failure is not None:
            raise directory.failure
        with self._failures.disk(directory):
            log = directory.create(key, topic_id, config)
        self.moves.forget_preferred(key)
        self._logs[key], self._where[key] = log, directory
        return log

    def delete(self, topic: str, partition: int) -> None:
        """Remove a log; its files are deleted after file.delete.delay.ms. Then call
        `settle_deletions`.
        """
        directory = self._forget(topic, partition)
        with self._failures.disk(directory):
            directory.delete((topic, partition))

    def set_aside(self, topic: str, partition: int, reason: StrayReason) -> str:
        """Take a log out of service, and return the path to which its directory is renamed.

        Its files are kept for some time, see `strays`. Then call `settle_deletions`. Follows
        LogManager.asyncDelete of a stray log.
        """
        directory = self._forget(topic, partition)
        with self._failures.disk(directory):
            return directory.set_aside((topic, partition), reason)

    def _forget(self, topic: str, partition: int) -> LogDirectory:
        key = (topic, partition)
        # First: without the log, its copy would count as the only remaining data.
        self.moves.cancel(topic, partition)
        self._logs.pop(key)
        directory = self._where.pop(key)
        if directory.failure is not None:
            raise directory.failure
        return directory

    def settle_deletions(self) -> None:
        """Make deletions durable, so that no crash restores a log; raises StorageError if that
        fails.
        """
        for directory in self._failures.online():
            with self._failures.disk(directory):
                directory.settle_deletions()

    async def settle_deletions_in_background(self) -> None:
        """Call `settle_deletions` off the loop."""
        for directory in self._failures.online():
            with self._failures.disk(directory):
                await directory.settle_deletions_in_background()

    @property
    def ignores_case(self) -> bool:
        """True if a directory is on a disk on which `A` and `a` are one folder."""
        return any(directory.ignores_case for directory in self._directories)

    @property
    def has_failed_directory(self) -> bool:
        """True if there may be logs in a directory that has failed."""
        return self._failures.has_failed_directory

    @property
    def is_lost(self) -> bool:
        """True if every directory has failed: nothing can be stored any more."""
        return not self._failures.online()

    def high_watermark(self, topic: str, partition: int) -> int:
        """Return the high watermark that was stored last; 0 if no high watermark was stored."""
        directory = self._where.get((topic, partition))
        if directory is None:
            return 0
        return directory.checkpoints.high_watermarks.get((topic, partition), 0)

    def at_path(self, path: str) -> LogDirectory:
        """Return a directory; LOG_DIR_NOT_FOUND for one that the broker does not have."""
        for directory in self._directories:
            if directory.path == path:
                return directory
        raise ApiError(ErrorCode.LOG_DIR_NOT_FOUND, f"{path} is not one of log.dirs.")

    # Checkpoints and the end

    def checkpoint(self) -> None:
        """Write recovery points and log start offsets; StorageError if a directory fails."""
        for directory in self._failures.online():
            with self._failures.disk(directory):
                directory.checkpoints.store()

    def store_high_watermarks(self, high_watermarks: Mapping[TopicPartition, int]) -> None:
        """Write high watermarks; StorageError if a directory fails."""
        for directory in self._failures.online():
            with self._failures.disk(directory):
                directory.checkpoints.store_high_watermarks(high_watermarks)

    async def store_high_watermarks_in_background(
        self, high_watermarks: Mapping[TopicPartition, int]
    ) -> None:
        """Store high watermarks as `store_high_watermarks` does, but off the event loop."""
        for directory in self._failures.online():
            with self._failures.disk(directory):
                await directory.checkpoints.store_high_watermarks_in_background(high_watermarks)

    async def close_in_background(self, files: FileSystem) -> None:
        """Call `close` off the event loop, several logs at a time; the logs must not be used until
        it returns.
        """
        try:
            failures = await self._flush_together(files)
            failures += await self._close_logs(files)
            for directory in self._failures.online():
                try:
                    await run_whole(files, directory.close)
                except (OSError, StorageError) as error:
                    failures.append(self._failures.note(directory, error))
        finally:
            for directory in self._directories:
                directory.release()
        if failures:
            raise failures[0]

    async def _flush_together(self, files: FileSystem) -> list[StorageError]:
        """Flush the logs of directories with many; return the failures, which take effect."""
        failures: list[StorageError] = []
        for directory in self._failures.online():
            try:
                with self._failures.collected() as reported:
                    await run_whole(files, directory.flush_together)
            except OSError as error:
                failures.append(self._failures.note(directory, error))
            failures += reported
        return failures

    async def _close_logs(self, files: FileSystem) -> list[StorageError]:
        """Close every log and return the failures; their directories are offline then.

        An unexpected exception is raised after the other logs are closed: no directory is marked as
        clean.
        """
        waiting = [log for directory in self._failures.online() for log in directory.every_log]

        def close_some() -> None:
            while True:
                try:
                    log = waiting.pop()
                except IndexError:
                    return
                # The error is reported to the failures as well.
                with suppress(StorageError):
                    log.close()

        # If no log has unsynced records, threads would only wait for each other.
        due_count = sum(log.durability.is_due for log in waiting)
        workers = max(1, min(_CLOSERS, due_count))
        with self._failures.collected() as failures:
            closing = [run_whole(files, close_some) for _ in range(workers)]
            results = await asyncio.gather(*closing, return_exceptions=True)
        for unexpected in filter(None, results):
            raise unexpected
        return failures

    def close(self) -> None:
        """Close every log, mark the directories as clean, release the locks; then raise any
        failures.
        """
        failures = []
        for directory in self._directories:
            try:
                if directory.failure is None:
                    with self._failures.disk(directory):
                        directory.close()
            except StorageError as error:
                failures.append(error)
            finally:
                directory.release()
        if failures:
            raise failures[0]

    def abandon(self) -> None:
        """Close files and locks without writing, as if the process had died."""
        for directory in self._directories:
            directory.release()

    # Failing

    def damaged(self) -> dict[TopicPartition, str]:
        """Return where the logs are damaged, as far as reads, upkeep and loading have found it.

        Such a log stays online: records before and after the damage are served, requests for the
        damaged ones fail with CORRUPT_MESSAGE, and retention deletes the segment when it is due. A
        log that must be recovered, because an operation ended midway, rejects every request. A log
        that was set aside in doubt is not served.
        """
        misplaced = {
            stray.key: f"{directory.path}/{stray.name}: {stray.reason.sentence}; see `ottla log "
            "repair`"
            for directory in self._failures.online()
            for stray in directory.strays.listed()
            if stray.reason.is_doubtful
        }
        return misplaced | self._failures.damaged(self._logs)

    def failed(self, failure: StorageError) -> None:
        """Take the directory that the error names offline, after an error in one of its logs."""
        self._failures.failed(failure)


def _ignore(path: str, error: StorageError) -> None:
    """Ignore the failure of a directory: the default for owners that do not track it."""
