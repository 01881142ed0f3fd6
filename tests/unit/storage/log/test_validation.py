"""The validation of a produced batch: the order of checks, their error codes, and patched fields."""

import random
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from ottla.base.errors import ApiError, ErrorCode
from ottla.storage.config import LogConfig
from ottla.storage.log import validation
from ottla.wire.records import batch
from ottla.wire.records.compression import CODECS
from ottla.wire.records.records import (
    InvalidRecordsError,
    Record,
    decode_batch,
    encode_batch,
)
from tests.unit.storage.world import START_MS, make_batch

HOUR_MS = 3_600_000


def check(data: Any, *, from_client: bool = True, **fields: Any) -> validation.Checked:
    """Validate a batch at START_MS."""
    return validation.check(data, LogConfig(**fields), START_MS, from_client=from_client)


def refusal(data: Any, **fields: Any) -> ErrorCode:
    """Return the error code of a batch that is rejected."""
    with pytest.raises(ApiError) as error:
        check(data, **fields)
    return error.value.code


def altered(change: Callable[[bytearray], None], count: int = 1, **fields: Any) -> bytearray:
    """Return a batch that was changed and has a new checksum."""
    data = make_batch(count, **fields)
    change(data)
    batch.seal(data, 0, len(data))
    return data


def put(position: int, value: int, size: int) -> Callable[[bytearray], None]:
    """Return a function that writes a number into a batch."""

    def change(data: bytearray) -> None:
        data[position : position + size] = value.to_bytes(size, "big", signed=True)

    return change


def test_valid_batch_is_unchanged() -> None:
    """A valid batch keeps its bytes and header, and the broker's time is not used."""
    data = make_batch(3)
    before = bytes(data)
    checked, header, append_time_ms = check(data)
    assert checked is data
    assert bytes(data) == before
    assert header == batch.parse_header(data)
    assert append_time_ms == -1


def test_read_only_bytes_are_copied_before_they_are_patched() -> None:
    """If the caller passes `bytes`, it gets a writable buffer."""
    for data in (bytes(make_batch()), memoryview(bytes(make_batch()))):
        checked, _, _ = check(data)
        assert isinstance(checked, bytearray)


@pytest.mark.parametrize(
    ("data", "code"),
    [
        (b"", ErrorCode.INVALID_RECORD),
        (bytes(make_batch())[:11], ErrorCode.INVALID_RECORD),
        (bytes(make_batch())[:16], ErrorCode.INVALID_RECORD),
        (bytes(make_batch())[:40], ErrorCode.INVALID_RECORD),
        (bytes(make_batch())[:-1], ErrorCode.INVALID_RECORD),
        (bytes(100), ErrorCode.CORRUPT_MESSAGE),
        (bytes(8) + b"\x7f\xff\xff\xff" + bytes(60), ErrorCode.INVALID_RECORD),
        (bytes(8) + b"\xff\xff\xff\xff" + bytes(60), ErrorCode.CORRUPT_MESSAGE),
        (bytes(make_batch()) * 2, ErrorCode.INVALID_RECORD),
        (bytes(make_batch()) + bytes(30), ErrorCode.CORRUPT_MESSAGE),
    ],
)
def test_data_that_is_not_one_complete_batch_is_rejected(data: bytes, code: ErrorCode) -> None:
    """No batch or a second one is INVALID_RECORD; impossible sizes are CORRUPT_MESSAGE."""
    assert refusal(data) == code


@pytest.mark.parametrize("tail", [b"\0", bytes(make_batch())[:-1], b"x" * 16])
def test_partial_batch_after_the_first_is_trimmed(tail: bytes) -> None:
    """A partial batch after the first is trimmed, as in Kafka."""
    data = make_batch()
    checked, _, _ = check(data + tail)
    assert bytes(checked) == bytes(data)


@pytest.mark.parametrize(
    ("magic", "code"),
    [
        (0, ErrorCode.INVALID_RECORD),
        (1, ErrorCode.INVALID_RECORD),
        (3, ErrorCode.CORRUPT_MESSAGE),
        (-1, ErrorCode.CORRUPT_MESSAGE),
    ],
)
def test_other_record_formats_are_rejected(magic: int, code: ErrorCode) -> None:
    """Formats 0 and 1 are no longer supported; higher ones never existed."""
    assert refusal(altered(put(16, magic, 1))) == code


