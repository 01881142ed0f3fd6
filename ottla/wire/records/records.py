"""The records inside a batch: encode, decode, walk.

Used by coordinators, compaction, the log dump, tests and lookups by timestamp. The broker's append
path does not decode records, and bulk readers use `columnar`. Decoders do not trust the bytes:
lengths are checked against the remaining bytes, the number of records against the header. Damage
raises ApiError CORRUPT_MESSAGE (the batch) or INVALID_RECORD (a record in it). Follows
org.apache.kafka.common.record.DefaultRecord and DefaultRecordBatch.
"""

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import NamedTuple, TypedDict, TypeVar, Unpack

from ottla.base.buffers import Buffer
from ottla.base.errors import ApiError, ErrorCode
from ottla.wire.records import batch, legacy
from ottla.wire.records.batch import BatchHeader
from ottla.wire.records.compression import DECOMPRESSED_BYTES_MAX, compress, decompress

Header = tuple[str, bytes | None]

_CONTINUES = 0x80
_VARINT_BYTES_MAX = 10
# Length, attributes, two deltas, two lengths and a header count of one byte each.
_RECORD_BYTES_MIN = 7
_TIMESTAMP_LIMIT = 2**63


class Record(NamedTuple):
    """One record; `timestamp` is in milliseconds (-1: none), `offset` is absolute."""

    key: bytes | None
    value: bytes | None
    headers: Sequence[Header] = ()
    timestamp: int = batch.NO_TIMESTAMP
    offset: int = 0


class NextRecord(NamedTuple):
    """The record, with its timestamp in ms (-1: none)."""

    offset: int
    timestamp: int


class BatchFields(TypedDict, total=False):
    """The header fields of a new batch; the defaults mean "none".

    `timestamp` (ms) is used for the records without a timestamp of their own.
    """

    base_offset: int
    compression: int
    compression_level: int | None
    producer_id: int
    producer_epoch: int
    base_sequence: int
    leader_epoch: int
    transactional: bool
    control: bool
    timestamp: int | None


class RecordError(NamedTuple):
    """The reason why one record of a batch is rejected; `batch_index` counts within the batch."""

    batch_index: int
    message: str


class InvalidRecordsError(ApiError):
    """A batch rejected because of some of its records, as Produce v8+ reports them."""

    def __init__(self, code: ErrorCode, message: str, record_errors: Sequence[RecordError]) -> None:
        super().__init__(code, message)
        self.record_errors = tuple(record_errors)


class RecordsSummary(NamedTuple):
    """The result of a full walk over a batch.

    Timestamps (ms) are the records' own, even if the header says LogAppendTime.
    Records without one (-1) do not count for `min_timestamp`, which is -1 if none has one.
    `size_bytes` is the decompressed size of the records. Offsets are consecutive unless compaction
    or the client left gaps. `headers_count` is the number of headers of all records together.
    """

    max_timestamp: int
    min_timestamp: int
    offset_of_max_timestamp: int
    records_count: int
    size_bytes: int
    has_consecutive_offsets: bool
    headers_count: int


def encode_batch(records: Sequence[Record], **fields: Unpack[BatchFields]) -> bytearray:
    """Return one sealed batch of at least one record; offsets count up from `base_offset`."""
    assert records, "a batch holds at least one record"
    default = fields.get("timestamp")
    timestamps = [
        default
        if default is not None and record.timestamp == batch.NO_TIMESTAMP
        else record.timestamp
        for record in records
    ]
    base_timestamp = timestamps[0]
    body = bytearray()
    for index, record in enumerate(records):
        encoded = _encode_record(record, timestamps[index] - base_timestamp, index)
        body += _varint(len(encoded))
        body += encoded
    codec = fields.get("compression", 0)
    payload = compress(codec, body, fields.get("compression_level")) if codec else body
    result = bytearray(
        batch.HEADER.pack(
            fields.get("base_offset", 0),
            batch.HEADER_SIZE - batch.LOG_OVERHEAD + len(payload),
            fields.get("leader_epoch", batch.NO_LEADER_EPOCH),
            batch.MAGIC,
            0,
            _attributes(fields),
            len(records) - 1,
            base_timestamp,
            max(timestamps),
            fields.get("producer_id", batch.NO_PRODUCER_ID),
            fields.get("producer_epoch", -1),
            fields.get("base_sequence", batch.NO_SEQUENCE),
            len(records),
        )
    )
    result += payload
    batch.seal(result, 0, len(result))
    return result


