"""Records: encoding and decoding, other clients, and damage."""

import random
import struct
from collections.abc import Callable, Sequence

import pytest
from aiokafka.record.default_records import (
    DefaultRecordBatch as AiokafkaBatch,
)
from aiokafka.record.default_records import (
    DefaultRecordBatchBuilder as AiokafkaBuilder,
)
from hypothesis import given
from kafka.record.default_records import DefaultRecordBatch as KafkaPythonBatch
from kafka.record.default_records import DefaultRecordBatchBuilder as KafkaPythonBuilder

from ottla.base.errors import ApiError, ErrorCode
from ottla.wire.records import batch
from ottla.wire.records.compression import CODECS
from ottla.wire.records.records import (
    BatchFields,
    InvalidRecordsError,
    Record,
    decode_batch,
    encode_batch,
    iterate_batches,
    iterate_records,
    validate_records,
)
from tests.unit.wire.records import strategies

NOW = 1_700_000_000_000
SOME = [
    Record(b"key", b"value", (("trace", b"1"), ("empty", None)), NOW),
    Record(None, b"", (), NOW - 7),
    Record(b"", None, (), NOW + 300_000),
    Record(b"k" * 200, b"v" * 70_000, (), NOW + 1),
]
each_codec = pytest.mark.parametrize("codec", CODECS.values(), ids=CODECS)


def _numbered(records: Sequence[Record], base_offset: int = 0) -> list[Record]:
    return [record._replace(offset=base_offset + index) for index, record in enumerate(records)]


@given(records=strategies.record_lists, fields=strategies.batch_fields())
def test_decoding_returns_the_encoded_records(records: list[Record], fields: BatchFields) -> None:
    """Keys, values, nulls, headers and timestamps survive; offsets count from the base offset."""
    encoded = encode_batch(records, **fields)
    assert decode_batch(encoded) == _numbered(records, fields["base_offset"])
    header = batch.parse_header(encoded)
    assert header.size_bytes == len(encoded)
    assert batch.is_crc_valid(encoded, 0, header)
    assert header.max_timestamp == max(record.timestamp for record in records)
    assert header.producer_id == fields["producer_id"]
    assert header.base_sequence == fields["base_sequence"]
    assert header.is_transactional == fields["transactional"]
    assert not header.is_control


@given(records=strategies.record_lists, fields=strategies.batch_fields())
def test_validation_agrees_with_decoding(records: list[Record], fields: BatchFields) -> None:
    """Validation returns the smallest and largest timestamp without building a record."""
    encoded = encode_batch(records, **fields)
    summary = validate_records(encoded, 0, batch.parse_header(encoded))
    times = [record.timestamp for record in records]
    assert summary.max_timestamp == max(times)
    assert summary.min_timestamp == min([time for time in times if time != -1], default=-1)
    first_newest = fields["base_offset"] + times.index(max(times))
    if max(times) != -1:
        assert summary.offset_of_max_timestamp == first_newest
    assert summary.records_count == len(records)
    assert summary.has_consecutive_offsets


def test_records_without_a_timestamp_get_the_default() -> None:
    """The argument `timestamp` is used for records without one."""
    encoded = encode_batch([Record(None, b"a"), Record(None, b"b", (), 5)], timestamp=NOW)
    assert [record.timestamp for record in decode_batch(encoded)] == [NOW, 5]


def test_log_append_time_replaces_every_timestamp() -> None:
    """Readers use the header's maximum timestamp for all records (KIP-32)."""
    encoded = encode_batch(SOME)
    batch.patch_max_timestamp(encoded, 0, max_timestamp=NOW + 9, log_append_time=True)
    assert {record.timestamp for record in decode_batch(encoded)} == {NOW + 9}


def test_a_batch_is_read_from_the_middle_of_a_buffer() -> None:
    """A position and a parsed header are enough."""
    buffer = memoryview(b"before" + encode_batch(SOME) + b"after")
    header = batch.parse_header(buffer, 6)
    assert decode_batch(buffer, 6, header=header) == _numbered(SOME)


# The client kafka-python needs a further package for snappy.
@pytest.mark.parametrize("codec", set(CODECS.values()) - {CODECS["snappy"]})
def test_kafka_python_is_compatible(codec: int) -> None:
    """The client kafka-python decodes Ottla's batches, and Ottla decodes its batches."""
    ours = encode_batch(SOME, base_offset=40, compression=codec)
    theirs = KafkaPythonBatch(bytes(ours))
    assert theirs.validate_crc()
    assert [_foreign(record) for record in theirs] == _numbered(SOME, 40)
    builder = KafkaPythonBuilder(2, codec, False, -1, -1, -1, 1 << 20)
    for index, record in enumerate(SOME):
        builder.append(index, record.timestamp, record.key, record.value, list(record.headers))
    assert decode_batch(builder.build()) == _numbered(SOME)


