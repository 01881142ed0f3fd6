"""One segment: lookups, reads, rolls and damaged indexes."""

from pathlib import Path
from typing import Any

import pytest

from ottla.base.buffers import Buffer
from ottla.base.errors import ApiError, ErrorCode
from ottla.base.files import RealFileSystem
from ottla.storage.config import LONG_MAX, LogConfig
from ottla.storage.files import scan
from ottla.storage.files.file_names import base_offset_of, file_name
from ottla.storage.files.index import OffsetIndex
from ottla.storage.files.time_index import TimeIndex
from ottla.storage.files.txn_index import AbortedTransaction
from ottla.storage.log.segment import Segment
from ottla.wire.records import batch
from tests.unit.storage.world import START_MS, make_batch

BASE = 100


def make_segment(folder: Path, **fields: Any) -> Segment:
    """Create an empty segment with base offset 100."""
    config = LogConfig(**({"index_interval_bytes": 150} | fields))
    return Segment.create(RealFileSystem(), str(folder), BASE, config, START_MS)


def open_segment(folder: Path) -> Segment:
    """Open the segment's files as another process left them."""
    config = LogConfig(index_interval_bytes=150)
    return Segment.open(RealFileSystem(), str(folder), BASE, config, START_MS)


def fill(
    segment: Segment, count: int, *, gap: int = 0, records: int = 2
) -> list[batch.BatchHeader]:
    """Append batches with increasing timestamps; `gap` offsets are missing between two."""
    headers = []
    offset = BASE
    for number in range(count):
        data = make_batch(records, timestamp=START_MS + number * 10, base_offset=offset)
        header = batch.parse_header(data)
        segment.append(data, offset, header.last_offset, header.max_timestamp)
        headers.append(header)
        offset = header.last_offset + 1 + gap
    return headers


def place_of(headers: list[batch.BatchHeader], offset: int) -> int | None:
    """Return the position of the first batch that ends at or after the offset, found by a scan."""
    position = 0
    for header in headers:
        if header.last_offset >= offset:
            return position
        position += header.size_bytes
    return None


@pytest.mark.parametrize("gap", [0, 3])
@pytest.mark.parametrize("memory", ["appended", "sealed", "reopened", "tail loaded"])
def test_every_offset_is_found_at_the_position_of_a_scan(
    tmp_path: Path, memory: str, gap: int
) -> None:
    """Lookups agree with a scan however much is in memory, also with the gaps that compaction
    leaves.
    """
    segment = make_segment(tmp_path)
    headers = fill(segment, 60, gap=gap)
    if memory != "appended":
        segment.seal()
    if memory in ("reopened", "tail loaded"):
        segment.files.close()
        segment = open_segment(tmp_path)
    if memory == "tail loaded":
        segment.load_tail()
    for offset in range(BASE, headers[-1].last_offset + 2):
        assert segment.batches.locate(offset) == place_of(headers, offset)


def test_an_offset_between_two_entries_costs_one_read_and_no_headers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Consumers behind the recent batches do not pay for each batch between entry and offset."""
    segment = make_segment(tmp_path, index_interval_bytes=4096)
    headers = fill(segment, 3000, records=1)
    reads: list[int] = []

    def read(position: int, size_bytes: int) -> Buffer:
        reads.append(position)
        return segment.file.read_at(position, size_bytes)

    monkeypatch.setattr(scan, "header_at", None)
    for offset in range(BASE + 1, BASE + 200):
        for reads_max in (1, 0):
            reads.clear()
            assert segment.batches.locate(offset, read) == place_of(headers, offset)
            assert len(reads) <= reads_max


def test_positions_of_earlier_lookups_are_void_after_a_truncation(tmp_path: Path) -> None:
    """Another leader's batches, of other sizes, follow the place where the segment was cut."""
    segment = make_segment(tmp_path, index_interval_bytes=4096)
    headers = fill(segment, 100, records=1)
    segment.seal()
    for offset in range(BASE + 1, BASE + 30):
        assert segment.batches.locate(offset) == place_of(headers, offset)
    assert segment.truncate_to(BASE + 5) == BASE + 5
    del headers[5:]
    for number in range(30):
        data = make_batch(3, base_offset=BASE + 5 + 3 * number)
        headers.append(batch.parse_header(data))
        segment.append(data, headers[-1].base_offset, headers[-1].last_offset, START_MS)
    segment.seal()
    for offset in range(BASE + 1, BASE + 95):
        assert segment.batches.locate(offset) == place_of(headers, offset)