def _attributes(fields: BatchFields) -> int:
    bits = fields.get("compression", 0)
    if fields.get("transactional", False):
        bits |= batch.TRANSACTIONAL_BIT
    if fields.get("control", False):
        bits |= batch.CONTROL_BIT
    return bits


def _encode_record(record: Record, timestamp_delta: int, offset_delta: int) -> bytes:
    parts = [
        b"\x00",
        _varint(timestamp_delta),
        _varint(offset_delta),
        *_sized(record.key),
        *_sized(record.value),
        _varint(len(record.headers)),
    ]
    for name, value in record.headers:
        parts += _sized(name.encode())
        parts += _sized(value)
    return b"".join(parts)


def _sized(data: bytes | None) -> tuple[bytes, bytes]:
    if data is None:
        return _varint(-1), b""
    return _varint(len(data)), data


def _encode_varint(value: int) -> bytes:
    unsigned = (value << 1) ^ (value >> 63)
    out = bytearray()
    while unsigned >= _CONTINUES:
        out.append(unsigned & 0x7F | _CONTINUES)
        unsigned >>= 7
    out.append(unsigned)
    return bytes(out)


_SMALL = tuple(_encode_varint(value) for value in range(256))


def _varint(value: int) -> bytes:
    """Return a zigzag varint; lengths and deltas are small most of the time."""
    return _SMALL[value] if 0 <= value < 256 else _encode_varint(value)


def decode_batch(
    buffer: Buffer,
    position: int = 0,
    *,
    header: BatchHeader | None = None,
    max_bytes: int = DECOMPRESSED_BYTES_MAX,
    max_headers: int = DECOMPRESSED_BYTES_MAX,
) -> list[Record]:
    """Return the records of the batch at `position`; the caller checks the checksum.

    Formats before v2 are decoded as well if the caller passes their header. Raises ApiError
    CORRUPT_MESSAGE or INVALID_RECORD for damage, and MESSAGE_TOO_LARGE for more than `max_bytes` or
    `max_headers` (of all records together).
    """
    header = header or _header(buffer, position)
    if header.magic < batch.MAGIC:
        decoded = legacy.decode(buffer, position, header, max_bytes=max_bytes)
        return [Record(key, value, (), time, offset) for offset, time, key, value in decoded]
    return list(
        _records(read_body(buffer, position, header, max_bytes=max_bytes), header, max_headers)
    )


def iterate_batch(
    buffer: Buffer,
    position: int,
    header: BatchHeader,
    *,
    max_bytes: int = DECOMPRESSED_BYTES_MAX,
    is_wanted: Callable[[bytes], bool] = bool,
) -> Iterator[Record]:
    """Yield the records of a batch one by one, as `decode_batch` returns them.

    Yields none if `is_wanted` returns False for the encoded records of a batch in format v2.
    """
    if header.magic < batch.MAGIC:
        yield from decode_batch(buffer, position, header=header, max_bytes=max_bytes)
        return
    body = read_body(buffer, position, header, max_bytes=max_bytes)
    if is_wanted(body):
        yield from _records(body, header, DECOMPRESSED_BYTES_MAX)


def _records(body: bytes, header: BatchHeader, max_headers: int) -> Iterator[Record]:
    # With LogAppendTime every record has the time that the broker wrote into the header.
    append_time = header.max_timestamp if header.has_log_append_time else None
    headers_left = max_headers
    walk = _walk(body, header.records_count, partial(_read_headers, max_headers), ())
    for offset, timestamp, key, key_end, value, value_end, headers in walk:
        if headers:
            headers_left -= len(headers)
            if headers_left < 0:
                raise _too_many_headers(max_headers)
        yield Record(
            None if key < 0 else body[key:key_end],
            None if value < 0 else body[value:value_end],
            headers,
            header.base_timestamp + timestamp if append_time is None else append_time,
            header.base_offset + offset,
        )


