"""The upkeep of the logs of all directories, and its schedule.

The schedule follows the monotonic clock, so that a changed wall clock stops nothing. Ages are
measured by the wall clock, as in Kafka, except for some time after it has leapt forward: see
`ottla.base.ageing`.
"""

import logging
from collections.abc import Mapping
from contextlib import suppress
from typing import NamedTuple

from ottla.base.ageing import AgeingClock
from ottla.base.clock import Clock
from ottla.base.errors import StorageError
from ottla.base.options import Snapshot
from ottla.base.slices import Slices
from ottla.storage.directories.failures import DirectoryFailures
from ottla.storage.files import checkpoints
from ottla.storage.files.checkpoints import TopicPartition
from ottla.storage.log.log import Log

_log = logging.getLogger(__name__)


class Intervals(NamedTuple):
    """Milliseconds between two runs of each task, and ages; Kafka's own have its defaults."""

    first_retention_ms: int = 30_000
    retention_ms: int = 300_000
    recovery_points_ms: int = 60_000
    log_starts_ms: int = 60_000
    expiration_ms: int = 600_000
    # The age at which stray logs are removed; 0 keeps them.
    stray_retention_ms: int = 86_400_000

    @classmethod
    def from_options(cls, snapshot: Snapshot) -> "Intervals":
        """Read the broker options."""
        return cls(
            snapshot.integer("log.initial.task.delay.ms"),
            snapshot.integer("log.retention.check.interval.ms"),
            snapshot.integer("log.flush.offset.checkpoint.interval.ms"),
            snapshot.integer("log.flush.start.offset.checkpoint.interval.ms"),
            snapshot.integer("producer.id.expiration.check.interval.ms"),
            snapshot.integer("log.stray.retention.ms"),
        )


class Schedule:
    """The tasks that are due; `now` is the monotonic clock's, in seconds."""

    def __init__(self, now: float) -> None:
        self._started = now
        self._last: dict[str, float] = {}

    def take_due(self, kind: str, interval_ms: int, now: float, first_ms: int = -1) -> bool:
        """Return True if a task is due now; `first_ms` is the delay before its first run."""
        last = self._last.get(kind)
        if last is None and first_ms >= 0:
            due = self._started + first_ms / 1000
        else:
            due = (self._started if last is None else last) + interval_ms / 1000
        if now < due:
            return False
        self._last[kind] = now
        return True


class LogUpkeep:
    """The regular work on every log: flushes, deletion of files, checkpoints, retention, expiry."""

    def __init__(
        self, logs: Mapping[TopicPartition, Log], failures: DirectoryFailures, clock: Clock
    ) -> None:
        # The intervals of each kind of upkeep; set by the code that knows the broker's options.
        self.intervals = Intervals()
        self._logs = logs
        self._failures = failures
        self._clock = clock
        self._schedule = Schedule(clock.monotonic())
        self._ageing = AgeingClock(clock.time_ms(), clock.monotonic())

    async def maintain(self) -> None:
        """Do the upkeep that is due; to be called about every second.

        Makes rolled segments durable, follows flush.ms, deletes files that are due, and
        periodically writes checkpoints, applies retention and expires inactive producers.
        """
        for directory in self._failures.online():
            # Both are tried: a flush without a free descriptor must not stop the other.
            for work in (directory.flush_due, directory.remove_deleted):
                if directory.failure is None:
                    try:
                        await work()
                    except (OSError, StorageError) as error:
                        self._failures.note(directory, error)
        intervals, schedule, now = self.intervals, self._schedule, self._clock.monotonic()
        now_ms = self._ageing.observe(self._clock.time_ms(), now)
        if schedule.take_due(
            "retention", intervals.retention_ms, now, intervals.first_retention_ms
        ):
            await self.tick_retention(now_ms)
            await self._remove_strays(now_ms)
        if schedule.take_due("expiration", intervals.expiration_ms, now):
            await self._forget_producers(now_ms)
        names = []
        if schedule.take_due("recovery points", intervals.recovery_points_ms, now):
            names += [checkpoints.RECOVERY_POINT_FILE, checkpoints.CLEANER_FILE]
        if schedule.take_due("log starts", intervals.log_starts_ms, now):
            names.append(checkpoints.LOG_START_FILE)
        if names:
            for directory in self._failures.online():
                with suppress(StorageError), self._failures.disk(directory):
                    await directory.checkpoints.store_in_background(names)

    async def tick_retention(self, now_ms: int | None = None) -> int:
        """Apply retention to every log, up to its high watermark; return the number of deleted
        segments.
        """
        count, slices = 0, Slices(self._clock)
        for log in list(self._logs.values()):
            if log.failure is None and log.upkeep_failure is None:
                with suppress(StorageError):
                    count += _apply_retention(log, now_ms)
            await slices.pause()
        return count

    async def _remove_strays(self, now_ms: int) -> None:
        """Remove the stray logs that are due."""
        for directory in self._failures.online():
            try:
                await directory.strays.remove_due(now_ms, self.intervals.stray_retention_ms)
            except (OSError, StorageError) as error:
                self._failures.note(directory, error)

    async def _forget_producers(self, now_ms: int) -> None:
        slices = Slices(self._clock)
        for log in list(self._logs.values()):
            log.producers.remove_expired(now_ms, log.config.producer_id_expiration_ms)
            await slices.pause()


def _apply_retention(log: Log, now_ms: int | None) -> int:
    """Delete segments that exceed the topic's retention; log one line for the partition."""
    try:
        count = log.deletion.apply_retention(log.high_watermark, now_ms)
    except StorageError:
        raise
    except Exception as error:
        log.exclude_from_upkeep(error)
        raise
    if count:
        _log.info("segments deleted by retention partition=%s-%d segments=%d log_start_offset=%d",
                  log.topic, log.partition, count, log.log_start_offset)  # fmt: skip
    return count
