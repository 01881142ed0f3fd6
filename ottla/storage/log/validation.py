"""The checks of a produced batch before it is written, in Kafka's order and with its error codes.

The header and the checksum are checked for every batch. The records are read only if necessary: for
compacted topics (keys), a lower bound for timestamps, another codec than the producer's, the strict
option, or a header that would be rejected. Follows ProduceRequest, UnifiedLog and LogValidator.
"""

from collections.abc import Callable, Iterator
from functools import partial
from typing import NamedTuple

from ottla.base.buffers import Buffer
from ottla.base.errors import ApiError, ErrorCode
from ottla.storage.config import LONG_MAX, LogConfig
from ottla.storage.files import scan
from ottla.storage.log.producers import WrittenBatch
from ottla.wire.records import batch, records
from ottla.wire.records.batch import (
    COMPRESSION_MASK,
    CONTROL_BIT,
    HEADER_SIZE,
    LOG_APPEND_TIME_BIT,
    LOG_OVERHEAD,
    MAGIC,
    NO_PRODUCER_ID,
    NO_TIMESTAMP,
    SIZE_MIN,
    BatchHeader,
    crc32c,
)
from ottla.wire.records.compression import DECOMPRESSED_BYTES_MAX, NAMES

# The bytes up to the format version, and the smallest size of a batch in any format.
_MAGIC_POSITION = 16
_UP_TO_MAGIC = 17
_LENGTH_MIN = 14
_CRC_START = 21
_CODEC_MAX = max(NAMES)


class BatchLimits(NamedTuple):
    """The largest batch whose records are read: bytes as received, bytes unpacked, number of
    records.

    A header of a record counts as a record, because it takes as long to read. `rebuilt_count` is
    for batches that are rewritten, with another codec or other offsets.
    """

    packed_bytes: int
    body_bytes: int
    opened_count: int
    rebuilt_count: int


_UNLIMITED = BatchLimits(LONG_MAX, DECOMPRESSED_BYTES_MAX, LONG_MAX, LONG_MAX)
# Some milliseconds of the event loop. `vet` checks larger batches off the loop.
_ON_LOOP = BatchLimits(64 * 1024, 256 * 1024, 2000, 1000)
# Off the loop, up to some tenths of a second.
SHORT = BatchLimits(LONG_MAX, 4 * 1024 * 1024, 50_000, 10_000)
# Off the loop, up to some seconds: as much as memory allows. Kafka has no limit here.
BODY_BYTES_MAX = 64 * 1024 * 1024
_BODY_RATIO = 16
_OPENED_COUNT_MAX = 1_000_000
_REBUILT_COUNT_MAX = 200_000

# Bound once, because they are called for every batch.
_unpack_header = batch.HEADER.unpack_from
_new_header = tuple.__new__


class AppendInfo(NamedTuple):
    """The result of an append; for a duplicate, the result of the batch it repeats.

    `log_append_time_ms` is -1 unless the topic uses the broker's time.
    """

    base_offset: int
    last_offset: int
    log_append_time_ms: int
    log_start_offset: int
    is_duplicate: bool
    records_count: int
    size_bytes: int
    max_timestamp_ms: int


# A batch that may be written: its bytes, its header, and the broker's time (ms) if the topic uses
# it. A plain tuple, because one is created for every batch.
Checked = tuple[bytearray | memoryview, BatchHeader, int]


# Built from one tuple: the class's own constructor takes three times as long.
new_info: Callable[[tuple[object, ...]], AppendInfo] = partial(tuple.__new__, AppendInfo)


class HeavyBatchError(ApiError):
    """Checking the records would exceed the limits: use `vet`, or `vet` with larger limits."""


class Vetted(bytearray):
    """A batch and its verdict from `vet`, for one configuration of its topic; None before that."""

    config: LogConfig | None = None
    append_time_ms = NO_TIMESTAMP

    def is_for(self, config: LogConfig) -> bool:
        """Return True if the verdict holds for this configuration as well."""
        return self.config is not None and (
            self.config.validation_options == config.validation_options
        )


class UnreadableBatchError(ApiError):
    """The data is not a single whole batch; Kafka rejects this before it looks up the log."""


