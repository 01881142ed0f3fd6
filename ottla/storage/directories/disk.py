"""The log directories of a broker: their owner, their logs, and the files beside the logs.

`LogDirectories.open` locks the directories, checks their owner and loads every log; `close` shuts
them down cleanly. If a directory fails, the broker is notified and its logs reject every operation;
the other directories stay online. The owner calls `maintain` regularly. Follows org.apache.kafka
LogManager.
"""

import asyncio
import logging
import os.path
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from operator import attrgetter
from types import MappingProxyType
from typing import Required, TypedDict, Unpack

from ottla.base import uuids
from ottla.base.ageing import AgeingClock
from ottla.base.clock import Clock
from ottla.base.descriptors import is_exhausted
from ottla.base.errors import (
    ApiError,
    ConfigError,
    ErrorCode,
    OutOfDescriptorsError,
    StorageError,
)
from ottla.base.files import FileSystem, run_whole
from ottla.base.rng import Rng
from ottla.base.slices import Slices
from ottla.storage.config import LogConfig
from ottla.storage.directories.log_directory import (
    LogDirectory,
    Owner,
    directory_name,
    lock_directory,
)
from ottla.storage.directories.retention import apply_retention
from ottla.storage.directories.upkeep import Intervals, Rounds
from ottla.storage.files import checkpoints
from ottla.storage.files.checkpoints import TopicPartition
from ottla.storage.log import recovery
from ottla.storage.log.log import Dependencies, Log

# The maximum number of remembered preferences for logs that do not exist.
_PREFERRED_MAX = 10_000

OnOffline = Callable[[str, StorageError], None]

# A device completes several concurrent flushes in hardly more time than one.
_CLOSERS = 8
# At most one log line about a lack of descriptors in this time.
_WARNING_SECONDS = 60.0

_log = logging.getLogger(__name__)


class Opening(TypedDict, total=False):
    """The parameters of `LogDirectories.open` besides the paths and the ports.

    `topic_config` returns a topic's settings; `default_config` is for topics that it is not called
    for. `on_offline` is called if a directory fails while others stay online. If `is_wanted`
    returns False, opening is aborted with StorageError.
    """

    cluster_id: str | None
    broker_id: Required[int]
    default_config: LogConfig
    topic_config: Callable[[str], LogConfig]
    on_offline: OnOffline
    is_wanted: Callable[[], bool]


