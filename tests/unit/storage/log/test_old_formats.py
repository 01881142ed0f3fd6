"""Log directories written by brokers before Kafka 0.11: their formats are no damage.

Apache Kafka 4.3 reads formats v0 and v1 as they are and returns them to consumers unchanged, and so
does Ottla.
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
# Ten sets of three records: as many entries, or one for each set if it is compressed.
SETS, SET_SIZE = 10, 3


def old_log(magic: int, codec: str) -> bytes:
    """Return a log as an old broker wrote it."""
    data = b""
    for number in range(SETS):
        builder = LegacyRecordBatchBuilder(magic, CODECS[codec], 1 << 20)
        first = number * SET_SIZE
        for at in range(SET_SIZE):
            # Inside a compressed entry, offsets of v1 begin at 0.
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
    """Return a world whose log directory has only this file."""
    world = World(tmp_path, segment_bytes=1 << 20, index_interval_bytes=100)
    world.folder.mkdir()
    (world.folder / f"{0:020d}.log").write_bytes(data)
    return world


def values(log: Log, start: int = 0) -> list[bytes | None]:
    """Fetch to the end, and return the values from `start` to the end."""
    result: list[bytes | None] = []
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
                    result.append(record.value)
            position += header.size_bytes
            last = header.last_offset
        offset = last + 1
    return result


@each_format
@pytest.mark.parametrize("clean", [False, True])
def test_no_entry_is_truncated_and_all_are_readable(
    tmp_path: Path, magic: int, codec: str, clean: bool
) -> None:
    """After a crash or a clean shutdown all entries are kept, and new ones are appended in format
    v2.
    """
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
def test_torn_tail_keeps_the_complete_entries(tmp_path: Path, magic: int, codec: str) -> None:
    """Recovery keeps every complete entry if the last one is cut at any byte."""
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
    """Return the headers that a scan finds."""
    return list(scan.headers(lambda at, size: data[at : at + size], 0, len(data)))


@each_format
def test_records_are_found_by_time(tmp_path: Path, magic: int, codec: str) -> None:
    """Times inside compressed entries are searched as well; format v0 has no times."""
    log = world_of(tmp_path, old_log(magic, codec)).load()
    newest = log.offset_of_max_timestamp()
    if magic == 0:
        assert (newest, log.offset_for_timestamp(0)) == (None, None)
        return
    assert newest is not None
    assert newest.offset == SETS * SET_SIZE - 1
    for offset in range(SETS * SET_SIZE):
        match = log.offset_for_timestamp(START_MS + offset * 1000)
        assert match == (START_MS + offset * 1000, offset, -1)


@each_format
def test_truncation_cuts_before_an_entry(tmp_path: Path, magic: int, codec: str) -> None:
    """The entry that contains the offset is removed entirely."""
    log = world_of(tmp_path, old_log(magic, codec)).load()
    log.truncation.truncate_to(16)
    assert log.log_end_offset == (16 if codec == "none" else 15)
    assert values(log) == [b"v%d" % number for number in range(log.log_end_offset)]


@each_format
def test_follower_appends_them_unchanged(tmp_path: Path, magic: int, codec: str) -> None:
    """A follower and a copy in another log directory store the entries unchanged."""
    data = old_log(magic, codec)
    log = World(tmp_path).load()
    log.append_as_follower(data + bytes(make_batch(base_offset=30)))
    assert log.log_end_offset == 31
    assert values(log)[:30] == [b"v%d" % number for number in range(30)]


def test_producer_cannot_write_them(tmp_path: Path) -> None:
    """A produced batch of these formats is rejected, as in Kafka since 4.0."""
    log = World(tmp_path).load()
    with pytest.raises(Exception, match="Record format 1 is not accepted") as refused:
        log.append_as_leader(bytearray(old_log(1, "gzip")), 0)
    assert getattr(refused.value, "code", None) is ErrorCode.INVALID_RECORD


def test_a_flipped_bit_is_damage(tmp_path: Path) -> None:
    """The checksum of these formats is verified too."""
    data = bytearray(old_log(1, "none"))
    data[-1] ^= 1
    log = world_of(tmp_path, bytes(data)).load()
    assert log.log_end_offset == SETS * SET_SIZE - 1


def test_old_formats_are_not_compacted() -> None:
    """A key's old value must not outlive its tombstone, so nothing is compacted."""
    compacted = Compacted()
    compacted.log.append_as_follower(old_log(1, "gzip"))
    for _ in range(20):
        compacted.append((b"k", b"v"))
    before = compacted.log.size_bytes
    assert not compacted.clean()
    assert compacted.log.size_bytes == before
    assert compacted.log.failure is None