def check(
    data: Buffer,
    config: LogConfig,
    now_ms: int,
    *,
    from_client: bool,
    limits: BatchLimits = _ON_LOOP,
) -> Checked:
    """Check one produced batch; its bytes may be patched in place, or copied if they are read-only.

    `from_client` is false for batches that this broker's coordinators write; only these may be
    control batches. Raises ApiError: `InvalidRecordsError` if single records are invalid,
    `HeavyBatchError` if a client's batch takes too long to check on the event loop.
    """
    size = len(data)
    if size < HEADER_SIZE:
        raise _unreadable(data)
    # Unpacking the plain tuple takes half as long as unpacking the named one.
    fields = _unpack_header(data)
    header = _new_header(BatchHeader, fields)
    (
        base_offset,
        length,
        _,
        magic,
        crc,
        attributes,
        delta,
        _,
        newest,
        producer_id,
        _,
        sequence,
        count,
    ) = fields
    # One expression that nearly every batch passes; otherwise `_check_in_order` finds the error.
    is_sound = (
        magic == MAGIC
        and length == size - LOG_OVERHEAD
        and base_offset == 0
        and size <= config.max_message_bytes
        and count == delta + 1
        and count > 0
        and not attributes & CONTROL_BIT
        and attributes & COMPRESSION_MASK <= _CODEC_MAX
        and (producer_id < 0 or sequence >= 0)
    )
    if not is_sound:
        data = _check_in_order(data, header, config, from_client=from_client)
    view = data if type(data) is memoryview else memoryview(data)
    if is_sound and crc32c(view[_CRC_START:]) != crc:
        raise _bad_checksum()
    if view.readonly or isinstance(data, bytes):
        data = bytearray(data)
    latest = now_ms + config.message_timestamp_after_max_ms
    is_timely = newest <= latest and not attributes & LOG_APPEND_TIME_BIT
    if config.trusts_headers and is_timely:
        return data, header, NO_TIMESTAMP
    if type(data) is Vetted and data.is_for(config):
        return data, header, data.append_time_ms
    return _check_contents(data, header, config, now_ms, limits if from_client else _UNLIMITED)


def vet(
    data: Buffer,
    config: LogConfig,
    now_ms: int,
    limits: BatchLimits | None = None,
    body_bytes_max: int = BODY_BYTES_MAX,
) -> Vetted:
    """Check a client's batch that takes too long for the event loop; `check` trusts the result.

    Call it off the event loop. `data` is not changed, so that it can be checked again if the
    configuration changes. Raises the same errors as `check`. Without `limits` a batch is rejected
    with MESSAGE_TOO_LARGE if it decompresses to more than `body_bytes_max`, and to more than 16
    times max.message.bytes.
    """
    try:
        checked, _, append_time_ms = check(
            Vetted(data),
            config,
            now_ms,
            from_client=True,
            limits=limits or _largest(config, body_bytes_max),
        )
    except HeavyBatchError as error:
        if limits is not None:
            raise
        raise ApiError(ErrorCode.MESSAGE_TOO_LARGE, error.message) from error
    vetted = checked if type(checked) is Vetted else Vetted(checked)
    vetted.config, vetted.append_time_ms = config, append_time_ms
    return vetted


def _largest(config: LogConfig, body_bytes_max: int) -> BatchLimits:
    size = max(body_bytes_max, _BODY_RATIO * config.max_message_bytes)
    return BatchLimits(LONG_MAX, size, _OPENED_COUNT_MAX, _REBUILT_COUNT_MAX)


def _check_in_order(
    data: Buffer, header: BatchHeader, config: LogConfig, *, from_client: bool
) -> Buffer:
    """Make Kafka's checks of frame and header in Kafka's order; return the batch without trailing
    bytes.
    """
    _check_frame(data, header)
    size = header.size_bytes
    data = memoryview(data)[:size]
    if header.base_offset and from_client:
        raise _invalid(f"The batch's base offset is {header.base_offset}, not 0.")
    if size > config.max_message_bytes:
        raise _too_large(size, config)
    if crc32c(data[_CRC_START:]) != header.crc:
        raise _bad_checksum()
    _check_header(header, from_client=from_client)
    return data


def _check_frame(data: Buffer, header: BatchHeader) -> None:
    """Reject data that is not one whole batch; a partial batch after it is tolerated."""
    size = header.batch_length + LOG_OVERHEAD
    if header.magic != MAGIC or size > len(data):
        raise _unreadable(data)
    if size < HEADER_SIZE:
        raise ApiError(ErrorCode.CORRUPT_MESSAGE, "The batch is shorter than its header.")
    if size != len(data):
        _check_single(memoryview(data)[size:])


