"""The header of a batch, as the broker reads it without decoding records."""

import struct

import pytest

from ottla.wire.records import batch
from ottla.wire.records.records import Record, encode_batch


@pytest.mark.parametrize("size", [-(2**31), -100, -13, -12, -1, 0, 13])
def test_end_offset_stops_at_a_length_that_no_batch_can_have(size: int) -> None:
    """A damaged length ends the search instead of repeating it for ever."""
    data = encode_batch([Record(b"k", b"a"), Record(b"k", b"b")])
    damaged = bytearray(data)
    struct.pack_into(">i", damaged, 8, size)
    assert batch.end_offset(bytes(damaged) + bytes(data)) == 2


def test_end_offset_is_that_of_the_last_batch() -> None:
    """The last batch may be incomplete, if its header is there."""
    first, second = (encode_batch([Record(b"k", b"v")] * 3, base_offset=at) for at in (4, 7))
    assert batch.end_offset(b"") == 0
    assert batch.end_offset(bytes(first + second)) == 10
    assert batch.end_offset(bytes(first + second[:40])) == 10
    assert batch.end_offset(bytes(first + second[:20])) == 7
