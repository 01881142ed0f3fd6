"""Out of file descriptors: the operation fails and can be retried, the log directory stays online."""

import errno

import pytest

from ottla.base.errors import OutOfDescriptorsError, StorageError
from ottla.storage.config import LogConfig
from ottla.storage.directories.disk import LogDirectories
from ottla.testing.sim.files import SimFileSystem

from .world import TOPIC_ID, World, make_batch, offsets

CONFIG = LogConfig(segment_bytes=300)
EXHAUSTED = pytest.mark.parametrize("error", [errno.EMFILE, errno.ENFILE])


def simulated() -> tuple[World, SimFileSystem, LogDirectories]:
    """Return a log directory on a simulated disk."""
    world, files = World("/a", CONFIG), SimFileSystem()
    world.files = files
    return world, files, world.directories()


@EXHAUSTED
@pytest.mark.parametrize("nth", [1, 2, 3, 4])
def test_append_without_a_free_descriptor_can_be_retried(error: int, nth: int) -> None:
    """A roll fails between two segments; the next append rolls, and no offset is lost."""
    world, files, directories = simulated()
    log = directories.create("t", 0, TOPIC_ID, CONFIG)
    refused = 0
    for _ in range(20):
        files.faults.fail("open", error=error, path="/a/t-0/", nth=nth)
        try:
            log.append_as_leader(make_batch(), 0)
        except OutOfDescriptorsError:
            refused += 1
    for _ in range(3):
        try:
            log.append_as_leader(make_batch(), 0)
        except OutOfDescriptorsError:
            refused += 1
    assert refused
    assert log.failure is None
    assert world.failures == []
    assert offsets(log) == list(range(log.log_end_offset))
    files.faults = SimFileSystem().faults
    directories.close()
    again = world.directories()
    assert offsets(again.logs()["t", 0]) == list(range(23 - refused))
    again.close()


@EXHAUSTED
def test_checkpoint_without_a_free_descriptor_is_retried(error: int) -> None:
    """Checkpoints and new logs fail without taking the directory offline, and succeed later."""
    world, files, directories = simulated()
    for operation in ("replace", "open", "make_directories"):
        files.faults.fail(operation, error=error)
    with pytest.raises(OutOfDescriptorsError):
        directories.checkpoint()
    for _ in range(2):
        with pytest.raises(OutOfDescriptorsError):
            directories.create("t", 0, TOPIC_ID, CONFIG)
    log = directories.create("t", 0, TOPIC_ID, CONFIG)
    log.append_as_leader(make_batch(), 0)
    directories.checkpoint()
    assert world.failures == []
    directories.close()


@EXHAUSTED
async def test_upkeep_without_a_free_descriptor_is_retried(error: int) -> None:
    """Background flushes and checkpoints resume when descriptors are available."""
    world, files, directories = simulated()
    log = directories.create("t", 0, TOPIC_ID, CONFIG)
    for _ in range(10):
        log.append_as_leader(make_batch(), 0)
    for operation in ("sync_directory", "replace"):
        files.faults.fail(operation, error=error, times=3)
    for _ in range(8):
        world.clock.now_ms += 61_000
        await directories.upkeep.maintain()
    assert world.failures == []
    assert log.recovery_point > 0
    assert files.exists("/a/recovery-point-offset-checkpoint")
    directories.close()


@EXHAUSTED
def test_truncation_without_a_free_descriptor_makes_only_its_log_unusable(error: int) -> None:
    """A half-truncated log is unusable until a restart; other logs continue."""
    world, files, directories = simulated()
    log = directories.create("t", 0, TOPIC_ID, CONFIG)
    other = directories.create("t", 1, TOPIC_ID, CONFIG)
    for _ in range(10):
        log.append_as_leader(make_batch(), 0)
    files.faults.fail("sync_directory", error=error)
    with pytest.raises(OutOfDescriptorsError):
        log.truncation.truncate_to(3)
    with pytest.raises(StorageError):
        log.append_as_leader(make_batch(), 0)
    other.append_as_leader(make_batch(), 0)
    assert world.failures == []
    directories.abandon()
    again = world.directories()
    assert offsets(again.logs()["t", 0]) == list(range(again.logs()["t", 0].log_end_offset))
    again.close()


def test_start_without_free_descriptors_says_what_to_do() -> None:
    """The broker does not start with only a part of its data."""
    world, files, directories = simulated()
    directories.close()
    files.faults.fail("list", error=errno.EMFILE)
    with pytest.raises(StorageError, match="ulimit -n"):
        world.directories()
