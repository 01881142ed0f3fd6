"""Transaction markers: other clients can read Ottla's, and Ottla theirs."""

import struct

import pytest
from aiokafka.record.control_record import ABORT_MARKER, COMMIT_MARKER, ControlRecord

from ottla.base.errors import ApiError, ErrorCode
from ottla.wire.records import batch
from ottla.wire.records.control import (
    ControlType,
    EndTransactionMarker,
    control_type,
    encode_marker,
    parse_marker,
)
from ottla.wire.records.records import Record, decode_batch

COMMIT = EndTransactionMarker(ControlType.COMMIT, coordinator_epoch=7)
ABORT = EndTransactionMarker(ControlType.ABORT, coordinator_epoch=0)


@pytest.mark.parametrize("marker", [COMMIT, ABORT])
def test_marker_is_decoded(marker: EndTransactionMarker) -> None:
    """A control batch has one marker, with the id of the producer whose transaction ends."""
    encoded = encode_marker(
        marker, producer_id=12, producer_epoch=3, timestamp=1000, base_offset=9, leader_epoch=2
    )
    header = batch.parse_header(encoded)
    assert header.is_control
    assert header.is_transactional
    assert (header.producer_id, header.producer_epoch) == (12, 3)
    assert header.base_sequence == batch.NO_SEQUENCE
    (record,) = decode_batch(encoded)
    assert (record.offset, record.timestamp) == (9, 1000)
    assert parse_marker(record) == marker


@pytest.mark.parametrize(("marker", "foreign"), [(COMMIT, COMMIT_MARKER), (ABORT, ABORT_MARKER)])
def test_aiokafka_decodes_the_markers(marker: EndTransactionMarker, foreign: ControlRecord) -> None:
    """Another client decodes the key as the same marker."""
    (record,) = decode_batch(encode_marker(marker, producer_id=1, producer_epoch=0, timestamp=1))
    assert record.key is not None
    assert ControlRecord.parse(record.key) == foreign


def test_other_control_records_are_no_markers() -> None:
    """Types that this version does not know are ignored."""
    assert parse_marker(Record(struct.pack(">hh", 0, 2), b"")) is None
    assert control_type(struct.pack(">hh", 0, 99)) is ControlType.UNKNOWN


@pytest.mark.parametrize(
    "record",
    [
        pytest.param(Record(None, b""), id="no key"),
        pytest.param(Record(b"\0\0\0", b""), id="short key"),
        pytest.param(Record(b"\xff\xff\0\1", b""), id="negative version"),
        pytest.param(Record(b"\0\0\0\1", None), id="no value"),
        pytest.param(Record(b"\0\0\0\1", b"\0\0"), id="short value"),
    ],
)
def test_damaged_markers_are_invalid(record: Record) -> None:
    """An invalid marker is never taken for a commit or an abort."""
    with pytest.raises(ApiError) as caught:
        parse_marker(record)
    assert caught.value.code is ErrorCode.INVALID_RECORD
