"""The result of reading a segment: whole batches, in memory or as a range of the file."""

from bisect import bisect_left, bisect_right
from collections.abc import Callable
from functools import partial
from typing import NamedTuple
from weakref import WeakSet

from ottla.base.buffers import Buffer, FileRange, Part
from ottla.base.files import File
from ottla.storage.files.scan import Read
from ottla.wire.records import batch
from ottla.wire.records.batch import HEADER_SIZE, LOG_OVERHEAD

# Bytes read at once to find the last whole batch; entries of the offset index are about half as far
# apart.
_WALK_BYTES = 8 * 1024

# Returns the last known position up to another at which a batch begins, and that batch's last
# offset to compare, or -1.
FindStart = Callable[[int], tuple[int, int]]


class FetchedRecords(NamedTuple):
    """Whole batches from the one that contains the requested offset; empty if no batch contains it.

    `position` is their position in the file of the segment at `segment_base_offset`;
    `first_batch_size` is set even if that batch did not fit.
    """

    records: Part
    start_offset: int
    segment_base_offset: int
    position: int
    first_batch_size: int

    @property
    def data(self) -> Buffer:
        """The bytes of the records, for a read that did not allow a range."""
        records = self.records
        assert not isinstance(records, FileRange)
        return records


# Built from one tuple: the class's own constructor takes twice as long.
new_records: Callable[[tuple[object, ...]], FetchedRecords] = partial(tuple.__new__, FetchedRecords)


class SentRanges:
    """The ranges of one segment that are still referenced."""

    __slots__ = ("_ranges",)

    def __init__(self) -> None:
        # None for most segments of a broker, because no client fetches from them.
        self._ranges: WeakSet[FileRange] | None = None

    def add(self, file: File, position: int, size_bytes: int) -> FileRange:
        """Return a new range of `file`."""
        records = file.range_at(position, size_bytes)
        if self._ranges is None:
            self._ranges = WeakSet()
        self._ranges.add(records)
        return records

    def void(self, position: int) -> None:
        """Stop ranges from sending the bytes from `position` on, because these bytes are cut off."""
        for records in self._ranges or ():
            if records.position + records.size_bytes > position:
                records.is_void = True


def recent_span(
    last_offsets: list[int],
    positions: list[int],
    size_bytes: int,
    offset: int,
    limits: tuple[int | None, int, bool],
) -> tuple[int, int, int] | None:
    """Return position and size of the first batch to read, and the size of all batches to read.

    The lists have the last offsets and the positions of the batches at the end of a file of
    `size_bytes`; `limits` are the end offset, the most bytes, and whether the first batch is read
    even if it is larger. Returns None if every batch ends before `offset`.
    """
    end_offset, max_bytes, at_least_one = limits
    count = len(positions)
    at = bisect_left(last_offsets, offset)
    if at == count:
        return None
    position = positions[at]
    stop = count if end_offset is None else bisect_left(last_offsets, end_offset)
    if stop <= at:
        return position, 0, 0
    at += 1
    first_size = (positions[at] if at < count else size_bytes) - position
    size = (positions[stop] if stop < count else size_bytes) - position
    if size > max_bytes:
        if first_size > max_bytes:
            size = first_size if at_least_one else 0
        else:
            size = positions[bisect_right(positions, position + max_bytes) - 1] - position
    return position, first_size, size


def range_size(
    position: int,
    max_bytes: int,
    available: int,
    read: Read,
    last_known_start: FindStart,
) -> tuple[int, int]:
    """Return the sizes of the first batch and of all whole batches within the limits."""
    data = read(position, HEADER_SIZE)
    first_size = batch.peek_size(data) if len(data) >= LOG_OVERHEAD else 0
    if first_size > max_bytes:
        return first_size, min(first_size, available)
    if available <= max_bytes:
        return first_size, available
    end = position + max_bytes
    at, last_offset = last_known_start(end)
    is_hint = at > position and last_offset >= 0
    if is_hint:
        header = read(at, HEADER_SIZE)
        if len(header) < HEADER_SIZE or batch.peek_last_offset(header) != last_offset:
            at = position
    at = max(at, position)
    return first_size, _whole_end(at, end, read) - position


def _whole_end(at: int, end: int, read: Read) -> int:
    """Return the end of the last batch that ends at or before `end`; a batch begins at `at`."""
    start, data = at, read(at, min(_WALK_BYTES, end - at))
    while end - at >= LOG_OVERHEAD:
        if at - start + LOG_OVERHEAD > len(data):
            start, data = at, read(at, min(_WALK_BYTES, end - at))
            if len(data) < LOG_OVERHEAD:
                break
        after = at + batch.peek_size(data, at - start)
        if after > end or after <= at:
            break
        at = after
    return at


def whole_bytes(data: Buffer, size: int, position: int, last_known_start: FindStart) -> int:
    """Return the end of the last whole batch in the first `size` bytes of `data`, which was read
    from `position`.
    """
    at, last_offset = last_known_start(position + size)
    at -= position
    if at <= 0 or (last_offset >= 0 and batch.peek_last_offset(data, at) != last_offset):
        at = 0
    while size - at >= LOG_OVERHEAD:
        after = at + batch.peek_size(data, at)
        if after > size or after <= at:
            break
        at = after
    return at