def _unreadable(data: Buffer) -> ApiError:
    """Return the reason why `data` does not begin with a whole batch of format v2."""
    nothing = _unread("There is no whole record batch in the request.")
    if len(data) < LOG_OVERHEAD:
        return nothing
    size = batch.peek_size(data)
    if size - LOG_OVERHEAD < _LENGTH_MIN:
        return ApiError(ErrorCode.CORRUPT_MESSAGE, "The batch is shorter than any record can be.")
    if len(data) < _UP_TO_MAGIC:
        return nothing
    magic = data[_MAGIC_POSITION]
    if magic > MAGIC:
        return ApiError(ErrorCode.CORRUPT_MESSAGE, f"There is no record format {magic}.")
    if size > len(data):
        return nothing
    if magic < MAGIC:
        return _unread(f"Record format {magic} is not accepted; it must be {MAGIC}.")
    return ApiError(ErrorCode.CORRUPT_MESSAGE, "The batch is shorter than its header.")


def _check_single(rest: memoryview) -> None:
    """Reject a second batch; other trailing bytes are cut off."""
    if len(rest) < _UP_TO_MAGIC:
        return
    size = batch.peek_size(rest)
    if size - LOG_OVERHEAD < _LENGTH_MIN or rest[_MAGIC_POSITION] > MAGIC:
        raise ApiError(ErrorCode.CORRUPT_MESSAGE, "Garbage follows the batch.")
    if size <= len(rest):
        raise _unread("A produce request holds one record batch for a partition, not more.")


def _check_header(header: BatchHeader, *, from_client: bool) -> None:
    count = header.records_count
    if count <= 0 or header.last_offset_delta + 1 != count:
        raise _invalid(
            f"The batch says it holds {count} records and spans {header.last_offset_delta + 1} offsets."
        )
    codec = header.attributes & COMPRESSION_MASK
    if codec > _CODEC_MAX:
        raise ApiError(ErrorCode.UNSUPPORTED_COMPRESSION_TYPE, f"There is no codec {codec}.")
    if from_client:
        if header.attributes & CONTROL_BIT:
            raise _invalid("Clients may not write control records.")
        if header.producer_id > NO_PRODUCER_ID and header.base_sequence < 0:
            raise _invalid("A batch with a producer id needs a sequence number.")


def _check_contents(
    data: bytearray | memoryview,
    header: BatchHeader,
    config: LogConfig,
    now_ms: int,
    limits: BatchLimits,
) -> Checked:
    """Check the records if the header is not sufficient, and apply the topic's codec and
    timestamps.
    """
    codec = header.attributes & batch.COMPRESSION_MASK
    target = codec if config.codec is None else config.codec
    summary = None
    # A header that would be rejected is also checked by its records, as Kafka checks every batch.
    if config.opens_records or target != codec or not config.has_log_append_time:
        _refuse_heavy(header, limits.packed_bytes, limits.opened_count, header.records_count)
        try:
            summary = _walk(data, header, config, now_ms, limits)
        except ApiError as error:
            if error.code is ErrorCode.MESSAGE_TOO_LARGE:
                raise HeavyBatchError(error.code, error.message) from error
            raise
        if target != codec or (codec and not summary.has_consecutive_offsets):
            count = header.records_count + summary.headers_count
            _refuse_heavy(header, limits.packed_bytes, limits.rebuilt_count, count)
            data, header = _rebuild(data, header, target, config, limits.body_bytes)
    return _stamp(data, header, config, now_ms, summary)


def _refuse_heavy(header: BatchHeader, bytes_max: int, count_max: int, count: int) -> None:
    if header.size_bytes > bytes_max or count > count_max:
        raise HeavyBatchError(
            ErrorCode.MESSAGE_TOO_LARGE,
            f"A batch of {header.size_bytes} bytes and {count} records and headers is too large.",
        )


def _walk(
    data: Buffer, header: BatchHeader, config: LogConfig, now_ms: int, limits: BatchLimits
) -> records.RecordsSummary:
    """Read every record; the ApiError lists the records that are rejected."""
    bounds = None
    if not config.has_log_append_time:
        bounds = (
            now_ms - config.message_timestamp_before_max_ms,
            now_ms + config.message_timestamp_after_max_ms,
        )
        if header.attributes & LOG_APPEND_TIME_BIT:
            _judge_append_time(header.max_timestamp, bounds)
            bounds = None
    require_keys = config.is_compacted and not header.attributes & CONTROL_BIT
    try:
        return records.validate_records(
            data,
            0,
            header,
            require_keys=require_keys,
            timestamp_bounds=bounds,
            max_bytes=limits.body_bytes,
            max_headers=limits.opened_count - header.records_count,
        )
    except ApiError as error:
        if error.code is not ErrorCode.CORRUPT_MESSAGE:
            raise
        # The checksum is right: clients would resend the batch forever if the error were
        # CORRUPT_MESSAGE.
        raise _invalid(error.message) from error


