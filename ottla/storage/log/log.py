"""One partition's log: contiguous offsets in segments, appended at the end, read anywhere.

The partition above it is its only writer and calls it on the broker's loop. It does not know high
watermarks or replicas: the reader passes the end offset. An OSError is raised as StorageError and
reported to the log directory, and every later call raises it again. Follows UnifiedLog and
LocalLog.
"""

import struct
from bisect import bisect_right

from ottla.base.buffers import Buffer, FileRange, NotSendable
from ottla.base.errors import ApiError, ErrorCode, StorageError
from ottla.base.files import NotCached
from ottla.storage.config import LONG_MAX, LogConfig
from ottla.storage.dependencies import Dependencies
from ottla.storage.files.file_names import TXN_INDEX_SUFFIX
from ottla.storage.files.scan import TimestampedOffset
from ottla.storage.files.sound import SoundBatches
from ottla.storage.files.txn_index import AbortedTransaction
from ottla.storage.log import producers, validation
from ottla.storage.log.deletion import Deletion
from ottla.storage.log.fetched import FetchedRecords
from ottla.storage.log.flushing import Durability, FlushState
from ottla.storage.log.recovery import LoadedLog
from ottla.storage.log.rolling import Rolling
from ottla.storage.log.state import LogState
from ottla.storage.log.truncation import Truncation, out_of_range
from ottla.storage.log.validation import AppendInfo
from ottla.wire.records import batch, control
from ottla.wire.records.batch import CONTROL_BIT, LOG_OVERHEAD, BatchHeader

__all__ = ["AppendInfo", "Dependencies", "FetchedRecords", "Log", "TimestampedOffset"]

_PREFIX = struct.Struct(">qii")


