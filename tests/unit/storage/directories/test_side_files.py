"""Every combination of damaged files beside segments and logs: no record is absent unnoticed."""

import random
import shutil
from collections.abc import Callable, Iterator, Mapping
from itertools import combinations
from pathlib import Path

import pytest

from ottla.storage.directories import repair
from ottla.storage.directories.disk import LogDirectories
from ottla.storage.files import checkpoints
from ottla.storage.log.log import Log
from ottla.wire.records import control
from ottla.wire.records.batch import is_crc_valid
from ottla.wire.records.records import iterate_batches
from tests.unit.storage.world import (
    OPENED,
    START_MS,
    TOPIC_ID,
    World,
    make_batch,
    offsets,
    small_segments,
)

pytestmark = pytest.mark.slow

COUNT = 40
SIDE_FILES = (
    ".index",
    ".timeindex",
    ".txnindex",
    ".snapshot",
    checkpoints.LEADER_EPOCH_FILE,
    checkpoints.PARTITION_METADATA_FILE,
)
CHECKPOINTS = (
    checkpoints.RECOVERY_POINT_FILE,
    checkpoints.HIGH_WATERMARK_FILE,
    checkpoints.LOG_START_FILE,
    checkpoints.CLEANER_FILE,
)
RNG = random.Random(7)
WAYS: dict[str, Callable[[Path], object]] = {
    "missing": Path.unlink,
    "empty": lambda path: path.write_bytes(b""),
    "garbage": lambda path: path.write_bytes(RNG.randbytes(max(path.stat().st_size, 40))),
}
WAYS_OF_CHECKPOINTS = {
    **WAYS,
    "cut": lambda path: path.write_bytes(path.read_bytes()[:-3]),
    "zeros": lambda path: path.write_bytes(bytes(path.stat().st_size)),
    # Of another directory, whose log of this partition is longer.
    "foreign": lambda path: path.write_bytes(checkpoints.encode_offsets({("t", 0): 10_000})),
}
MIXTURES = 60


def fill(log: Log) -> None:
    """Write with five producers in turn, two of them transactional, in three leader epochs."""
    for number in range(COUNT):
        epoch, producer_id = number // 15, number % 5
        data = make_batch(
            [b"value-%d" % number],
            timestamp=START_MS + number,
            sequence=number // 5,
            producer_id=producer_id,
            transactional=producer_id >= 3,
        )
        log.append_as_leader(data, epoch)
        if producer_id >= 3:
            marker = control.encode_marker(
                control.EndTransactionMarker(control.ControlType.ABORT, 0),
                producer_id=producer_id,
                producer_epoch=0,
                timestamp=START_MS,
            )
            log.append_as_leader(marker, epoch, from_client=False)


def written(folder: Path, *, is_clean: bool) -> tuple[World, list[int]]:
    """Return a directory with one log that is closed, and its offsets."""
    world = small_segments(folder)
    directories = world.directories()
    log = directories.create("t", 0, TOPIC_ID, world.config)
    fill(log)
    log.high_watermark = log.log_end_offset
    expected = offsets(log)
    assert log.segments_count > 4
    if is_clean:
        directories.close()
    else:
        directories.checkpoint()
        directories.abandon()
    return world, expected


def damage(folder: Path, ways: Mapping[str, str]) -> None:
    """Damage the files of these kinds, each in its way."""
    for path in sorted(folder.iterdir()):
        for kind, way in ways.items():
            if path.name.endswith(kind):
                WAYS_OF_CHECKPOINTS[way](path)


def subsets_of_checkpoints() -> Iterator[dict[str, str]]:
    """Yield every set of checkpoints damaged in one way, and mixtures with files of the log."""
    for size in range(1, len(CHECKPOINTS) + 1):
        for chosen in combinations(CHECKPOINTS, size):
            yield from (dict.fromkeys(chosen, way) for way in WAYS_OF_CHECKPOINTS)
    for _ in range(MIXTURES):
        ways = {kind: RNG.choice(list(WAYS)) for kind in SIDE_FILES if RNG.random() < 0.3}
        yield ways | {
            name: RNG.choice(list(WAYS_OF_CHECKPOINTS))
            for name in CHECKPOINTS
            if RNG.random() < 0.6
        }


