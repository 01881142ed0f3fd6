"""Reads that return a range of the file: the same records as a read into memory, until a
truncation.
"""

import random
from pathlib import Path

import pytest

from ottla.base.buffers import FileRange
from ottla.base.files import RealFileSystem
from ottla.storage.config import LogConfig
from ottla.storage.log.segment import Segment
from tests.unit.storage.world import START_MS, make_batch

BASE = 100


def filled(folder: Path, rng: random.Random, count: int) -> Segment:
    """Return a segment with batches of many sizes."""
    config = LogConfig(index_interval_bytes=400)
    segment = Segment.create(RealFileSystem(), str(folder), BASE, config, START_MS)
    offset = BASE
    for number in range(count):
        records = rng.choice((1, 2, 30))
        data = make_batch(records, timestamp=START_MS + number, base_offset=offset)
        segment.append(data, offset, offset + records - 1, START_MS + number)
        offset += records
    return segment


@pytest.mark.parametrize("memory", ["appended", "reopened"])
def test_range_has_the_records_of_a_read(tmp_path: Path, memory: str) -> None:
    """The records are the same for every offset and limit, whether or not the batches are in
    memory.
    """
    seed = random.randrange(10**6)
    print(f"seed {seed}")
    rng = random.Random(seed)
    segment = filled(tmp_path, rng, 200)
    last_offset = segment.batches.max_timestamp_offset
    if memory == "reopened":
        segment.seal()
        segment.files.close()
        config = LogConfig(index_interval_bytes=400)
        segment = Segment.open(RealFileSystem(), str(tmp_path), BASE, config, START_MS)
    read = segment.file.read_at
    ranges = 0
    for _ in range(1500):
        offset = rng.randrange(BASE, last_offset + 1)
        max_bytes = rng.choice((rng.randrange(1, 500), rng.randrange(1, 30_000)))
        end = rng.choice((None, rng.randrange(offset, last_offset + 2)))
        at_least_one = rng.random() < 0.5
        range_min = rng.choice((1, 300, 5000))
        expected = segment.read(offset, max_bytes, end, read, at_least_one=at_least_one)
        result = segment.read(offset, max_bytes, end, read, range_min, at_least_one=at_least_one)
        assert expected is not None
        assert result is not None
        records = result.records
        if isinstance(records, FileRange):
            assert len(records) >= range_min
            assert records.is_cached()
            ranges += 1
            records = records.read()
        else:
            assert len(records) < range_min
        assert bytes(records) == bytes(expected.data)
        assert result[1:] == expected[1:]
    assert ranges > 100


def test_truncation_voids_the_ranges_behind_it(tmp_path: Path) -> None:
    """A range that ends before the cut can still be sent; one that crosses it cannot."""
    segment = filled(tmp_path, random.Random(1), 50)
    middle = segment.size_bytes // 2
    read = segment.file.read_at
    records = [
        segment.read(BASE, size, None, read, 1, at_least_one=True)
        for size in (middle - 500, segment.size_bytes)
    ]
    before, behind = (record.records for record in records if record is not None)
    assert isinstance(before, FileRange)
    assert isinstance(behind, FileRange)
    segment.cut(middle)
    assert not before.is_void
    assert behind.is_void
    segment.void_ranges()
    assert before.is_void
