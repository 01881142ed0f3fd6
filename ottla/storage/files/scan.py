"""Iteration over the batches of a segment file, for recovery, lookups and index rebuilding.

`batches` reads and checks all bytes; `headers` reads only headers and trusts them, because the
bytes were checked when they were appended. Both work without a segment.
"""

from collections.abc import Callable, Iterator
from typing import NamedTuple

from ottla.base.buffers import Buffer
from ottla.base.errors import ApiError, ErrorCode
from ottla.storage.files.index import IndexPosition
from ottla.wire.records import batch, legacy, records
from ottla.wire.records.batch import HEADER_SIZE, LOG_OVERHEAD, MAGIC, SIZE_MIN, BatchHeader

# Reads (position, size in bytes) of one file.
Read = Callable[[int, int], Buffer]

_BATCHES_CHUNK_BYTES = 1024 * 1024
_HEADERS_CHUNK_BYTES = 16 * 1024
_BACKWARDS_BYTES = 64 * 1024
# The most bytes that a batch may unpack to if a single record is looked for.
_OPENED_BYTES_MAX = 4 * 1024 * 1024
_OPENED_RECORDS_MAX = 50_000


def batches(
    read: Read, position: int, end: int, read_bytes: int = _BATCHES_CHUNK_BYTES
) -> Iterator[tuple[int, BatchHeader, memoryview]]:
    """Yield (position, header, bytes) of whole batches with a right checksum.

    Stops at the first byte before `end` at which no such batch begins. Reads `read_bytes` at a
    time, and more for a larger batch.
    """
    read_bytes = chunk_bytes = max(read_bytes, HEADER_SIZE)
    while end - position >= SIZE_MIN:
        chunk = memoryview(read(position, min(chunk_bytes, end - position)))
        at = size = 0
        while len(chunk) - at >= min(HEADER_SIZE, end - position - at) and at < len(chunk):
            header = header_at(chunk, at)
            size = 0 if header is None else header.size_bytes
            if header is None or size > end - position - at:
                return
            if size > len(chunk) - at:
                break
            if not is_crc_valid(chunk, at, header):
                return
            yield position + at, header, chunk[at : at + size]
            at += size
        if at == 0:
            # The batch is larger than the chunk: read again with room for it, unless the file ends
            # before.
            if not size or len(chunk) < min(chunk_bytes, end - position):
                return
            chunk_bytes = size
        else:
            chunk_bytes = read_bytes
        position += at


def headers(read: Read, position: int, end: int) -> Iterator[tuple[int, BatchHeader]]:
    """Yield (position, header) of whole batches without reading their records.

    Batches in formats before v2 are read whole, because only their checksum proves that they are
    batches.
    """
    while end - position >= SIZE_MIN:
        chunk = read(position, min(_HEADERS_CHUNK_BYTES, end - position))
        start, limit = position, position + len(chunk) - min(HEADER_SIZE, end - position)
        if limit < start:
            return
        while position <= limit:
            header = header_at(chunk, position - start)
            if header is None or header.size_bytes > end - position:
                return
            if header.magic < MAGIC and not _is_sound(read, position, header):
                return
            yield position, header
            position += header.size_bytes
            limit = max(limit, start + len(chunk) - min(HEADER_SIZE, end - position))


def skip_before(read: Read, entry: IndexPosition, end: int, offset: int) -> tuple[int, bool]:
    """Return the position after the first batches behind an entry of the index that end before
    `offset`, and whether the first batch that does not begins there.

    If the entry contradicts the batch at its position, that position and False are returned; so
    they are if the batch has an old format.
    """
    chunk = read(entry.position, min(_HEADERS_CHUNK_BYTES, end - entry.position))
    expected = entry.last_offset
    if expected >= 0 and (len(chunk) < HEADER_SIZE or batch.peek_last_offset(chunk) != expected):
        return entry.position, False
    at, is_found = batch.skip_before(chunk, offset, end - entry.position)
    return entry.position + at, is_found


def headers_backwards(
    read: Read, floor: Callable[[int], IndexPosition], end: int
) -> Iterator[BatchHeader]:
    """Yield the headers of the batches before `end` from the last to the first.

    `floor` finds the last entry of the offset index up to a position.
    """
    while end:
        entry = floor(max(0, end - _BACKWARDS_BYTES))
        batches = [header for _, header in headers(read, entry.position, end)]
        start = entry.position
        if entry.is_exact and not (batches and batches[0].last_offset == entry.last_offset):
            start, batches = 0, [header for _, header in headers(read, 0, end)]
        yield from reversed(batches)
        end = start


def _is_sound(read: Read, position: int, header: BatchHeader) -> bool:
    data = read(position, header.size_bytes)
    return len(data) == header.size_bytes and is_crc_valid(data, 0, header)


def header_at(data: Buffer, position: int) -> BatchHeader | None:
    """Return the header of the batch at `position`, in any format; None if no batch begins there."""
    if len(data) - position >= HEADER_SIZE:
        header = batch.parse_header(data, position)
        if header.magic == MAGIC:
            return header if is_plausible(header) else None
    return legacy.parse_header(data, position)


def is_crc_valid(data: Buffer, position: int, header: BatchHeader) -> bool:
    """Return True if a batch's checksum matches the bytes that it covers in its format."""
    if header.magic == MAGIC:
        return batch.is_crc_valid(data, position, header)
    return legacy.is_crc_valid(data, position, header)


class TimestampedOffset(NamedTuple):
    """A record found by time (ms); `leader_epoch` is its batch's, -1 if the batch has no epoch."""

    timestamp: int
    offset: int
    leader_epoch: int


class Tail(NamedTuple):
    """The end of a segment: the offset after its last whole batch, and the position there."""

    next_offset: int
    position: int


def first_record_since(
    data: Buffer, header: BatchHeader, timestamp: int, from_offset: int
) -> TimestampedOffset | None:
    """Read one batch and return its first record at or after both the time (ms) and the offset.

    If the batch is too large for the event loop, its first record is returned: a search from there
    misses nothing.
    """
    opened = None
    if header.records_count <= _OPENED_RECORDS_MAX:
        opened = _opened(data, header)
    if opened is None:
        offset = max(header.base_offset, from_offset)
        return TimestampedOffset(header.max_timestamp, offset, header.leader_epoch)
    for record in opened:
        if record.timestamp >= timestamp and record.offset >= from_offset:
            return TimestampedOffset(record.timestamp, record.offset, header.leader_epoch)
    return None


def _opened(data: Buffer, header: BatchHeader) -> list[records.Record] | None:
    try:
        return records.decode_batch(
            data,
            header=header,
            max_bytes=_OPENED_BYTES_MAX,
            max_headers=_OPENED_RECORDS_MAX,
        )
    except ApiError as error:
        if error.code is ErrorCode.MESSAGE_TOO_LARGE:
            return None
        raise


def is_plausible(header: BatchHeader) -> bool:
    """Return True if these 61 bytes can be the header of a batch; zeros and most garbage cannot."""
    return (
        header.magic == MAGIC
        and header.batch_length >= HEADER_SIZE - LOG_OVERHEAD
        and header.base_offset >= 0
        and header.last_offset_delta >= 0
    )
