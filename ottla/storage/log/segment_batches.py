"""The batches of one segment: their headers, their positions in memory, and the two indexes.

Index files are written when the segment is sealed and read on first use. An index file that is lost
or contradicts the log is rebuilt from the log. Raises OSError.
"""

import logging
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator

from ottla.base.errors import ApiError, ErrorCode
from ottla.storage.files import scan
from ottla.storage.files.file_names import INDEX_SUFFIX, LOG_SUFFIX, TIME_INDEX_SUFFIX
from ottla.storage.files.formats import TIME_ENTRY
from ottla.storage.files.index import ENTRY_SIZE, RELATIVE_OFFSET_MAX, OffsetIndex
from ottla.storage.files.scan import Tail
from ottla.storage.files.segment_files import SegmentFiles
from ottla.storage.files.time_index import NO_TIMESTAMP, TimeEntry, TimeIndex
from ottla.wire.records.batch import HEADER_SIZE, BatchHeader

# Batches at the end of the segment whose exact position is kept: consumers at the tail read there.
_RECENT_MAX = 1024
_RECENT_KEPT = 512
# Positions of other batches that are kept for each segment.
_FOUND_MAX = 32

Positioned = tuple[int, BatchHeader]

_log = logging.getLogger(__name__)


class SegmentBatches:
    """The batches that one segment contains, and the ways to find one.

    `max_timestamp` (ms) covers only the batches noted so far; `newest` is right for any segment.
    """

    __slots__ = (
        "_bytes_since_entry",
        "_files",
        "_first_timestamp",
        "_found",
        "_index",
        "_time_index",
        "base_offset",
        "damaged_at",
        "index_interval_bytes",
        "max_timestamp",
        "max_timestamp_offset",
        "on_damage",
        "recent_last",
        "recent_positions",
        "recent_start",
    )

    def __init__(self, files: SegmentFiles, index_interval_bytes: int) -> None:
        self._files = files
        self.base_offset = files.base_offset
        self.index_interval_bytes = index_interval_bytes
        self._first_timestamp: int | None = None
        self._index: OffsetIndex | None = None
        self._time_index: TimeIndex | None = None
        # Position of the first damaged bytes found so far; -1 if none were found.
        self.damaged_at = -1
        self.on_damage: Callable[[], None] | None = None
        self._forget()

    def _forget(self) -> None:
        """Reset everything that is kept in memory about the batches, but not the indexes."""
        self.max_timestamp = NO_TIMESTAMP
        self.max_timestamp_offset = self.base_offset
        self._bytes_since_entry = 0
        self.recent_start = self.base_offset
        self.forget_recent()

    def forget_recent(self) -> None:
        """Forget the positions of recent batches, because nothing is appended any more."""
        self.recent_last: list[int] = []
        self.recent_positions: list[int] = []
        # The positions of offsets between two entries of the index that were found lately: several
        # consumers read the same log, and one repeats a fetch.
        self._found: dict[int, int] = {}

    def reset(self) -> None:
        """Empty the indexes, before all batches are noted again."""
        self._index = OffsetIndex(self.base_offset)
        self._time_index = TimeIndex(self.base_offset)
        self._first_timestamp = None
        self.damaged_at = -1
        self._forget()

    def release(self) -> None:
        """Free the indexes in memory at the end of the log; a lookup would load them again."""
        self._index = self._time_index = None
        self.forget_recent()

    # Adding batches

    def note(
        self, position: int, size: int, base_offset: int, last_offset: int, max_timestamp: int
    ) -> bool:
        """Add the batch that follows those noted so far to the indexes, without accessing a file.

        Returns True if the time at which the segment rolls may have changed: for the first batch,
        and if an index has grown.
        """
        if max_timestamp > self.max_timestamp:
            self.max_timestamp = max_timestamp
            self.max_timestamp_offset = last_offset
        may_roll = False
        if self._bytes_since_entry > self.index_interval_bytes:
            self.index.append(base_offset, last_offset, position)
            self.time_index.append(self.max_timestamp, self.max_timestamp_offset)
            self._bytes_since_entry = 0
            may_roll = True
        self._bytes_since_entry += size
        if position == 0:
            self._first_timestamp = max_timestamp
            may_roll = True
        recent = self.recent_last
        if not recent:
            self.recent_start = base_offset
        recent.append(last_offset)
        self.recent_positions.append(position)
        if len(recent) > _RECENT_MAX:
            cut = _RECENT_MAX - _RECENT_KEPT
            self.recent_start = recent[cut - 1] + 1
            del recent[:cut], self.recent_positions[:cut]
        return may_roll

    def note_header(self, position: int, header: BatchHeader) -> Tail:
        """Add a batch of the file to the indexes; return the position of its end."""
        last_offset, size = header.last_offset, header.size_bytes
        # A batch that compaction has emptied keeps its timestamp, but no record has it.
        newest = header.max_timestamp if header.records_count else NO_TIMESTAMP
        self.note(position, size, header.base_offset, last_offset, newest)
        return Tail(last_offset + 1, position + size)

    @property
    def first_timestamp(self) -> int:
        """Largest timestamp (ms) of the first batch; -1 if it has no timestamp or the segment is
        empty.
        """
        if self._first_timestamp is None:
            header = self.header_at(0) if self._files.size_bytes else None
            if header is None:
                return NO_TIMESTAMP
            self._first_timestamp = header.max_timestamp
        return self._first_timestamp

    # Headers

    def headers(self, position: int, read: scan.Read | None = None) -> Iterator[Positioned]:
        """Yield position and header of the batches from `position` on; stop at damaged bytes."""
        end, size = position, self._files.size_bytes
        for start, header in scan.headers(read or self._files.log.read_at, position, size):
            yield start, header
            end = start + header.size_bytes
        if end < size:
            self.damaged(end)

    def header_at(self, position: int) -> BatchHeader | None:
        """Return the header of the batch at `position`; None if the bytes there are damaged."""
        first = next(self.headers(position), None)
        return None if first is None else first[1]

    def damaged(self, position: int) -> ApiError:
        """Report damaged bytes, only once; return the error for the client."""
        path = self._files.path(LOG_SUFFIX)
        if self.damaged_at < 0:
            self.damaged_at = position
            _log.error("log damaged path=%s position=%d", path, position)
            if self.on_damage is not None:
                self.on_damage()
        return ApiError(ErrorCode.CORRUPT_MESSAGE, f"{path} is damaged at byte {position}.")

    def headers_backwards(self) -> Iterator[BatchHeader]:
        """Yield the headers of the batches from the last to the first."""
        return scan.headers_backwards(
            self._files.log.read_at, self.index.floor, self._files.size_bytes
        )

    # Finding a batch

    def locate(
        self, offset: int, read: scan.Read | None = None, *, is_strict: bool = False
    ) -> int | None:
        """Return the position of the first batch that ends at or after `offset`; None if no batch
        does.

        Raises CORRUPT_MESSAGE if `is_strict` and damaged bytes lie before that position.
        """
        recent = self.recent_last
        if recent and offset >= self.recent_start:
            at = bisect_left(recent, offset)
            return self.recent_positions[at] if at < len(recent) else None
        entry = self.index.lookup(offset)
        if entry.is_exact:
            return entry.position if self._files.size_bytes else None
        found = self._found.get(offset)
        if found is not None:
            return found
        size = self._files.size_bytes
        end, is_found = scan.skip_before(read or self._files.log.read_at, entry, size, offset)
        if is_found:
            if len(self._found) >= _FOUND_MAX:
                self._found.clear()
            self._found[offset] = end
            return end
        # The rest: batches after the first chunk, in old formats, or damaged.
        expected = entry.last_offset if end == entry.position else -1
        for position, header in self.headers(end, read):
            if expected >= 0 and header.last_offset != expected:
                break
            if header.last_offset >= offset:
                return position
            expected, end = -1, position + header.size_bytes
        if expected < 0:
            if is_strict and end < size:
                raise self.damaged(end)
            return None
        self.rebuild_indexes()
        return self.locate(offset, read, is_strict=is_strict)

    def last_known_start(self, end: int) -> tuple[int, int]:
        """Return the last known position up to `end` at which a batch begins, and the last offset
        of that batch, or -1.

        An entry that was loaded from the file is only a hint: its offset is compared with the
        batch's. An offset of -1 needs no comparison.
        """
        positions = self.recent_positions
        if positions and positions[0] <= end:
            return positions[bisect_right(positions, end) - 1], -1
        position, last_offset, _ = self.index.floor(end - HEADER_SIZE)
        return position, last_offset

    # Indexes

    @property
    def index(self) -> OffsetIndex:
        """The offset index, read from its file or rebuilt on first use."""
        if self._index is None:
            data = self._files.load(INDEX_SUFFIX)
            if data is None or len(data) % ENTRY_SIZE:
                self.rebuild_indexes()
            else:
                self._index = OffsetIndex.decode(self.base_offset, data, self._files.size_bytes)
        assert self._index is not None
        return self._index

    @property
    def time_index(self) -> TimeIndex:
        """The time index, rebuilt if it contradicts the log."""
        if self._time_index is None:
            self._load_times()
        assert self._time_index is not None
        return self._time_index

    def entries_count(self) -> tuple[int, int]:
        """Return the number of entries of the two indexes that are in memory."""
        entries, times = self._index, self._time_index
        return 0 if entries is None else len(entries), 0 if times is None else len(times)

    @property
    def newest(self) -> TimeEntry:
        """The largest timestamp (ms) in the segment and the last offset of its batch."""
        if self._time_index is None:
            self._load_times()
        return TimeEntry(self.max_timestamp, self.max_timestamp_offset)

    def _load_times(self) -> None:
        data = self._files.load(TIME_INDEX_SUFFIX)
        if data is None or len(data) % TIME_ENTRY.size:
            self.rebuild_indexes()
            return
        # No batch ends after this offset, whatever the next segment's base offset is.
        limit = self.base_offset + RELATIVE_OFFSET_MAX + 1
        loaded = TimeIndex.decode(self.base_offset, data, limit)
        if len(loaded) and not self.is_true(loaded.last):
            self.rebuild_indexes()
            return
        self._time_index = loaded
        self._find_newest()

    def _find_newest(self) -> None:
        """Find the largest timestamp: the last entry's, or a later one after it."""
        assert self._time_index is not None
        last = self._time_index.last
        start = self.locate(last.offset) if len(self._time_index) else 0
        self.max_timestamp, self.max_timestamp_offset = last
        for _, header in self.headers(start or 0):
            if header.max_timestamp > self.max_timestamp and header.records_count:
                self.max_timestamp = header.max_timestamp
                self.max_timestamp_offset = header.last_offset

    def is_true(self, entry: TimeEntry) -> bool:
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
        _log.warning("rebuilding indexes log=%s", self._files.path(LOG_SUFFIX))
        # Opens the file, which may fail, before the indexes are dropped.
        read = self._files.log.read_at
        self.reset()
        tail = Tail(self.base_offset, 0)
        for position, header in self.headers(0, read):
            tail = self.note_header(position, header)
        if tail.position < self._files.size_bytes:
            # They would end at the damage, and offsets behind it would count as absent.
            self.forget_recent()
        return tail

    def load_tail(self) -> Tail:
        """Read the end that the index files do not cover; batches can then be appended.

        Bytes after the tail's position are not a whole batch; the caller decides about them.
        """
        entry = self.index.floor(self._files.size_bytes)
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
        return tail

    def truncate(self, position: int, base_offset: int) -> None:
        """Forget the batches from `position` on, the first of which begins at `base_offset`."""
        self.index.truncate(position)
        self.time_index.truncate(base_offset)
        self._forget()
        self._find_newest()

    def store_indexes(self) -> None:
        """Write the index files, including an entry for the newest record."""
        self.time_index.append(self.max_timestamp, self.max_timestamp_offset)
        self._files.store(INDEX_SUFFIX, self.index.encode())
        self._files.store(TIME_INDEX_SUFFIX, self.time_index.encode())
        self.forget_recent()
