"""The 61-byte header of a record batch (format v2): parse, check, patch; records are not decoded.

Called on the hot path for every produced batch. CRC-32C covers byte 21 to the end, so the broker
may write the base offset (0-7) and the leader epoch (12-15) without recomputing it. Follows
org.apache.kafka.common.record.DefaultRecordBatch (KIP-98).
"""

import struct
from typing import Any, NamedTuple

from fastcrc import crc32

from ottla.base.buffers import Buffer
from ottla.base.errors import ApiError, ErrorCode

HEADER = struct.Struct(">qiibIhiqqqhii")
HEADER_SIZE = HEADER.size
# Bytes before the part that the length field counts: base offset and the length itself.
LOG_OVERHEAD = 12
# The smallest possible entry of any format: v0, without key and value.
SIZE_MIN = LOG_OVERHEAD + 14
MAGIC = 2
NO_PRODUCER_ID = -1
NO_SEQUENCE = -1
NO_TIMESTAMP = -1
NO_LEADER_EPOCH = -1

_MAGIC_POSITION = 16
_CRC_START = 21
_DELTA_POSITION = 23
_UP_TO_DELTA = 27
_ATTRIBUTES_POSITION = 21
# The byte of the attributes in which bits are used.
LOW_ATTRIBUTES_POSITION = _ATTRIBUTES_POSITION + 1
_MAX_TIMESTAMP_POSITION = 35
COMPRESSION_MASK = 0x07
LOG_APPEND_TIME_BIT = 0x08
TRANSACTIONAL_BIT = 0x10
CONTROL_BIT = 0x20
DELETE_HORIZON_BIT = 0x40

_OFFSET_AND_LENGTH = struct.Struct(">qi")
_BASE_AND_DELTA = struct.Struct(">q15xi")
# Base offset, length, magic and last offset delta.
_PLACE = struct.Struct(">qi4xb6xi")
_INT64 = struct.Struct(">q")
_INT32 = struct.Struct(">i")
_UINT32 = struct.Struct(">I")
_INT16 = struct.Struct(">h")

assert HEADER_SIZE == 61
assert crc32.iscsi(b"123456789") == 0xE3069283, "this build of fastcrc computes a wrong CRC-32C"

crc32c = crc32.iscsi


class BatchHeader(NamedTuple):
    """The header's fields in order; offsets and timestamps (ms) are 64-bit."""

    base_offset: int
    batch_length: int
    leader_epoch: int
    magic: int
    crc: int
    attributes: int
    last_offset_delta: int
    base_timestamp: int
    max_timestamp: int
    producer_id: int
    producer_epoch: int
    base_sequence: int
    records_count: int

    @property
    def size_bytes(self) -> int:
        """Size of the whole batch in bytes, header included."""
        return self.batch_length + LOG_OVERHEAD

    @property
    def last_offset(self) -> int:
        """Offset of the last record slot."""
        return self.base_offset + self.last_offset_delta

    @property
    def compression(self) -> int:
        """Codec: 0 none, 1 gzip, 2 snappy, 3 lz4, 4 zstd."""
        return self.attributes & COMPRESSION_MASK

    @property
    def has_log_append_time(self) -> bool:
        """True if the timestamp of every record is the header's max timestamp."""
        return bool(self.attributes & LOG_APPEND_TIME_BIT)

    @property
    def is_transactional(self) -> bool:
        """True if the batch belongs to a transaction."""
        return bool(self.attributes & TRANSACTIONAL_BIT)

    @property
    def is_control(self) -> bool:
        """True if the batch contains a control record (transaction marker)."""
        return bool(self.attributes & CONTROL_BIT)

    @property
    def has_producer_id(self) -> bool:
        """True if an idempotent or transactional producer sent the batch."""
        return self.producer_id != NO_PRODUCER_ID

    @property
    def last_sequence(self) -> int:
        """Sequence number of the last record; wraps at 2**31 - 1."""
        if self.base_sequence == NO_SEQUENCE:
            return NO_SEQUENCE
        return (self.base_sequence + self.last_offset_delta) & 0x7FFFFFFF


def parse_header(buffer: Buffer, position: int = 0) -> BatchHeader:
    """Parse a header; raises struct.error if there are fewer than 61 bytes."""
    return BatchHeader._make(HEADER.unpack_from(buffer, position))


