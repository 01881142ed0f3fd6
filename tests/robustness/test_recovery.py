"""Loading after a crash: it tells how far it is, can be given up, and holds little in memory."""

import tracemalloc
from pathlib import Path

import pytest

from ottla.base.clock import RealClock
from ottla.base.errors import StorageError
from ottla.base.files import RealFileSystem
from ottla.storage.log import recovery
from ottla.storage.log.recovery import Account, Expectation
from tests.unit.storage.world import START_MS, World, make_batch

MIB = 1024 * 1024
LOG_MIB = 40


class FastClock(RealClock):
    """A second passes whenever somebody looks."""

    def __init__(self) -> None:
        self.now = 0.0

    def monotonic(self) -> float:
        self.now += 1.0
        return self.now


@pytest.fixture
def world(tmp_path: Path) -> World:
    """A log of some tens of megabytes, as a crash leaves it."""
    made = World(tmp_path, segment_bytes=16 * MIB)
    log = made.load()
    for _ in range(LOG_MIB):
        log.append_as_leader(make_batch([bytes(MIB - 1000)]), 0)
    log.durability.flush()
    log.abandon()
    return made


def load(world: World, account: Account) -> recovery.LoadedLog:
    """Load the log with nothing known to be durable."""
    files, expected = RealFileSystem(), Expectation(0, 0, False)
    return recovery.load(files, str(world.folder), world.config, expected, START_MS, account)


def test_recovery_tells_how_far_it_is(world: World, caplog: pytest.LogCaptureFixture) -> None:
    """A line now and then, not one for each segment."""
    account = Account(FastClock())
    loaded = load(world, account)
    assert loaded.log_end_offset == LOG_MIB
    lines = [each.message for each in caplog.records if "recovering logs" in each.message]
    assert 1 <= len(lines) <= LOG_MIB // 4 // 5 + 2
    assert "mib_read=" in lines[0] and "t-0/0000" in lines[0]
    assert account.walked_bytes > (LOG_MIB - 1) * MIB


def test_recovery_ends_where_nobody_wants_it(world: World) -> None:
    """In the middle of a segment; the next start begins anew and finds everything."""
    asked = []

    def is_wanted() -> bool:
        asked.append(1)
        return len(asked) < 3

    with pytest.raises(StorageError, match="given up"):
        load(world, Account(RealClock(), is_wanted))
    assert load(world, Account(RealClock())).log_end_offset == LOG_MIB


def test_recovery_holds_little_of_what_it_reads(world: World) -> None:
    """However large the log is."""
    tracemalloc.start()
    try:
        load(world, Account(RealClock()))
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 6 * MIB
