"""One segment: a `.log` file of batches, its indexes, and the time at which the next one begins.

All offsets in it are at or after `base_offset`, which is its file name. `SegmentFiles` knows the
files and `SegmentBatches` finds batches in them. Raises OSError; the log above decides how to
handle it. Follows org.apache.kafka.storage.internals.log.LogSegment.
"""

from functools import partial

from ottla.base.buffers import Buffer, Part
from ottla.base.files import File, FileSystem
from ottla.storage.config import LONG_MAX, LogConfig
from ottla.storage.files import scan
from ottla.storage.files.file_names import TXN_INDEX_SUFFIX
from ottla.storage.files.formats import TIME_ENTRY
from ottla.storage.files.index import ENTRY_SIZE, RELATIVE_OFFSET_MAX
from ottla.storage.files.scan import Tail, TimestampedOffset
from ottla.storage.files.segment_files import SegmentFiles
from ottla.storage.files.sound import Extent, SoundBatches, read_batches
from ottla.storage.files.time_index import TimeEntry
from ottla.storage.files.txn_index import TransactionIndex
from ottla.storage.log import fetched
from ottla.storage.log.fetched import FetchedRecords, SentRanges, range_size, whole_bytes
from ottla.storage.log.segment_batches import SegmentBatches
from ottla.wire.records import batch
from ottla.wire.records.batch import MAGIC, SIZE_MIN

_POSITION_MAX = 2**31 - 1
# The fewest bytes of one read, a page: about as fast as reading a header.
_READ_BYTES_MIN = 4096


