"""The time of the first record that a group has not consumed."""

import pytest

from ottla.server.lag.times import timestamp_at
from ottla.wire.records.batch import patch_max_timestamp
from ottla.wire.records.records import Record, encode_batch


def records(*timestamps: int) -> list[Record]:
    return [Record(b"key", b"value" * 50, timestamp=timestamp) for timestamp in timestamps]


@pytest.mark.parametrize("codec", [0, 1, 2, 3, 4])
def test_the_time_is_that_of_the_record_at_the_offset(codec: int) -> None:
    """A batch is decompressed if the offset is inside of it."""
    batch = encode_batch(records(1000, 3000, 2000), base_offset=10, compression=codec)
    results = [timestamp_at(batch, offset) for offset in (5, 10, 11, 12)]
    assert results == [1000, 1000, 3000, 2000]
    assert timestamp_at(batch, 13) == 3000


def test_log_append_time_holds_for_all_records() -> None:
    """The broker has written it into the header."""
    batch = encode_batch(records(1000, 2000), base_offset=10)
    patch_max_timestamp(batch, 0, max_timestamp=7000, log_append_time=True)
    assert timestamp_at(batch, 11) == 7000


def test_bytes_that_are_no_batch_have_no_time() -> None:
    """A part of a batch, or nothing."""
    batch = encode_batch(records(1000))
    assert timestamp_at(b"", 0) is None
    assert timestamp_at(batch[:60], 0) is None
    assert timestamp_at(batch[:-1], 0) is None
    damaged = bytearray(encode_batch(records(1000, 2000), compression=4))
    damaged[-20:] = b"x" * 20
    assert timestamp_at(damaged, 1) is None
