"""One segment: a `.log` file, its indexes, and the positions of its recent batches in memory.

All offsets in it are at or after `base_offset`, which is its file name. Index files are written
when the segment is sealed and read on first use. An index file that is lost or contradicts the log
is rebuilt from the log. Raises OSError; the log above decides how to handle it. Follows
org.apache.kafka.storage.internals.log.LogSegment.
"""

import logging
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator
from functools import partial

from ottla.base.buffers import Buffer, Part
from ottla.base.errors import ApiError, ErrorCode
from ottla.base.files import File, FileSystem, overwrite
from ottla.storage.config import LONG_MAX, LogConfig
from ottla.storage.files import scan
from ottla.storage.files.file_names import (
    DELETED_SUFFIX,
    INDEX_SUFFIX,
    LOG_SUFFIX,
    SUFFIXES,
    TIME_INDEX_SUFFIX,
    TXN_INDEX_SUFFIX,
    file_name,
)
from ottla.storage.files.index import ENTRY_SIZE, RELATIVE_OFFSET_MAX, OffsetIndex
from ottla.storage.files.scan import Tail, TimestampedOffset
from ottla.storage.files.time_index import ENTRY as TIME_ENTRY
from ottla.storage.files.time_index import NO_TIMESTAMP, TimeEntry, TimeIndex
from ottla.storage.files.txn_index import TransactionIndex
from ottla.storage.log import fetched
from ottla.storage.log.fetched import FetchedRecords, SentRanges, range_size, whole_bytes
from ottla.wire.records import batch
from ottla.wire.records.batch import HEADER_SIZE, MAGIC, BatchHeader
from ottla.wire.records.legacy import SIZE_MIN

# Batches at the end of the segment whose exact position is kept: consumers at the tail read there.
_RECENT_MAX = 1024
_RECENT_KEPT = 512
_POSITION_MAX = 2**31 - 1

Positioned = tuple[int, BatchHeader]

_log = logging.getLogger(__name__)


