"""Clean shutdowns of log directories: all data is durable then, and failures are reported."""

import errno
from pathlib import Path

import pytest

from ottla.base.errors import StorageError
from ottla.base.rng import SeededRng
from ottla.storage.config import LogConfig
from ottla.storage.directories import log_directory
from ottla.storage.directories.disk import LogDirectories
from ottla.storage.log.log import Log
from ottla.testing.sim.files import SimLock
from tests.unit.storage.directories.test_disk import open_many, simulated
from tests.unit.storage.world import TOPIC_ID, World, make_batch, offsets

CONFIG = LogConfig(segment_bytes=500, file_delete_delay_ms=1000)


@pytest.fixture
def world(tmp_path: Path) -> World:
    """Return a world with a log directory of its own."""
    return World(tmp_path / "data", CONFIG)


def create_filled(directories: LogDirectories, count: int) -> list[Log]:
    """Create logs with ten records each, in leader epoch 3 from the fifth on."""
    logs = [directories.create("t", number, TOPIC_ID, CONFIG) for number in range(count)]
    for log in logs:
        for number in range(5):
            log.append_as_leader(make_batch(2), 0 if number < 2 else 3)
    return logs


async def test_logs_are_closed_in_parallel_off_the_loop(world: World) -> None:
    """Closing makes all logs durable off the event loop, and the next start finds a clean shutdown."""
    directories = world.directories()
    logs = [directories.create("t", number, TOPIC_ID, CONFIG) for number in range(20)]
    for log in logs:
        log.append_as_leader(make_batch(), 0)
    await directories.close_in_background(world.files)
    assert [log.recovery_point for log in logs] == [log.log_end_offset for log in logs]
    assert (world.path / ".kafka_cleanshutdown").exists()
    again = world.directories()
    assert [log.log_end_offset for log in again.logs().values()] == [1] * 20


async def test_a_directory_that_fails_while_it_is_closed_is_offline_and_the_other_is_clean() -> (
    None
):
    """All logs of the other directory are closed; the failure is reported on the owner's event
    loop.
    """
    world, files = simulated()
    directories = open_many(world, ["/a", "/b"])
    for number in range(10):
        log = directories.create("t", number, TOPIC_ID, CONFIG)
        log.append_as_leader(make_batch(), 0)
    files.faults.fail("sync", path="/a/", error=errno.EIO)
    with pytest.raises(StorageError):
        await directories.close_in_background(files)
    assert {error.directory for error in world.failures} == {"/a"}
    assert not files.exists("/a/.kafka_cleanshutdown")
    assert files.exists("/b/.kafka_cleanshutdown")


async def test_an_unexpected_exception_leaves_no_directory_clean(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After an unexpected exception the other logs are closed and the locks released."""
    directories = world.directories()
    logs = [directories.create("t", number, TOPIC_ID, CONFIG) for number in range(5)]

    def fail() -> None:
        raise LookupError("a bug")

    monkeypatch.setattr(logs[2], "close", fail)
    with pytest.raises(LookupError):
        await directories.close_in_background(world.files)
    assert not (world.path / ".kafka_cleanshutdown").exists()
    monkeypatch.undo()
    assert len(world.directories().logs()) == 5


async def test_many_logs_are_flushed_by_syncs_of_the_file_system(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Thousands of single syncs take long, so a few of the whole file system replace them."""
    monkeypatch.setattr(log_directory, "_TOGETHER_MIN", 100)
    world, files = simulated()
    directories = open_many(world, ["/a"])
    logs = create_filled(directories, 100)
    files.faults.fail("sync", path="/a/t-", times=-1)
    files.faults.fail("sync_directory", path="/a/t-", times=-1)
    await directories.close_in_background(files)
    assert not world.failures
    assert {log.recovery_point for log in logs} == {10}
    world.files = files.power_loss(SeededRng(1))
    assert world.files.exists("/a/.kafka_cleanshutdown")
    again = open_many(world, ["/a"])
    assert {tuple(offsets(log)) for log in again.logs().values()} == {tuple(range(10))}
    assert {log.epochs.end_offset_for(0, 10) for log in again.logs().values()} == {(0, 4)}


@pytest.mark.parametrize("seed", range(5))
def test_a_power_loss_during_a_common_flush_leaves_no_wrong_mark(
    seed: int, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Whenever the power fails, a clean shutdown is marked only with all records and epochs."""
    monkeypatch.setattr(log_directory, "_TOGETHER_MIN", 3)
    change, has_ended = 0, False
    while not has_ended:
        change += 1
        world, files = simulated()
        directories = open_many(world, ["/a"])
        create_filled(directories, 3)
        files.faults.lose_power_at(change)
        try:
            directories.directories()[0].flush_together()
            directories.close()
            has_ended = True
        except KeyboardInterrupt:
            pass
        world.files = files.power_loss(SeededRng(1000 * seed + change))
        is_clean = world.files.exists("/a/.kafka_cleanshutdown")
        caplog.clear()
        again = open_many(world, ["/a"])
        for log in again.logs().values():
            assert offsets(log) == list(range(log.log_end_offset))
            if is_clean:
                assert "leader-epoch-checkpoint" not in caplog.text
                assert log.log_end_offset == 10
                assert log.epochs.end_offset_for(0, 10) == (0, 4)
    assert is_clean
    assert change > 10


@pytest.mark.parametrize("failing", [1, 2, 3])
async def test_a_directory_whose_common_flush_fails_is_offline_and_the_other_is_clean(
    failing: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first of the syncs may fail, or a later one."""
    monkeypatch.setattr(log_directory, "_TOGETHER_MIN", 5)
    world, files = simulated()
    directories = open_many(world, ["/a", "/b"])
    create_filled(directories, 10)
    files.faults.fail("sync_file_system", path="/a/", nth=failing)
    with pytest.raises(StorageError):
        await directories.close_in_background(files)
    assert {error.directory for error in world.failures} == {"/a"}
    assert not files.exists("/a/.kafka_cleanshutdown")
    assert files.exists("/b/.kafka_cleanshutdown")


async def test_a_log_that_cannot_be_flushed_with_the_others_is_reported(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The directory is offline then, although all the other logs were flushed."""
    monkeypatch.setattr(log_directory, "_TOGETHER_MIN", 5)
    world, files = simulated()
    directories = open_many(world, ["/a"])
    logs = create_filled(directories, 10)
    files.faults.fail("append", path="/a/t-7/leader-epoch", error=errno.ENOSPC)
    with pytest.raises(StorageError, match="t-7: No space"):
        await directories.close_in_background(files)
    assert [error.directory for error in world.failures] == ["/a"]
    assert [log.recovery_point for log in logs] == [10] * 7 + [0] + [10] * 2
    assert not files.exists("/a/.kafka_cleanshutdown")


async def test_logs_are_flushed_one_by_one_where_a_file_system_cannot_be_synced(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Other systems than Linux, and remote file systems, have no reliable syncfs."""
    monkeypatch.setattr(log_directory, "_TOGETHER_MIN", 5)
    monkeypatch.setattr(SimLock, "sync_file_system", lambda lock: False)
    world, files = simulated()
    directories = open_many(world, ["/a"])
    create_filled(directories, 10)
    await directories.close_in_background(files)
    world.files = files.power_loss(SeededRng(1))
    again = open_many(world, ["/a"])
    assert {tuple(offsets(log)) for log in again.logs().values()} == {tuple(range(10))}
