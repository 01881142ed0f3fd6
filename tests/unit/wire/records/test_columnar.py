"""Columns have the same content as decoded records, and damage is an error."""

import random
import struct
from collections.abc import Sequence

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ottla.base.errors import ApiError, ErrorCode
from ottla.wire.records import batch, columnar
from ottla.wire.records.columnar import COLUMNS, AbortedTransaction, ColumnDecoder, measure
from ottla.wire.records.compression import CODECS
from ottla.wire.records.control import ControlType, EndTransactionMarker, encode_marker
from ottla.wire.records.records import Record, decode_batch, encode_batch
from tests.unit.wire.records import strategies

EVERYTHING = 1 << 62
NOW = 1_700_000_000_000
ALL = COLUMNS.names


def _table(
    log: bytes | bytearray,
    start: int = 0,
    end: int = EVERYTHING,
    aborted: Sequence[AbortedTransaction] = (),
    columns: Sequence[str] = ALL,
) -> pa.Table:
    decoder = ColumnDecoder("flights", 3, columns)
    table = pa.Table.from_batches(list(decoder.decode(log, start, end, aborted)), decoder.schema)
    table.validate(full=True)
    return table


def _rows(records: Sequence[Record], types: Sequence[int] = ()) -> list[dict[str, object]]:
    return [
        {
            "key": record.key,
            "value": record.value,
            "topic": "flights",
            "partition": 3,
            "offset": record.offset,
            "timestamp": record.timestamp * 1000,
            "timestampType": kind,
            "headers": [{"key": name, "value": value} for name, value in record.headers] or None,
        }
        for record, kind in zip(records, types or [0] * len(records), strict=True)
    ]


def _plain(table: pa.Table) -> list[dict[str, object]]:
    """Return the rows with timestamps as numbers: some are beyond the range of datetime."""
    index = table.schema.get_field_index("timestamp")
    numbers = table.column("timestamp").cast(pa.int64())
    return table.set_column(index, "timestamp", numbers).to_pylist()


@st.composite
def _logs(draw: st.DrawFn) -> tuple[bytearray, list[Record], list[int]]:
    """Return consecutive batches as a broker stores them, their records and their timestamp types."""
    log, records, types = bytearray(), [], []
    offset = 1000
    for batch_records in draw(st.lists(strategies.record_lists, min_size=1, max_size=4)):
        fields = draw(strategies.batch_fields())
        encoded = encode_batch(batch_records, **(fields | {"base_offset": offset}))
        is_appended = draw(st.booleans())
        if is_appended:
            time = draw(st.integers(0, 2**50))
            batch.patch_max_timestamp(encoded, 0, max_timestamp=time, log_append_time=True)
        records += decode_batch(encoded)
        types += [int(is_appended)] * len(batch_records)
        log += encoded
        offset += len(batch_records)
    return log, records, types


Generated = tuple[bytearray, list[Record], list[int]]


@given(_logs())
def test_columns_agree_with_decoded_records(generated: Generated) -> None:
    """Keys, values, nulls, headers, offsets and times are the same as from `decode_batch`."""
    log, records, types = generated
    assert _plain(_table(log)) == _rows(records, types)


@given(_logs(), st.integers(990, 1060), st.integers(0, 60))
def test_only_the_requested_offsets_are_returned(
    generated: Generated, start: int, count: int
) -> None:
    """The range may begin and end within a batch."""
    log, records, _ = generated
    offsets = [record.offset for record in records if start <= record.offset < start + count]
    assert _table(log, start, start + count).column("offset").to_pylist() == offsets


def test_columns_are_in_the_requested_order() -> None:
    """Only the requested columns are built."""
    log = encode_batch([Record(b"k", b"v", (), NOW)])
    table = _table(log, columns=["value", "offset"])
    assert table.to_pylist() == [{"value": b"v", "offset": 0}]


def test_log_append_time_is_in_timestamp_and_type() -> None:
    """The batch's timestamp replaces each record's timestamp, and the type is LogAppendTime."""
    log = encode_batch([Record(None, b"", (), NOW)] * 2)
    batch.patch_max_timestamp(log, 0, max_timestamp=NOW + 5, log_append_time=True)
    log += encode_batch([Record(None, b"", (), NOW)], base_offset=2)
    table = _table(log)
    assert table.column("timestampType").to_pylist() == [1, 1, 0]
    times = table.column("timestamp").cast(pa.int64()).to_pylist()
    assert times == [(NOW + 5) * 1000] * 2 + [NOW * 1000]


