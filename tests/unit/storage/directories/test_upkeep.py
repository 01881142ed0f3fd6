"""The intervals of upkeep, the age of records if clocks jump, and logs that are deleted during a
run.
"""

import asyncio
import shutil
from pathlib import Path

from ottla.cluster.options.option_tables import BROKER_OPTIONS
from ottla.storage.config import LogConfig
from ottla.storage.directories.upkeep import Intervals, Schedule
from ottla.testing.sim.files import SimFileSystem
from tests.unit.storage.world import TOPIC_ID, World, make_batch, offsets

HOUR_MS = 3_600_000
DAY_MS = 24 * HOUR_MS


def test_intervals_come_from_the_options() -> None:
    """The intervals have Kafka's option names and defaults."""
    assert Intervals.from_options(BROKER_OPTIONS.parse({})) == Intervals()
    settings = {
        "log.initial.task.delay.ms": "1",
        "log.retention.check.interval.ms": "2",
        "log.flush.offset.checkpoint.interval.ms": "3",
        "log.flush.start.offset.checkpoint.interval.ms": "4",
        "producer.id.expiration.check.interval.ms": "5",
        "log.stray.retention.ms": "6",
    }
    assert Intervals.from_options(BROKER_OPTIONS.parse(settings)) == (1, 2, 3, 4, 5, 6)


def test_each_task_runs_at_its_interval() -> None:
    """Each task of upkeep has an interval and, optionally, a first delay of its own."""
    rounds = Schedule(100.0)
    assert not rounds.take_due("a", 2000, 101.9)
    assert rounds.take_due("b", 2000, 101.0, 1000)
    assert rounds.take_due("a", 2000, 102.0)
    assert not rounds.take_due("a", 2000, 103.9)
    assert not rounds.take_due("b", 2000, 102.9, 1000)
    assert rounds.take_due("b", 2000, 103.0, 1000)
    assert rounds.take_due("a", 2000, 110.0)
    assert not rounds.take_due("a", 2000, 111.0)
    assert rounds.take_due("c", 0, 100.0)


async def test_wall_clock_that_jumps_forward_deletes_no_fresh_records(tmp_path: Path) -> None:
    """A clock that is two days fast for a while does not make fresh records expire."""
    world = World(tmp_path, LogConfig(segment_bytes=300, retention_ms=DAY_MS))
    directories = world.directories()
    log = directories.create("t", 0, TOPIC_ID, world.config)
    for sequence in range(5):
        log.append_as_leader(make_batch(sequence=sequence), 0)
    log.high_watermark = 5
    world.clock.leap_ms = 2 * DAY_MS
    for _ in range(50):
        world.clock.now_ms += 60_000
        await directories.upkeep.maintain()
    world.clock.leap_ms = 0
    for _ in range(50):
        world.clock.now_ms += 60_000
        await directories.upkeep.maintain()
    assert offsets(log) == list(range(5))
    assert len(log.producers) == 1
    world.clock.now_ms += DAY_MS
    await directories.upkeep.maintain()
    assert (log.log_start_offset, len(log.producers)) == (5, 0)


async def test_upkeep_continues_if_the_wall_clock_is_set_back(tmp_path: Path) -> None:
    """Checkpoints, flushes and file removals follow the monotonic clock."""
    config = LogConfig(segment_bytes=300, flush_ms=1000, file_delete_delay_ms=1000)
    world = World(tmp_path, config)
    directories = world.directories()
    log = directories.create("t", 0, TOPIC_ID, config)
    gone = directories.create("t", 1, TOPIC_ID, config)
    for _ in range(5):
        log.append_as_leader(make_batch(), 0)
    directories.delete("t", 1)
    world.clock.leap_ms = -2 * DAY_MS
    world.clock.now_ms += 61_000
    await directories.upkeep.maintain()
    assert (world.path / "recovery-point-offset-checkpoint").read_text() == "0\n1\nt 0 5\n"
    assert log.recovery_point == 5
    assert not Path(gone.directory).exists()


async def test_each_checkpoint_has_an_interval_of_its_own(tmp_path: Path) -> None:
    """The recovery-point and log-start-offset checkpoints have separate intervals."""
    world = World(tmp_path)
    directories = world.directories()
    directories.upkeep.intervals = Intervals(recovery_points_ms=50_000, log_starts_ms=20_000)
    log = directories.create("t", 0, TOPIC_ID, world.config)
    log.append_as_leader(make_batch(3), 0)
    log.truncation.advance_log_start_offset(2)
    world.clock.now_ms += 20_000
    await directories.upkeep.maintain()
    assert (world.path / "log-start-offset-checkpoint").read_text() == "0\n1\nt 0 2\n"
    assert not (world.path / "recovery-point-offset-checkpoint").exists()
    world.clock.now_ms += 30_000
    await directories.upkeep.maintain()
    assert (world.path / "recovery-point-offset-checkpoint").exists()


async def test_folder_of_a_deleted_log_may_be_removed_by_hand(tmp_path: Path) -> None:
    """An administrator who needs the space at once does not take the directory offline."""
    world = World(tmp_path)
    directories = world.directories()
    for partition in range(2):
        directories.create("t", partition, TOPIC_ID, LogConfig(file_delete_delay_ms=0))
        directories.delete("t", partition)
    shutil.rmtree(next(world.path.glob("t-0.*-delete")))
    await directories.upkeep.maintain()
    assert world.failures == []
    assert not list(world.path.glob("*-delete"))
    directories.close()


async def test_log_that_is_deleted_during_the_upkeep_does_not_fail_its_directory() -> None:
    """Upkeep skips a log that was deleted while another one was flushed."""
    world = World("/a")
    world.files = SimFileSystem()
    directories = world.directories()
    for partition in range(2):
        log = directories.create("t", partition, TOPIC_ID, LogConfig(segment_bytes=300))
        for _ in range(5):
            log.append_as_leader(make_batch(), 0)
    upkeep = asyncio.ensure_future(directories.upkeep.maintain())
    await asyncio.sleep(0)
    directories.delete("t", 1)
    await upkeep
    assert world.failures == []
    directories.close()
