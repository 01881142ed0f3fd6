"""Swaps of segments that a crash has cut short, and crashes while they are finished or undone."""

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
# Where one moment is tried, with many ways in which the disk may have got behind.
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
    """Return a disk where compaction has written the swap of three segments, and got no further."""
    files = SimFileSystem()
    files.make_directories(FOLDER)
    for base in (*OLD, BEHIND):
        write(files, f"{base:020d}.log", range(base, base + 5))
        for suffix in ("index", "timeindex"):
            write(files, f"{base:020d}.{suffix}", range(0))
    # Of each segment, the last record is left.
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
    found = []
    for name in files.list(FOLDER):
        if name.endswith(".log"):
            segment = Segment.open(files, FOLDER, int(name[:20]), CONFIG, START_MS)
            found += [header.base_offset for _, header in segment.batches.headers(0)]
    return found


@pytest.mark.parametrize("seed", SEEDS)
def test_a_swap_is_finished_whatever_the_power_does(seed: int) -> None:
    """However often it goes: never the old beside the new, never neither of them."""
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
def test_what_a_swap_has_become_is_no_ones_unfinished_work(seed: int) -> None:
    """A cleaning that begins afterwards and is cut short costs none of it.

    As long as its name were not durable, a start would find the swap again beside unfinished work,
    and take it for a part of that.
    """
    files = interrupted()
    recovery.tidy(files, FOLDER)
    write(files, f"{0:020d}.log.cleaned", range(2))
    files = files.power_loss(SeededRng(seed))
    recovery.tidy(files, FOLDER)
    assert offsets_of(files) == [4, 9, 14, *range(BEHIND, BEHIND + 5)]


@pytest.mark.parametrize("seed", MANY_SEEDS)
def test_a_swap_of_an_unfinished_split_is_undone_whatever_the_power_does(seed: int) -> None:
    """Without the unfinished file beside it, it would be taken for whole: it goes first."""
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