class Log(LogState):
    """A log that was created or loaded; `close` makes it durable and closes its files.

    It appends and reads; `rolling`, `durability`, `truncation` and `deletion` are its other parts.
    It extends the state that these parts share, so that appends and reads use plain attributes.
    The parts are made when they are needed: a log that keeps objects which refer to it is garbage
    until the next full collection, and a broker that deletes topics all the time has few of them.
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
        super().__init__(topic, partition, topic_id, config, loaded, dependencies)
        log_directory = dependencies.log_directory
        self._flush_state = FlushState(self.files, self.clock, self.directory, log_directory)
        if loaded.has_durable_names:
            self._flush_state.unsynced.clear()

    @property
    def durability(self) -> Durability:
        """The flushes of the log."""
        return Durability(self, self._flush_state)

    @property
    def rolling(self) -> Rolling:
        """The beginning and the removal of segments."""
        return Rolling(self, self.durability)

    @property
    def truncation(self) -> Truncation:
        """The operations that change the range of offsets."""
        return Truncation(self, self.durability, self.rolling)

    @property
    def deletion(self) -> Deletion:
        """The removal of segments that are too old or that were compacted."""
        return Deletion(self, self.rolling, self.truncation)

    # Appending

    def append_as_leader(
        self,
        records: Buffer,
        leader_epoch: int,
        *,
        from_client: bool = True,
        must_begin: bool = False,
    ) -> AppendInfo:
        """Check one produced batch, assign it the next offset and write it.

        A writable buffer is patched in place. Raises ApiError (`InvalidRecordsError` lists the
        invalid records) and StorageError. `from_client` is false for batches of coordinators;
        `must_begin` is as in `ProducerState.check`.
        """
        if self.failure is not None:
            raise self.failure
        now_ms = self.clock.time_ms()
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
                duplicate = self.producers.check(header, must_begin=must_begin)
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
            with self.disk(is_midway=True):
                self.active.transactions.add(self.producers.index_entry(ended))
                self.durability.expect_sync_of(
                    self.directory, self.active.files.path(TXN_INDEX_SUFFIX)
                )

    def append_as_follower(self, records: Buffer) -> AppendInfo:
        """Write batches as the leader sent them; a partial one at the end is ignored.

        Raises ApiError CORRUPT_MESSAGE for damage and OFFSET_OUT_OF_RANGE for batches that begin
        before the log's end.
        """
        if self.failure is not None:
            raise self.failure
        first_offset = self.log_end_offset
        now_ms = self.clock.time_ms()
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
        active = self.active
        try:
            if active.must_roll(len(data), last_offset, max_timestamp, now_ms):
                active = self.rolling.roll_at(self.log_end_offset, now_ms)
            active.append(data, base_offset, last_offset, max_timestamp)
        except OSError as error:
            raise self.fail(error) from error
        self.log_end_offset = last_offset + 1
        if self.log_end_offset - self.recovery_point >= self.config.flush_messages:
            self.durability.flush()

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
        if self.failure is not None:
            raise self.failure
        if not self.log_start_offset <= offset <= self.log_end_offset:
            raise out_of_range(self, offset)
        at = bisect_right(self.bases, offset) - 1
        end_offset = max_offset if max_offset < self.log_end_offset else self.log_end_offset
        try:
            while offset < end_offset and at < len(self.segments):
                segment = self.segments[at]
                file = segment.files.opened or segment.files.log
                read = file.read_at_if_cached if only_if_cached else file.read_at
                at += 1
                behind = self.bases[at] if at < len(self.bases) else self.log_end_offset
                bound = None if end_offset >= behind else end_offset
                fetched = segment.read(
                    offset, max_bytes, bound, read, range_bytes_min, at_least_one=at_least_one
                )
                if fetched is None:
                    continue
                records = fetched.records
                if only_if_cached and isinstance(records, FileRange) and not records.is_cached():
                    return None
                return fetched
        except NotCached:
            return None
        except NotSendable:
            # Whole batches before the damage are served, and then the error.
            return self.read(
                offset,
                max_bytes,
                max_offset=max_offset,
                at_least_one=at_least_one,
                only_if_cached=only_if_cached,
            )
        except OSError as error:
            raise self.fail(error) from error
        active = self.active
        return FetchedRecords(b"", offset, active.base_offset, active.size_bytes, 0)

    def read_sound(self, offset: int, max_bytes: int) -> SoundBatches:
        """Return undamaged batches from `offset` to the end of its segment, about `max_bytes`.

        Damaged ones between them are skipped and reported. Waits for the device. Raises
        OFFSET_OUT_OF_RANGE.
        """
        self.refuse_if_failed()
        if not self.log_start_offset <= offset <= self.log_end_offset:
            raise out_of_range(self, offset)
        at = bisect_right(self.bases, offset)
        end_offset = self.bases[at] if at < len(self.bases) else self.log_end_offset
        with self.disk():
            return self.segments[at - 1].read_sound(offset, max_bytes, end_offset)

    def last_stable_offset(self, high_watermark: int) -> int:
        """Return the offset before which every transaction is completed and replicated."""
        producers = self.producers
        if not (producers.open_transactions or producers.undecided):
            return high_watermark
        producers.decide_up_to(high_watermark)
        unstable = producers.first_unstable_offset(self.log_start_offset)
        return high_watermark if unstable is None else min(unstable, high_watermark)

    def aborted_transactions(self, start_offset: int, end_offset: int) -> list[AbortedTransaction]:
        """Return the aborted transactions with records in [start_offset, end_offset)."""
        with self.disk():
            return self.all_segments.aborted_transactions(start_offset, end_offset)

    # Searching

    def offset_for_timestamp(self, timestamp_ms: int) -> TimestampedOffset | None:
        """Return the first record at or after the time; None if all are older."""
        with self.disk():
            return self.all_segments.offset_for_timestamp(timestamp_ms, self.log_start_offset)

    def offset_of_max_timestamp(self) -> TimestampedOffset | None:
        """Return the first of the newest records; None if no record has a timestamp.

        As in Kafka, it may be before the log's start, while its segment still exists.
        """
        with self.disk():
            return self.all_segments.offset_of_max_timestamp()

    def end_offset_for_epoch(self, leader_epoch: int) -> tuple[int, int]:
        """Return the largest epoch up to `leader_epoch` and its end offset; (-1, -1) if unknown."""
        return self.epochs.end_offset_for(leader_epoch, self.log_end_offset)

    # Settings and the end

    def take_over(self, former: "Log") -> None:
        """Copy the state of the log that this copy replaces."""
        assert self.log_end_offset == former.log_end_offset
        self.truncation.advance_log_start_offset(former.log_start_offset)
        self.high_watermark = former.high_watermark
        self.first_dirty_offset = former.first_dirty_offset
        self.producers = former.producers
        self.epochs = former.epochs
        self.epochs.is_dirty = True
        self.update_config(former.config)

    def update_config(self, config: LogConfig) -> None:
        """Apply new settings; the last segment uses them from the next append on."""
        self.config = config
        self.active.configure(config)

    def rename_directory(self, directory: str) -> None:
        """Move the log to another folder of the same device: only names change, files stay open."""
        with self.disk():
            self.files.rename(self.directory, directory)
        self._flush_state.renamed(directory)
        self.directory = directory
        self.all_segments.move_to(directory)

    def close(self) -> None:
        """Flush, write the indexes and a snapshot of the producers, and close the files."""
        if self.failure is None:
            self.durability.flush()
            self.deletion.remove_deleted()
            with self.disk():
                self.active.seal()
                if self.log_end_offset > self.log_start_offset:
                    self.rolling.store_snapshot()
        self.abandon()

    def abandon(self) -> None:
        """Close the files without writing; the log cannot be used after that."""
        self.all_segments.close()
        if self.failure is None:
            reason = f"{self.topic}-{self.partition} has been closed"
            self.failure = StorageError(self.dependencies.log_directory, reason)

    def take_offline(self, failure: StorageError) -> None:
        """Reject every later operation, because the log directory has failed."""
        self.failure = self.failure or failure
        self.abandon()
