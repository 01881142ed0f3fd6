"""Iterating over the batches of a file."""

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ottla.base.files import NotCached
from ottla.storage.files import scan
from ottla.storage.files.index import IndexPosition
from ottla.wire.records import batch
from ottla.wire.records.records import Record, encode_batch
from tests.unit.storage.world import START_MS, make_batch

Reads = list[tuple[int, int]]


def reader(data: bytes, reads: Reads | None = None) -> Callable[[int, int], bytes]:
    """Return a function that reads a file with this content."""

    def read(position: int, size_bytes: int) -> bytes:
        if reads is not None:
            reads.append((position, size_bytes))
        return data[position : position + size_bytes]

    return read


def make_log(sizes: list[int]) -> bytes:
    """Return consecutive batches with values of these sizes."""
    return b"".join(
        bytes(make_batch([b"x" * size], base_offset=offset)) for offset, size in enumerate(sizes)
    )


@pytest.mark.parametrize("walk", [scan.headers, scan.batches])
def test_every_batch_is_found_with_any_chunk_size(walk: Callable[..., object]) -> None:
    """Batches are found if they are small, larger than a chunk, or across the border of two chunks."""
    sizes = [10] * 300 + [3_000_000] + [1000] * 40 + [20_000] * 3
    data = make_log(sizes)
    values = [item[1] for item in walk(reader(data), 0, len(data))]  # type: ignore[attr-defined]
    assert [header.base_offset for header in values] == list(range(len(sizes)))
    assert sum(header.size_bytes for header in values) == len(data)


def test_headers_are_scanned_without_reading_the_records() -> None:
    """Scanning headers takes one small read for each batch."""
    data = make_log([500_000] * 4)
    reads: Reads = []
    assert len(list(scan.headers(reader(data, reads), 0, len(data)))) == 4
    assert sum(size for _, size in reads) < 100_000


@pytest.mark.parametrize("walk", [scan.headers, scan.batches])
@pytest.mark.parametrize("tail", [b"\0" * 100, b"\xff" * 100, b"x" * 60, bytes(make_batch())[:-1]])
def test_scan_ends_if_no_whole_batch_follows(walk: Callable[..., object], tail: bytes) -> None:
    """A scan ends at zeros, garbage, half a header or half a batch."""
    data = make_log([10, 10]) + tail
    actual = list(walk(reader(data), 0, len(data)))  # type: ignore[call-overload]
    assert len(actual) == 2


@pytest.mark.parametrize("size", [200, 2_000_000])
def test_only_the_verifying_scan_detects_a_flipped_bit(size: int) -> None:
    """A scan of headers does not verify checksums, because the bytes were checked on append."""
    data = bytearray(make_log([size] * 3))
    data[-5] ^= 1
    assert len(list(scan.batches(reader(bytes(data)), 0, len(data)))) == 2
    assert len(list(scan.headers(reader(bytes(data)), 0, len(data)))) == 3


def test_file_that_is_too_short_ends_the_scan() -> None:
    """A short read ends the scan instead of looping forever."""
    data = make_log([10, 2_000_000])
    for walk in (scan.headers, scan.batches):
        assert len(list(walk(reader(data[:-1]), 0, len(data) + 500))) <= 2
        assert len(list(walk(reader(data[:30]), 0, len(data)))) == 0


def test_cache_reader_raises_if_the_bytes_are_not_cached() -> None:
    """The scan stops at uncached bytes, and the caller can retry off the event loop."""

    class ColdFile:
        def read_at_if_cached(self, position: int, size_bytes: int) -> bytes:
            raise NotCached

    read = ColdFile().read_at_if_cached
    with pytest.raises(NotCached):
        read(0, 10)


def test_the_first_record_since_a_time_is_found_inside_a_batch() -> None:
    """The result has the record's timestamp and offset and the leader epoch of its batch."""
    records = [Record(None, b"", timestamp=START_MS + delay_ms) for delay_ms in (5, 3, 9, 9)]
    data = encode_batch(records, base_offset=40, leader_epoch=2)
    header = batch.parse_header(data)
    assert scan.first_record_since(data, header, START_MS + 4, 0) == (START_MS + 5, 40, 2)
    assert scan.first_record_since(data, header, START_MS + 4, 41) == (START_MS + 9, 42, 2)
    assert scan.first_record_since(data, header, START_MS + 10, 0) is None


def test_batch_with_many_headers_is_not_decoded_for_one_record() -> None:
    """The first record's position is returned: reading the headers would block the event loop."""
    many = Record(None, b"", (("", None),) * 30_000, START_MS)
    data = encode_batch([many, many._replace(timestamp=START_MS + 9)], base_offset=40)
    header = batch.parse_header(data)
    assert scan.first_record_since(data, header, START_MS + 4, 0) == (START_MS + 9, 40, -1)


LOG = make_log([10, 900, 10, 10, 5000, 10] * 3)
DAMAGE = st.tuples(st.integers(0, len(LOG) - 1), st.integers(0, 255))


@given(st.integers(0, 20), st.lists(DAMAGE, max_size=2), st.integers(0, len(LOG)))
def test_skipped_batches_are_those_that_a_scan_passes(
    offset: int, damage: list[tuple[int, int]], end: int
) -> None:
    """A skip never passes a batch that contains the offset, nor bytes at which a scan stops."""
    data = bytearray(LOG[:end])
    for position, value in damage:
        data[position : position + 1] = bytes([value])[: max(0, end - position)]
    file = bytes(data)
    passed, found = 0, False
    for start, header in scan.headers(reader(file), 0, end):
        if found := header.last_offset >= offset:
            assert start == passed
            break
        passed = start + header.size_bytes
    skipped, is_found = scan.skip_before(reader(file), IndexPosition(0, -1, False), end, offset)
    assert skipped <= passed
    if is_found:
        assert found
        assert skipped == passed
    elif found and not damage:
        # Only the first chunk is read.
        assert passed > 16 * 1024 - batch.HEADER_SIZE


def test_a_skip_from_an_entry_that_contradicts_its_batch_stays_there() -> None:
    """The last offset of an entry is compared with the batch's before batches are skipped."""
    position = len(make_log([10]))
    for expected, place in ((1, (position * 2, True)), (5, (position, False))):
        entry = IndexPosition(position, expected, False)
        data = make_log([10] * 4)
        assert scan.skip_before(reader(data), entry, len(data), 2) == place
