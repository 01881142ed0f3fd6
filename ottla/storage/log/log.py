"""One partition's log: contiguous offsets in segments, appended at the end, read anywhere.

The partition above it is its only writer and calls it on the broker's loop. It does not know high
watermarks or replicas: the reader passes the end offset. An OSError is raised as StorageError and
reported to the log directory, and every later call raises it again. Follows UnifiedLog and
LocalLog.
"""

import struct
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from ottla.base.buffers import Buffer
from ottla.base.clock import steady_ms
from ottla.base.descriptors import is_exhausted
from ottla.base.errors import ApiError, ErrorCode, OutOfDescriptorsError, StorageError
from ottla.base.files import remove_files
from ottla.storage.config import LONG_MAX, LogConfig
from ottla.storage.dependencies import Dependencies
from ottla.storage.files import scan
from ottla.storage.files.file_names import TXN_INDEX_SUFFIX
from ottla.storage.files.scan import TimestampedOffset
from ottla.storage.files.txn_index import AbortedTransaction
from ottla.storage.log import producers, recovery, retention, validation
from ottla.storage.log.fetched import FetchedRecords
from ottla.storage.log.flushing import FlushState
from ottla.storage.log.recovery import LoadedLog
from ottla.storage.log.segment import Segment
from ottla.storage.log.segments import Segments
from ottla.storage.log.validation import AppendInfo
from ottla.wire.records import batch, control
from ottla.wire.records.batch import CONTROL_BIT, LOG_OVERHEAD, BatchHeader

__all__ = ["AppendInfo", "Dependencies", "FetchedRecords", "Log", "TimestampedOffset"]

_PREFIX = struct.Struct(">qii")


