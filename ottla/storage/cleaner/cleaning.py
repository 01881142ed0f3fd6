"""The cleaner: compacts one log after the other, the dirtiest first, in the background.

Reading and writing happen off the event loop in slices, paused as
log.cleaner.io.max.bytes.per.second requires; choosing a log and swapping segments happen on the
loop. If the log is truncated, deleted or fails during the work, the cleaner discards the work.
Follows org.apache.kafka LogCleaner.
"""

import errno
import logging
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import closing
from functools import partial
from typing import NamedTuple, TypeVar

from ottla.base.buffers import Buffer
from ottla.base.clock import Clock
from ottla.base.errors import ApiError, ErrorCode, StorageError
from ottla.base.files import File, FileSystem, run_whole
from ottla.base.options import Snapshot
from ottla.base.platform.descriptors import is_exhausted
from ottla.base.slices import Slices
from ottla.storage.cleaner import compaction
from ottla.storage.cleaner.compaction import (
    LogOffsets,
    NewestOffsets,
    Survey,
    Survival,
    TransactionsSeen,
)
from ottla.storage.directories.disk import LogDirectories
from ottla.storage.files import scan, txn_index
from ottla.storage.files.file_names import LOG_SUFFIX, TXN_INDEX_SUFFIX
from ottla.storage.log.log import Log
from ottla.storage.log.recovery import CLEANED_SUFFIX, begin_swap, rename_files
from ottla.storage.log.segment import Segment
from ottla.wire.records import batch
from ottla.wire.records.batch import BatchHeader

# The work between two returns to the event loop: this many bytes, plus a fixed number for each
# record. The loop would also get the interpreter in between, but not at once if other threads wait
# for it.
_SLICE_COST = 512 * 1024
_RECORD_COST = 200
# The longest time of a slice, whatever it has processed.
_SLICE_SECONDS = 0.02
_WRITE_BYTES = 1024 * 1024
_PAUSE_SECONDS_MIN = 0.05

T = TypeVar("T")
# The bytes read and written since the last item.
Steps = Generator[int, None, None]

_log = logging.getLogger(__name__)


class Settings(NamedTuple):
    """The options log.cleaner.backoff.ms, log.cleaner.dedupe.buffer.size and
    log.cleaner.io.max.bytes.per.second.
    """

    backoff_seconds: float = 15.0
    memory_bytes: int = 128 * 1024**2
    bytes_per_second: float = float("inf")

    @classmethod
    def from_options(cls, snapshot: Snapshot) -> "Settings":
        """Read the broker options."""
        return cls(
            snapshot.integer("log.cleaner.backoff.ms") / 1000,
            snapshot.integer("log.cleaner.dedupe.buffer.size"),
            snapshot["log.cleaner.io.max.bytes.per.second"],
        )