@each_codec
def test_aiokafka_is_compatible(codec: int) -> None:
    """The client aiokafka decodes Ottla's batches, and Ottla decodes its batches."""
    ours = encode_batch(SOME, base_offset=40, compression=codec)
    theirs = AiokafkaBatch(ours)
    assert theirs.validate_crc()
    assert [_foreign(record) for record in theirs] == _numbered(SOME, 40)
    builder = AiokafkaBuilder(2, codec, False, -1, -1, -1, 1 << 20)
    for index, record in enumerate(SOME):
        builder.append(index, record.timestamp, record.key, record.value, list(record.headers))
    assert decode_batch(builder.build()) == _numbered(SOME)


def _foreign(record: object) -> Record:
    names = ("key", "value", "headers", "timestamp", "offset")
    key, value, headers, timestamp, offset = (getattr(record, name) for name in names)
    return Record(key, value, tuple(headers), timestamp, offset)


def test_consecutive_batches_are_one_sequence() -> None:
    """The iteration crosses batches, skips control batches, and ends at a partial tail."""
    first = encode_batch(SOME[:2], base_offset=5)
    control = encode_batch([Record(b"\0\0\0\1", b"")], base_offset=7, control=True)
    second = encode_batch(SOME[2:3], base_offset=8, compression=CODECS["zstd"])
    log = first + control + second + encode_batch(SOME)[:-1]
    assert [record.offset for record in iterate_records(log)] == [5, 6, 8]
    assert [position for position, _ in iterate_batches(log)] == [
        0,
        len(first),
        len(first) + len(control),
    ]


def test_a_damaged_batch_ends_the_iteration_with_an_error() -> None:
    """A wrong checksum is damage, not the end."""
    log = encode_batch(SOME)
    log[80] ^= 1
    with pytest.raises(ApiError) as caught:
        list(iterate_records(log))
    assert caught.value.code is ErrorCode.CORRUPT_MESSAGE


def test_invalid_batches_are_corrupt() -> None:
    """A length smaller than a header, or another magic, is no batch."""
    for log in (bytes(100), encode_batch(SOME)[:16] + b"\x01" + encode_batch(SOME)[17:]):
        with pytest.raises(ApiError) as caught:
            list(iterate_records(log))
        assert caught.value.code is ErrorCode.CORRUPT_MESSAGE


@pytest.mark.parametrize("size", [0, 11, 60, 61, 100])
def test_truncated_batch_is_corrupt(size: int) -> None:
    """An incomplete batch cannot be decoded."""
    with pytest.raises(ApiError) as caught:
        decode_batch(encode_batch(SOME)[:size])
    assert caught.value.code is ErrorCode.CORRUPT_MESSAGE


def test_batch_that_decompresses_to_too_many_bytes_is_rejected() -> None:
    """The limit for decompressed bytes also applies to records."""
    encoded = encode_batch([Record(None, bytes(100_000))], compression=CODECS["lz4"])
    with pytest.raises(ApiError) as caught:
        decode_batch(encoded, max_bytes=1000)
    assert caught.value.code is ErrorCode.MESSAGE_TOO_LARGE


def _body(body: bytes, count: int) -> bytearray:
    """Return a batch with a valid checksum around hand-written record bytes."""
    encoded = encode_batch([Record(None, b"")])[: batch.HEADER_SIZE] + body
    struct.pack_into(">i", encoded, 8, len(encoded) - batch.LOG_OVERHEAD)
    struct.pack_into(">i", encoded, 57, count)
    batch.seal(encoded, 0, len(encoded))
    return encoded


@pytest.mark.parametrize(
    ("body", "count"),
    [
        pytest.param(b"\x0c\0\0\0\1\1\0", 2, id="fewer records than counted"),
        pytest.param(b"\x0c\0\0\0\1\1\0" * 2, 1, id="more records than counted"),
        pytest.param(b"\x0c\0\0\0\1\1\0", -1, id="negative count"),
        pytest.param(b"\x0c\0\0\0\1\1\0", 2**31 - 1, id="count beyond the bytes"),
        pytest.param(b"\x0a\0\0\0\1\1\0", 1, id="length below that of the fields"),
        pytest.param(b"\x0e\0\0\0\1\1\0\0", 1, id="length above that of the fields"),
        pytest.param(b"\x0b\0\0\0\1\1\0", 1, id="negative length"),
        pytest.param(b"\x0c\0\0\0\x50\1\0", 1, id="key beyond the end"),
        pytest.param(b"\x0c\0\0\0\1\x50\0", 1, id="value beyond the end"),
        pytest.param(b"\x0c\0\0\0\1\1\1", 1, id="negative number of headers"),
        pytest.param(b"\x0c\0\0\0\1\1\x7e", 1, id="headers beyond the end"),
        pytest.param(b"\x10\0\0\0\1\1\2\1\1", 1, id="header without a name"),
        pytest.param(b"\xff" * 12 + b"\0", 1, id="endless varint"),
    ],
)
def test_records_that_do_not_fit_their_batch_are_invalid(body: bytes, count: int) -> None:
    """Every disagreement between counts, lengths and bytes is INVALID_RECORD."""
    encoded = _body(body, count)
    with pytest.raises(ApiError) as caught:
        decode_batch(encoded)
    assert caught.value.code is ErrorCode.INVALID_RECORD
    with pytest.raises(ApiError):
        validate_records(encoded, 0, batch.parse_header(encoded))


