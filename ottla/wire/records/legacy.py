"""Record formats v0 and v1, of brokers before Kafka 0.11: read from old logs, never written.

One entry of a file is one record, or, if it is compressed, one record whose value contains others.
It is presented as a batch of one record whose offset is the offset of its last record: the format
contains no more information. Follows org.apache.kafka.common.record.AbstractLegacyRecordBatch and
LegacyRecord.
"""

import struct
import zlib
from collections.abc import Iterator
from typing import NamedTuple

from ottla.base.buffers import Buffer
from ottla.base.errors import ApiError, ErrorCode
from ottla.wire.records.batch import (
    COMPRESSION_MASK,
    LOG_APPEND_TIME_BIT,
    LOG_OVERHEAD,
    NO_LEADER_EPOCH,
    NO_PRODUCER_ID,
    NO_SEQUENCE,
    NO_TIMESTAMP,
    SIZE_MIN,
    BatchHeader,
)
from ottla.wire.records.compression import LZ4, NONE, decompress

_V0 = struct.Struct(">qiIBB")
_V1 = struct.Struct(">qiIBBq")
_INT32 = struct.Struct(">i")
_CRC_START = 16
_NO_EPOCH = -1


class LegacyRecord(NamedTuple):
    """One record with its absolute offset; the timestamp is -1 if the record has no timestamp."""

    offset: int
    timestamp: int
    key: bytes | None
    value: bytes | None


def parse_header(buffer: Buffer, position: int = 0) -> BatchHeader | None:
    """Parse the header of an entry; None if these bytes cannot be an entry (zeros cannot)."""
    if len(buffer) - position < SIZE_MIN:
        return None
    offset, length, crc, magic, attributes = _V0.unpack_from(buffer, position)
    is_v1 = magic == 1
    overhead = (_V1 if is_v1 else _V0).size + 2 * _INT32.size - LOG_OVERHEAD
    bits = COMPRESSION_MASK | LOG_APPEND_TIME_BIT if is_v1 else COMPRESSION_MASK
    if magic > 1 or offset < 0 or length < overhead or attributes & ~bits:
        return None
    if attributes & COMPRESSION_MASK > LZ4 or len(buffer) - position < overhead + LOG_OVERHEAD:
        return None
    timestamp = _V1.unpack_from(buffer, position)[5] if is_v1 else NO_TIMESTAMP
    return BatchHeader(
        offset,
        length,
        NO_LEADER_EPOCH,
        magic,
        crc,
        attributes,
        0,
        timestamp,
        timestamp,
        NO_PRODUCER_ID,
        _NO_EPOCH,
        NO_SEQUENCE,
        1,
    )


def is_crc_valid(buffer: Buffer, position: int, header: BatchHeader) -> bool:
    """Compare the stored checksum with the bytes it covers."""
    view = memoryview(buffer)[position + _CRC_START : position + header.size_bytes]
    return zlib.crc32(view) == header.crc


def decode(
    buffer: Buffer, position: int, header: BatchHeader, *, max_bytes: int
) -> list[LegacyRecord]:
    """Return the records of one entry; raises ApiError CORRUPT_MESSAGE if it cannot be decoded."""
    try:
        outer = _entry(buffer, position)
        if header.compression == NONE:
            return [outer]
        inner_set = decompress(header.compression, outer.value or b"", max_bytes=max_bytes)
        inner = list(_entries(inner_set))
    except (struct.error, IndexError) as error:
        raise _damaged(f"at offset {header.base_offset}") from error
    if not inner:
        raise _damaged(f"no record is in the entry at offset {header.base_offset}")
    # In v1 offsets count from 0, and the entry has the offset of the last; in v0 they are absolute.
    shift = header.base_offset - inner[-1].offset if header.magic == 1 else 0
    time = header.max_timestamp if header.has_log_append_time else None
    return [
        LegacyRecord(
            record.offset + shift,
            record.timestamp if time is None else time,
            record.key,
            record.value,
        )
        for record in inner
    ]


def _entries(data: bytes) -> Iterator[LegacyRecord]:
    position = 0
    while position < len(data):
        yield _entry(data, position)
        position += LOG_OVERHEAD + int(_INT32.unpack_from(data, position + 8)[0])


def _entry(buffer: Buffer, position: int) -> LegacyRecord:
    header = parse_header(buffer, position)
    if header is None or header.size_bytes > len(buffer) - position:
        raise _damaged("it is cut short")
    end = position + header.size_bytes
    at = position + (_V1 if header.magic == 1 else _V0).size
    key, at = _sized(buffer, at, end)
    value, _ = _sized(buffer, at, end)
    return LegacyRecord(header.base_offset, header.max_timestamp, key, value)


def _sized(buffer: Buffer, at: int, end: int) -> tuple[bytes | None, int]:
    (size,) = _INT32.unpack_from(buffer, at)
    at += _INT32.size
    if size < 0:
        return None, at
    if at + size > end:
        raise _damaged("a field goes past its end")
    return bytes(memoryview(buffer)[at : at + size]), at + size


def _damaged(reason: str) -> ApiError:
    return ApiError(ErrorCode.CORRUPT_MESSAGE, f"A record of an old format is damaged: {reason}.")
