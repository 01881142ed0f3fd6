"""Directories that brokers before Kafka 0.11 have written: nothing in them is damage.

Apache Kafka 4.3 reads formats v0 and v1 as they are and gives them to consumers unchanged; so do we.
"""

import struct
import zlib
from pathlib import Path

import pytest
from kafka.record.legacy_records import LegacyRecordBatchBuilder

from ottla.base.errors import ErrorCode
from ottla.storage.files import scan
from ottla.storage.log.log import Log
from ottla.wire.records import records
from ottla.wire.records.compression import CODECS
from tests.unit.storage.compacted import Compacted
from tests.unit.storage.world import START_MS, World, make_batch

FORMATS = [(0, "none"), (0, "gzip"), (1, "none"), (1, "gzip"), (1, "snappy"), (1, "lz4")]
each_format = pytest.mark.parametrize(("magic", "codec"), FORMATS)
# Ten sets of three records: as many entries, or one for each set where it is compressed.
SETS, SET_SIZE = 10, 3


def old_log(magic: int, codec: str) -> bytes:
    """Return what an old broker wrote."""
    data = b""
    for number in range(SETS):
        builder = LegacyRecordBatchBuilder(magic, CODECS[codec], 1 << 20)
        first = number * SET_SIZE
        for at in range(SET_SIZE):
            # Inside a compressed entry, v1 counts from 0.
            offset = at if magic and codec != "none" else first + at
            time = START_MS + (first + at) * 1000 if magic else None
            builder.append(offset, timestamp=time, key=None, value=b"v%d" % (first + at))
        entry = bytearray(builder.build())
        if codec != "none":
            struct.pack_into(">q", entry, 0, first + SET_SIZE - 1)
            if magic:
                struct.pack_into(">q", entry, 18, START_MS + (first + SET_SIZE - 1) * 1000)
            struct.pack_into(">I", entry, 12, zlib.crc32(entry[16:]))
        data += entry
    return data


def world_of(tmp_path: Path, data: bytes) -> World:
    """Return a world whose log's folder holds this file and nothing else."""
    world = World(tmp_path, segment_bytes=1 << 20, index_interval_bytes=100)
    world.folder.mkdir()
    (world.folder / f"{0:020d}.log").write_bytes(data)
    return world


def values(log: Log, start: int = 0) -> list[bytes | None]:
    """Fetch to the end, and return the values from `start` on."""
    found: list[bytes | None] = []
    offset = start
    while offset < log.log_end_offset:
        fetched = log.read(offset, 200, max_offset=log.log_end_offset)
        assert fetched is not None
        data, position = fetched.records, 0
        assert len(data) > 0
        while position < len(data):
            header = scan.header_at(data, position)
            assert header is not None
            for record in records.decode_batch(data, position, header=header):
                if record.offset >= offset:
                    found.append(record.value)
            position += header.size_bytes
            last = header.last_offset
        offset = last + 1
    return found


@each_format
@pytest.mark.parametrize("clean", [False, True])
def test_nothing_is_cut_and_everything_is_served(
    tmp_path: Path, magic: int, codec: str, clean: bool
) -> None:
    """After a crash or a clean end; what comes behind is of today's format."""
    data = old_log(magic, codec)
    world = world_of(tmp_path, data)
    log = world.load(clean=clean)
    assert world.loaded.truncation is None
    assert log.log_end_offset == SETS * SET_SIZE
    assert (world.folder / f"{0:020d}.log").read_bytes() == data
    assert log.append_as_leader(make_batch([b"new"]), 1).base_offset == SETS * SET_SIZE
    expected = [b"v%d" % number for number in range(SETS * SET_SIZE)] + [b"new"]
    for start in range(len(expected)):
        assert values(log, start) == expected[start:]
    log.close()
    for clean_start in (True, False):
        log = world.load(clean=clean_start)
        assert (world.loaded.truncation, values(log)) == (None, expected)
        assert log.epochs.entries == [(1, 30)]
        log.abandon()


@each_format
def test_a_torn_tail_keeps_the_whole_entries(tmp_path: Path, magic: int, codec: str) -> None:
    """Cut at any byte of the last entry."""
    data = old_log(magic, codec)
    ends = [position + header.size_bytes for position, header in walk(data)]
    last = ends[-2]
    for size in range(last, len(data)):
        (tmp_path / str(size)).mkdir()
        log = world_of(tmp_path / str(size), data[:size]).load()
        assert log.size_bytes == last
        assert log.log_end_offset == [header.last_offset for _, header in walk(data)][-2] + 1
        assert log.append_as_leader(make_batch(), 1).base_offset == log.log_end_offset - 1
        log.abandon()


def walk(data: bytes) -> list[tuple[int, scan.BatchHeader]]:
    """Return what a walk finds."""
    return list(scan.headers(lambda at, size: data[at : at + size], 0, len(data)))


@each_format
def test_records_are_found_by_time(tmp_path: Path, magic: int, codec: str) -> None:
    """Inside compressed entries as well; format v0 has no times."""
    log = world_of(tmp_path, old_log(magic, codec)).load()
    newest = log.offset_of_max_timestamp()
    if magic == 0:
        assert (newest, log.offset_for_timestamp(0)) == (None, None)
        return
    assert newest is not None
    assert newest.offset == SETS * SET_SIZE - 1
    for offset in range(SETS * SET_SIZE):
        found = log.offset_for_timestamp(START_MS + offset * 1000)
        assert found == (START_MS + offset * 1000, offset, -1)


@each_format
def test_truncation_cuts_before_an_entry(tmp_path: Path, magic: int, codec: str) -> None:
    """The one that holds the offset goes as a whole."""
    log = world_of(tmp_path, old_log(magic, codec)).load()
    log.truncation.truncate_to(16)
    assert log.log_end_offset == (16 if codec == "none" else 15)
    assert values(log) == [b"v%d" % number for number in range(log.log_end_offset)]


@each_format
def test_a_follower_takes_them_as_they_are(tmp_path: Path, magic: int, codec: str) -> None:
    """So does a copy in another log directory."""
    data = old_log(magic, codec)
    log = World(tmp_path).load()
    log.append_as_follower(data + bytes(make_batch(base_offset=30)))
    assert log.log_end_offset == 31
    assert values(log)[:30] == [b"v%d" % number for number in range(30)]


def test_no_producer_writes_them(tmp_path: Path) -> None:
    """As in Kafka since 4.0."""
    log = World(tmp_path).load()
    with pytest.raises(Exception, match="Record format 1 is not accepted") as refused:
        log.append_as_leader(bytearray(old_log(1, "gzip")), 0)
    assert getattr(refused.value, "code", None) is ErrorCode.INVALID_RECORD


def test_a_flipped_bit_is_damage(tmp_path: Path) -> None:
    """The checksum of these formats is judged too."""
    data = bytearray(old_log(1, "none"))
    data[-1] ^= 1
    log = world_of(tmp_path, bytes(data)).load()
    assert log.log_end_offset == SETS * SET_SIZE - 1


def test_what_is_of_an_old_format_is_not_compacted() -> None:
    """Rather all of it stays: a key's old value must not outlive the word that it was deleted."""
    compacted = Compacted()
    compacted.log.append_as_follower(old_log(1, "gzip"))
    for _ in range(20):
        compacted.append((b"k", b"v"))
    before = compacted.log.size_bytes
    assert not compacted.clean()
    assert compacted.log.size_bytes == before
    assert compacted.log.failure is None