def test_times_beyond_microseconds_are_the_last_one() -> None:
    """The greatest timestamp of a log is no earlier time, as a product that overflows would be."""
    log = encode_batch([Record(b"k", b"v", timestamp=time_ms) for time_ms in (2**63 - 1, NOW)])
    last_us = 2**63 // 1000 * 1000 - 1000
    assert [row["timestamp"] for row in _plain(_table(log))] == [last_us, NOW * 1000]


@pytest.mark.parametrize("codec", CODECS.values(), ids=CODECS)
@pytest.mark.parametrize("size", [10, 1000, 3_000_000])
def test_long_runs_and_large_records(codec: int, size: int) -> None:
    """Runs of equal records are skipped quickly, and records may be larger than 1 MiB."""
    count = 3000 if size < 2000 else 3
    records = [Record(b"k%06d" % index, b"v" * size, (), NOW) for index in range(count)]
    records.insert(count // 2, Record(None, b"odd one out", (), NOW))
    log = encode_batch(records, compression=codec)
    table = _table(log, columns=["key", "value", "offset"])
    assert table.column("key").to_pylist() == [record.key for record in records]
    assert table.column("value").to_pylist() == [record.value for record in records]
    assert table.column("offset").to_pylist() == list(range(len(records)))


def test_compressed_data_is_split_into_batches_of_bounded_size(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A large decompressed size is split into several Arrow batches."""
    monkeypatch.setattr(columnar, "_GROUP_BYTES", 1000)
    log = bytearray()
    for offset in range(4):
        record = Record(None, b"x" * 600)
        log += encode_batch([record], base_offset=offset, compression=CODECS["zstd"])
    decoder = ColumnDecoder("t", 0, ["offset"])
    counts = [part.num_rows for part in decoder.decode(log, 0, EVERYTHING)]
    assert counts == [2, 2]


def test_a_record_with_very_many_headers_is_read() -> None:
    """Records with few headers and records with very many are in the same batch."""
    many = tuple((f"name-{index}", b"%d" % index) for index in range(500))
    few = (("a", None), ("b", b""), ("c", b"x"))
    records = [Record(None, b"", headers) for headers in (few, many, (), many, few)]
    values = _table(encode_batch(records)).column("headers").to_pylist()
    assert values == [row["headers"] for row in _rows(records)]


def test_control_batches_are_skipped() -> None:
    """Control records are no records."""
    log = encode_batch([Record(None, b"a")])
    commit = EndTransactionMarker(ControlType.COMMIT, 0)
    log += encode_marker(commit, producer_id=1, producer_epoch=0, timestamp=NOW, base_offset=1)
    log += encode_batch([Record(None, b"b")], base_offset=2)
    assert _table(log).column("offset").to_pylist() == [0, 2]
    assert measure(log[: len(log) - 1]) == (len(log) - len(encode_batch([Record(None, b"b")])), 2)


def _transactional(offset: int, producer: int) -> bytearray:
    return encode_batch(
        [Record(None, b"p%d" % producer)],
        base_offset=offset,
        producer_id=producer,
        producer_epoch=0,
        base_sequence=0,
        transactional=True,
    )


def _marker(offset: int, producer: int, kind: ControlType) -> bytearray:
    marker = EndTransactionMarker(kind, 0)
    return encode_marker(
        marker, producer_id=producer, producer_epoch=0, timestamp=NOW, base_offset=offset
    )


def test_aborted_transactions_are_skipped() -> None:
    """Transactional batches of a producer are skipped from its first offset to its abort marker."""
    log = (
        _transactional(0, 7)
        + _marker(1, 7, ControlType.COMMIT)
        + _transactional(2, 7)
        + _transactional(3, 8)
        + encode_batch([Record(None, b"plain")], base_offset=4)
        + _marker(5, 7, ControlType.ABORT)
        + _transactional(6, 7)
        + _marker(7, 8, ControlType.COMMIT)
    )
    aborted = [AbortedTransaction(7, 2)]
    assert _table(log, aborted=aborted).column("offset").to_pylist() == [0, 3, 4, 6]
    assert _table(log).column("offset").to_pylist() == [0, 2, 3, 4, 6]


def test_two_aborts_of_one_producer_are_distinguished() -> None:
    """Each entry of the list is valid until the next abort marker."""
    log = (
        _transactional(0, 7)
        + _marker(1, 7, ControlType.ABORT)
        + _transactional(2, 7)
        + _marker(3, 7, ControlType.COMMIT)
        + _transactional(4, 7)
        + _marker(5, 7, ControlType.ABORT)
    )
    aborted = [AbortedTransaction(7, 4), AbortedTransaction(7, 0)]
    assert _table(log, aborted=aborted).column("offset").to_pylist() == [2]


def test_the_extent_of_whole_batches_is_known_before_decoding() -> None:
    """The next request can be sent before the response is decoded; a partial batch does not count."""
    log = encode_batch([Record(None, b"a")] * 3, base_offset=10)
    assert measure(log) == (len(log), 13)
    assert measure(log + log[:70]) == (len(log), 13)
    assert measure(log[:-1]) is None
    assert measure(b"") is None
    with pytest.raises(ApiError):
        measure(bytes(100))


def test_empty_input_has_no_batch() -> None:
    """An empty response or range has no Arrow batch."""
    log = encode_batch([Record(None, b"a")])
    decoder = ColumnDecoder("t", 0, ["key"])
    assert list(decoder.decode(b"", 0, 5)) == []
    assert list(decoder.decode(log, 1, 5)) == []
    assert list(decoder.decode(log, 0, 0)) == []


def test_a_wrong_checksum_is_corruption() -> None:
    """The checksum is verified unless the caller disables it."""
    log = encode_batch([Record(None, b"abc")])
    log[-2] ^= 1
    with pytest.raises(ApiError) as caught:
        _table(log)
    assert caught.value.code is ErrorCode.CORRUPT_MESSAGE
    unchecked = ColumnDecoder("t", 0, ["offset"], checks_crc=False)
    assert sum(part.num_rows for part in unchecked.decode(log, 0, EVERYTHING)) == 1


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
    """The damage raises the same error as in `decode_batch`."""
    encoded = encode_batch([Record(None, b"")])[: batch.HEADER_SIZE] + body
    struct.pack_into(">i", encoded, 8, len(encoded) - batch.LOG_OVERHEAD)
    struct.pack_into(">i", encoded, 57, count)
    batch.seal(encoded, 0, len(encoded))
    with pytest.raises(ApiError) as caught:
        _table(encoded)
    assert caught.value.code is ErrorCode.INVALID_RECORD


def test_header_names_that_are_not_utf8_are_read() -> None:
    """Such names are decoded as by `decode_batch`, beside valid ones."""
    headers = (("name", b"1"), ("sound", None))
    encoded = encode_batch([Record(None, b"", headers)]).replace(b"name", b"\xff\x80ne")
    batch.seal(encoded, 0, len(encoded))
    (result,) = _table(encoded).column("headers").to_pylist()
    names = [header["key"] for header in result]
    assert names == ["\ufffd\ufffdne", "sound"]
    assert names == [name for name, _ in decode_batch(encoded)[0].headers]


@settings(max_examples=20)
@given(seed=st.integers(0, 2**32))
def test_hostile_bytes_raise_nothing_else(seed: int) -> None:
    """Damaged lengths never lead outside of the bytes: the result is an ApiError or a valid table."""
    chance = random.Random(seed)
    headers = (("name", b"value"), ("n", None))
    records = [Record(b"k%d" % i, b"v" * (i % 90), headers[: i % 3]) for i in range(300)]
    log = encode_batch(records)
    decoder = ColumnDecoder("t", 0, ALL, checks_crc=False)
    for _ in range(50):
        damaged = log.copy()
        for _ in range(chance.randint(1, 3)):
            damaged[chance.randrange(61, len(damaged))] = chance.choice((0, 1, 127, 128, 254, 255))
        try:
            for part in decoder.decode(damaged, 0, EVERYTHING):
                part.validate(full=True)
        except ApiError as error:
            assert error.code is ErrorCode.INVALID_RECORD