class Log:
    """A log that was created or loaded; `close` makes it durable and closes its files.

    Offsets run from `log_start_offset` (moved by retention and DeleteRecords) to before
    `log_end_offset`; everything before `recovery_point` is on the disk.
    """

    def __init__(
        self,
        topic: str,
        partition: int,
        topic_id: bytes,
        config: LogConfig,
        loaded: LoadedLog,
        dependencies: Dependencies,
    ) -> None:
        self.topic = topic
        self.partition = partition
        self.topic_id = topic_id
        self.config = config
        self.directory = loaded.directory
        self.log_start_offset = loaded.log_start_offset
        self.log_end_offset = loaded.log_end_offset
        self.recovery_point = loaded.recovery_point
        # Retention and compaction stop at this offset. Its `Partition` sets it.
        self.high_watermark = loaded.log_start_offset
        self.epochs = loaded.epochs
        self.producers = loaded.producers
        self._dependencies = dependencies
        self._files, self._clock = dependencies.files, dependencies.clock
        self._failure: StorageError | None = None
        self.upkeep_failure: str | None = None
        self._all = Segments(self._files, loaded.segments, self._damaged)
        # Reads and appends use the lists directly.
        self._segments, self._bases = self._all.items, self._all.bases
        self._active = loaded.segments[-1]
        log_directory = dependencies.log_directory
        self._flush_state = FlushState(self._files, self._clock, self.directory, log_directory)
        self.first_dirty_offset, self.truncations_count = 0, 0  # Compacted before the first.
        # Its records are being copied to another directory: none may be compacted away meanwhile.
        self.is_being_copied = False

    @property
    def size_bytes(self) -> int:
        """Bytes of all segments."""
        return self._all.size_bytes

    @property
    def segments_count(self) -> int:
        """The number of segments of the log; the last one takes appends."""
        return len(self._segments)

    @property
    def segments(self) -> Sequence[Segment]:
        """The segments, oldest first, for the planning of compaction."""
        return self._segments

    @property
    def first_segment_offset(self) -> int:
        """Base offset of the oldest segment; the start of the log may be inside that segment."""
        return self._bases[0]

    @property
    def failure(self) -> StorageError | None:
        """The error that made the log unusable; None if the log is usable."""
        return self._failure

    @property
    def damage(self) -> str | None:
        """The damage of the log, which is still online: damaged bytes, or an error of its upkeep."""
        return self.upkeep_failure or self._all.damage

    def _damaged(self) -> None:
        self._dependencies.on_damage(self.topic, self.partition)

    def exclude_from_upkeep(self, error: Exception) -> None:
        """Exclude the log from upkeep until the next start, because of an unexpected error."""
        self.upkeep_failure = f"upkeep failed: {error!r}"
        self._damaged()

    # Appending

    def append_as_leader(
        self, records: Buffer, leader_epoch: int, *, from_client: bool = True
    ) -> AppendInfo:
        """Check one produced batch, assign it the next offset and write it.

        A writable buffer is patched in place. Raises ApiError (`InvalidRecordsError` lists the
        invalid records) and StorageError. `from_client` is false for batches of coordinators.
        """
        if self._failure is not None:
            raise self._failure
        now_ms = self._clock.time_ms()
        config = self.config
        data, header, append_time_ms = validation.check(
            records, config, now_ms, from_client=from_client
        )
        size = header.batch_length + LOG_OVERHEAD
        if size > config.segment_bytes:
            raise ApiError(ErrorCode.RECORD_LIST_TOO_LARGE)
        marker = None
        if header.producer_id >= 0:
            if header.attributes & CONTROL_BIT:
                marker = producers.parse_marker(data, header)
                self.producers.check_marker(header, marker)
            else:
                duplicate = self.producers.check(header)
                if duplicate is not None:
                    return validation.repeated(duplicate, header, self.log_start_offset)
        base_offset = self.log_end_offset
        last_offset = base_offset + header.last_offset_delta
        # Both fields are outside the checksum.
        _PREFIX.pack_into(data, 0, base_offset, header.batch_length, leader_epoch)
        self._write(data, base_offset, last_offset, header.max_timestamp, now_ms)
        if leader_epoch > self.epochs.latest:
            self.epochs.assign(leader_epoch, base_offset)
        if header.producer_id >= 0:
            self._note_producer(header, base_offset, marker, now_ms)
        start, count, newest = self.log_start_offset, header.records_count, header.max_timestamp
        return validation.new_info(
            (base_offset, last_offset, append_time_ms, start, False, count, size, newest)
        )

    def _note_producer(
        self,
        header: BatchHeader,
        base_offset: int,
        marker: control.EndTransactionMarker | None,
        now_ms: int,
    ) -> None:
        ended = self.producers.note(header, base_offset, marker, now_ms)
        if ended is not None and ended.is_aborted:
            with self._disk(is_midway=True):
                self._active.transactions.add(self.producers.index_entry(ended))
                self.expect_sync_of(self.directory, self._active.path(TXN_INDEX_SUFFIX))

    def append_as_follower(self, records: Buffer) -> AppendInfo:
        """Write batches as the leader sent them; a partial one at the end is ignored.

        Raises ApiError CORRUPT_MESSAGE for damage and OFFSET_OUT_OF_RANGE for batches that begin
        before the log's end.
        """
        if self._failure is not None:
            raise self._failure
        first_offset = self.log_end_offset
        now_ms = self._clock.time_ms()
        count, size, newest = 0, 0, batch.NO_TIMESTAMP
        view = memoryview(records)
        for position, header in list(validation.follower_batches(view, self.log_end_offset)):
            data = view[position : position + header.size_bytes]
            base_offset = header.base_offset
            self._write(data, base_offset, header.last_offset, header.max_timestamp, now_ms)
            if header.leader_epoch > self.epochs.latest:
                self.epochs.assign(header.leader_epoch, base_offset)
            if header.producer_id >= 0:
                marker = producers.parse_marker(data, header)
                self._note_producer(header, base_offset, marker, now_ms)
            if not count:
                first_offset = base_offset
            count += header.records_count
            size += header.size_bytes
            newest = max(newest, header.max_timestamp)
        last_offset = self.log_end_offset - 1
        start = self.log_start_offset
        return AppendInfo(first_offset, last_offset, -1, start, False, count, size, newest)

    def _write(
        self, data: Buffer, base_offset: int, last_offset: int, max_timestamp: int, now_ms: int
    ) -> None:
        """Write one batch at the end, in a new segment if one is due."""
        active = self._active
        try:
            if active.must_roll(len(data), last_offset, max_timestamp, now_ms):
                active = self._roll(self.log_end_offset, now_ms)
            active.append(data, base_offset, last_offset, max_timestamp)
        except OSError as error:
            raise self._fail(error) from error
        self.log_end_offset = last_offset + 1
        if self.log_end_offset - self.recovery_point >= self.config.flush_messages:
            self.flush()

    # Rolling

    def roll(self) -> None:
        """Start a new segment at the end of the log, unless the last one is empty."""
        if self._active.size_bytes:
            with self._disk():
                self._roll(self.log_end_offset, self._clock.time_ms())

    def roll_if_due(self) -> bool:
        """Start a new segment if the last one is older than segment.ms; return True if it did."""
        is_due = self._active.is_due(self._clock.time_ms())
        if is_due:
            self.roll()
        return is_due

    def _roll(self, base_offset: int, now_ms: int) -> Segment:
        """Seal the last segment and start one at `base_offset`."""
        old = self._active
        if not old.size_bytes:
            with self._disk(is_midway=True):
                self._remove_segments(len(self._segments) - 1, len(self._segments))
                return self._begin_segment(base_offset, now_ms)
        old.seal()
        self._store_snapshot()
        return self._begin_segment(base_offset, now_ms)

    def _begin_segment(self, base_offset: int, now_ms: int) -> Segment:
        if self.directory in self._flush_state.unsynced:
            # Or this segment's name might outlive that of the one before.
            self._files.sync_directory(self.directory)
        segment = Segment.create(self._files, self.directory, base_offset, self.config, now_ms)
        if self.config.segment_jitter_ms:
            jitter_ms = self._dependencies.rng.below(self.config.segment_jitter_ms)
            segment.configure(self.config, jitter_ms)
        self.expect_sync_of(self.directory)
        self._all.add(segment)
        self._active = segment
        return segment

    def _store_snapshot(self) -> None:
        """Write the producer state before the end of the log to a snapshot."""
        self.producers.end_offset = self.log_end_offset
        recovery.store_snapshot(self._files, self.directory, self.producers)

    # Reading

    def read(
        self,
        offset: int,
        max_bytes: int,
        *,
        max_offset: int,
        at_least_one: bool = True,
        only_if_cached: bool = False,
        range_bytes_min: int = LONG_MAX,
    ) -> FetchedRecords | None:
        """Return whole batches, from the one that contains `offset` up to, but not including,
        `max_offset`.

        With `at_least_one` the first batch is returned even if it is larger than `max_bytes`.
        Returns None if `only_if_cached` and the read would wait for the device. Records of at least
        `range_bytes_min` bytes are returned as a FileRange. Raises OFFSET_OUT_OF_RANGE.
        """
        if self._failure is not None:
            raise self._failure
        if not self.log_start_offset <= offset <= self.log_end_offset:
            raise self._out_of_range(offset)
        at = bisect_right(self._bases, offset) - 1
        end_offset = min(max_offset, self.log_end_offset)
        try:
            while offset < end_offset and at < len(self._segments):
                segment = self._segments[at]
                read = scan.reader(segment.file, only_if_cached=only_if_cached)
                at += 1
                behind = self._bases[at] if at < len(self._bases) else self.log_end_offset
                bound = None if end_offset >= behind else end_offset
                found = segment.read(
                    offset, max_bytes, bound, read, range_bytes_min, at_least_one=at_least_one
                )
                if found is not None:
                    return found if not only_if_cached or found.is_cached() else None
        except scan.NotCached:
            return None
        except OSError as error:
            raise self._fail(error) from error
        active = self._active
        return FetchedRecords(b"", offset, active.base_offset, active.size_bytes, 0)

    def _out_of_range(self, offset: int) -> ApiError:
        return ApiError(
            ErrorCode.OFFSET_OUT_OF_RANGE,
            f"Offset {offset} is not in {self.topic}-{self.partition}, which holds "
            f"{self.log_start_offset} to {self.log_end_offset}.",
        )

    def last_stable_offset(self, high_watermark: int) -> int:
        """Return the offset before which every transaction is completed and replicated."""
        self.producers.decide_up_to(high_watermark)
        unstable = self.producers.first_unstable_offset(self.log_start_offset)
        return high_watermark if unstable is None else min(unstable, high_watermark)

    def aborted_transactions(self, start_offset: int, end_offset: int) -> list[AbortedTransaction]:
        """Return the aborted transactions with records in [start_offset, end_offset)."""
        with self._disk():
            return self._all.aborted_transactions(start_offset, end_offset)

    # Searching

    def offset_for_timestamp(self, timestamp_ms: int) -> TimestampedOffset | None:
        """Return the first record at or after the time; None if all are older."""
        with self._disk():
            return self._all.offset_for_timestamp(timestamp_ms, self.log_start_offset)

    def offset_of_max_timestamp(self) -> TimestampedOffset | None:
        """Return the first of the newest records; None if no record has a timestamp.

        As in Kafka, it may be before the log's start, while its segment still exists.
        """
        with self._disk():
            return self._all.offset_of_max_timestamp()

    def end_offset_for_epoch(self, leader_epoch: int) -> tuple[int, int]:
        """Return the largest epoch up to `leader_epoch` and its end offset; (-1, -1) if unknown."""
        return self.epochs.end_offset_for(leader_epoch, self.log_end_offset)

    def take_over(self, former: "Log") -> None:
        """Copy the state of the log that this copy replaces."""
        assert self.log_end_offset == former.log_end_offset
        self.advance_log_start_offset(former.log_start_offset)
        self.high_watermark = former.high_watermark
        self.first_dirty_offset = former.first_dirty_offset
        self.producers = former.producers
        self.epochs = former.epochs
        self.epochs.is_dirty = True
        self.update_config(former.config)

    def skip_to(self, offset: int) -> None:
        """Move the log end to `offset`, because no record has an offset before it any more."""
        with self._disk(is_midway=True):
            self.log_end_offset = offset
            self._roll(offset, self._clock.time_ms())

    # Cutting

    def truncate_to(self, offset: int) -> None:
        """Cut off the batch that contains `offset` and all after it."""
        self._refuse_if_failed()
        if offset >= self.log_end_offset:
            # A leader that appended nothing has left its epoch at the end of the log, and the next
            # leader does not know that epoch.
            self.epochs.truncate_from_end(offset)
            return
        if offset < self._bases[0]:
            self.truncate_fully_and_start_at(offset)
            return
        with self._disk(is_midway=True):
            keep = bisect_right(self._bases, offset)
            self._all.void_ranges(keep)
            self._remove_segments(keep, len(self._segments))
            # Before the cut: a segment that reappears after a crash must not follow a gap.
            self._files.sync_directory(self.directory)
            self._active = self._segments[-1]
            # The start of the log may be inside the batch that is cut: it does not move back.
            floor = min(self.log_start_offset, offset)
            self.log_end_offset = max(self._active.truncate_to(offset), floor)
            self._active.transactions.clear(self.log_end_offset)
            self.expect_sync_of(self.directory, self._active.path(TXN_INDEX_SUFFIX))
            # Otherwise a crash could restore the data that was cut.
            self._active.sync()
            self.log_start_offset = min(self.log_start_offset, self.log_end_offset)
            self._after_truncation()
            self._reload_producers()

    def _reload_producers(self) -> None:
        start, end = self.log_start_offset, self.log_end_offset
        now_ms = self._clock.time_ms()
        place = recovery.Place(self._files, self.directory, start, end, now_ms)
        self.producers, _ = recovery.load_producers(place, self._segments, end)

    def truncate_fully_and_start_at(self, offset: int) -> None:
        """Delete all records; the log is then empty and begins at `offset`."""
        self._refuse_if_failed()
        with self._disk(is_midway=True):
            self._all.void_ranges(0)
            self._remove_segments(0, len(self._segments))
            self._begin_segment(offset, self._clock.time_ms())
            self.log_start_offset = self.log_end_offset = offset
            self._after_truncation()
            self.epochs.clear()
            recovery.remove_snapshots(self._files, self.directory, lambda snapshot: True)
            self.producers = producers.ProducerState(offset)

    def _after_truncation(self) -> None:
        end = self.log_end_offset
        self.truncations_count += 1
        self.recovery_point = min(self.recovery_point, end)
        self.first_dirty_offset = min(self.first_dirty_offset, end)
        self.epochs.truncate_from_end(end)
        self._flush_state.store_epochs(self.epochs)
        recovery.remove_snapshots(self._files, self.directory, lambda snapshot: snapshot > end)

    def advance_log_start_offset(self, offset: int) -> bool:
        """Move the log start forward; return True if it moved. Retention deletes the segments."""
        if offset > self.log_end_offset:
            raise self._out_of_range(offset)
        if offset <= self.log_start_offset:
            return False
        self.log_start_offset = offset
        self.epochs.truncate_from_start(offset)
        self.producers.truncate_from_start(offset)
        return True

    def apply_retention(self, high_watermark: int, now_ms: int | None = None) -> int:
        """Delete segments that exceed the topic's retention; return how many."""
        self._refuse_if_failed()
        start, end = self.log_start_offset, self.log_end_offset
        state = retention.LogState(start, end, high_watermark, self.size_bytes)
        with self._disk(is_midway=True):
            now_ms = self._clock.time_ms() if now_ms is None else now_ms
            count = retention.plan(self._segments, state, self.config, now_ms).segments_count
            if not count:
                return 0
            if count == len(self._segments):
                self._roll(end, now_ms)
            self._remove_segments(0, count)
            recovery.remove_snapshots(
                self._files, self.directory, lambda snapshot: snapshot < self._bases[0]
            )
        self.advance_log_start_offset(max(self._bases[0], start))
        return count

    def _remove_segments(self, start: int, end: int) -> None:
        self._all.remove(start, end, self._removal_ms())  # After file.delete.delay.ms.

    def _removal_ms(self) -> int:
        return steady_ms(self._clock) + self.config.file_delete_delay_ms

    def replace_segments(self, replaced: Sequence[Segment], cleaned: Segment) -> bool:
        """Replace adjacent segments by a cleaned one; see `Segments.replace`."""
        if self.is_being_copied:
            return False
        with self._disk(is_midway=True):
            return self._all.replace(replaced, cleaned, self._removal_ms())

    def take_deleted(self) -> list[str]:
        """Return the files of removed segments that are due for deletion, for the caller to delete."""
        return self._all.take_deleted(steady_ms(self._clock))

    def remove_deleted(self) -> None:
        """Delete the files of all removed segments."""
        with self._disk():
            remove_files(self._files, self._all.take_deleted())

    # Durability

    def flush(self) -> None:
        """Make every record durable, and the files that are needed to find it."""
        self._refuse_if_failed()
        if self.recovery_point == self.log_end_offset:
            return
        with self._disk():
            for segment in self._segments:
                if not segment.is_synced:
                    segment.sync()
            self._flush_state.sync(self.epochs)
        self._flushed(self.log_end_offset)

    async def flush_in_background(self, *, sealed_only: bool = False) -> int:
        """Flush off the event loop; return the offset before which all records are durable then.

        With `sealed_only` the last segment is not flushed, only rolled ones. Raises the failure of
        a log that has failed: a caller that repeats this until all is durable would otherwise never
        stop.
        """
        self._refuse_if_failed()
        end = self._active.base_offset if sealed_only else self.log_end_offset
        truncations = self.truncations_count
        chosen = self._segments[:-1] if sealed_only else self._segments
        pending = [(each, each.file, each.size_bytes) for each in chosen if not each.is_synced]
        with self._disk():
            if not await self._flush_state.sync_in_background(
                self.epochs, lambda: not self._failure
            ):
                return self.recovery_point
        if truncations != self.truncations_count or self._failure is not None:
            return self.recovery_point
        for segment, file, size in pending:
            try:
                await self._files.in_background(file.sync)
            except OSError as error:
                if self._failure is None and segment.holds(file):
                    raise self._fail(error) from error
                # The segment was removed from the log meanwhile, or another flush made it durable.
                return self.recovery_point
            if truncations != self.truncations_count:
                return self.recovery_point
            segment.synced_bytes = max(segment.synced_bytes, size)
        self._flushed(end)
        return self.recovery_point

    def needs_flush(self) -> bool:
        """True if flush.ms has passed since the last flush and there are records to flush."""
        if self.recovery_point == self.log_end_offset or self.config.flush_ms == LONG_MAX:
            return False
        return self._flush_state.age_ms >= self.config.flush_ms

    def owes_sealed(self) -> bool:
        """True if a segment was rolled and is not durable yet."""
        return self.recovery_point < self._active.base_offset

    def _flushed(self, end: int) -> None:
        self._flush_state.note_flush()
        self.recovery_point = max(self.recovery_point, end)

    def expect_sync_of(self, *paths: str) -> None:
        """Have the next flush make the names in folders, or files, durable as well."""
        self._flush_state.unsynced.expect(*paths)

    def update_config(self, config: LogConfig) -> None:
        """Apply new settings; the last segment uses them from the next append on."""
        self.config = config
        self._active.configure(config)

    def rename_directory(self, directory: str) -> None:
        """Move the log to another folder of the same device: only names change, files stay open."""
        with self._disk():
            self._files.rename(self.directory, directory)
        self._flush_state.renamed(directory)
        self.directory = directory
        self._all.move_to(directory)

    def close_idle_files(self) -> None:
        """Close the descriptors of durable segments except the last; a read opens them again."""
        self._all.close_idle_files()

    def close(self) -> None:
        """Flush, write the indexes and a snapshot of the producers, and close the files."""
        if self._failure is None:
            self.flush()
            self.remove_deleted()
            with self._disk():
                self._active.seal()
                if self.log_end_offset > self.log_start_offset:
                    self._store_snapshot()
        self.abandon()

    def abandon(self) -> None:
        """Close the files without writing; the log cannot be used after that."""
        self._all.close()
        if self._failure is None:
            reason = f"{self.topic}-{self.partition} has been closed"
            self._failure = StorageError(self._dependencies.log_directory, reason)

    def _refuse_if_failed(self) -> None:
        if self._failure is not None:
            raise self._failure

    @contextmanager
    def _disk(self, *, is_midway: bool = False) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise self._fail(error, is_midway=is_midway) from error

    def take_offline(self, failure: StorageError) -> None:
        """Reject every later operation, because the log directory has failed."""
        self._failure = self._failure or failure
        self.abandon()

    def _fail(self, error: OSError, *, is_midway: bool = False) -> StorageError:
        """Mark the log as unusable; a lack of descriptors does so only if `is_midway`."""
        reason = f"{self.topic}-{self.partition}: {error.strerror or error}"
        if is_exhausted(error):
            failure = OutOfDescriptorsError(self._dependencies.log_directory, reason)
            if is_midway:
                self._failure = failure
            return failure
        self._failure = StorageError(self._dependencies.log_directory, reason)
        self._dependencies.on_failure(self._failure)
        return self._failure