def skip_before(data: Buffer, offset: int, limit: int) -> tuple[int, bool]:
    """Return the position in `data` after the batches at its start that end before `offset`, and
    whether the first batch that does not begins there.

    Batches within `limit` bytes are complete; `data` has them, or the first of them. It is False
    at the end of `data`, and at bytes that are not the header of a complete batch in this format.
    Several times as fast as a header for each batch.
    """
    at, last = 0, len(data) - HEADER_SIZE
    while at <= last:
        base_offset, length, magic, delta = _PLACE.unpack_from(data, at)
        after = at + length + LOG_OVERHEAD
        if magic != MAGIC or length < HEADER_SIZE - LOG_OVERHEAD or after > limit:
            break
        if base_offset < 0 or delta < 0:
            break
        if base_offset + delta >= offset:
            return at, True
        at = after
    return at, False


def peek_size(buffer: Buffer, position: int = 0) -> int:
    """Return the size of the whole batch that starts at `position`; at least 12 bytes are required."""
    return int(_OFFSET_AND_LENGTH.unpack_from(buffer, position)[1]) + LOG_OVERHEAD


def end_offset(buffer: Buffer) -> int:
    """Return the offset after consecutive batches, the last of which may be incomplete; 0 for none.

    Batches behind a damaged length are not counted.
    """
    position, last = 0, -1
    while position + _UP_TO_DELTA <= len(buffer):
        # Before v2 there is no such field, and the offset is the last one.
        is_old = buffer[position + _MAGIC_POSITION] < MAGIC
        delta = 0 if is_old else int(_INT32.unpack_from(buffer, position + _DELTA_POSITION)[0])
        last = peek_base_offset(buffer, position) + delta
        size = peek_size(buffer, position)
        if size < SIZE_MIN:
            break
        position += size
    return last + 1


def has_records(buffer: Buffer) -> bool:
    """Return True unless all of these batches have been emptied by compaction."""
    position = 0
    while position + HEADER_SIZE <= len(buffer):
        if peek_size(buffer, position) != HEADER_SIZE:
            return True
        position += HEADER_SIZE
    return position < len(buffer)


def peek_base_offset(buffer: Buffer, position: int = 0) -> int:
    """Return the base offset, the first 8 bytes."""
    return int(_INT64.unpack_from(buffer, position)[0])


def peek_last_offset(buffer: Buffer, position: int = 0) -> int:
    """Return the offset of the last record slot; 27 bytes are required."""
    base_offset, delta = _BASE_AND_DELTA.unpack_from(buffer, position)
    return int(base_offset + delta)


def is_crc_valid(buffer: Buffer, position: int, header: BatchHeader) -> bool:
    """Compare the stored checksum with the bytes it covers."""
    view = memoryview(buffer)[position + _CRC_START : position + header.size_bytes]
    return bool(crc32c(view) == header.crc)


def check_crc(buffer: Buffer, position: int, header: BatchHeader) -> None:
    """Raise CORRUPT_MESSAGE if the checksum is wrong."""
    if not is_crc_valid(buffer, position, header):
        raise ApiError(
            ErrorCode.CORRUPT_MESSAGE,
            f"Batch at offset {header.base_offset} fails its checksum ({header.crc:#x} is stored).",
        )


def patch_offset_and_epoch(
    buffer: bytearray | memoryview, position: int, base_offset: int, leader_epoch: int
) -> None:
    """Set base offset and leader epoch, which the checksum does not cover."""
    _INT64.pack_into(buffer, position, base_offset)
    _INT32.pack_into(buffer, position + LOG_OVERHEAD, leader_epoch)


def patch_max_timestamp(
    buffer: bytearray | memoryview, position: int, *, max_timestamp: int, log_append_time: bool
) -> None:
    """Set the timestamp type and max timestamp, and recompute the checksum, which covers them."""
    (attributes,) = _INT16.unpack_from(buffer, position + _ATTRIBUTES_POSITION)
    attributes &= ~LOG_APPEND_TIME_BIT
    if log_append_time:
        attributes |= LOG_APPEND_TIME_BIT
    _INT16.pack_into(buffer, position + _ATTRIBUTES_POSITION, attributes)
    _INT64.pack_into(buffer, position + _MAX_TIMESTAMP_POSITION, max_timestamp)
    seal(buffer, position, peek_size(buffer, position))


def seal(buffer: bytearray | memoryview, position: int, size_bytes: int) -> None:
    """Compute and store the checksum of the batch of `size_bytes` at `position`."""
    view = memoryview(buffer)[position + _CRC_START : position + size_bytes]
    _UINT32.pack_into(buffer, position + 17, crc32c(view))


def is_transactional(records: Any) -> bool:
    """Return True if the first of these batches, given as bytes, belongs to a transaction."""
    is_whole = records is not None and len(records) >= HEADER_SIZE
    return is_whole and bool(records[LOW_ATTRIBUTES_POSITION] & TRANSACTIONAL_BIT)