def test_header_names_can_be_any_bytes() -> None:
    """They are not checked, as in Kafka, and decoded with U+FFFD for invalid UTF-8."""
    encoded = _body(b"\x12\0\0\0\1\1\2\2\xff\1", 1)
    assert validate_records(encoded, 0, batch.parse_header(encoded)).headers_count == 1
    (record,) = decode_batch(encoded)
    assert record.headers == (("\ufffd", None),)


def test_headers_are_counted_and_limited() -> None:
    """The limits are per record and in total, because headers are the main cost of a validation."""
    encoded = encode_batch([Record(b"k", b"v", (("a", b"1"), ("b", None)), 1)] * 3)
    header = batch.parse_header(encoded)
    assert validate_records(encoded, 0, header, max_headers=6).headers_count == 6
    for max_headers in (5, 1):
        with pytest.raises(ApiError) as caught:
            validate_records(encoded, 0, header, max_headers=max_headers)
        assert caught.value.code is ErrorCode.MESSAGE_TOO_LARGE
        with pytest.raises(ApiError) as caught:
            decode_batch(encoded, max_headers=max_headers)
        assert caught.value.code is ErrorCode.MESSAGE_TOO_LARGE


@pytest.mark.parametrize("seed", range(3))
def test_header_validation_agrees_with_decoding(seed: int) -> None:
    """A validation that skips headers rejects the same damaged bytes as decoding them."""
    chance = random.Random(seed)
    headers = [("name", b"value"), ("n" * 100, None), ("", b"v" * 200)]
    encoded = encode_batch([Record(b"k", b"v", headers[: 1 + number % 3]) for number in range(6)])
    for _ in range(2000):
        damaged = encoded.copy()
        damaged[chance.randrange(61, len(damaged))] = chance.randrange(256)
        assert _refuses(decode_batch, damaged) == _refuses(_validate, damaged)


def _validate(damaged: bytearray) -> None:
    validate_records(damaged, 0, batch.parse_header(damaged))


def _refuses(read: Callable[[bytearray], object], damaged: bytearray) -> bool:
    try:
        read(damaged)
    except ApiError:
        return True
    return False


def test_no_flipped_byte_raises_anything_else() -> None:
    """Damaged record bytes raise ApiError or decode to something."""
    chance = random.Random(4)
    encoded = encode_batch(SOME[:3])
    for _ in range(5000):
        damaged = encoded.copy()
        for _ in range(chance.randint(1, 3)):
            damaged[chance.randrange(61, len(damaged))] = chance.randrange(256)
        try:
            decode_batch(damaged)
            validate_records(damaged, 0, batch.parse_header(damaged))
        except ApiError as error:
            assert error.code in (ErrorCode.INVALID_RECORD, ErrorCode.CORRUPT_MESSAGE)


def test_records_without_a_key_are_listed_for_compacted_topics() -> None:
    """All records without a key are listed, by their index in the batch."""
    encoded = encode_batch(SOME)
    header = batch.parse_header(encoded)
    assert validate_records(encoded, 0, header).records_count == 4
    with pytest.raises(InvalidRecordsError) as caught:
        validate_records(encoded, 0, header, require_keys=True)
    assert caught.value.code is ErrorCode.INVALID_RECORD
    assert [error.batch_index for error in caught.value.record_errors] == [1]


def test_timestamps_out_of_bounds_are_listed() -> None:
    """The bounds are inclusive; records without a timestamp are not checked."""
    records = [Record(None, b"", (), time) for time in (100, 99, 200, 201, -1)]
    encoded = encode_batch(records)
    with pytest.raises(InvalidRecordsError) as caught:
        validate_records(encoded, 0, batch.parse_header(encoded), timestamp_bounds=(100, 200))
    assert caught.value.code is ErrorCode.INVALID_TIMESTAMP
    assert [error.batch_index for error in caught.value.record_errors] == [1, 3]


def test_gaps_between_offsets_are_reported() -> None:
    """Offset deltas other than 0, 1, 2… are legal, and change the work of a broker."""
    encoded = _body(b"\x0c\0\0\0\1\1\0" + b"\x0c\0\0\4\1\1\0", 2)
    summary = validate_records(encoded, 0, batch.parse_header(encoded))
    assert not summary.has_consecutive_offsets
    assert [record.offset for record in decode_batch(encoded)] == [0, 2]
