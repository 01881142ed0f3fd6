"""Records as spans of bytes: their positions, and the result of removing some."""

import pytest

from ottla.base.errors import ApiError
from ottla.wire.records import batch, spans
from ottla.wire.records.records import Record, decode_batch, encode_batch

RECORDS = [
    Record(b"a", b"1", timestamp=1000),
    Record(None, b"x" * 300, [("h", b"v"), ("n", None)], timestamp=999),
    Record(b"", None, timestamp=10**12),
    Record(b"k" * 200, b"", timestamp=1000),
]


def body_of(data: bytearray) -> bytes:
    """Return the records of an uncompressed batch."""
    return bytes(data[batch.HEADER_SIZE :])


def test_span_has_position_and_content_of_a_record() -> None:
    """A span has key, value and both deltas of the record."""
    body = body_of(encode_batch(RECORDS))
    spans_of_body = list(spans.spans(body, len(RECORDS)))
    assert [read_spans.offset_delta for read_spans in spans_of_body] == [0, 1, 2, 3]
    assert [read_spans.timestamp_delta for read_spans in spans_of_body] == [0, -1, 10**12 - 1000, 0]
    assert [read_spans.has_value for read_spans in spans_of_body] == [True, True, False, True]
    keys = [None if e.key_start < 0 else body[e.key_start : e.key_end] for e in spans_of_body]
    assert keys == [record.key for record in RECORDS]
    assert [read_spans.start for read_spans in spans_of_body[1:]] == [
        read_spans.end for read_spans in spans_of_body[:-1]
    ]
    assert spans_of_body[-1].end == len(body)


@pytest.mark.parametrize("kept", [[0], [3], [0, 1], [1, 3], [0, 2, 3], [0, 1, 2, 3]])
@pytest.mark.parametrize("shift_ms", [None, 0, 5, 10**15, -(10**15)])
def test_kept_records_are_unchanged(kept: list[int], shift_ms: int | None) -> None:
    """The records stay the same even if the base timestamp of their batch changes."""
    data = encode_batch(RECORDS)
    header, body = batch.parse_header(data), body_of(data)
    spans_of_body = list(spans.spans(body, len(RECORDS)))
    chosen = [spans_of_body[index] for index in kept]
    if shift_ms is None:
        payload = spans.join(body, chosen)
    else:
        payload = spans.join_rebased(body, chosen, shift_ms)
    changed = header._replace(
        records_count=len(kept),
        batch_length=header.batch_length - len(body) + len(payload),
        base_timestamp=header.base_timestamp + (shift_ms or 0),
    )
    result = batch.HEADER.pack(*changed) + payload
    expected = [RECORDS[index]._replace(offset=index) for index in kept]
    decoded = [record._replace(headers=list(record.headers)) for record in decode_batch(result)]
    assert decoded == [record._replace(headers=list(record.headers)) for record in expected]


@pytest.mark.parametrize("value", [0, -1, 1, 63, -64, 64, 2**31, 2**63 - 1, -(2**63)])
def test_numbers_are_zigzag_of_64_bits(value: int) -> None:
    """The range is a timestamp delta's."""
    body = b"\x0e\x00" + spans.varint(value) + b"\x00\x01\x01\x00"
    body = bytes([2 * (len(body) - 1)]) + body[1:]
    (span,) = spans.spans(body, 1)
    assert span.timestamp_delta == value


def test_damage_is_detected() -> None:
    """A body with missing or extra records is rejected, cut at any byte and for any count."""
    body = body_of(encode_batch(RECORDS))
    for end in range(len(body)):
        with pytest.raises(ApiError):
            list(spans.spans(body[:end], len(RECORDS)))
    for count in (0, 3, 5):
        with pytest.raises(ApiError):
            list(spans.spans(body, count))
    with pytest.raises(ApiError):
        list(spans.spans(b"\xff" * 20, 1))