def _judge_append_time(timestamp: int, bounds: tuple[int, int]) -> None:
    """Check a batch whose attributes set the timestamp type to LogAppendTime, which is the broker's
    task.

    Kafka accepts it if a producer may use that timestamp, and ignores the timestamp type.
    """
    if timestamp == NO_TIMESTAMP or not bounds[0] <= timestamp <= bounds[1]:
        raise ApiError(
            ErrorCode.INVALID_TIMESTAMP,
            f"The batch says that the broker set its timestamps, to {timestamp}; "
            "this topic takes the producer's.",
        )


def _rebuild(
    data: Buffer, header: BatchHeader, codec: int, config: LogConfig, body_bytes: int
) -> tuple[bytearray, BatchHeader]:
    """Rewrite the batch in the topic's codec, with offsets that have no gaps."""
    rebuilt = records.encode_batch(
        records.decode_batch(data, header=header, max_bytes=body_bytes),
        compression=codec,
        compression_level=config.codec_level,
        producer_id=header.producer_id,
        producer_epoch=header.producer_epoch,
        base_sequence=header.base_sequence,
        transactional=header.is_transactional,
        control=header.is_control,
    )
    if len(rebuilt) > config.max_message_bytes:
        raise _too_large(len(rebuilt), config)
    return rebuilt, batch.parse_header(rebuilt)


def _stamp(
    data: bytearray | memoryview,
    header: BatchHeader,
    config: LogConfig,
    now_ms: int,
    summary: records.RecordsSummary | None,
) -> Checked:
    """Set the largest timestamp in the header, if it is not correct yet."""
    if config.has_log_append_time:
        newest, append_time = now_ms, now_ms
    else:
        assert summary is not None
        newest, append_time = summary.max_timestamp, NO_TIMESTAMP
        if header.attributes & LOG_APPEND_TIME_BIT:
            newest = header.max_timestamp
        elif newest == header.max_timestamp:
            return data, header, append_time
    batch.patch_max_timestamp(
        data, 0, max_timestamp=newest, log_append_time=config.has_log_append_time
    )
    return data, batch.parse_header(data), append_time


def repeated(written: WrittenBatch, header: BatchHeader, log_start_offset: int) -> AppendInfo:
    """Return the result for a duplicate batch, with the timestamp that Kafka returns for one."""
    return AppendInfo(
        written.base_offset,
        written.last_offset,
        written.timestamp,
        log_start_offset,
        True,
        header.records_count,
        0,
        written.timestamp,
    )


def follower_batches(data: memoryview, next_offset: int) -> Iterator[tuple[int, BatchHeader]]:
    """Yield position and header of whole batches; raise ApiError unless they are valid and
    contiguous.
    """
    position = 0
    while len(data) - position >= SIZE_MIN:
        header = scan.header_at(data, position)
        if header is None:
            if len(data) - position < HEADER_SIZE:
                return
            raise ApiError(ErrorCode.CORRUPT_MESSAGE, f"There is no batch at byte {position}.")
        if header.size_bytes > len(data) - position:
            return
        if not scan.is_crc_valid(data, position, header):
            raise _bad_checksum()
        if header.base_offset < next_offset:
            raise ApiError(
                ErrorCode.OFFSET_OUT_OF_RANGE,
                f"A batch begins at offset {header.base_offset}; the log ends at {next_offset}.",
            )
        yield position, header
        next_offset = header.last_offset + 1
        position += header.size_bytes


def _bad_checksum() -> ApiError:
    return ApiError(ErrorCode.CORRUPT_MESSAGE, "The batch fails its checksum.")


def _invalid(reason: str) -> ApiError:
    return ApiError(ErrorCode.INVALID_RECORD, reason)


def _unread(reason: str) -> ApiError:
    return UnreadableBatchError(ErrorCode.INVALID_RECORD, reason)


def _too_large(size: int, config: LogConfig) -> ApiError:
    return ApiError(
        ErrorCode.MESSAGE_TOO_LARGE,
        f"The batch has {size} bytes; max.message.bytes allows {config.max_message_bytes}.",
    )