@pytest.mark.parametrize(
    ("change", "code"),
    [
        (put(0, 5, 8), ErrorCode.INVALID_RECORD),
        (put(23, 5, 4), ErrorCode.INVALID_RECORD),
        (put(57, 0, 4), ErrorCode.INVALID_RECORD),
        (put(57, -1, 4), ErrorCode.INVALID_RECORD),
        (put(23, -1, 4), ErrorCode.INVALID_RECORD),
        (put(21, batch.CONTROL_BIT, 2), ErrorCode.INVALID_RECORD),
        (put(43, 7, 8), ErrorCode.INVALID_RECORD),
        (put(21, 5, 2), ErrorCode.UNSUPPORTED_COMPRESSION_TYPE),
    ],
    ids=[
        "base offset",
        "last offset delta",
        "no records",
        "negative count",
        "negative delta",
        "control batch",
        "producer without a sequence number",
        "codec",
    ],
)
def test_invalid_header_is_rejected(change: Callable[[bytearray], None], code: ErrorCode) -> None:
    """Each invalid header is rejected with Kafka's error code."""
    assert refusal(altered(change)) == code


def test_a_batch_shorter_than_its_header_is_corrupt() -> None:
    """A length field smaller than the header makes the batch corrupt."""
    data = make_batch()
    put(8, 40, 4)(data)
    assert refusal(data) == ErrorCode.CORRUPT_MESSAGE


def test_flipped_bit_is_detected() -> None:
    """The checksum covers everything from the attributes to the end."""
    for position in range(21, len(make_batch())):
        data = make_batch()
        data[position] ^= 1
        assert refusal(data) == ErrorCode.CORRUPT_MESSAGE


def test_the_size_is_limited() -> None:
    """A batch of exactly max.message.bytes is allowed."""
    size = len(make_batch())
    check(make_batch(), max_message_bytes=size)
    assert refusal(make_batch(), max_message_bytes=size - 1) == ErrorCode.MESSAGE_TOO_LARGE


def test_checks_are_in_the_order_of_kafka() -> None:
    """The order is base offset, size, checksum, and then the numbers of the header."""
    data = altered(put(57, 9, 4))
    data[-1] ^= 1
    assert refusal(data) == ErrorCode.CORRUPT_MESSAGE
    assert refusal(data, max_message_bytes=10) == ErrorCode.MESSAGE_TOO_LARGE
    put(0, 1, 8)(data)
    assert refusal(data, max_message_bytes=10) == ErrorCode.INVALID_RECORD


def test_coordinators_have_fewer_checks_than_clients() -> None:
    """Coordinators may write control batches, batches without a sequence, and their own offsets."""
    for change in (put(21, batch.CONTROL_BIT, 2), put(43, 7, 8), put(0, 5, 8)):
        data = altered(change)
        _, header, _ = check(data, from_client=False)
        assert header == batch.parse_header(data)


@pytest.mark.parametrize("ahead", [0, HOUR_MS])
def test_timestamps_may_be_an_hour_ahead(ahead: int) -> None:
    """The range of message.timestamp.after.max.ms is inclusive at both ends; -1 is no timestamp."""
    for timestamp in (START_MS + ahead, -1):
        _, header, _ = check(make_batch(timestamp=timestamp))
        assert header.max_timestamp == timestamp


def test_a_timestamp_too_far_ahead_names_its_record() -> None:
    """INVALID_TIMESTAMP lists the index of each invalid record."""
    records = [Record(None, b"", timestamp=START_MS + delay_ms) for delay_ms in (0, HOUR_MS + 1, 5)]
    with pytest.raises(InvalidRecordsError) as error:
        check(encode_batch(records))
    assert error.value.code == ErrorCode.INVALID_TIMESTAMP
    assert [record_error.batch_index for record_error in error.value.record_errors] == [1]


def test_too_large_maximum_timestamp_is_corrected() -> None:
    """The largest timestamp is set to the records' largest timestamp, with a new checksum."""
    data = altered(put(35, START_MS + 10 * HOUR_MS, 8), 2)
    _, header, _ = check(data)
    assert header.max_timestamp == START_MS
    assert batch.is_crc_valid(data, 0, batch.parse_header(data))