class Segment:
    """A range of the log in one file. The last segment of a log takes appends until it is sealed."""

    __slots__ = (
        "_config",
        "_jitter_ms",
        "_roll_bytes",
        "_roll_ms",
        "_roll_offset",
        "_roll_timestamp",
        "_sent",
        "base_offset",
        "batches",
        "created_ms",
        "files",
        "transactions",
    )

    def __init__(
        self, files: FileSystem, directory: str, base_offset: int, config: LogConfig, now_ms: int
    ) -> None:
        self.base_offset = base_offset
        self.created_ms = now_ms
        self.files = SegmentFiles(files, directory, base_offset)
        self.batches = SegmentBatches(self.files, config.index_interval_bytes)
        self.transactions = TransactionIndex(files, partial(self.files.path, TXN_INDEX_SUFFIX))
        self._sent = SentRanges()
        self.configure(config)

    @classmethod
    def create(
        cls, files: FileSystem, directory: str, base_offset: int, config: LogConfig, now_ms: int
    ) -> "Segment":
        """Create a segment; only its `.log` file exists, and is open."""
        segment = cls(files, directory, base_offset, config, now_ms)
        segment.files.create()
        segment.batches.reset()
        segment.transactions.start_empty()
        return segment

    @classmethod
    def open(
        cls, files: FileSystem, directory: str, base_offset: int, config: LogConfig, now_ms: int
    ) -> "Segment":
        """Open an existing segment; reads nothing but its size."""
        segment = cls(files, directory, base_offset, config, now_ms)
        segment.files.adopt()
        if not segment.size_bytes:
            segment.batches.reset()
        return segment

    @property
    def size_bytes(self) -> int:
        """Bytes of the `.log` file."""
        return self.files.size_bytes

    @property
    def file(self) -> File:
        """The `.log` file, opened on first use."""
        return self.files.log

    @property
    def first_timestamp(self) -> int:
        """Largest timestamp (ms) of the first batch; -1 if it has no timestamp or the segment is
        empty.
        """
        return self.batches.first_timestamp

    @property
    def newest(self) -> TimeEntry:
        """The largest timestamp (ms) in the segment and the last offset of its batch."""
        return self.batches.newest

    @property
    def newest_ms(self) -> int:
        """Largest timestamp (ms) of the records; if they have no timestamp, the time the file was
        written.

        For a damaged segment it is the later of the two, because the newest record may be
        unreadable.
        """
        timestamp = self.newest.timestamp
        if timestamp >= 0 and self.batches.damaged_at < 0:
            return timestamp
        return max(timestamp, self.files.modified_ms())

    # Appending

    def append(self, data: Buffer, base_offset: int, last_offset: int, max_timestamp: int) -> None:
        """Write one batch at the end and note its position."""
        files = self.files
        position = files.size_bytes
        (files.opened or files.log).append(data)
        size = len(data)
        files.size_bytes = position + size
        if self.batches.note(position, size, base_offset, last_offset, max_timestamp):
            if position:
                self._roll_if_indexes_are_full()
            else:
                self.configure(self._config, self._jitter_ms)

    def must_roll(self, size: int, last_offset: int, max_timestamp: int, now_ms: int) -> bool:
        """Return True if a batch of `size` bytes that ends at `last_offset` needs a new segment."""
        return (
            self.files.size_bytes + size > self._roll_bytes
            or last_offset > self._roll_offset
            or max_timestamp > self._roll_timestamp
            or now_ms > self._roll_ms
        )

    def configure(self, config: LogConfig, jitter_ms: int = 0) -> None:
        """Compute when the segment rolls, `jitter_ms` earlier than the topic's options say."""
        self._config = config
        self._jitter_ms = jitter_ms
        self.batches.index_interval_bytes = config.index_interval_bytes
        self._roll_offset = self.base_offset + RELATIVE_OFFSET_MAX
        self._roll_bytes = _POSITION_MAX
        self._roll_timestamp = self._roll_ms = LONG_MAX
        # An empty segment takes any batch whose offsets it can represent.
        if not self.size_bytes:
            return
        self._roll_bytes = min(config.segment_bytes, _POSITION_MAX)
        age_ms = config.roll_ms - jitter_ms
        first = self.batches.first_timestamp
        # Kafka goes by record time if the records have one, so that a backfill rolls segments as
        # well.
        if first >= 0:
            self._roll_timestamp = first + age_ms
        else:
            self._roll_ms = self.created_ms + age_ms
        self._roll_if_indexes_are_full()

    def _roll_if_indexes_are_full(self) -> None:
        limit = self._config.segment_index_bytes
        entries_count, times_count = self.batches.entries_count()
        if entries_count >= limit // ENTRY_SIZE or times_count >= limit // TIME_ENTRY.size - 1:
            self._roll_bytes = 0

    def seal(self) -> None:
        """Write the index files; nothing is appended until the segment is opened again."""
        # Fifty unused partitions of a group topic do not need a hundred empty files.
        if self.size_bytes:
            self.batches.store_indexes()

    # Reading

    def read(
        self,
        offset: int,
        max_bytes: int,
        end_offset: int | None,
        read: scan.Read,
        range_bytes_min: int = LONG_MAX,
        *,
        at_least_one: bool,
    ) -> FetchedRecords | None:
        """Return whole batches, from the one that contains `offset` up to, but not including,
        `end_offset`.

        Records of at least `range_bytes_min` bytes are returned as a FileRange, without reading
        them. Returns None if every batch of this segment ends before `offset`. Raises
        CORRUPT_MESSAGE if the segment is damaged there.
        """
        batches = self.batches
        recent = batches.recent_last
        if recent and offset >= batches.recent_start:
            limits = (end_offset, max_bytes, at_least_one)
            starts, size_bytes = batches.recent_positions, self.files.size_bytes
            span = fetched.recent_span(recent, starts, size_bytes, offset, limits)
            return None if span is None else self._read_span(span, offset, read, range_bytes_min)
        position = batches.locate(offset, read, is_strict=True)
        if position is None:
            return None
        end = None if end_offset is None else batches.locate(end_offset, read)
        available = (self.files.size_bytes if end is None else end) - position
        if available <= 0:
            return FetchedRecords(b"", offset, self.base_offset, position, 0)
        limit = max_bytes if max_bytes < available else available
        find = batches.last_known_start
        data: Buffer = b""
        if limit >= range_bytes_min:
            first_size, size = range_size(position, max_bytes, available, read, find)
        else:
            # One read is enough for most batches that are larger than the limit.
            wanted = limit if limit > _READ_BYTES_MIN else _READ_BYTES_MIN
            data = read(position, wanted if wanted < available else available)
            first_size = size = batch.peek_size(data) if len(data) >= SIZE_MIN else 0
            if SIZE_MIN <= first_size <= max_bytes:
                size = min(len(data), limit)
                if size < available:
                    size = whole_bytes(data, size, position, find)
        if first_size < SIZE_MIN or not (size or first_size > max_bytes):
            # The index may have led to damaged bytes, or the file has become shorter.
            raise batches.damaged(position)
        if first_size > max_bytes:
            size = min(first_size, available) if at_least_one else 0
        records: Part
        if size >= range_bytes_min:
            records = self._sent.add(self.file, position, size)
        elif size > len(data):
            records = read(position, size)
            if len(records) < size:
                raise batches.damaged(position)
        else:
            records = data if size == len(data) else memoryview(data)[:size]
        return fetched.new_records((records, offset, self.base_offset, position, first_size))

    def _read_span(
        self, span: tuple[int, int, int], offset: int, read: scan.Read, range_bytes_min: int
    ) -> FetchedRecords:
        position, first_size, size = span
        records: Part = b""
        if size:
            wanted = size if size < range_bytes_min else SIZE_MIN
            records = data = read(position, wanted)
            if len(data) < SIZE_MIN or batch.peek_size(data) != first_size:
                raise self.batches.damaged(position)
            if len(data) < wanted:
                # The file has become shorter.
                size = whole_bytes(data, len(data), position, self.batches.last_known_start)
                if not size:
                    raise self.batches.damaged(position)
                records = memoryview(data)[:size]
        if size >= range_bytes_min:
            records = self._sent.add(self.file, position, size)
        return fetched.new_records((records, offset, self.base_offset, position, first_size))

    def read_sound(self, offset: int, max_bytes: int, end_offset: int) -> SoundBatches:
        """Return the undamaged batches from `offset` on, and report damaged bytes between them."""
        read, extent = self.file.read_at, Extent(self.base_offset, end_offset, self.size_bytes)
        # From the batch before, because the offset of the first one may be wrong.
        entry = self.batches.index.lookup(offset - 1) if offset > self.base_offset else None
        position = 0 if entry is None else entry.position
        if entry is not None and entry.last_offset >= 0:
            first = next(scan.batches(read, position, self.size_bytes, _READ_BYTES_MIN), None)
            if first is None or first[1].last_offset != entry.last_offset:
                # The index led to damaged bytes.
                position = 0
        sound = read_batches(read, extent, offset, max_bytes, position)
        if sound.damaged_at >= 0:
            self.batches.damaged(sound.damaged_at)
        return sound

    def void_ranges(self, position: int = 0) -> None:
        """Stop ranges from sending the bytes from `position` on, because these bytes are cut off."""
        self._sent.void(position)

    def find_timestamp(self, timestamp: int, from_offset: int) -> TimestampedOffset | None:
        """Return the first record at or after both the time (ms) and the offset."""
        batches = self.batches
        entry = batches.time_index.lookup(timestamp)
        if entry.timestamp >= 0 and not batches.is_true(entry):
            batches.rebuild_indexes()
            entry = batches.time_index.lookup(timestamp)
        start = batches.locate(max(entry.offset, from_offset))
        if start is None:
            return None
        for position, header in batches.headers(start):
            if header.max_timestamp >= timestamp:
                data = self.file.read_at(position, header.size_bytes)
                record = scan.first_record_since(data, header, timestamp, from_offset)
                if record is not None:
                    return record
        return None

    # The end of the segment

    def load_tail(self) -> Tail:
        """Read the end that the index files do not cover; the segment can then take appends.

        Bytes after the tail's position are not a whole batch; the caller decides about them.
        """
        tail = self.batches.load_tail()
        self.configure(self._config, self._jitter_ms)
        return tail

    def truncate_to(self, offset: int) -> int:
        """Cut off the batch that contains `offset` and all after it; return the next offset then."""
        position = self.batches.locate(offset)
        if position is None:
            return self.load_tail().next_offset
        header = self.batches.header_at(position)
        # The header does not give the position of the first offset if the batch is damaged or older
        # than v2.
        base_offset = self.base_offset
        if header is not None and header.magic == MAGIC:
            base_offset = header.base_offset
        self.cut(position)
        self.batches.truncate(position, base_offset)
        return max(self.load_tail().next_offset, min(base_offset, offset))

    def cut(self, position: int) -> None:
        """Cut the file; remove the index files, because they may point to bytes that are gone."""
        self.void_ranges(position)
        self.files.cut(position)
        self.batches.damaged_at = -1
