"""A damaged batch header affects only its own partition: upkeep, loading and other partitions
continue.
"""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from ottla.base.errors import ApiError, ErrorCode
from ottla.base.rng import SeededRng
from ottla.storage.cleaner import cleaning
from ottla.storage.directories.disk import LogDirectories
from ottla.storage.log.log import Log
from ottla.wire.records import batch
from ottla.wire.records.batch import HEADER_SIZE
from tests.unit.storage.world import START_MS, TOPIC_ID, World, make_batch, offsets, small_segments

from .test_damage import fill

DAY_MS = 24 * 3_600_000


def two_logs(folder: Path, **fields: Any) -> World:
    """Return a world with two logs of many segments, closed cleanly."""
    world = small_segments(folder, retention_ms=DAY_MS, **fields)
    directories = world.directories()
    for partition in range(2):
        fill(directories.create("t", partition, TOPIC_ID, world.config))
    store(directories)
    directories.close()
    return world


def store(directories: LogDirectories) -> None:
    """Set the high watermark of every log to its end."""
    for log in directories.logs().values():
        log.high_watermark = log.log_end_offset
    ends = {key: log.log_end_offset for key, log in directories.logs().items()}
    directories.store_high_watermarks(ends)


def damage(world: World, segment: int, position: int = 0, size: int = HEADER_SIZE) -> Path:
    """Overwrite bytes of a segment of the first log with zeros."""
    path = world.folder / world.names(".log")[segment]
    data = bytearray(path.read_bytes())
    data[position : position + size] = bytes(size)
    path.write_bytes(data)
    return path


def found(directories: LogDirectories, partition: int) -> Log:
    """Return the log of a partition."""
    log = directories.get("t", partition)
    assert log is not None
    return log


@pytest.mark.parametrize("segment", [0, 1, 3, -2])
async def test_damaged_header_at_a_clean_start_affects_only_its_partition(
    tmp_path: Path, segment: int
) -> None:
    """The broker starts, the damage is reported, and upkeep and closing of both logs succeed."""
    world = two_logs(tmp_path)
    path = damage(world, segment)
    directories = world.directories()
    damaged, sound = found(directories, 0), found(directories, 1)
    store(directories)
    with pytest.raises(ApiError) as refused:
        damaged.read(int(path.name[:20]), 1000, max_offset=damaged.log_end_offset)
    assert refused.value.code is ErrorCode.CORRUPT_MESSAGE
    assert directories.damaged() == {("t", 0): f"{path} is damaged at byte 0."}
    assert damaged.failure is None
    behind = offsets(sound)
    await directories.upkeep.tick_retention(START_MS + 1000)
    assert offsets(sound) == behind
    directories.close()
    assert not world.failures


async def test_retention_deletes_a_damaged_segment_when_its_file_is_old_enough(
    tmp_path: Path,
) -> None:
    """The newest record may be unreadable, so the modification time of the file counts as well."""
    world = two_logs(tmp_path)
    path = damage(world, 0)
    directories = world.directories()
    store(directories)
    damaged, sound = found(directories, 0), found(directories, 1)
    changed_ms = int(path.stat().st_mtime * 1000)
    await directories.upkeep.tick_retention(changed_ms + DAY_MS - 1000)
    assert damaged.log_start_offset == 0
    assert sound.log_start_offset == sound.log_end_offset
    await directories.upkeep.tick_retention(changed_ms + DAY_MS + 60_000)
    assert damaged.log_start_offset == damaged.log_end_offset
    assert directories.damaged() == {}


async def test_damage_while_the_broker_runs_does_not_stop_upkeep(tmp_path: Path) -> None:
    """Retention reads the damaged header when it looks for the newest record of a segment."""
    world = two_logs(tmp_path)
    directories = world.directories()
    store(directories)
    for segment in range(5):
        damage(world, segment)
    await directories.upkeep.tick_retention(START_MS + 2 * DAY_MS)
    sound = found(directories, 1)
    assert sound.log_start_offset == sound.log_end_offset
    assert ("t", 0) in directories.damaged()


def client_calls(log: Log) -> list[Callable[[], object]]:
    """Return the calls that clients can make on a log."""
    end = log.log_end_offset
    calls: list[Callable[[], object]] = [
        lambda at=at: log.read(at, 500, max_offset=end)  # type: ignore[misc]
        for at in range(log.log_start_offset, end)
    ]
    calls += [
        lambda at=at: log.offset_for_timestamp(START_MS + at)  # type: ignore[misc]
        for at in range(0, 1001, 100)
    ]
    calls += [
        log.offset_of_max_timestamp,
        lambda: log.aborted_transactions(0, end),
        lambda: log.last_stable_offset(end),
        lambda: log.append_as_leader(make_batch(3), 5),
        log.rolling.roll,
        lambda: log.truncation.advance_log_start_offset(end // 2),
    ]
    return calls


@pytest.mark.parametrize("running", [False, True])
@pytest.mark.parametrize("seed", range(10))
async def test_random_damage_raises_only_errors_of_the_protocol(
    tmp_path: Path, seed: int, running: bool
) -> None:
    """Any batch is damaged in its header or records, before the start or while the broker runs."""
    print(f"seed={seed}")
    rng = SeededRng(seed)
    compacted = {"cleanup_policy": ("compact", "delete")} if seed % 2 else {}
    index_bytes = 100 if seed % 4 < 2 else 10_000
    world = two_logs(tmp_path, index_interval_bytes=index_bytes, **compacted)
    if running:
        directories = world.directories()
    for _ in range(1 + rng.below(4)):
        damage_a_batch(world, rng)
    if not running:
        directories = world.directories()
    store(directories)
    damaged = found(directories, 0)
    for call in client_calls(damaged):
        with suppress(ApiError):
            call()
    settings = cleaning.Settings()
    cleaner = cleaning.Cleaner(
        directories, files=world.files, clock=world.clock, settings=lambda: settings
    )
    for _ in range(3):
        await cleaner.clean_dirtiest()
    for age_ms in (1000, 2 * DAY_MS):
        await directories.upkeep.tick_retention(START_MS + age_ms)
    damaged.truncation.truncate_to(damaged.log_end_offset - rng.below(20))
    await asyncio.sleep(0)
    assert not world.failures
    directories.close()
    world.directories().close()
    assert not world.failures


def damage_a_batch(world: World, rng: SeededRng) -> None:
    """Overwrite a few bytes somewhere in a batch of a random segment, with zeros, ones or noise."""
    names = world.names(".log")
    path = world.folder / names[rng.below(len(names))]
    data, starts, position = bytearray(path.read_bytes()), [], 0
    while position < len(data):
        starts.append(position)
        position += max(batch.peek_size(data, position), HEADER_SIZE)
    if not starts:
        return
    start = starts[rng.below(len(starts))] + rng.below(HEADER_SIZE + 10)
    size = 1 + rng.below(12)
    fill_with = [bytes(size), b"\xff" * size, rng.random_bytes(size)][rng.below(3)]
    data[start : start + size] = fill_with[: max(0, len(data) - start)]
    path.write_bytes(data)