def test_header_is_trusted_if_no_check_needs_the_records() -> None:
    """A batch with garbage as records passes by default, and fails with the strict option."""
    data = altered(put(61, 120, 1))
    check(data)
    assert refusal(data, strict_records=True) == ErrorCode.INVALID_RECORD


def test_strict_option_corrects_the_largest_timestamp() -> None:
    """The largest timestamp is corrected, as Kafka does for every batch."""
    data = altered(put(35, START_MS - 500, 8))
    _, header, _ = check(data, strict_records=True)
    assert header.max_timestamp == START_MS


@pytest.mark.parametrize("codec", [number for number in CODECS.values() if number])
def test_batch_that_does_not_decompress_is_not_retriable(codec: int) -> None:
    """The checksum is right: with CORRUPT_MESSAGE clients would retry forever."""
    data = altered(put(21, codec, 2))
    assert refusal(data, strict_records=True) is ErrorCode.INVALID_RECORD


def test_lower_bound_for_timestamps_reads_the_records() -> None:
    """The check of message.timestamp.before.max.ms reads the records, and skips those without a
    timestamp.
    """
    records = [Record(None, b"", timestamp=START_MS + delay_ms) for delay_ms in (0, -1001, -1000)]
    with pytest.raises(InvalidRecordsError) as error:
        check(encode_batch(records), message_timestamp_before_max_ms=1000)
    assert [record_error.batch_index for record_error in error.value.record_errors] == [1]
    check(make_batch(timestamp=-1), message_timestamp_before_max_ms=1000)


@pytest.mark.parametrize(
    ("timestamp", "code"),
    [
        (START_MS, None),
        (START_MS + 10**9, ErrorCode.INVALID_TIMESTAMP),
        (-1, ErrorCode.INVALID_TIMESTAMP),
    ],
)
def test_log_append_time_flag_of_a_producer_is_cleared(
    timestamp: int, code: ErrorCode | None
) -> None:
    """A maximum timestamp within the allowed range is kept as the producer's, without the flag."""
    data = encode_batch([Record(None, b"v", timestamp=START_MS - 5)])
    batch.patch_max_timestamp(data, 0, max_timestamp=timestamp, log_append_time=True)
    if code is not None:
        assert refusal(data) == code
        return
    checked, header, append_time_ms = check(data)
    assert (header.has_log_append_time, header.max_timestamp) == (False, timestamp)
    assert append_time_ms == -1
    batch.check_crc(checked, 0, header)


@pytest.mark.parametrize("codec", CODECS.values(), ids=CODECS)
def test_compacted_topic_rejects_records_without_a_key(codec: int) -> None:
    """The error is INVALID_RECORD with every codec; records with keys are accepted."""
    policy = frozenset({"compact"})
    keyed = encode_batch([Record(b"k", None, timestamp=START_MS)] * 2, compression=codec)
    check(keyed, cleanup_policy=policy)
    records = [Record(b"k", b"", timestamp=START_MS), Record(None, b"", timestamp=START_MS)]
    with pytest.raises(InvalidRecordsError) as error:
        check(encode_batch(records, compression=codec), cleanup_policy=policy)
    assert error.value.code == ErrorCode.INVALID_RECORD
    assert [record_error.batch_index for record_error in error.value.record_errors] == [1]


def test_log_append_time_stamps_the_batch() -> None:
    """The batch gets the broker's time and a new checksum; the rest is unchanged."""
    data = make_batch(3, timestamp=START_MS - 50)
    _, header, append_time_ms = check(data, message_timestamp_type="LogAppendTime")
    assert append_time_ms == START_MS
    assert header.has_log_append_time
    assert header == batch.parse_header(data)
    assert batch.is_crc_valid(data, 0, header)
    assert {record.timestamp for record in decode_batch(data)} == {START_MS}
    assert header.base_timestamp == START_MS - 50