class Segment:
    """A range of the log in one file. The last segment of a log takes appends until it is sealed.

    `max_timestamp` (ms) covers only the batches noted so far; `newest` is right for any segment.
    The first `synced_bytes` of the file are durable (-1: not even its length is).
    """

    __slots__ = (
        "_bytes_since_entry",
        "_config",
        "_file",
        "_files",
        "_first_timestamp",
        "_index",
        "_jitter_ms",
        "_recent_last",
        "_recent_positions",
        "_recent_start",
        "_roll_bytes",
        "_roll_ms",
        "_roll_offset",
        "_roll_timestamp",
        "_sent",
        "_time_index",
        "base_offset",
        "created_ms",
        "damaged_at",
        "directory",
        "ending",
        "max_timestamp",
        "max_timestamp_offset",
        "on_damage",
        "size_bytes",
        "synced_bytes",
        "transactions",
    )

    def __init__(
        self, files: FileSystem, directory: str, base_offset: int, config: LogConfig, now_ms: int
    ) -> None:
        self._files = files
        self._file: File | None = None
        self.directory = directory
        self.base_offset = base_offset
        # Appended to the names of the files while the segment is not part of the log yet.
        self.ending = ""
        self.created_ms = now_ms
        self.size_bytes = 0
        self.synced_bytes = -1
        self._first_timestamp: int | None = None
        self._index: OffsetIndex | None = None
        self._time_index: TimeIndex | None = None
        self.transactions = TransactionIndex(files, partial(self.path, TXN_INDEX_SUFFIX))
        self._sent = SentRanges()
        # Position of the first damaged bytes found so far; -1 if none were found.
        self.damaged_at = -1
        self.on_damage: Callable[[], None] | None = None
        self.configure(config)
        self._forget()

    def _forget(self) -> None:
        """Reset everything that is kept in memory about the batches."""
        self.max_timestamp = NO_TIMESTAMP
        self.max_timestamp_offset = self.base_offset
        self._bytes_since_entry = 0
        self._recent_start = self.base_offset
        self._recent_last: list[int] = []
        self._recent_positions: list[int] = []

    @classmethod
    def create(
        cls, files: FileSystem, directory: str, base_offset: int, config: LogConfig, now_ms: int
    ) -> "Segment":
        """Create a segment; only its `.log` file exists, and is open."""
        segment = cls(files, directory, base_offset, config, now_ms)
        segment._file = files.open(segment.path(LOG_SUFFIX), create=True)
        segment._index = OffsetIndex(base_offset)
        segment._time_index = TimeIndex(base_offset)
        segment.transactions.start_empty()
        return segment

    @classmethod
    def open(
        cls, files: FileSystem, directory: str, base_offset: int, config: LogConfig, now_ms: int
    ) -> "Segment":
        """Open an existing segment; reads nothing but its size."""
        segment = cls(files, directory, base_offset, config, now_ms)
        segment.size_bytes = files.size(segment.path(LOG_SUFFIX))
        segment.synced_bytes = segment.size_bytes
        if not segment.size_bytes:
            segment.reset()
        return segment

    def path(self, suffix: str) -> str:
        """Return the path of the segment's file of this kind."""
        return f"{self.directory}/{file_name(self.base_offset, suffix)}{self.ending}"

    @property
    def file(self) -> File:
        """The `.log` file, opened on first use."""
        if self._file is None:
            # Never created here: a segment that was removed must not come back empty.
            self._file = self._files.open(self.path(LOG_SUFFIX))
        return self._file

    def holds(self, file: File) -> bool:
        """Return True if `file` is the file that this segment has open."""
        return self._file is file

    # Appending

    def append(self, data: Buffer, base_offset: int, last_offset: int, max_timestamp: int) -> None:
        """Write one batch at the end and note its position."""
        position = self.size_bytes
        (self._file or self.file).append(data)
        size = len(data)
        self.size_bytes = position + size
        self.note(position, size, base_offset, last_offset, max_timestamp)

    def note(
        self, position: int, size: int, base_offset: int, last_offset: int, max_timestamp: int
    ) -> None:
        """Add the batch that follows those noted so far to the indexes, without accessing a file."""
        if max_timestamp > self.max_timestamp:
            self.max_timestamp = max_timestamp
            self.max_timestamp_offset = last_offset
        if self._bytes_since_entry > self._config.index_interval_bytes:
            self.index.append(base_offset, last_offset, position)
            self.time_index.append(self.max_timestamp, self.max_timestamp_offset)
            self._bytes_since_entry = 0
            self._roll_if_indexes_are_full()
        self._bytes_since_entry += size
        if position == 0:
            self._first_timestamp = max_timestamp
            self.configure(self._config, self._jitter_ms)
        recent = self._recent_last
        if not recent:
            self._recent_start = base_offset
        recent.append(last_offset)
        self._recent_positions.append(position)
        if len(recent) > _RECENT_MAX:
            cut = _RECENT_MAX - _RECENT_KEPT
            self._recent_start = recent[cut - 1] + 1
            del recent[:cut], self._recent_positions[:cut]

    def must_roll(self, size: int, last_offset: int, max_timestamp: int, now_ms: int) -> bool:
        """Return True if a batch of `size` bytes that ends at `last_offset` needs a new segment."""
        return (
            self.size_bytes + size > self._roll_bytes
            or last_offset > self._roll_offset
            or max_timestamp > self._roll_timestamp
            or now_ms > self._roll_ms
        )

    def configure(self, config: LogConfig, jitter_ms: int = 0) -> None:
        """Compute when the segment rolls, `jitter_ms` earlier than the topic's options say."""
        self._config = config
        self._jitter_ms = jitter_ms
        self._roll_offset = self.base_offset + RELATIVE_OFFSET_MAX
        self._roll_bytes = _POSITION_MAX
        self._roll_timestamp = self._roll_ms = LONG_MAX
        # An empty segment takes any batch whose offsets it can represent.
        if not self.size_bytes:
            return
        self._roll_bytes = min(config.segment_bytes, _POSITION_MAX)
        age_ms = config.roll_ms - jitter_ms
        first = self.first_timestamp
        # Kafka goes by record time if the records have one, so that a backfill rolls segments as
        # well.
        if first >= 0:
            self._roll_timestamp = first + age_ms
        else:
            self._roll_ms = self.created_ms + age_ms
        self._roll_if_indexes_are_full()

    def _roll_if_indexes_are_full(self) -> None:
        limit = self._config.segment_index_bytes
        entries, times = self._index, self._time_index
        if entries is not None and len(entries) >= limit // ENTRY_SIZE:
            self._roll_bytes = 0
        if times is not None and len(times) >= limit // TIME_ENTRY.size - 1:
            self._roll_bytes = 0

    def is_due(self, now_ms: int) -> bool:
        """Return True if the segment has been filled for longer than segment.ms, by either clock."""
        return bool(self.size_bytes) and (now_ms > self._roll_timestamp or now_ms > self._roll_ms)

    @property
    def first_timestamp(self) -> int:
        """Largest timestamp (ms) of the first batch; -1 if it has none or the segment is empty."""
        if self._first_timestamp is None:
            header = self.header_at(0) if self.size_bytes else None
            if header is None:
                return NO_TIMESTAMP
            self._first_timestamp = header.max_timestamp
        return self._first_timestamp

    def seal(self) -> None:
        """Write the index files; nothing is appended until the segment is opened again."""
        if not self.size_bytes:
            # Fifty unused partitions of a group topic do not need a hundred empty files.
            return
        self.time_index.append(self.max_timestamp, self.max_timestamp_offset)
        self._store(INDEX_SUFFIX, self.index.encode())
        self._store(TIME_INDEX_SUFFIX, self.time_index.encode())
        self._recent_last, self._recent_positions = [], []

    def _store(self, suffix: str, data: bytes) -> None:
        # Not atomic and not synced: a wrong index file is detected and rebuilt.
        overwrite(self._files, self.path(suffix), data)

    # Reading

    def headers(self, position: int, read: scan.Read | None = None) -> Iterator[Positioned]:
        """Yield position and header of the batches from `position` on; stop at damaged bytes."""
        end, size = position, self.size_bytes
        for at, header in scan.headers(read or self.file.read_at, position, size):
            yield at, header
            end = at + header.size_bytes
        if end < size:
            self._damaged(end)

    def header_at(self, position: int) -> BatchHeader | None:
        """Return the header of the batch at `position`; None if the bytes there are damaged."""
        found = next(self.headers(position), None)
        return None if found is None else found[1]

    def _damaged(self, position: int) -> ApiError:
        """Report damaged bytes, only once; return the error for the client."""
        if self.damaged_at < 0:
            self.damaged_at = position
            _log.error("log damaged path=%s position=%d", self.path(LOG_SUFFIX), position)
            if self.on_damage is not None:
                self.on_damage()
        reason = f"{self.path(LOG_SUFFIX)} is damaged at byte {position}."
        return ApiError(ErrorCode.CORRUPT_MESSAGE, reason)

    def headers_backwards(self) -> Iterator[BatchHeader]:
        """Yield the headers of the batches from the last to the first."""
        return scan.headers_backwards(self.file.read_at, self.index.floor, self.size_bytes)

    def locate(
        self, offset: int, read: scan.Read | None = None, *, is_strict: bool = False
    ) -> int | None:
        """Return the position of the first batch that ends at or after `offset`; None if there is
        none.

        Raises CORRUPT_MESSAGE if `is_strict` and damaged bytes lie before that position.
        """
        recent = self._recent_last
        if recent and offset >= self._recent_start:
            at = bisect_left(recent, offset)
            return self._recent_positions[at] if at < len(recent) else None
        place = self.index.lookup(offset)
        if place.is_exact:
            return place.position if self.size_bytes else None
        expected, end = place.last_offset, place.position
        for position, header in self.headers(end, read):
            if expected >= 0 and header.last_offset != expected:
                break
            if header.last_offset >= offset:
                return position
            expected, end = -1, position + header.size_bytes
        if expected < 0:
            if is_strict and end < self.size_bytes:
                raise self._damaged(end)
            return None
        self.rebuild_indexes()
        return self.locate(offset, read, is_strict=is_strict)

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
        recent, starts = self._recent_last, self._recent_positions
        if recent and offset >= self._recent_start:
            limits = (end_offset, max_bytes, at_least_one)
            span = fetched.recent_span(recent, starts, self.size_bytes, offset, limits)
            return None if span is None else self._read_span(span, offset, read, range_bytes_min)
        position = self.locate(offset, read, is_strict=True)
        if position is None:
            return None
        end = None if end_offset is None else self.locate(end_offset, read)
        available = (self.size_bytes if end is None else end) - position
        if available <= 0:
            return FetchedRecords(b"", offset, self.base_offset, position, 0)
        wanted = min(max(max_bytes, HEADER_SIZE), available)
        find = self._last_known_start
        if wanted >= range_bytes_min:
            first_size, size = range_size(position, max_bytes, available, read, find)
            data = read(position, size) if size < range_bytes_min else b""
        else:
            data = read(position, wanted)
            first_size, size = batch.peek_size(data) if len(data) >= SIZE_MIN else 0, 0
            if first_size <= max_bytes and len(data) < available:
                data = memoryview(data)[: whole_bytes(data, position, find)]
        if first_size < SIZE_MIN:
            # The index may have led to damaged bytes.
            raise self._damaged(position)
        if first_size > max_bytes:
            size = min(first_size, available) if at_least_one else 0
            data = read(position, size) if 0 < size < range_bytes_min else b""
        records = data if size < range_bytes_min else self._sent.add(self.file, position, size)
        return FetchedRecords(records, offset, self.base_offset, position, first_size)

    def _read_span(
        self, span: tuple[int, int, int], offset: int, read: scan.Read, range_bytes_min: int
    ) -> FetchedRecords:
        position, first_size, size = span
        records: Part = b""
        if size:
            records = data = read(position, size if size < range_bytes_min else SIZE_MIN)
            if len(data) < SIZE_MIN or batch.peek_size(data) != first_size:
                raise self._damaged(position)
        if size >= range_bytes_min:
            records = self._sent.add(self.file, position, size)
        return fetched.new_records((records, offset, self.base_offset, position, first_size))

    def void_ranges(self, position: int = 0) -> None:
        """Stop ranges from sending the bytes from `position` on, because these bytes are cut off."""
        self._sent.void(position)

    def _last_known_start(self, position: int, end: int, read: scan.Read) -> int:
        """Return the last position up to `end` at which, by the index, a batch begins."""
        positions = self._recent_positions
        if positions and positions[0] <= end:
            return max(position, positions[bisect_right(positions, end) - 1])
        place = self.index.floor(end - HEADER_SIZE)
        if place.position <= position:
            return position
        # Loaded entries are only hints until they are checked against the log.
        is_true = batch.peek_last_offset(read(place.position, HEADER_SIZE)) == place.last_offset
        return place.position if is_true else position

    def find_timestamp(self, timestamp: int, from_offset: int) -> TimestampedOffset | None:
        """Return the first record at or after both the time (ms) and the offset."""
        entry = self.time_index.lookup(timestamp)
        if entry.timestamp >= 0 and not self._is_true(entry):
            self.rebuild_indexes()
            entry = self.time_index.lookup(timestamp)
        start = self.locate(max(entry.offset, from_offset))
        if start is None:
            return None
        for position, header in self.headers(start):
            if header.max_timestamp >= timestamp:
                data = self.file.read_at(position, header.size_bytes)
                found = scan.first_record_since(data, header, timestamp, from_offset)
                if found is not None:
                    return found
        return None

    # Indexes

    @property
    def index(self) -> OffsetIndex:
        """The offset index, read from its file or rebuilt on first use."""
        if self._index is None:
            data = self._load(INDEX_SUFFIX)
            if data is None or len(data) % ENTRY_SIZE:
                self.rebuild_indexes()
            else:
                self._index = OffsetIndex.decode(self.base_offset, data, self.size_bytes)
        assert self._index is not None
        return self._index

    @property
    def time_index(self) -> TimeIndex:
        """The time index, rebuilt if it contradicts the log."""
        if self._time_index is None:
            self._load_times()
        assert self._time_index is not None
        return self._time_index

    @property
    def newest(self) -> TimeEntry:
        """The largest timestamp (ms) in the segment and the last offset of its batch."""
        if self._time_index is None:
            self._load_times()
        return TimeEntry(self.max_timestamp, self.max_timestamp_offset)

    @property
    def newest_ms(self) -> int:
        """Largest timestamp (ms) of the records; if they have none, the time the file was written.

        For a damaged segment it is the later of the two, because the newest record may be
        unreadable.
        """
        timestamp = self.newest.timestamp
        if timestamp >= 0 and self.damaged_at < 0:
            return timestamp
        return max(timestamp, self._files.modified_ms(self.path(LOG_SUFFIX)))

    def _load(self, suffix: str) -> bytes | None:
        path = self.path(suffix)
        return self._files.read(path) if self._files.exists(path) else None

    def _load_times(self) -> None:
        data = self._load(TIME_INDEX_SUFFIX)
        if data is None or len(data) % TIME_ENTRY.size:
            self.rebuild_indexes()
            return
        # No batch ends after this offset, whatever the next segment's base offset is.
        limit = self.base_offset + RELATIVE_OFFSET_MAX + 1
        loaded = TimeIndex.decode(self.base_offset, data, limit)
        if len(loaded) and not self._is_true(loaded.last):
            self.rebuild_indexes()
            return
        self._time_index = loaded
        self._find_newest()

    def _find_newest(self) -> None:
        """Find the largest timestamp: that of the last entry, or a later one after it."""
        assert self._time_index is not None
        last = self._time_index.last
        start = self.locate(last.offset) if len(self._time_index) else 0
        self.max_timestamp, self.max_timestamp_offset = last
        for _, header in self.headers(start or 0):
            if header.max_timestamp > self.max_timestamp and header.records_count:
                self.max_timestamp = header.max_timestamp
                self.max_timestamp_offset = header.last_offset

    def _is_true(self, entry: TimeEntry) -> bool:
        """Return True if the batch that `entry` points to exists and has that timestamp."""
        position = self.locate(entry.offset)
        if position is None:
            return False
        header = self.header_at(position)
        if header is None:
            return False
        return header.last_offset == entry.offset and header.max_timestamp == entry.timestamp

    def rebuild_indexes(self) -> Tail:
        """Rebuild both indexes from the log, without checking its batches; return the tail."""
        _log.warning("rebuilding indexes log=%s", self.path(LOG_SUFFIX))
        # Opens the file, which may fail, before the indexes are dropped.
        read = self.file.read_at
        self.reset()
        tail = Tail(self.base_offset, 0)
        for position, header in self.headers(0, read):
            tail = self.note_header(position, header)
        return tail

    def reset(self) -> None:
        """Empty the indexes, before all batches are noted again."""
        self._index = OffsetIndex(self.base_offset)
        self._time_index = TimeIndex(self.base_offset)
        self._first_timestamp = None
        self.damaged_at = -1
        self._forget()

    def note_header(self, position: int, header: BatchHeader) -> Tail:
        """Add a batch of the file to the indexes; return the position of its end."""
        last_offset, size = header.last_offset, header.size_bytes
        # A batch that compaction has emptied keeps its timestamp, but no record has it.
        newest = header.max_timestamp if header.records_count else NO_TIMESTAMP
        self.note(position, size, header.base_offset, last_offset, newest)
        return Tail(last_offset + 1, position + size)

    def load_tail(self) -> Tail:
        """Read the end that the index files do not cover; the segment can then take appends.

        Bytes after the tail's position are not a whole batch; the caller decides about them.
        """
        entry = self.index.floor(self.size_bytes)
        if entry.is_exact:
            header = self.header_at(entry.position)
            if header is None or header.last_offset != entry.last_offset:
                return self.rebuild_indexes()
        self.time_index  # noqa: B018 - loading it finds the largest timestamp
        newest = self.newest
        self._forget()
        self.max_timestamp, self.max_timestamp_offset = newest
        tail = Tail(self.base_offset, 0)
        for position, header in self.headers(entry.position):
            tail = self.note_header(position, header)
        self.configure(self._config, self._jitter_ms)
        return tail

    def truncate_to(self, offset: int) -> int:
        """Cut off the batch that contains `offset` and all after it; return the next offset then."""
        position = self.locate(offset)
        if position is None:
            return self.load_tail().next_offset
        header = self.header_at(position)
        # The header does not give the position of the first offset if the batch is damaged or older
        # than v2.
        base_offset = self.base_offset
        if header is not None and header.magic == MAGIC:
            base_offset = header.base_offset
        self.cut(position)
        self.index.truncate(position)
        self.time_index.truncate(base_offset)
        self._forget()
        self._find_newest()
        return max(self.load_tail().next_offset, min(base_offset, offset))

    def cut(self, position: int) -> None:
        """Cut the file; remove the index files, because they may point to bytes that are gone."""
        self.void_ranges(position)
        self.file.truncate(position)
        self.size_bytes = position
        self.synced_bytes = self.damaged_at = -1
        for suffix in (INDEX_SUFFIX, TIME_INDEX_SUFFIX):
            if self._files.exists(self.path(suffix)):
                self._files.remove(self.path(suffix))

    # Durability and the end

    @property
    def is_synced(self) -> bool:
        """True if a crash cannot lose any byte of the segment."""
        return self.synced_bytes == self.size_bytes

    def sync(self) -> None:
        """Make the whole log file durable."""
        size = self.size_bytes
        self.file.sync()
        self.synced_bytes = size

    def mark_deleted(self) -> list[str]:
        """Rename the files so that they no longer belong to the log; return the new names."""
        renamed = []
        for suffix in SUFFIXES:
            path = self.path(suffix)
            if self._files.exists(path):
                self._files.rename(path, path + DELETED_SUFFIX)
                renamed.append(path + DELETED_SUFFIX)
        return renamed

    def close(self) -> None:
        """Close the descriptor; a later use opens it again."""
        if self._file is not None:
            self._file.close()
            self._file = None
