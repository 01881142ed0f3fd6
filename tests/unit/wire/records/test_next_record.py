"""The record that a consumer at an offset reads next."""

import pytest

from ottla.base.errors import ApiError
from ottla.wire.records.control import ControlType, EndTransactionMarker, encode_marker
from ottla.wire.records.records import Record, encode_batch, next_record


def _batch(base_offset: int, *timestamps: int, compression: int = 0) -> bytearray:
    rows = [Record(b"k", b"v" * 50, timestamp=timestamp) for timestamp in timestamps]
    return encode_batch(rows, base_offset=base_offset, compression=compression)


@pytest.mark.parametrize("compression", [0, 4])
def test_next_record_is_found_in_any_batch(compression: int) -> None:
    """The second value is the offset behind the batches that were read."""
    data = _batch(5, 1000, 2000, compression=compression) + _batch(9, 3000)
    assert next_record(data, 6) == ((6, 2000), 7)
    assert next_record(data, 7) == ((9, 3000), 10)
    assert next_record(data, 10) == (None, 10)
    assert next_record(data[:-1], 7) == (None, 7)


def test_markers_are_no_records() -> None:
    """A consumer does not return the end of a transaction."""
    end = EndTransactionMarker(ControlType.COMMIT, 0)
    marker = encode_marker(end, producer_id=7, producer_epoch=0, timestamp=1500, base_offset=5)
    assert next_record(marker + _batch(6, 2000), 5) == ((6, 2000), 7)
    assert next_record(marker, 5) == (None, 6)


def test_damaged_batch_is_an_error() -> None:
    """A batch that cannot be decompressed has no next record."""
    damaged = _batch(0, 1000, 2000, compression=4)
    damaged[-20:] = b"x" * 20
    with pytest.raises(ApiError):
        next_record(damaged, 1)