def test_log_append_time_ignores_the_producers_timestamp() -> None:
    """The producer's timestamp is overwritten, even if it is far ahead or marked as LogAppendTime."""
    config = {"message_timestamp_type": "LogAppendTime"}
    compact = frozenset({"compact"})
    for _, header, append_time_ms in (
        check(make_batch(timestamp=START_MS + 99 * HOUR_MS), **config),
        check(altered(put(21, batch.LOG_APPEND_TIME_BIT, 2)), **config),
        check(make_batch(timestamp=-1), cleanup_policy=compact, **config),
    ):
        assert (header.max_timestamp, append_time_ms) == (START_MS, START_MS)


@pytest.mark.parametrize("target", ["uncompressed", "gzip", "snappy", "lz4", "zstd"])
@pytest.mark.parametrize("source", CODECS.values(), ids=CODECS)
def test_a_topic_with_a_codec_of_its_own_compresses_again(source: int, target: str) -> None:
    """Records, producer and sequence are kept; a batch that already has the codec is unchanged."""
    codec = CODECS["none" if target == "uncompressed" else target]
    data = make_batch([b"abc" * 50, b"def"], sequence=5, compression=source)
    checked, header, _ = check(data, compression_type=target)
    assert header.compression == codec
    assert (checked is data) == (source == codec)
    assert (header.producer_id, header.base_sequence) == (7, 5)
    assert [record.value for record in decode_batch(checked)] == [b"abc" * 50, b"def"]
    assert batch.is_crc_valid(checked, 0, header)


def test_broker_compresses_with_the_topics_level() -> None:
    """With compression.gzip.level the records are the same and the bytes differ."""
    rng = random.Random(1)
    words = [rng.randbytes(8) for _ in range(300)]
    value = b"".join(rng.choice(words) for _ in range(8000))
    sizes = []
    for level in (1, 9):
        checked, _, _ = check(make_batch([value]), compression_type="gzip", gzip_level=level)
        assert [record.value for record in decode_batch(checked)] == [value]
        sizes.append(len(checked))
    assert sizes[1] != sizes[0]


def test_a_batch_that_grew_by_compressing_again_is_measured_again() -> None:
    """The limit max.message.bytes applies to the batch as it would be stored."""
    data = make_batch([b"a" * 5000], compression=CODECS["zstd"])
    assert (
        refusal(data, compression_type="uncompressed", max_message_bytes=1000)
        == ErrorCode.MESSAGE_TOO_LARGE
    )


def test_the_leaders_batches_are_checked_one_by_one() -> None:
    """Whole batches are returned with their positions; a partial one at the end is dropped."""
    first, second = make_batch(2, base_offset=10), make_batch(1, base_offset=15)
    data = memoryview(bytes(first + second + second[:-1]))
    rows = [(at, header.base_offset) for at, header in validation.follower_batches(data, 10)]
    assert rows == [(0, 10), (len(first), 15)]


@pytest.mark.parametrize(
    ("data", "code"),
    [
        (bytes(100), ErrorCode.CORRUPT_MESSAGE),
        (bytes(make_batch(base_offset=9)), ErrorCode.OFFSET_OUT_OF_RANGE),
        (bytes(make_batch(2, base_offset=10)) * 2, ErrorCode.OFFSET_OUT_OF_RANGE),
        (bytes(make_batch(base_offset=10))[:-1] + b"!", ErrorCode.CORRUPT_MESSAGE),
    ],
)
def test_invalid_batches_of_a_leader_are_rejected(data: bytes, code: ErrorCode) -> None:
    """Garbage, wrong checksums and decreasing offsets are rejected."""
    with pytest.raises(ApiError) as error:
        list(validation.follower_batches(memoryview(data), 10))
    assert error.value.code == code


# -- what the event loop is not held up for
# ----------------------------------------------------------


@pytest.mark.parametrize("codec", CODECS.values())
def test_heavy_batch_is_deferred(codec: int) -> None:
    """Batches with many records or many bytes, compressed or not, are not decompressed on the loop."""
    many = encode_batch([Record(b"k", b"v", (), START_MS)] * 2001, compression=codec)
    large = encode_batch([Record(b"k", bytes(300_000), (), START_MS)], compression=codec)
    for data in (many, large):
        with pytest.raises(validation.HeavyBatchError):
            check(data, cleanup_policy=frozenset({"compact"}))
        # No check needs the records, or the batch comes from a coordinator of this broker.
        check(bytearray(data))
        check(data, cleanup_policy=frozenset({"compact"}), from_client=False)