def read_body(buffer: Buffer, position: int, header: BatchHeader, *, max_bytes: int) -> bytes:
    """Return the encoded records of a batch, decompressed; CORRUPT_MESSAGE if it is incomplete."""
    end = position + header.size_bytes
    if header.magic != batch.MAGIC or header.size_bytes < batch.HEADER_SIZE or end > len(buffer):
        raise ApiError(ErrorCode.CORRUPT_MESSAGE, "The batch is truncated or of an unknown format.")
    payload = memoryview(buffer)[position + batch.HEADER_SIZE : end]
    return decompress(header.compression, payload, max_bytes=max_bytes)


def iterate_batches(buffer: Buffer) -> Iterator[tuple[int, BatchHeader]]:
    """Yield position and header of each whole batch.

    Raises CORRUPT_MESSAGE if a checksum is wrong. A partial batch at the end is ignored.
    """
    position = 0
    while position + batch.HEADER_SIZE <= len(buffer):
        header = _header(buffer, position)
        if header.size_bytes < batch.HEADER_SIZE or header.magic != batch.MAGIC:
            raise ApiError(ErrorCode.CORRUPT_MESSAGE, f"There is no batch at byte {position}.")
        if position + header.size_bytes > len(buffer):
            return
        batch.check_crc(buffer, position, header)
        yield position, header
        position += header.size_bytes


def whole_batches(buffer: Buffer) -> Iterator[tuple[int, BatchHeader]]:
    """Yield position and header of each whole batch of the current format; stops at anything else."""
    position = 0
    while position + batch.HEADER_SIZE <= len(buffer):
        header = batch.parse_header(buffer, position)
        size = header.size_bytes
        if header.magic != batch.MAGIC or size < batch.HEADER_SIZE:
            return
        if position + size > len(buffer):
            return
        yield position, header
        position += size


def next_record(
    buffer: Buffer, offset: int, *, max_bytes: int = DECOMPRESSED_BYTES_MAX
) -> tuple[NextRecord | None, int]:
    """Return the first record at or after `offset`, and the offset behind the batches that were
    read.

    Control batches are skipped. ApiError if a batch cannot be decoded.
    """
    after = offset
    for position, header in whole_batches(buffer):
        after = header.last_offset + 1
        if header.is_control or after <= offset:
            continue
        for record in iterate_batch(buffer, position, header, max_bytes=max_bytes):
            if record.offset >= offset:
                return NextRecord(record.offset, record.timestamp), after
    return None, after


def iterate_records(buffer: Buffer) -> Iterator[Record]:
    """Yield the records of consecutive batches as a consumer sees them: without control records."""
    for position, header in iterate_batches(buffer):
        if not header.is_control:
            yield from decode_batch(buffer, position, header=header)


