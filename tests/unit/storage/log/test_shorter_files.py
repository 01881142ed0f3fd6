"""Segment files that became shorter, or cannot be read any more, while the broker serves them."""

import errno
import os
from pathlib import Path

import pytest

from ottla.base.buffers import FileRange, NotSendable
from ottla.base.errors import ApiError, ErrorCode, StorageError
from ottla.base.files import RealFile, RealFileSystem, open_descriptor
from ottla.storage.config import LONG_MAX
from ottla.storage.log.log import Log
from ottla.wire.records.batch import peek_size
from ottla.wire.records.records import iterate_batches
from tests.unit.storage.world import World, make_batch, small_segments

BATCHES = 40
SIZE = len(make_batch([b"value"]))


def written(tmp_path: Path) -> tuple[World, Log]:
    """Return a log of several segments, the last of which has batches."""
    world = small_segments(tmp_path)
    log = world.load()
    for _ in range(BATCHES):
        log.append_as_leader(make_batch([b"value"]), 0)
    log.high_watermark = log.log_end_offset
    assert log.segments_count > 3
    return world, log


def read(log: Log, offset: int, max_bytes: int, range_bytes_min: int) -> list[int]:
    """Return the offsets of the batches of one fetch, all of which are whole."""
    fetched = log.read(
        offset, max_bytes, max_offset=log.log_end_offset, range_bytes_min=range_bytes_min
    )
    assert fetched is not None
    records = fetched.records
    data = records.read() if isinstance(records, FileRange) else bytes(records)
    assert len(data) == len(records)
    found, position = [], 0
    for at, header in iterate_batches(data):
        assert at == position
        found.append(header.base_offset)
        position += peek_size(data, at)
    assert position == len(data)
    return found


@pytest.mark.parametrize("reopened", [False, True])
@pytest.mark.parametrize("range_bytes_min", [1, LONG_MAX])
@pytest.mark.parametrize("cut", [0, 5, 30, SIZE - 1, SIZE])
@pytest.mark.parametrize("segment", [1, -1])
def test_missing_bytes_are_an_error_and_the_batches_before_are_served(
    tmp_path: Path, segment: int, cut: int, range_bytes_min: int, reopened: bool
) -> None:
    """A consumer would retry an empty or partial response, or a broken connection, forever."""
    world, log = written(tmp_path)
    if reopened:
        log.close()
        log = world.load(clean=True)
    bases = [*log.bases, log.log_end_offset]
    first = log.bases[segment]
    end = bases[bases.index(first) + 1]
    os.truncate(world.folder / f"{first:020d}.log", SIZE + cut)
    present = first + 1 + cut // SIZE
    for offset in range(first, end):
        for max_bytes in (1, 3 * SIZE, 1 << 20):
            if offset < present:
                found = read(log, offset, max_bytes, range_bytes_min)
                assert found[0] == offset
                assert found[-1] < present
            else:
                with pytest.raises(ApiError) as refused:
                    read(log, offset, max_bytes, range_bytes_min)
                assert refused.value.code is ErrorCode.CORRUPT_MESSAGE
    assert log.failure is None
    assert log.damage is not None


class _Unreadable(RealFile):
    """A file on a device that has failed."""

    def read_at(self, position: int, size_bytes: int) -> bytes:
        raise OSError(errno.EIO, os.strerror(errno.EIO), self.path)


class _FailingDisk(RealFileSystem):
    """Files of segments cannot be read once `has_failed` is set."""

    has_failed = False

    def open(self, path: str, *, create: bool = False) -> RealFile:
        if self.has_failed and path.endswith(".log"):
            return _Unreadable(path, open_descriptor(path))
        return super().open(path, create=create)


def test_read_error_of_the_device_takes_the_log_offline(tmp_path: Path) -> None:
    """StorageError becomes KAFKA_STORAGE_ERROR, also for records that are sent from their file."""
    world, log = written(tmp_path)
    log.close()
    world.files = disk = _FailingDisk()
    log = world.load(clean=True)
    log.deletion.close_idle_files()
    fetched = log.read(0, 1 << 20, max_offset=log.log_end_offset, range_bytes_min=1)
    assert fetched is not None
    assert isinstance(fetched.records, FileRange)
    # As the connection does that sends it.
    fetched.records.source.note_failure()
    for segment in log.segments:
        segment.files.close()
    disk.has_failed = True
    with pytest.raises(StorageError):
        log.read(0, 1 << 20, max_offset=log.log_end_offset, range_bytes_min=1)
    assert world.failures


def test_file_that_could_not_be_sent_is_read(tmp_path: Path) -> None:
    """An error in the middle of a response cannot be reported there: the next read reports it."""
    _, log = written(tmp_path)
    fetched = log.read(0, 1 << 20, max_offset=log.log_end_offset, range_bytes_min=1)
    assert fetched is not None
    assert isinstance(fetched.records, FileRange)
    fetched.records.source.note_failure()
    with pytest.raises(NotSendable):
        log.segments[0].file.range_at(0, 1)
    again = log.read(0, 1 << 20, max_offset=log.log_end_offset, range_bytes_min=1)
    assert again is not None
    assert again.data == fetched.records.read()


@pytest.mark.parametrize("reopened", [False, True])
@pytest.mark.parametrize("range_bytes_min", [1, LONG_MAX])
@pytest.mark.parametrize("at", range(4))
@pytest.mark.parametrize(("field", "content"), [(8, b"\x7f"), (8, b"\0\0\0\0"),
                                                (16, b"\x09"), (23, b"\xff"), (0, bytes(61))])  # fmt: skip
def test_no_fetch_skips_a_damaged_header(
    tmp_path: Path, field: int, content: bytes, at: int, range_bytes_min: int, reopened: bool
) -> None:
    """The log cannot be walked there: a fetch at any offset behind it fails, or is exact."""
    world, log = written(tmp_path)
    if reopened:
        log.close()
        log = world.load(clean=True)
    first, end = log.bases[1:3]
    path = world.folder / f"{first:020d}.log"
    data = bytearray(path.read_bytes())
    data[at * SIZE + field : at * SIZE + field + len(content)] = content
    path.write_bytes(data)
    refused = 0
    for offset in range(first, end):
        try:
            fetched = log.read(
                offset, 1, max_offset=log.log_end_offset, range_bytes_min=range_bytes_min
            )
        except ApiError as error:
            assert error.code is ErrorCode.CORRUPT_MESSAGE
            refused += 1
        else:
            assert fetched is not None
            assert fetched.segment_base_offset == first
            assert fetched.position == (offset - first) * SIZE
    # The walk to a batch in front of an entry of the index reads every header before it.
    assert refused
    assert log.damage is not None