def test_vetted_batch_is_accepted_for_its_configuration() -> None:
    """A vetted batch is what `check` would return; for another configuration it is validated again."""
    data = encode_batch([Record(b"k", b"v", (), START_MS)] * 1500)
    config = LogConfig(compression_type="zstd", message_timestamp_type="LogAppendTime")
    vetted = validation.vet(bytearray(data), config, START_MS + 7)
    actual, header, append_time_ms = validation.check(
        vetted, config, START_MS + 9, from_client=True
    )
    assert actual is vetted
    assert (header.compression, header.records_count) == (CODECS["zstd"], 1500)
    assert append_time_ms == header.max_timestamp == START_MS + 7
    other = LogConfig(compression_type="lz4")
    with pytest.raises(validation.HeavyBatchError):
        validation.check(vetted, other, START_MS, from_client=True)


def test_a_batch_of_many_headers_is_heavy() -> None:
    """A header costs as much as a record: on the loop, on a thread, and if batches are compressed
    again.
    """
    record = Record(b"k", b"v", (("", None),) * 1500, START_MS)
    few, many = encode_batch([record]), encode_batch([record] * 2)
    compacted, packed = {"cleanup_policy": frozenset({"compact"})}, {"compression_type": "gzip"}
    check(bytearray(few), **compacted)
    for data, options in ((many, compacted), (few, packed)):
        with pytest.raises(validation.HeavyBatchError):
            check(bytearray(data), **options)
        assert validation.vet(data, LogConfig(**options), START_MS)
        limits = validation.BatchLimits(10**6, 10**6, 3001, 1500)
        with pytest.raises(validation.HeavyBatchError):
            validation.vet(data, LogConfig(**options), START_MS, limits)


def test_a_batch_of_too_many_headers_is_too_large() -> None:
    """Otherwise a few hundred bytes would cost seconds of work and a gigabyte of memory."""
    record = Record(b"k", b"v", (("", None),) * 1_000_000, START_MS)
    data = encode_batch([record], compression=CODECS["zstd"])
    with pytest.raises(ApiError) as error:
        validation.vet(data, LogConfig(cleanup_policy=frozenset({"compact"})), START_MS)
    assert error.value.code is ErrorCode.MESSAGE_TOO_LARGE


def test_vetted_batch_is_accepted_for_an_equal_configuration() -> None:
    """A changed topic makes another object; only options that affect records are compared."""
    data = encode_batch([Record(b"k", b"v", (), START_MS)] * 3000)
    config = LogConfig(cleanup_policy=frozenset({"compact"}), compression_type="lz4")
    before = bytes(data)
    vetted = validation.vet(data, config, START_MS)
    assert bytes(data) == before
    for equal in (replace(config), replace(config, segment_ms=1, retention_bytes=5)):
        actual, _, _ = validation.check(vetted, equal, START_MS, from_client=True)
        assert actual is vetted
    for other in ({"lz4_level": 3}, {"message_timestamp_before_max_ms": 10**9}):
        with pytest.raises(validation.HeavyBatchError):
            validation.check(vetted, replace(config, **other), START_MS, from_client=True)


def test_batch_that_decompresses_to_too_many_bytes_is_too_large() -> None:
    """The limit is the option's (64 MiB by default), or 16 times max.message.bytes if that is more."""
    data = encode_batch([Record(b"k", bytes(20 * 1024**2), (), START_MS)], compression=4)
    config = LogConfig(cleanup_policy=frozenset({"compact"}), max_message_bytes=1000_000)
    assert validation.vet(bytearray(data), config, START_MS)
    with pytest.raises(ApiError) as error:
        validation.vet(bytearray(data), config, START_MS, None, 16 * 1024**2)
    assert error.value.code is ErrorCode.MESSAGE_TOO_LARGE
    assert not isinstance(error.value, validation.HeavyBatchError)
    roomy = LogConfig(cleanup_policy=frozenset({"compact"}), max_message_bytes=2 * 1024**2)
    assert validation.vet(bytearray(data), roomy, START_MS, None, 16 * 1024**2)
