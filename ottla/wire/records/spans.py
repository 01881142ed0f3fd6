"""Records as byte ranges, for callers that drop some records and keep the others unchanged.

A record's offset and timestamp are relative to its batch's, so the record can be copied byte for
byte if the batch's header does not change. The bodies come from the log and were checked when they
were appended. Follows org.apache.kafka.common.record.DefaultRecord.
"""

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from ottla.base.errors import ApiError, ErrorCode

_CONTINUES = 0x80
_MORE_BITS = range(7, 70, 7)
_DELTA_MASK = 2**64 - 1


class Span(NamedTuple):
    """One record in a body: its range `start` to `end`, and its most used fields.

    `timestamp_end` is the position after the timestamp; `key_start` is -1 if the key is null.
    """

    start: int
    end: int
    timestamp_end: int
    timestamp_delta: int
    offset_delta: int
    key_start: int
    key_end: int
    has_value: bool


def spans(body: bytes, count: int) -> Iterator[Span]:
    """Yield the records of a decompressed body; CORRUPT_MESSAGE if it does not contain `count`."""
    position = 0
    try:
        for _ in range(count):
            start = position
            size, position = _read(body, position)
            end = position + (size >> 1)
            timestamp, timestamp_end = _read(body, position + 1)
            offset, position = _read(body, timestamp_end)
            key_size, key_start = _read(body, position)
            key_end = key_start if key_size & 1 else key_start + (key_size >> 1)
            value_size, _ = _read(body, key_end)
            if size & 1 or key_end >= end:
                raise _corrupt()
            yield Span(
                start,
                end,
                timestamp_end,
                (timestamp >> 1) ^ -(timestamp & 1),
                (offset >> 1) ^ -(offset & 1),
                -1 if key_size & 1 else key_start,
                key_end,
                not value_size & 1,
            )
            position = end
    except IndexError as error:
        raise _corrupt() from error
    if position != len(body):
        raise _corrupt()


def join(body: bytes, records: Iterable[Span]) -> bytes:
    """Return the bytes of some records, in order; adjacent records are copied together."""
    runs: list[bytes] = []
    start = end = 0
    for span in records:
        if span.start != end:
            runs.append(body[start:end])
            start = span.start
        end = span.end
    runs.append(body[start:end])
    return b"".join(runs)


def join_rebased(body: bytes, records: Iterable[Span], shift_ms: int) -> bytes:
    """Join records like `join`, for a batch whose base timestamp increases by `shift_ms`."""
    parts: list[bytes] = []
    for span in records:
        timestamp = varint(span.timestamp_delta - shift_ms)
        rest = body[span.timestamp_end : span.end]
        parts += (varint(1 + len(timestamp) + len(rest)), b"\x00", timestamp, rest)
    return b"".join(parts)


def varint(value: int) -> bytes:
    """Encode a number of at most 64 bits as a zigzag varint."""
    unsigned = (value << 1 ^ value >> 63) & _DELTA_MASK
    out = bytearray()
    while unsigned >= _CONTINUES:
        out.append(unsigned & 0x7F | _CONTINUES)
        unsigned >>= 7
    out.append(unsigned)
    return bytes(out)


def _read(data: bytes, position: int) -> tuple[int, int]:
    """Return a number that is not yet zigzag-decoded, and the position after it."""
    byte = data[position]
    if byte < _CONTINUES:
        return byte, position + 1
    unsigned = byte & 0x7F
    for shift in _MORE_BITS:
        position += 1
        byte = data[position]
        unsigned |= (byte & 0x7F) << shift
        if byte < _CONTINUES:
            return unsigned, position + 1
    raise _corrupt()


def _corrupt() -> ApiError:
    return ApiError(
        ErrorCode.CORRUPT_MESSAGE, "The records of a batch are not what its header says."
    )
