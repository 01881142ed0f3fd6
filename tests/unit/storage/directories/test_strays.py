"""Logs that were set aside: how long they are kept, and which of them are listed."""

import os
import re
from pathlib import Path

import pytest

from ottla.storage.directories.disk import LogDirectories
from ottla.storage.directories.strays import REASON_FILE, StrayReason
from tests.unit.storage.world import TOPIC_ID, World, make_batch

HOUR_MS = 3_600_000
DAY_MS = 24 * HOUR_MS
STRAY = re.compile(r"t-0\.[0-9a-f]{32}-stray")


def with_stray(world: World, reason: StrayReason, *, records: int = 1) -> Path:
    """Set a log aside, and close the directory; return the path of the stray."""
    directories = world.directories()
    log = directories.create("t", 0, TOPIC_ID, world.config)
    for _ in range(records):
        log.append_as_leader(make_batch(), 0)
    path = directories.set_aside("t", 0, reason)
    directories.settle_deletions()
    directories.close()
    # The clock of the test, not the one of the machine.
    set_age(world, Path(path))
    return Path(path)


def set_age(world: World, folder: Path) -> None:
    """Let a log be a stray since now, by the clock of the test."""
    seconds = world.clock.now_ms / 1000
    os.utime(folder / REASON_FILE, (seconds, seconds))


def strays(directories: LogDirectories) -> list[tuple[tuple[str, int], bool]]:
    """Return partition, and whether it has bytes, of each stray log."""
    (directory,) = directories.directories()
    listed = directory.strays.listed()
    assert all(STRAY.fullmatch(stray.name) for stray in listed)
    return [(stray.key, stray.size_bytes > 0) for stray in listed]


async def maintain(world: World, directories: LogDirectories, passed_ms: int) -> None:
    """Let time pass in the steps of the retention's check."""
    for _ in range(passed_ms // HOUR_MS):
        world.clock.now_ms += HOUR_MS
        await directories.upkeep.maintain()


@pytest.mark.parametrize("restarts", [False, True])
async def test_stray_log_is_removed_after_its_retention(tmp_path: Path, restarts: bool) -> None:
    """Its age survives a restart."""
    world = World(tmp_path)
    path = with_stray(world, StrayReason.UNASSIGNED)
    directories = world.directories()
    assert strays(directories) == [(("t", 0), True)]
    await maintain(world, directories, DAY_MS - HOUR_MS)
    assert path.exists()
    if restarts:
        directories.close()
        directories = world.directories()
    await maintain(world, directories, 2 * HOUR_MS)
    assert not path.exists()
    assert strays(directories) == []


async def test_retention_of_zero_keeps_stray_logs(tmp_path: Path) -> None:
    """Every start reports them."""
    world = World(tmp_path)
    path = with_stray(world, StrayReason.UNASSIGNED)
    directories = world.directories()
    directories.upkeep.intervals = directories.upkeep.intervals._replace(stray_retention_ms=0)
    await maintain(world, directories, 3 * DAY_MS)
    assert path.exists()


async def test_log_with_another_topic_id_is_kept_and_reported(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Its partition.metadata may be damaged."""
    world = World(tmp_path)
    path = with_stray(world, StrayReason.OTHER_TOPIC_ID)
    caplog.clear()
    directories = world.directories()
    (record,) = [item for item in caplog.records if item.levelname == "ERROR"]
    assert f"`ottla log repair` or delete it partition=t-0 path={path}" in record.getMessage()
    await maintain(world, directories, 2 * DAY_MS)
    assert path.exists()


async def test_empty_log_with_another_topic_id_is_removed(tmp_path: Path) -> None:
    """Without records there is nothing to lose."""
    world = World(tmp_path)
    path = with_stray(world, StrayReason.OTHER_TOPIC_ID, records=0)
    await maintain(world, world.directories(), 2 * DAY_MS)
    assert not path.exists()


async def test_age_of_a_stray_without_a_reason_counts_from_its_discovery(tmp_path: Path) -> None:
    """A KRaft broker or an earlier version has set it aside."""
    world = World(tmp_path)
    path = with_stray(world, StrayReason.UNASSIGNED)
    (path / REASON_FILE).unlink()
    directories = world.directories()
    assert (path / REASON_FILE).read_text() == StrayReason.UNASSIGNED.value
    set_age(world, path)
    directories.close()
    directories = world.directories()
    await maintain(world, directories, DAY_MS - HOUR_MS)
    assert path.exists()
    await maintain(world, directories, 2 * HOUR_MS)
    assert not path.exists()