def subsets() -> Iterator[dict[str, str]]:
    """Yield every set of files damaged in one way, and random mixtures of ways."""
    for size in range(len(SIDE_FILES) + 1):
        for chosen in combinations(SIDE_FILES, size):
            yield from (dict.fromkeys(chosen, way) for way in WAYS)
    for _ in range(MIXTURES):
        chosen = tuple(kind for kind in SIDE_FILES if RNG.random() < 0.6)
        yield {kind: RNG.choice(list(WAYS)) for kind in chosen}


def checked(data: bytes) -> Iterator[tuple[int, int]]:
    """Yield the first and the last offset of each batch, whose checksum is right."""
    for position, header in iterate_batches(data):
        assert is_crc_valid(data, position, header)
        yield header.base_offset, header.last_offset


def opened(world: World, path: Path) -> LogDirectories:
    """Open a copy of the directory."""
    copy = World(path, world.config)
    directories = copy.directories()
    OPENED.remove(directories)
    return directories


@pytest.mark.parametrize("is_clean", [False, True])
def test_a_log_with_any_damaged_side_files_has_all_its_records(
    tmp_path: Path, is_clean: bool
) -> None:
    """Reads at every offset begin at the right batch, and the controller's topic id is accepted."""
    world, expected = written(tmp_path / "original", is_clean=is_clean)
    copy = tmp_path / "copy"
    for ways in subsets():
        shutil.copytree(world.path, copy)
        damage(copy / "t-0", ways)
        directories = opened(world, copy)
        log = directories.get("t", 0)
        assert log is not None, ways
        assert directories.create("t", 0, TOPIC_ID, world.config) is log, ways
        assert offsets(log) == expected, ways
        for offset in range(0, log.log_end_offset, 3):
            fetched = log.read(offset, 1, max_offset=log.log_end_offset, at_least_one=True)
            assert fetched is not None, ways
            (batch,) = list(checked(bytes(fetched.records)))
            assert batch[0] <= offset <= batch[1], (offset, ways)
        directories.abandon()
        shutil.rmtree(copy)


@pytest.mark.parametrize("is_clean", [False, True])
def test_a_log_with_damaged_checkpoints_has_all_its_records_or_is_restored(
    tmp_path: Path, is_clean: bool
) -> None:
    """A log start offset behind the end is ignored after a clean shutdown; after a crash the
    segments are set aside, reported, and restored by the repair.
    """
    world, expected = written(tmp_path / "original", is_clean=is_clean)
    for name in CHECKPOINTS:
        if not (world.path / name).exists():
            (world.path / name).write_bytes(checkpoints.encode_offsets({("t", 0): 0}))
    copy = tmp_path / "copy"
    restored = 0
    for ways in subsets_of_checkpoints():
        shutil.copytree(world.path, copy)
        damage(copy, ways)
        damage(copy / "t-0", ways)
        directories = opened(world, copy)
        log = directories.get("t", 0)
        assert log is not None, ways
        if offsets(log) != expected:
            assert not is_clean, ways
            assert "ottla log repair" in directories.damaged()["t", 0], ways
            directories.abandon()
            (planned,) = repair.plan(world.files, str(copy))
            repair.execute(world.files, planned, lambda: "x")
            directories = opened(world, copy)
            log = directories.get("t", 0)
            assert log is not None, ways
            assert offsets(log) == expected, ways
            assert directories.damaged() == {}, ways
            restored += 1
        directories.abandon()
        shutil.rmtree(copy)
    assert (restored > 0) is not is_clean


def test_wrong_log_start_offset_is_forgotten_at_once(tmp_path: Path) -> None:
    """A crash after the start does not let the ignored value count."""
    world, expected = written(tmp_path, is_clean=True)
    path = tmp_path / checkpoints.LOG_START_FILE
    path.write_bytes(checkpoints.encode_offsets({("t", 0): 10_000}))
    directories = world.directories()
    directories.abandon()
    directories = world.directories()
    log = directories.get("t", 0)
    assert log is not None
    assert offsets(log) == expected
    directories.close()