def validate_records(
    buffer: Buffer,
    position: int,
    header: BatchHeader,
    *,
    require_keys: bool = False,
    timestamp_bounds: tuple[int, int] | None = None,
    max_bytes: int = DECOMPRESSED_BYTES_MAX,
    max_headers: int = DECOMPRESSED_BYTES_MAX,
) -> RecordsSummary:
    """Walk all records of a batch like Kafka's LogValidator, decompressing if necessary.

    Header names may be any bytes, as in Kafka. Raises ApiError CORRUPT_MESSAGE or INVALID_RECORD
    for damage, MESSAGE_TOO_LARGE for more than `max_bytes` or `max_headers` (of all records
    together), and InvalidRecordsError with every invalid record: INVALID_RECORD for null keys if
    `require_keys` (compacted topics), INVALID_TIMESTAMP for timestamps (ms) outside
    `timestamp_bounds`, both ends inclusive.
    """
    body = read_body(buffer, position, header, max_bytes=max_bytes)
    newest = oldest = batch.NO_TIMESTAMP
    newest_delta = 0
    consecutive = True
    keyless: list[int] = []
    mistimed: list[RecordError] = []
    headers_count = 0
    walk = _walk(body, header.records_count, partial(_skip_headers, max_headers), 0)
    for index, (offset_delta, timestamp_delta, key, _, _, _, headers) in enumerate(walk):
        timestamp = header.base_timestamp + timestamp_delta
        if timestamp > newest:
            newest, newest_delta = timestamp, offset_delta
        if timestamp != batch.NO_TIMESTAMP:
            oldest = timestamp if oldest == batch.NO_TIMESTAMP else min(oldest, timestamp)
            if timestamp_bounds is not None:
                mistimed += _judge_timestamp(index, timestamp, timestamp_bounds)
        if key < 0:
            keyless.append(index)
        consecutive = consecutive and offset_delta == index
        if headers:
            headers_count += headers
            if headers_count > max_headers:
                raise _too_many_headers(max_headers)
    if require_keys and keyless:
        raise _keyless(keyless)
    if mistimed:
        raise InvalidRecordsError(
            ErrorCode.INVALID_TIMESTAMP, "One or more records have been rejected.", mistimed
        )
    if newest >= _TIMESTAMP_LIMIT or oldest < -_TIMESTAMP_LIMIT:
        raise _invalid("a timestamp does not fit into 64 bits")
    return RecordsSummary(
        max_timestamp=newest,
        min_timestamp=oldest,
        offset_of_max_timestamp=header.base_offset + newest_delta,
        records_count=header.records_count,
        size_bytes=len(body),
        has_consecutive_offsets=consecutive,
        headers_count=headers_count,
    )


def _judge_timestamp(index: int, timestamp: int, bounds: tuple[int, int]) -> list[RecordError]:
    if bounds[0] <= timestamp <= bounds[1]:
        return []
    reason = f"Timestamp {timestamp} is outside the range [{bounds[0]}, {bounds[1]}]."
    return [RecordError(index, reason)]


def _keyless(indexes: Sequence[int]) -> InvalidRecordsError:
    reason = "A compacted topic takes no record without a key."
    return InvalidRecordsError(
        ErrorCode.INVALID_RECORD,
        "One or more records have been rejected.",
        [RecordError(index, reason) for index in indexes],
    )


def _header(buffer: Buffer, position: int) -> BatchHeader:
    if len(buffer) - position < batch.HEADER_SIZE:
        raise ApiError(ErrorCode.CORRUPT_MESSAGE, "The batch is shorter than its header.")
    return batch.parse_header(buffer, position)


def _invalid(reason: str) -> ApiError:
    return ApiError(ErrorCode.INVALID_RECORD, f"A record of the batch is damaged: {reason}.")


def _too_many_headers(max_headers: int) -> ApiError:
    return ApiError(
        ErrorCode.MESSAGE_TOO_LARGE,
        f"The records of the batch have more than {max_headers} headers.",
    )


# How the headers of a record are read: decoded, or only counted.
_H = TypeVar("_H", Sequence[Header], int)
_ReadHeaders = Callable[[bytes, int], tuple[_H, int]]
_Walked = tuple[int, int, int, int, int, int, _H]


def _walk(
    body: bytes, count: int, read_headers: _ReadHeaders[_H], no_headers: _H
) -> Iterator[_Walked[_H]]:
    """Yield the results of `_walk_fields` for untrusted bytes, which must end with the last record."""
    if count < 0 or count * _RECORD_BYTES_MIN > len(body):
        raise _invalid(f"{count} records do not fit into {len(body)} bytes")
    try:
        yield from _walk_fields(body, count, read_headers, no_headers)
    except IndexError as error:
        raise _invalid("it goes past the end of the batch") from error