class Cleaner:
    """The cleaner of a broker's logs, on the broker's loop; `run` repeats `clean_dirtiest` forever."""

    def __init__(
        self,
        directories: LogDirectories,
        *,
        files: FileSystem,
        clock: Clock,
        settings: Callable[[], Settings],
    ) -> None:
        self._directories = directories
        self._files = files
        self._clock = clock
        self._settings = settings
        # Damaged logs: skipped until the next start checks them.
        self._uncleanable: set[Log] = set()
        # For monitoring: the rounds that were completed, and the bytes they read and kept.
        self.passes_count = self.read_bytes = self.kept_bytes = 0
        self.looked_at = clock.monotonic()

    @property
    def uncleanable_count(self) -> int:
        """The number of logs that are skipped because they are damaged."""
        return len(self._uncleanable)

    async def run(self) -> None:
        """Clean all logs that are dirty enough; wait for the back-off if no log is."""
        while True:
            if not await self.clean_dirtiest():
                pause = max(self._settings().backoff_seconds, _PAUSE_SECONDS_MIN)
                await self._clock.sleep(pause)

    def dirtiest(self) -> tuple[Log, Survey] | None:
        """Return the log to clean next; None if none is dirty enough."""
        now_ms = self._clock.time_ms()
        self.looked_at = self._clock.monotonic()
        best: tuple[Log, Survey] | None = None
        logs = list(self._directories.logs().values())
        # Deleted logs, and those that a copy has replaced, are forgotten.
        self._uncleanable.intersection_update(logs)
        for log in logs:
            is_left_alone = log.is_being_copied or log in self._uncleanable
            if not log.config.is_compacted or log.failure or is_left_alone:
                continue
            try:
                surveyed = survey(log, now_ms)
            except OSError as error:
                self._fail(log, error)
                continue
            except Exception:
                self._uncleanable.add(log)
                raise
            is_due = surveyed.is_due(log.config)
            if is_due and (best is None or surveyed.dirty_ratio > best[1].dirty_ratio):
                best = log, surveyed
        return best

    async def clean_dirtiest(self) -> bool:
        """Clean the dirtiest log; return False if none is dirty enough or the cleaning failed."""
        chosen = self.dirtiest()
        if chosen is None:
            return False
        log, surveyed = chosen
        try:
            return await self._clean(log, surveyed)
        except ApiError as error:
            self._uncleanable.add(log)
            _log.error("log not compacted any more partition=%s reason=%s", _name(log), error)
        except StorageError:
            # The log has reported the error to its directory.
            return False
        except OSError as error:
            if log.failure is None:
                self._fail(log, error)
        except Exception:
            # The task that cleans is restarted, and continues with the other logs.
            self._uncleanable.add(log)
            raise
        return False

    async def _clean(self, log: Log, surveyed: Survey) -> bool:
        work = CleanerPass(self._files, self._clock, log, surveyed, self._settings().memory_bytes)
        try:
            return await self._perform(work, log, surveyed)
        except FileNotFoundError:
            if not work.has_lost_segments():
                raise
            await self._off_loop(work.remove_leftovers)
            return False
        finally:
            await self._off_loop(work.offsets.forget)

    async def _perform(self, work: "CleanerPass", log: Log, surveyed: Survey) -> bool:
        if not await self._advance(work, work.read_keys()):
            return False
        for segments in work.groups():
            if not await self._advance(work, work.rewrite(segments)):
                await self._off_loop(work.remove_leftovers)
                return False
            cleaned = work.cleaned
            if cleaned is None:
                continue
            if not await self._swap(work, log, segments, cleaned):
                await self._off_loop(work.remove_leftovers)
                return False
        if not work.is_wanted():
            return False
        log.first_dirty_offset = work.offsets.end_offset
        self.passes_count += 1
        self.read_bytes += work.bytes_before
        self.kept_bytes += work.bytes_after
        _log.info(
            "log compacted partition=%s from=%d to=%d bytes=%d left=%d keys=%d",
            _name(log),
            surveyed.first_dirty_offset,
            work.offsets.end_offset,
            work.bytes_before,
            work.bytes_after,
            len(work.offsets),
        )
        return True

    async def _swap(
        self, work: "CleanerPass", log: Log, replaced: Sequence[Segment], cleaned: Segment
    ) -> bool:
        """Replace segments by a cleaned one; sync off the event loop."""
        if not work.is_wanted():
            return False
        files = self._files
        await self._off_loop(partial(begin_swap, files, cleaned))
        # Retention may have deleted some of the segments before those, which does not matter.
        if not work.is_wanted() or not log.deletion.replace_segments(replaced, cleaned):
            if log.failure is None:
                rename_files(files, cleaned, CLEANED_SUFFIX)
            return False
        # The log reads the new segment, whose files keep another suffix until this is durable.
        await self._off_loop(partial(files.sync_directory, work.directory))
        if log.failure is None and cleaned in log.segments:
            rename_files(files, cleaned, "")
        await self._off_loop(partial(files.sync_directory, work.directory))
        return True

    async def _advance(self, work: "CleanerPass", steps: Steps) -> bool:
        """Take all steps at the allowed rate; return False as soon as the work is cancelled."""
        started, moved = self._clock.monotonic(), 0
        while (count := await self._off_loop(partial(next, steps, None))) is not None:
            if not work.is_wanted():
                await self._off_loop(steps.close)
                return False
            moved += count
            due = started + moved / self._settings().bytes_per_second
            await self._clock.sleep(max(0.0, due - self._clock.monotonic()))
        return work.is_wanted()

    async def _off_loop(self, work: Callable[[], T]) -> T:
        # A slice is short, and nothing may access the files once the logs have been closed.
        return await run_whole(self._files, work)

    def _fail(self, log: Log, error: OSError) -> None:
        if error.errno == errno.ENOSPC:
            # The files written so far are whole, and retention may free space.
            _log.error(
                "compaction postponed, the disk is full partition=%s error=%s",
                _name(log),
                error.strerror,
            )
            return
        if is_exhausted(error):
            _log.error(
                "compaction postponed, no descriptor is free partition=%s error=%s",
                _name(log),
                error.strerror,
            )
            return
        reason = f"{_name(log)}: {error.strerror or error}"
        self._directories.failed(StorageError(log.directory.rpartition("/")[0], reason))