def test_more_batches_than_memory_keeps_are_found(tmp_path: Path) -> None:
    """The oldest batches are found through the index file."""
    segment = make_segment(tmp_path, index_interval_bytes=4096)
    headers = fill(segment, 2500, records=1)
    for offset in (BASE, BASE + 700, BASE + 1987, BASE + 1988, BASE + 2499, BASE + 2500):
        assert segment.batches.locate(offset) == place_of(headers, offset)


def test_index_entries_are_added_at_the_index_interval(tmp_path: Path) -> None:
    """The first batch has no entry; each later entry follows after more than index.interval.bytes."""
    segment = make_segment(tmp_path, index_interval_bytes=150)
    headers = fill(segment, 7)
    size = headers[0].size_bytes
    segment.seal()
    index = OffsetIndex.decode(BASE, (tmp_path / file_name(BASE, ".index")).read_bytes(), 9999)
    step = 150 // size + 1
    assert len(index) == (7 - 1) // step
    assert index.floor(9999).position % (size * step) == 0
    times = TimeIndex.decode(BASE, (tmp_path / file_name(BASE, ".timeindex")).read_bytes(), 9999)
    assert times.last == (headers[-1].max_timestamp, headers[-1].last_offset)


@pytest.mark.parametrize("suffix", [".index", ".timeindex"])
@pytest.mark.parametrize("damage", ["lost", "zeros", "garbage", "cut", "plausible", "short"])
def test_damaged_indexes_give_the_same_answers(tmp_path: Path, suffix: str, damage: str) -> None:
    """Damaged indexes are rebuilt from the log on open, or when a lookup detects the damage."""
    segment = make_segment(tmp_path)
    headers = fill(segment, 80)
    segment.seal()
    segment.files.close()
    path = tmp_path / file_name(BASE, suffix)
    good = path.read_bytes()
    entry = 8 if suffix == ".index" else 12
    if damage == "lost":
        path.unlink()
    else:
        broken = {
            "zeros": bytes(len(good)),
            "garbage": b"\xa5" * len(good),
            "cut": good[:-5],
            # Increasing and within bounds, but different from the log.
            "plausible": b"".join(
                (int.from_bytes(good[at : at + entry], "big") + 3).to_bytes(entry, "big")
                for at in range(0, len(good), entry)
            ),
            "short": good[: entry * 3],
        }
        path.write_bytes(broken[damage])
    segment = open_segment(tmp_path)
    for offset in range(BASE, headers[-1].last_offset + 2):
        assert segment.batches.locate(offset) == place_of(headers, offset)
    for header in headers[::7]:
        match = segment.find_timestamp(header.max_timestamp, BASE)
        assert match is not None
        assert match.offset == header.base_offset
    assert segment.newest == (headers[-1].max_timestamp, headers[-1].last_offset)


