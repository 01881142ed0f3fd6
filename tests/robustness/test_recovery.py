"""Recovery after a crash logs its progress, can be cancelled, and needs little memory."""

import tracemalloc
from pathlib import Path

import pytest

from ottla.base.clock import RealClock
from ottla.base.errors import StorageError
from ottla.base.files import RealFileSystem
from ottla.storage.log import recovery
from ottla.storage.log.recovery import Expectation, LoadProgress
from tests.unit.storage.world import START_MS, World, make_batch

pytestmark = pytest.mark.alone

MIB = 1024 * 1024
LOG_MIB = 40


class FastClock(RealClock):
    """A clock that advances by a second at each reading."""

    def __init__(self) -> None:
        self.now = 0.0

    def monotonic(self) -> float:
        self.now += 1.0
        return self.now


@pytest.fixture
def world(tmp_path: Path) -> World:
    """Return a log of some tens of megabytes, as a crash leaves it."""
    created = World(tmp_path, segment_bytes=16 * MIB)
    log = created.load()
    for _ in range(LOG_MIB):
        log.append_as_leader(make_batch([bytes(MIB - 1000)]), 0)
    log.durability.flush()
    log.abandon()
    return created


def load(world: World, progress: LoadProgress) -> recovery.LoadedLog:
    """Load the log as if no part of it were known to be durable."""
    files, expected = RealFileSystem(), Expectation(0, 0, False)
    return recovery.load(files, str(world.folder), world.config, expected, START_MS, progress)


def test_recovery_logs_its_progress(world: World, caplog: pytest.LogCaptureFixture) -> None:
    """A line is logged from time to time, not for each segment."""
    progress = LoadProgress(FastClock())
    loaded = load(world, progress)
    assert loaded.log_end_offset == LOG_MIB
    lines = [record.message for record in caplog.records if "recovering logs" in record.message]
    assert 1 <= len(lines) <= LOG_MIB // 4 // 5 + 2
    assert "mib_read=" in lines[0] and "t-0/0000" in lines[0]
    assert progress.walked_bytes > (LOG_MIB - 1) * MIB


def test_recovery_can_be_cancelled(world: World) -> None:
    """It is cancelled in the middle of a segment; the next start repeats it and finds everything."""
    checks = []

    def is_wanted() -> bool:
        checks.append(1)
        return len(checks) < 3

    with pytest.raises(StorageError, match="stopped during its start"):
        load(world, LoadProgress(RealClock(), is_wanted))
    assert load(world, LoadProgress(RealClock())).log_end_offset == LOG_MIB


def test_recovery_needs_little_memory(world: World) -> None:
    """The memory does not depend on the size of the log."""
    tracemalloc.start()
    try:
        load(world, LoadProgress(RealClock()))
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 6 * MIB
