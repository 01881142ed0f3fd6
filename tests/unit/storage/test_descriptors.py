"""Out of file descriptors: the operation fails and can be retried, the log directory stays online."""

import errno

import pytest

from ottla.base.errors import OutOfDescriptorsError, StorageError
from ottla.storage.config import LogConfig
from ottla.storage.directories.disk import LogDirectories
from ottla.storage.files.txn_index import AbortedTransaction
from ottla.storage.log.log import Log
from ottla.testing.sim.files import SimFileSystem

from .world import TOPIC_ID, World, end_transaction, fill, make_batch, offsets

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


@EXHAUSTED
async def test_log_that_failed_midway_is_recovered_after_an_orderly_stop(error: int) -> None:
    """An aborted transaction whose index entry could not be written is rebuilt by the next start."""
    world, files, directories = simulated()
    log = directories.create("t", 0, TOPIC_ID, LogConfig())
    log.append_as_leader(make_batch(2, sequence=0, transactional=True), 0)
    files.faults.fail("open", error=error, path=".txnindex")
    with pytest.raises(OutOfDescriptorsError):
        end_transaction(log, "ABORT")
    await directories.close_in_background(files)
    assert not files.exists("/a/.kafka_cleanshutdown")
    again = world.directories()
    recovered = again.logs()["t", 0]
    assert recovered.aborted_transactions(0, 3) == [AbortedTransaction(7, 0, 2, 3)]
    assert recovered.recovery_point == 0
    again.close()
    assert files.exists("/a/.kafka_cleanshutdown")


def failed_midway(files: SimFileSystem, directories: LogDirectories) -> Log:
    """Return a log with sealed segments that are not durable, which failed midway."""
    log = directories.create("t", 0, TOPIC_ID, LogConfig(segment_bytes=300, flush_ms=1000))
    fill(log, 10)
    log.append_as_leader(make_batch(sequence=0, transactional=True), 0)
    files.faults.fail("open", error=errno.EMFILE, path=".txnindex")
    with pytest.raises(OutOfDescriptorsError):
        end_transaction(log, "ABORT")
    return log


async def test_upkeep_skips_a_log_that_failed_midway() -> None:
    """Other logs of the directory are flushed, and deleted ones removed, although one is unusable."""
    world, files, directories = simulated()
    failed_midway(files, directories)
    later = directories.create("t", 1, TOPIC_ID, CONFIG)
    fill(later, 10)
    directories.create("t", 2, TOPIC_ID, LogConfig(file_delete_delay_ms=0))
    directories.delete("t", 2)
    await directories.upkeep.maintain()
    assert later.recovery_point > 0
    assert not [name for name in files.list("/a") if name.endswith("-delete")]
    assert world.failures == []
    directories.close()


async def test_deleted_log_is_removed_when_descriptors_are_free_again() -> None:
    """A folder whose removal found no descriptor stays listed for the next attempt."""
    world, files, directories = simulated()
    for partition in range(3):
        directories.create("t", partition, TOPIC_ID, LogConfig(file_delete_delay_ms=0))
        directories.delete("t", partition)
    files.faults.fail("list", error=errno.EMFILE, path="-delete", times=2)
    await directories.upkeep.maintain()
    assert len([name for name in files.list("/a") if name.endswith("-delete")]) == 3
    for _ in range(2):
        await directories.upkeep.maintain()
    assert not [name for name in files.list("/a") if name.endswith("-delete")]
    assert world.failures == []
    directories.close()


def test_log_that_failed_midway_is_reported_as_damaged() -> None:
    """The report names the partition, whose requests fail until the next start, and the reason."""
    _, files, directories = simulated()
    failed_midway(files, directories)
    (reason,) = directories.damaged().values()
    assert "unusable until the next start" in reason
    assert "Too many open files" in reason
    directories.close()


async def test_deleted_logs_are_removed_although_flushes_find_no_descriptor() -> None:
    """Removal of deleted files needs no free descriptor and does not wait for one."""
    _, files, directories = simulated()
    fill(directories.create("t", 0, TOPIC_ID, CONFIG), 10)
    directories.create("t", 1, TOPIC_ID, LogConfig(file_delete_delay_ms=0))
    directories.delete("t", 1)
    files.faults.fail("sync_directory", error=errno.EMFILE)
    await directories.upkeep.maintain()
    assert not [name for name in files.list("/a") if name.endswith("-delete")]
    directories.close()


@pytest.mark.parametrize("operation", ["open", "sync_directory"])
async def test_log_that_failed_between_two_segments_does_not_stop_checkpoints(
    operation: str,
) -> None:
    """A log without any segment, because its restart ended midway, is recovered by the next start."""
    world, files, directories = simulated()
    log = directories.create("t", 0, TOPIC_ID, CONFIG)
    other = directories.create("t", 1, TOPIC_ID, CONFIG)
    fill(log, 10)
    fill(other, 10)
    log.truncation.advance_log_start_offset(4)
    files.faults.fail(operation, error=errno.EMFILE)
    with pytest.raises(OutOfDescriptorsError):
        log.truncation.truncate_fully_and_start_at(50)
    directories.checkpoint()
    world.clock.now_ms += 600_000
    await directories.upkeep.maintain()
    assert log.size_bytes == 0
    directories.close()
    again = world.directories()
    assert offsets(again.logs()["t", 1]) == list(range(10))
    assert again.logs()["t", 0].log_end_offset == 4
    again.close()


def test_start_without_free_descriptors_says_what_to_do() -> None:
    """The broker does not start with only a part of its data."""
    world, files, directories = simulated()
    directories.close()
    files.faults.fail("list", error=errno.EMFILE)
    with pytest.raises(StorageError, match="ulimit -n"):
        world.directories()