def survey(log: Log, now_ms: int) -> Survey:
    """Return the log's survey for compaction; raises OSError."""
    # A key's older record may be removed only if a power failure cannot lose the newer one.
    stable = min(log.last_stable_offset(log.high_watermark), log.recovery_point)
    progress = LogOffsets(log.log_start_offset, log.log_end_offset, log.first_dirty_offset, stable)
    return compaction.survey(log.segments, progress, log.config, now_ms)


class CleanerPass:
    """One cleaning of one log. Created on the loop; its steps run off the loop, one after the
    other.

    `cleaned` is the output of the last `rewrite`: durable, under names that end in `.cleaned`.
    """

    def __init__(
        self, files: FileSystem, clock: Clock, log: Log, surveyed: Survey, memory_bytes: int
    ) -> None:
        now_ms = clock.time_ms()
        self._slices = Slices(clock, _SLICE_SECONDS)
        self.directory = log.directory
        self.offsets = NewestOffsets(surveyed.first_dirty_offset, memory_bytes)
        self.cleaned: Segment | None = None
        self.bytes_before = self.bytes_after = 0
        self._files = files
        self._log = log
        self._config = log.config
        self._truncations = log.truncations_count
        self._now_ms = now_ms
        self._first_dirty = surveyed.first_dirty_offset
        self._end = surveyed.end_offset
        self._segments = [
            segment for segment in log.segments if segment.base_offset < surveyed.end_offset
        ]
        ends = [*(segment.base_offset for segment in self._segments[1:]), surveyed.end_offset]
        self._end_of = dict(zip(self._segments, ends, strict=True))
        start = self._segments[0].base_offset
        self._aborted = log.aborted_transactions(start, surveyed.end_offset)
        self._transactions = TransactionsSeen(self._aborted)
        self._survival = Survival(
            self.offsets,
            self._transactions,
            compaction.last_written(log.producers),
            now_ms=now_ms,
            delete_retention_ms=log.config.delete_retention_ms,
        )

    def is_wanted(self) -> bool:
        """Return True if the log has not changed in a way that voids the pass; call it on the
        loop.
        """
        log = self._log
        is_unchanged = log.failure is None and log.truncations_count == self._truncations
        # A copy of the log to another directory would keep records that are compacted away during
        # the copy.
        return is_unchanged and not log.is_being_copied

    def has_lost_segments(self) -> bool:
        """Return True if segments have left the log since: retention may have removed their files."""
        return not set(self._segments) <= set(self._log.segments)

    def groups(self) -> Iterator[list[Segment]]:
        """Yield the groups of segments to be rewritten, up to the offset to which the keys were
        read.
        """
        end = self.offsets.end_offset
        segments = [segment for segment in self._segments if segment.base_offset < end]
        behind = self._segments[len(segments) :]
        end_offset = behind[0].base_offset if behind else self._end
        return compaction.group(segments, end_offset, self._config)

    def read_keys(self) -> Steps:
        """Find the newest offset of each key in the dirty part, or in as much of it as memory
        allows.
        """
        self.remove_leftovers()
        offsets = self.offsets
        dirty = [
            candidate for candidate in self._segments if self._end_of[candidate] > self._first_dirty
        ]
        start = dirty[0].base_offset
        transactions = TransactionsSeen(e for e in self._aborted if e.last_offset >= start)
        moved = cost = 0
        for segment in dirty:
            for _, header, data in self._batches(segment):
                discardable = transactions.is_discardable(data, header)
                if header.last_offset >= self._first_dirty:
                    has_keys = not (discardable or header.is_control)
                    if not self._note(data, header, has_keys=has_keys):
                        return
                moved += header.size_bytes
                cost += header.size_bytes + header.records_count * _RECORD_COST
                if cost >= _SLICE_COST or self._slices.is_over:
                    yield moved
                    self._slices.begin()
                    moved = cost = 0
            offsets.end_offset = self._end_of[segment]
        yield moved

    def _note(self, data: Buffer, header: BatchHeader, *, has_keys: bool) -> bool:
        """Add the keys of a batch; return False if there is no room for them."""
        if has_keys:
            if not self.offsets.has_room(header.records_count):
                return False
            self.offsets.note(data, header)
        self.offsets.end_offset = header.last_offset + 1
        return True

    def rewrite(self, segments: Sequence[Segment]) -> Steps:
        """Write the surviving records of the segments to one segment, unless all records of one
        survive.
        """
        self.cleaned = None
        last = [candidate for candidate in segments if candidate.size_bytes][-1:]
        first = segments[0]
        cleaned = Segment(
            self._files, self.directory, first.base_offset, self._config, self._now_ms
        )
        target = _Target(self._files, cleaned)
        moved = cost = 0
        is_changed = len(segments) > 1
        with closing(target):
            for segment in segments:
                size = segment.size_bytes
                for position, header, data in self._batches(segment):
                    is_last = segment in last and position + header.size_bytes == size
                    survivors = self._survival.apply(data, header, is_last=is_last)
                    is_changed = is_changed or survivors is not data
                    moved += header.size_bytes
                    if survivors is not None:
                        moved += target.add(survivors)
                    cost += header.size_bytes + header.records_count * _RECORD_COST
                    if cost >= _SLICE_COST or self._slices.is_over:
                        yield moved
                        self._slices.begin()
                        moved = cost = 0
            indexed, self._transactions.indexed = self._transactions.indexed, []
            self.bytes_before += sum(candidate.size_bytes for candidate in segments)
            self.bytes_after += cleaned.size_bytes
            if is_changed and cleaned.size_bytes:
                target.finish(indexed)
                self.cleaned = cleaned
        if self.cleaned is None:
            self.remove_leftovers()
        yield moved

    def _batches(self, segment: Segment) -> Iterator[tuple[int, BatchHeader, memoryview]]:
        """Yield every batch of a segment; raise CORRUPT_MESSAGE if the batches are not the whole
        file.
        """
        end, next_offset, end_offset = 0, segment.base_offset, self._end_of[segment]
        # With a descriptor of its own: the segment's belongs to the event loop.
        with closing(self._files.open(segment.files.path(LOG_SUFFIX))) as file:
            for position, header, data in scan.batches(file.read_at, 0, segment.size_bytes):
                if header.magic < batch.MAGIC:
                    raise ApiError(
                        ErrorCode.UNSUPPORTED_FOR_MESSAGE_FORMAT,
                        f"{segment.files.path(LOG_SUFFIX)} holds records of format v{header.magic}.",
                    )
                # The checksum does not cover the offset.
                if not next_offset <= header.base_offset <= header.last_offset < end_offset:
                    break
                yield position, header, data
                next_offset, end = header.last_offset + 1, position + header.size_bytes
        if end != segment.size_bytes:
            raise ApiError(
                ErrorCode.CORRUPT_MESSAGE,
                f"{segment.files.path(LOG_SUFFIX)} is damaged at byte {end}.",
            )

    def remove_leftovers(self) -> None:
        """Remove unfinished files of an earlier pass or of this one; the log may be gone."""
        if self._files.exists(self.directory):
            for name in self._files.list(self.directory):
                if name.endswith(CLEANED_SUFFIX):
                    self._files.remove(f"{self.directory}/{name}")