def _walk_fields(
    body: bytes, count: int, read_headers: _ReadHeaders[_H], no_headers: _H
) -> Iterator[_Walked[_H]]:
    """Yield (offset delta, timestamp delta, key start, key end, value start, value end, headers).

    A start of -1 is a null. Most varints have one byte: that case is inlined, since a call would
    cost more than all the rest. Reading past the end is an IndexError, caught once by `_walk`.
    """
    position = 0
    for _ in range(count):
        size = body[position]
        position += 1
        if size >= _CONTINUES:
            size, position = _continue_varint(body, position, size)
        end = position + (size >> 1)
        timestamp = body[position + 1]
        position += 2
        if timestamp >= _CONTINUES:
            timestamp, position = _continue_varint(body, position, timestamp)
        offset = body[position]
        position += 1
        if offset >= _CONTINUES:
            offset, position = _continue_varint(body, position, offset)
        key_size = body[position]
        key = position = position + 1
        if key_size >= _CONTINUES:
            key_size, key = _continue_varint(body, position, key_size)
        key_end = key if key_size & 1 else key + (key_size >> 1)
        value_size = body[key_end]
        value = position = key_end + 1
        if value_size >= _CONTINUES:
            value_size, value = _continue_varint(body, position, value_size)
        value_end = position = value if value_size & 1 else value + (value_size >> 1)
        headers = no_headers
        if body[position]:
            headers, position = read_headers(body, position)
        else:
            position += 1
        if position != end or size & 1:
            raise _invalid("its length is not the length of its fields")
        yield (
            (offset >> 1) ^ -(offset & 1),
            (timestamp >> 1) ^ -(timestamp & 1),
            -1 if key_size & 1 else key,
            key_end,
            -1 if value_size & 1 else value,
            value_end,
            headers,
        )
    if position != len(body):
        raise _invalid(f"{len(body) - position} bytes follow the last record")


def _continue_varint(data: bytes, position: int, unsigned: int) -> tuple[int, int]:
    """Return the raw (not yet zigzag-decoded) number whose first byte has been read, and the next
    position.
    """
    byte = data[position]
    position += 1
    unsigned = unsigned & 0x7F | (byte & 0x7F) << 7
    if byte < _CONTINUES:
        return unsigned, position
    for shift in range(14, 7 * _VARINT_BYTES_MAX, 7):
        byte = data[position]
        position += 1
        unsigned |= (byte & 0x7F) << shift
        if byte < _CONTINUES:
            return unsigned, position
    raise _invalid("a number is longer than 10 bytes")


def _read_varint(data: bytes, position: int) -> tuple[int, int]:
    unsigned = data[position]
    position += 1
    if unsigned >= _CONTINUES:
        unsigned, position = _continue_varint(data, position, unsigned)
    return (unsigned >> 1) ^ -(unsigned & 1), position


def _read_slice(data: bytes, position: int) -> tuple[slice | None, int]:
    size, position = _read_varint(data, position)
    if size < 0:
        return None, position
    end = position + size
    if end > len(data):
        raise _invalid("a field is longer than the batch")
    return slice(position, end), end


def _headers_count(max_count: int, data: bytes, position: int) -> tuple[int, int]:
    count, position = _read_varint(data, position)
    if not 0 <= count <= len(data) - position:
        raise _invalid(f"it cannot have {count} headers")
    if count > max_count:
        raise _too_many_headers(max_count)
    return count, position


def _read_headers(max_count: int, data: bytes, position: int) -> tuple[Sequence[Header], int]:
    """Return the headers at `position`; bytes of a name that are not UTF-8 become U+FFFD, as in
    Kafka.
    """
    count, position = _headers_count(max_count, data, position)
    headers: list[Header] = []
    for _ in range(count):
        name, position = _read_slice(data, position)
        value, position = _read_slice(data, position)
        if name is None:
            raise _no_name()
        text = data[name].decode(errors="replace")
        headers.append((text, None if value is None else data[value]))
    return tuple(headers), position


def _skip_headers(max_count: int, data: bytes, position: int) -> tuple[int, int]:
    """Return the number of headers and the position after them."""
    count, position = _headers_count(max_count, data, position)
    for _ in range(count):
        size = data[position]
        position += 1
        if size >= _CONTINUES:
            size, position = _continue_varint(data, position, size)
        if size & 1:
            raise _no_name()
        position += size >> 1
        size = data[position]
        position += 1
        if size >= _CONTINUES:
            size, position = _continue_varint(data, position, size)
        if not size & 1:
            position += size >> 1
    return count, position


def _no_name() -> ApiError:
    return _invalid("a header has no name")