@pytest.mark.parametrize("suffix", [".index", ".timeindex"])
def test_one_wrong_bit_in_an_index_gives_the_same_answers(tmp_path: Path, suffix: str) -> None:
    """An index entry is compared with the log before it is used, so any flipped bit is detected."""
    segment = make_segment(tmp_path)
    headers = fill(segment, 12)
    segment.seal()
    segment.files.close()
    path = tmp_path / file_name(BASE, suffix)
    good = path.read_bytes()
    for bit in range(len(good) * 8):
        broken = bytearray(good)
        broken[bit // 8] ^= 1 << bit % 8
        path.write_bytes(broken)
        segment = open_segment(tmp_path)
        for header in headers:
            assert segment.batches.locate(header.last_offset) == place_of(
                headers, header.last_offset
            )
            match = segment.find_timestamp(header.max_timestamp - 5, BASE)
            assert match is not None
            assert match.offset == header.base_offset
        segment.files.close()


def read(segment: Segment, offset: int, max_bytes: int, end: int | None, **how: Any) -> Any:
    """Read without the limit to cached bytes."""
    arguments = {"at_least_one": True} | how
    reader = segment.file.read_at
    return segment.read(offset, max_bytes, end, reader, **arguments)


def test_a_read_returns_whole_batches_only(tmp_path: Path) -> None:
    """A read begins with the batch that contains the offset and returns as many as fit."""
    segment = make_segment(tmp_path)
    headers = fill(segment, 20)
    size = headers[0].size_bytes
    for max_bytes in range(size, size * 6, 13):
        result = read(segment, BASE + 5, max_bytes, None)
        assert result.position == 2 * size
        assert len(result.records) == max_bytes // size * size
        assert result.first_batch_size == size


def test_first_batch_is_returned_even_if_it_is_too_large(tmp_path: Path) -> None:
    """The first batch is returned beyond max_bytes, unless the caller already has records."""
    segment = make_segment(tmp_path)
    size = fill(segment, 3)[0].size_bytes
    for max_bytes in (0, 1, 61, size - 1):
        assert len(read(segment, BASE, max_bytes, None).records) == size
        empty = read(segment, BASE, max_bytes, None, at_least_one=False)
        assert (len(empty.records), empty.first_batch_size) == (0, size)


@pytest.mark.parametrize("range_bytes_min", [LONG_MAX, 1])
def test_a_read_of_a_recent_batch_reports_another_size_in_the_file(
    tmp_path: Path, range_bytes_min: int
) -> None:
    """CORRUPT_MESSAGE, although the position of the batch is known without the file."""
    segment = make_segment(tmp_path)
    headers = fill(segment, 5)
    position = headers[0].size_bytes
    limits = {"range_bytes_min": range_bytes_min}
    assert len(read(segment, BASE + 5, 1 << 20, None, **limits).records) == 3 * position
    segment.file.write_at(position + 8, b"\0\0\0\x10")
    with pytest.raises(ApiError) as caught:
        read(segment, BASE + 2, 1 << 20, None, **limits)
    assert caught.value.code == ErrorCode.CORRUPT_MESSAGE
    assert segment.batches.damaged_at == position


@pytest.mark.parametrize(("end", "batches"), [(100, 0), (101, 0), (102, 1), (105, 2), (106, 3)])
def test_nothing_at_or_past_the_limit_is_read(tmp_path: Path, end: int, batches: int) -> None:
    """A batch that contains the limit is left out entirely."""
    segment = make_segment(tmp_path)
    size = fill(segment, 5)[0].size_bytes
    assert len(read(segment, BASE, 9999, end).records) == batches * size


def test_a_read_behind_the_last_batch_finds_nothing(tmp_path: Path) -> None:
    """The next segment may contain the offset."""
    segment = make_segment(tmp_path)
    fill(segment, 2)
    assert read(segment, BASE + 4, 9999, None) is None


def test_a_segment_rolls_when_it_is_full_or_old(tmp_path: Path) -> None:
    """A segment rolls by size, by record time and by offset range, but never if it is empty."""
    config = {"segment_bytes": 1000, "segment_ms": 500}
    segment = make_segment(tmp_path, **config)
    assert not segment.must_roll(99_999, BASE, START_MS + 10_000, START_MS)
    size = fill(segment, 1)[0].size_bytes
    assert not segment.must_roll(1000 - size, BASE + 9, START_MS + 500, START_MS)
    assert segment.must_roll(1001 - size, BASE + 9, START_MS + 500, START_MS)
    assert segment.must_roll(1, BASE + 9, START_MS + 501, START_MS)
    assert not segment.must_roll(1, BASE + 2**31 - 1, START_MS, START_MS)
    assert segment.must_roll(1, BASE + 2**31, START_MS, START_MS)


def test_a_segment_without_timestamps_rolls_by_the_clock(tmp_path: Path) -> None:
    """The age of such a segment is counted from its creation."""
    segment = make_segment(tmp_path, segment_ms=500)
    segment.append(make_batch(timestamp=-1), BASE, BASE, -1)
    assert not segment.must_roll(1, BASE + 1, -1, START_MS + 500)
    assert segment.must_roll(1, BASE + 1, -1, START_MS + 501)


@pytest.mark.parametrize("index_bytes", [8 * 2, 12 * 3])
def test_a_segment_rolls_when_an_index_is_full(tmp_path: Path, index_bytes: int) -> None:
    """A full index rolls the segment, because no entry may be omitted."""
    segment = make_segment(tmp_path, segment_index_bytes=index_bytes)
    fill(segment, 40)
    assert segment.must_roll(1, BASE + 999, START_MS, START_MS)


def test_truncation_removes_the_batch_of_the_offset(tmp_path: Path) -> None:
    """Everything behind the batch is removed with its index files, and the newest timestamp is
    updated.
    """
    segment = make_segment(tmp_path)
    headers = fill(segment, 40)
    segment.seal()
    assert segment.truncate_to(BASE + 51) == BASE + 50
    assert segment.size_bytes == place_of(headers, BASE + 50)
    assert segment.newest == (headers[24].max_timestamp, BASE + 49)
    assert segment.batches.locate(BASE + 50) is None
    assert not (tmp_path / file_name(BASE, ".index")).exists()
    assert not segment.files.is_synced


def test_aborted_transactions_are_kept_in_their_file(tmp_path: Path) -> None:
    """Truncation removes the transactions whose marker it removes."""
    segment = make_segment(tmp_path)
    first, second = AbortedTransaction(1, 100, 105, 106), AbortedTransaction(2, 103, 110, 111)
    segment.transactions.add(first)
    segment.transactions.add(second)
    assert segment_aborted(tmp_path) == [first, second]
    segment.transactions.clear(106)
    assert segment_aborted(tmp_path) == [first]
    segment.transactions.clear()
    assert not (tmp_path / file_name(BASE, ".txnindex")).exists()


def segment_aborted(folder: Path) -> list[AbortedTransaction]:
    """Return the aborted transactions that another process would read."""
    (folder / file_name(BASE, ".log")).touch()
    return open_segment(folder).transactions.entries


def test_batches_are_iterated_backwards(tmp_path: Path) -> None:
    """Iteration from the last to the first batch returns each once, across several index intervals."""
    segment = make_segment(tmp_path, index_interval_bytes=4096)
    headers = fill(segment, 1500)
    assert list(segment.batches.headers_backwards()) == headers[::-1]
    segment.seal()
    segment.files.close()
    (tmp_path / file_name(BASE, ".index")).write_bytes(b"\0\0\0\x01\0\0\0\x09" * 3)
    assert list(open_segment(tmp_path).batches.headers_backwards()) == headers[::-1]


@pytest.mark.parametrize(
    ("name", "base"),
    [
        ("00000000000000000042.log", 42),
        ("00000000000000000042.index", -1),
        ("0000000000000000042.log", -1),
        ("00000000000000000042.log.deleted", -1),
        ("0000000000000000004x.log", -1),
    ],
)
def test_a_file_name_is_twenty_digits_and_a_suffix(name: str, base: int) -> None:
    """Files with other names belong to no segment."""
    assert base_offset_of(name, ".log") == base
