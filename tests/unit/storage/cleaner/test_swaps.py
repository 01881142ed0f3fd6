"""Segment swaps that a crash interrupts, and crashes while they are completed or undone."""

import pytest

from ottla.base.rng import SeededRng
from ottla.storage.config import LogConfig
from ottla.storage.log import recovery
from ottla.storage.log.segment import Segment
from ottla.testing.sim.files import SimFileSystem
from tests.unit.storage.world import START_MS, make_batch

FOLDER = "/data/t-0"
CONFIG = LogConfig()
SEEDS = range(12)
# The number of random disk states that are tried for one moment of a crash.
MANY_SEEDS = range(100)
OLD = (0, 5, 10)
BEHIND = 15


def write(files: SimFileSystem, name: str, offsets: range) -> None:
    """Write a durable segment file with one record for each offset."""
    file = files.open(f"{FOLDER}/{name}", create=True)
    for offset in offsets:
        data = make_batch()
        data[0:8] = offset.to_bytes(8, "big")
        file.append(bytes(data))
    file.sync()
    file.close()


def interrupted() -> SimFileSystem:
    """Return a disk after compaction has written the swap of three segments and then crashed."""
    files = SimFileSystem()
    files.make_directories(FOLDER)
    for base in (*OLD, BEHIND):
        write(files, f"{base:020d}.log", range(base, base + 5))
        for suffix in ("index", "timeindex"):
            write(files, f"{base:020d}.{suffix}", range(0))
    # The last record of each segment is kept.
    file = files.open(f"{FOLDER}/{0:020d}.log.swap", create=True)
    for base in OLD:
        data = make_batch()
        data[0:8] = (base + 4).to_bytes(8, "big")
        file.append(bytes(data))
    file.sync()
    write(files, f"{0:020d}.index.swap", range(0))
    write(files, f"{0:020d}.timeindex.swap", range(0))
    for folder in ("/", "/data", FOLDER):
        files.sync_directory(folder)
    return files


def offsets_of(files: SimFileSystem) -> list[int]:
    """Return the offsets that the log files hold, in the order of their names."""
    result = []
    for name in files.list(FOLDER):
        if name.endswith(".log"):
            segment = Segment.open(files, FOLDER, int(name[:20]), CONFIG, START_MS)
            result += [header.base_offset for _, header in segment.batches.headers(0)]
    return result


@pytest.mark.parametrize("seed", SEEDS)
def test_swap_is_completed_after_any_power_loss(seed: int) -> None:
    """After repeated power losses there are never both the old and the new segments, nor neither."""
    swapped = [4, 9, 14, *range(BEHIND, BEHIND + 5)]
    change, ended = 0, False
    while not ended:
        change += 1
        files = interrupted()
        files.faults.lose_power_at(change)
        try:
            recovery.tidy(files, FOLDER)
            ended = True
        except KeyboardInterrupt:
            pass
        files = files.power_loss(SeededRng(seed * 1000 + change))
        recovery.tidy(files, FOLDER)
        assert offsets_of(files) == swapped, f"change {change}"
    assert change > 8


@pytest.mark.parametrize("seed", MANY_SEEDS)
def test_completed_swap_is_not_undone_with_a_later_cleaning(seed: int) -> None:
    """A later cleaning that a crash interrupts costs nothing of a completed swap.

    As long as the rename were not durable, a start would find the swap file again beside unfinished
    files, and take it for part of them.
    """
    files = interrupted()
    recovery.tidy(files, FOLDER)
    write(files, f"{0:020d}.log.cleaned", range(2))
    files = files.power_loss(SeededRng(seed))
    recovery.tidy(files, FOLDER)
    assert offsets_of(files) == [4, 9, 14, *range(BEHIND, BEHIND + 5)]


@pytest.mark.parametrize("seed", MANY_SEEDS)
def test_swap_of_an_unfinished_split_is_undone_after_any_power_loss(seed: int) -> None:
    """The swap file is removed before the unfinished file, without which it would count as
    complete.
    """
    change, ended = 0, False
    while not ended:
        change += 1
        files = interrupted()
        write(files, f"{0:020d}.log.cleaned", range(2))
        files.sync_directory(FOLDER)
        files.faults.lose_power_at(change)
        try:
            recovery.tidy(files, FOLDER)
            ended = True
        except KeyboardInterrupt:
            pass
        files = files.power_loss(SeededRng(seed * 1000 + change))
        recovery.tidy(files, FOLDER)
        assert offsets_of(files) == list(range(BEHIND + 5)), f"change {change}"