class _Target:
    """The files of a cleaned segment while they are written."""

    def __init__(self, files: FileSystem, segment: Segment) -> None:
        segment.batches.reset()
        segment.files.ending = CLEANED_SUFFIX
        self._files = files
        self._segment = segment
        self._file: File = files.open(segment.files.path(LOG_SUFFIX), create=True)
        self._parts: list[Buffer] = []
        self._bytes = 0

    def add(self, data: Buffer) -> int:
        """Add a batch; return its size."""
        segment, size = self._segment, len(data)
        segment.batches.note_header(segment.size_bytes, batch.parse_header(data))
        segment.files.size_bytes += size
        self._parts.append(data)
        self._bytes += size
        if self._bytes >= _WRITE_BYTES:
            self._write()
        return size

    def _write(self) -> None:
        self._file.append(b"".join(self._parts))
        self._parts, self._bytes = [], 0

    def finish(self, aborted: Sequence[txn_index.AbortedTransaction]) -> None:
        """Write the indexes, and make the files and their names durable."""
        segment = self._segment
        self._write()
        self._file.sync()
        segment.files.synced_bytes = segment.size_bytes
        segment.seal()
        if aborted:
            path = segment.files.path(TXN_INDEX_SUFFIX)
            with closing(self._files.open(path, create=True)) as file:
                file.append(txn_index.encode(aborted))
                file.sync()
        self._files.sync_directory(segment.files.directory)

    def close(self) -> None:
        """Close the descriptor; idempotent."""
        self._file.close()


def _name(log: Log) -> str:
    return f"{log.topic}-{log.partition}"