class LogDirectories:
    """All log directories of a broker, on its event loop."""

    def __init__(
        self, directories: Sequence[LogDirectory], clock: Clock, on_offline: OnOffline
    ) -> None:
        self.cluster_id: str | None = None
        self._directories = list(directories)
        self._clock = clock
        self._on_offline = on_offline
        self._warned_at = float("-inf")
        self._logs: dict[TopicPartition, Log] = {}
        self._where: dict[TopicPartition, LogDirectory] = {}
        # The preferred directories of logs that do not exist yet.
        self._preferred: dict[TopicPartition, LogDirectory] = {}
        # The intervals of each kind of upkeep; set by the code that knows the broker's options.
        self.intervals = Intervals()
        self._rounds = Rounds(clock.monotonic())
        self._ageing = AgeingClock(clock.time_ms(), clock.monotonic())
        # Logs in which damaged bytes were found; `damaged` checks whether they still exist.
        self._damaged: dict[TopicPartition, None] = {}
        # Collected from other threads while the logs are closed.
        self._failed_while_closing: list[StorageError] | None = None

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
        owned: list[LogDirectory] = []
        everything = cls(owned, clock, opening.get("on_offline", _ignore))
        ports = Dependencies(
            files, clock, rng, everything.failed, on_damage=everything._note_damage
        )
        with ExitStack() as undo:
            # Clients receive and send absolute paths.
            for path in dict.fromkeys(map(os.path.abspath, paths)):
                lock = lock_directory(files, path)
                directory = LogDirectory(path, ports._replace(log_directory=path), lock)
                undo.callback(directory.release)
                owned.append(directory)
            everything._directories = owned
            everything._load(opening)
            undo.pop_all()
        return everything

    def _load(self, opening: Opening) -> None:
        default = opening.get("default_config") or LogConfig()
        topic_config = opening.get("topic_config", lambda topic: default)
        owner = Owner(opening.get("cluster_id"), opening["broker_id"])
        account = recovery.Account(self._clock, opening.get("is_wanted", lambda: True))
        for directory in self._directories:
            try:
                cluster_id = directory.check_owner(owner)
                owner = owner._replace(cluster_id=cluster_id)
                directory.load(topic_config, account)
            except OSError as error:
                reason = f"it cannot be read or written: {error.strerror or error}"
                if is_exhausted(error):
                    reason += ". Raise the limit of open files (ulimit -n)."
                    raise OutOfDescriptorsError(directory.path, reason) from error
                self._fail(directory, StorageError(directory.path, reason))
            for key in list(directory.logs):
                self._take_in(key, directory)
        self.cluster_id = owner.cluster_id
        if not self._online():
            raise self._directories[0].failure or AssertionError("no directory was opened")
        self._settle_moves()

    def _take_in(self, key: TopicPartition, directory: LogDirectory) -> None:
        """Register a log that was found; of a log and its copy, register the copy."""
        other = self._where.get(key)
        if directory.logs[key].damage is not None:
            self._note_damage(*key)
        if other is not None:
            if other.standing(key) == directory.standing(key):
                raise ConfigError(
                    f"{directory_name(*key)} is both in {other.path} and in {directory.path}; "
                    f"move the one that is out of date away."
                )
            old = other if other.standing(key) < directory.standing(key) else directory
            with suppress(StorageError), self._disk(old):
                old.delete(key)
                old.settle_deletions()
            directory = directory if old is other else other
        self._where[key], self._logs[key] = directory, directory.logs[key]

    def _settle_moves(self) -> None:
        """Finish replacements of logs by their copies that a crash interrupted."""
        for directory in self._online():
            for key in sorted(directory.superseded | directory.prevailing):
                if not self.has_failed_directory:
                    with suppress(StorageError), self._disk(directory):
                        directory.unmark(key)
                elif key in directory.superseded:
                    # Its copy may be in the failed directory and have more records.
                    del self._logs[key], self._where[key]
            for key in list(directory.futures):
                self._settle_future(key, directory)

    def _settle_future(self, key: TopicPartition, directory: LogDirectory) -> None:
        current = self._logs.get(key)
        if current is None and self.has_failed_directory:
            return
        with suppress(StorageError), self._disk(directory):
            if current is None:
                # A log is deleted after its copy, so it was not deleted: it is lost, or damaged.
                _log.warning("log lost, what was copied of it is taken partition=%s-%d", *key)
                self._logs[key], self._where[key] = directory.promote(key), directory
            elif self.future(*key) is directory.futures[key]:
                current.is_being_copied = True
                _cut_to_what_is_sure(directory.futures[key], current)
            else:
                directory.delete_future(key)

    # Logs

    def directories(self) -> Sequence[LogDirectory]:
        """Return every directory, failed ones as well."""
        return tuple(self._directories)

    def logs(self) -> Mapping[TopicPartition, Log]:
        """Return every log, those in failed directories as well."""
        return MappingProxyType(self._logs)

    def get(self, topic: str, partition: int) -> Log | None:
        """Return a log, or None if there is none."""
        return self._logs.get((topic, partition))

    def create(self, topic: str, partition: int, topic_id: bytes, config: LogConfig) -> Log:
        """Create a log in the directory with the fewest; return an existing log unchanged.

        A log without a topic id (lost, or older than KIP-516) gets this one. Raises
        INCONSISTENT_TOPIC_ID for a log of an earlier topic with that name, or StorageError.
        """
        key = (topic, partition)
        found = self._logs.get(key)
        if found is not None:
            if found.topic_id not in (topic_id, uuids.ZERO_UUID):
                raise ApiError(ErrorCode.INCONSISTENT_TOPIC_ID)
            if found.topic_id != topic_id:
                found.topic_id = topic_id
                with self._disk(self._where[key]):
                    self._where[key].store_topic_id(found)
            return found
        online = self._online()
        if not online:
            raise self._directories[0].failure or AssertionError("a directory failed silently")
        directory = self._preferred.get(key) or min(online, key=attrgetter("logs_count"))
        if directory.failure is not None:
            raise directory.failure
        with self._disk(directory):
            log = directory.create(key, topic_id, config)
        self._preferred.pop(key, None)
        self._logs[key], self._where[key] = log, directory
        return log

    def delete(self, topic: str, partition: int) -> None:
        """Remove a log; its files are deleted after file.delete.delay.ms. Then call
        `settle_deletions`.
        """
        key = (topic, partition)
        # First: without the log, its copy would count as the only remaining data.
        self.cancel_move(topic, partition)
        self._logs.pop(key)
        directory = self._where.pop(key)
        if directory.failure is not None:
            raise directory.failure
        with self._disk(directory):
            directory.delete(key)

    def settle_deletions(self) -> None:
        """Make deletions durable, so that no crash restores a log; raises StorageError if that
        fails.
        """
        for directory in self._online():
            with self._disk(directory):
                directory.settle_deletions()

    async def settle_deletions_in_background(self) -> None:
        """Call `settle_deletions` off the loop."""
        for directory in self._online():
            with self._disk(directory):
                await directory.settle_deletions_in_background()

    @property
    def has_failed_directory(self) -> bool:
        """True if there may be logs in a directory that has failed."""
        return len(self._online()) < len(self._directories)

    @property
    def is_lost(self) -> bool:
        """True if every directory has failed: nothing can be stored any more."""
        return not self._online()

    def high_watermark(self, topic: str, partition: int) -> int:
        """Return the high watermark that was stored last; 0 if there is none."""
        directory = self._where.get((topic, partition))
        return 0 if directory is None else directory.high_watermarks.get((topic, partition), 0)

    # Moving logs between directories

    def at_path(self, path: str) -> LogDirectory:
        """Return a directory; LOG_DIR_NOT_FOUND for one that the broker does not have."""
        for directory in self._directories:
            if directory.path == path:
                return directory
        raise ApiError(ErrorCode.LOG_DIR_NOT_FOUND, f"{path} is not one of log.dirs.")

    def future(self, topic: str, partition: int) -> Log | None:
        """Return the unfinished copy of a log, in any directory."""
        found = self._future_where(topic, partition)
        return None if found is None else found.futures[topic, partition]

    def _future_where(self, topic: str, partition: int) -> LogDirectory | None:
        key = (topic, partition)
        return next((each for each in self._online() if key in each.futures), None)

    def prefer(self, topic: str, partition: int, directory: LogDirectory) -> None:
        """Set the directory in which a log is created, unless it exists there already."""
        key = (topic, partition)
        if key in directory.logs or key in directory.futures:
            return
        self._preferred[key] = directory
        if len(self._preferred) > _PREFERRED_MAX:
            del self._preferred[next(iter(self._preferred))]

    def begin_move(self, topic: str, partition: int, directory: LogDirectory) -> Log | None:
        """Create a copy of a log in another directory; None if the log or a copy is there already.

        An unfinished copy in another directory is deleted. Raises StorageError while a directory is
        offline, because it may contain a copy already.
        """
        key = (topic, partition)
        future_where = self._future_where(topic, partition)
        if future_where is directory:
            return None
        self.cancel_move(topic, partition)
        if self._where[key] is directory:
            return None
        for other in self._directories:
            if other.failure is not None:
                raise other.failure
        log = self._logs[key]
        with self._disk(directory):
            future = directory.create_future(key, log.topic_id, log.config)
        future.first_dirty_offset = log.first_dirty_offset
        self._preferred.pop(key, None)
        log.is_being_copied = True
        return future

    def cancel_move(self, topic: str, partition: int) -> None:
        """Delete the unfinished copy of a log, if there is one; StorageError if its directory
        fails.
        """
        key = (topic, partition)
        directory = self._future_where(topic, partition)
        if directory is not None:
            with self._disk(directory):
                directory.delete_future(key)
        if key in self._logs:
            self._logs[key].is_being_copied = False

    def finish_move(self, topic: str, partition: int) -> Log:
        """Replace the log by its copy, which is complete and durable; return the copy.

        The former log is still in its directory: call `remove_superseded` next. A crash at any
        moment leaves one of the two. After a StorageError the log stays in its directory.
        """
        key = (topic, partition)
        source, target = self._where[key], self._future_where(topic, partition)
        assert target is not None
        former = self._logs[key]
        target.futures[key].take_over(former)
        target.high_watermarks[key] = former.high_watermark
        with self._disk(source):
            source.mark_superseded(key)
        try:
            with self._disk(target):
                log = target.promote(key)
        except StorageError:
            # The copy may have the log's name nevertheless, once its directory is online again.
            with self._disk(source):
                source.mark_prevailing(key)
            raise
        self._logs[key], self._where[key] = log, target
        return log

    def remove_superseded(self, topic: str, partition: int) -> None:
        """Delete the log that a copy has replaced; an error takes its directory offline."""
        key = (topic, partition)
        for directory in self._online():
            if key in directory.superseded:
                with suppress(StorageError), self._disk(directory):
                    directory.delete(key)
                    directory.settle_deletions()

    # Upkeep

    async def maintain(self) -> None:
        """Do the upkeep that is due; to be called about every second.

        Makes rolled segments durable, follows flush.ms, deletes files that are due, and
        periodically writes checkpoints, applies retention and expires inactive producers.
        """
        for directory in self._online():
            try:
                await directory.flush_due()
                await directory.remove_deleted()
            except (OSError, StorageError) as error:
                self._note_failure(directory, error)
        intervals, rounds, now = self.intervals, self._rounds, self._clock.monotonic()
        now_ms = self._ageing.observe(self._clock.time_ms(), now)
        if rounds.take_due("retention", intervals.retention_ms, now, intervals.first_retention_ms):
            await self.tick_retention(now_ms)
        if rounds.take_due("expiration", intervals.expiration_ms, now):
            await self._forget_producers(now_ms)
        names = []
        if rounds.take_due("recovery points", intervals.recovery_points_ms, now):
            names += [checkpoints.RECOVERY_POINT_FILE, checkpoints.CLEANER_FILE]
        if rounds.take_due("log starts", intervals.log_starts_ms, now):
            names.append(checkpoints.LOG_START_FILE)
        if names:
            for directory in self._online():
                with suppress(StorageError), self._disk(directory):
                    await directory.checkpoint_in_background(names)

    async def tick_retention(self, now_ms: int | None = None) -> int:
        """Apply retention to every log, up to its high watermark; return the number of deleted
        segments.
        """
        count, slices = 0, Slices(self._clock)
        for log in list(self._logs.values()):
            if log.failure is None and log.upkeep_failure is None:
                with suppress(StorageError):
                    count += apply_retention(log, now_ms)
            await slices.pause()
        return count

    async def _forget_producers(self, now_ms: int) -> None:
        slices = Slices(self._clock)
        for log in list(self._logs.values()):
            log.producers.remove_expired(now_ms, log.config.producer_id_expiration_ms)
            await slices.pause()

    def checkpoint(self) -> None:
        """Write recovery points and log start offsets; StorageError if a directory fails."""
        for directory in self._online():
            with self._disk(directory):
                directory.checkpoint()

    def store_high_watermarks(self, high_watermarks: Mapping[TopicPartition, int]) -> None:
        """Write high watermarks; StorageError if a directory fails."""
        for directory in self._online():
            with self._disk(directory):
                directory.store_high_watermarks(high_watermarks)

    async def store_high_watermarks_in_background(
        self, high_watermarks: Mapping[TopicPartition, int]
    ) -> None:
        """Store high watermarks as `store_high_watermarks` does, but off the event loop."""
        for directory in self._online():
            with self._disk(directory):
                await directory.store_high_watermarks_in_background(high_watermarks)

    async def close_in_background(self, files: FileSystem) -> None:
        """Call `close` off the event loop, several logs at a time; the logs must not be used
        meanwhile.
        """
        try:
            failures = await self._close_logs(files)
            for directory in self._online():
                try:
                    await run_whole(files, directory.close)
                except (OSError, StorageError) as error:
                    failures.append(self._note_failure(directory, error))
        finally:
            for directory in self._directories:
                directory.release()
        if failures:
            raise failures[0]

    async def _close_logs(self, files: FileSystem) -> list[StorageError]:
        """Close every log and return the failures; their directories are offline then.

        An unexpected exception is raised after the other logs are closed: no directory is marked as
        clean.
        """
        waiting = [log for directory in self._online() for log in directory.every_log]
        failures = self._failed_while_closing = []

        def close_some() -> None:
            while True:
                try:
                    log = waiting.pop()
                except IndexError:
                    return
                # `failed` is called with the error.
                with suppress(StorageError):
                    log.close()

        workers = min(_CLOSERS, len(waiting))
        closing = [run_whole(files, close_some) for _ in range(workers)]
        results = await asyncio.gather(*closing, return_exceptions=True)
        self._failed_while_closing = None
        for failure in failures:
            self.failed(failure)
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
                    with self._disk(directory):
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
        damaged ones fail with CORRUPT_MESSAGE, and retention deletes the segment when it is due.
        """
        found: dict[TopicPartition, str] = {}
        for key in list(self._damaged):
            damage = self._logs[key].damage if key in self._logs else None
            if damage is None:
                del self._damaged[key]
            else:
                found[key] = damage
        return found

    def _note_damage(self, topic: str, partition: int) -> None:
        self._damaged[topic, partition] = None

    def _online(self) -> list[LogDirectory]:
        return [directory for directory in self._directories if directory.failure is None]

    @contextmanager
    def _disk(self, directory: LogDirectory) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise self._note_failure(directory, error) from error

    def _note_failure(self, directory: LogDirectory, error: OSError | StorageError) -> StorageError:
        if isinstance(error, OSError):
            reason = str(error.strerror or error)
            is_ours = is_exhausted(error)
            error = (OutOfDescriptorsError if is_ours else StorageError)(directory.path, reason)
        if isinstance(error, OutOfDescriptorsError):
            self._warn_of_descriptors(error)
        else:
            self._fail(directory, error)
        return error

    def _warn_of_descriptors(self, error: OutOfDescriptorsError) -> None:
        """Log, once a minute, that work is postponed; the caller retries later."""
        now = self._clock.monotonic()
        if now - self._warned_at >= _WARNING_SECONDS:
            self._warned_at = now
            _log.error("no descriptor is free, raise its limit (ulimit -n) error=%s", error)

    def failed(self, failure: StorageError) -> None:
        """Take the directory that the error names offline, after an error in one of its logs."""
        if self._failed_while_closing is not None:
            self._failed_while_closing.append(failure)
            return
        for directory in self._directories:
            if directory.path == failure.directory:
                self._fail(directory, failure)

    def _fail(self, directory: LogDirectory, failure: StorageError) -> None:
        if directory.failure is None:
            _log.error("log directory offline path=%s reason=%s", directory.path, failure)
            directory.fail(failure)
            self._on_offline(directory.path, failure)


def _cut_to_what_is_sure(future: Log, current: Log) -> None:
    """Cut off records that the log may have lost, rewritten or compacted since they were copied."""
    if current.config.is_compacted and current.first_dirty_offset != future.first_dirty_offset:
        # The copy may have a key's old value whose deletion is no longer in the log.
        future.truncation.truncate_fully_and_start_at(current.log_start_offset)
        future.first_dirty_offset = current.first_dirty_offset
        return
    epoch, end_offset = current.end_offset_for_epoch(future.epochs.latest)
    sure = min(current.recovery_point, end_offset if epoch >= 0 else 0)
    future.truncation.truncate_to(sure)


def _ignore(path: str, error: StorageError) -> None:
    """Ignore the failure of a directory: the default for owners that do not track it."""
