"""Encoded columns decode to the same records, and keys are partitioned as by every client."""

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ottla.wire.records import batch, columnar_encoding
from ottla.wire.records.columnar_arrays import HEADERS_TYPE
from ottla.wire.records.columnar_encoding import Rows, Sender, encode_rows
from ottla.wire.records.records import Record, decode_batch
from tests.unit.wire.records import strategies

NOW = 1_700_000_000_000


def _columns(records: list[Record]) -> Rows:
    headers = [
        [{"key": name, "value": value} for name, value in record.headers] or None
        for record in records
    ]
    return Rows(
        pa.array([record.value for record in records], pa.binary()),
        pa.array([record.key for record in records], pa.binary()),
        pa.array(headers, HEADERS_TYPE),
        np.array([record.timestamp for record in records], np.int64),
    )


def _decode(batches: list[columnar_encoding.EncodedBatch]) -> list[Record]:
    records: list[Record] = []
    for encoded in batches:
        whole = encoded.header + bytes(encoded.payload)
        assert len(whole) == encoded.size_bytes
        header = batch.parse_header(whole)
        assert batch.is_crc_valid(whole, 0, header)
        assert header.size_bytes == len(whole)
        decoded = decode_batch(whole)
        assert [record.offset for record in decoded] == list(range(encoded.records_count))
        assert header.max_timestamp == max(record.timestamp for record in decoded)
        records += [record._replace(offset=0) for record in decoded]
    return records


@given(
    records=strategies.record_lists,
    codec=strategies.codecs,
    batch_bytes=st.sampled_from([1, 300, 1 << 20]),
)
def test_encoded_columns_are_decoded(records: list[Record], codec: int, batch_bytes: int) -> None:
    """Keys, values, nulls, headers and timestamps survive, however the rows are split."""
    batches = list(encode_rows(_columns(records), batch_bytes=batch_bytes, compression=codec))
    assert _decode(batches) == records


@given(records=strategies.record_lists, start=st.integers(0, 29), group=st.integers(1, 2000))
def test_slices_and_groups_change_nothing(records: list[Record], start: int, group: int) -> None:
    """Arrow slices with an offset, and groups of any size, produce the same records."""
    start = min(start, len(records) - 1)
    rows = _columns(records).slice(start, len(records))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(columnar_encoding, "_GROUP_BYTES", group)
        assert _decode(list(encode_rows(rows, batch_bytes=400))) == records[start:]


def test_columns_that_are_not_there_are_null() -> None:
    """Without columns for keys and headers every record has neither."""
    rows = Rows(pa.array([b"a", None], pa.binary()), None, None, np.array([NOW, NOW - 1]))
    expected = [Record(None, b"a", (), NOW), Record(None, None, (), NOW - 1)]
    assert _decode(list(encode_rows(rows, batch_bytes=1000))) == expected


def test_batches_respect_their_size_and_large_rows_are_alone() -> None:
    """A batch exceeds the limit only if a single row does."""
    sizes = [10, 500, 20, 2000, 10, 10, 100_000, 10]
    rows = Rows(
        pa.array([b"x" * size for size in sizes], pa.binary()),
        None,
        None,
        np.full(len(sizes), NOW),
    )
    batches = list(encode_rows(rows, batch_bytes=1000))
    assert [encoded.records_count for encoded in batches] == [3, 1, 2, 1, 1]
    assert all(item.size_bytes < 1100 for item in batches if item.records_count > 1)


def test_sequences_continue_across_batches_and_wrap() -> None:
    """The sequence of an idempotent producer counts records, and 0 follows 2**31 - 1."""
    rows = Rows(pa.array([b"x" * 100] * 6, pa.binary()), None, None, np.full(6, NOW))
    sender = Sender(5, 1, 2**31 - 3)
    batches = list(encode_rows(rows, batch_bytes=250, sender=sender))
    headers = [batch.parse_header(encoded.header) for encoded in batches]
    assert [header.base_sequence for header in headers] == [2**31 - 3, 2**31 - 1, 1]
    assert {(header.producer_id, header.producer_epoch) for header in headers} == {(5, 1)}
    assert sender.after(6).next_sequence == 3
    assert Sender().after(6) == Sender()


def test_header_without_a_name_is_rejected() -> None:
    """Kafka has no headers without a name."""
    headers = pa.array([[{"key": None, "value": b""}]], HEADERS_TYPE)
    rows = Rows(pa.array([b""], pa.binary()), None, headers, np.array([NOW]))
    with pytest.raises(ValueError, match="no name"):
        list(encode_rows(rows, batch_bytes=1000))
