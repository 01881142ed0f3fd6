"""When upkeep is due, and by which time records are old, on clocks that leap."""

from pathlib import Path

from ottla.cluster.options.option_tables import BROKER_OPTIONS
from ottla.storage.config import LogConfig
from ottla.storage.directories.upkeep import Intervals, Schedule
from tests.unit.storage.world import TOPIC_ID, World, make_batch, offsets

HOUR_MS = 3_600_000
DAY_MS = 24 * HOUR_MS


def test_the_options_say_how_often() -> None:
    """Kafka's names and defaults."""
    assert Intervals.from_options(BROKER_OPTIONS.parse({})) == Intervals()
    settings = {
        "log.initial.task.delay.ms": "1",
        "log.retention.check.interval.ms": "2",
        "log.flush.offset.checkpoint.interval.ms": "3",
        "log.flush.start.offset.checkpoint.interval.ms": "4",
        "producer.id.expiration.check.interval.ms": "5",
    }
    assert Intervals.from_options(BROKER_OPTIONS.parse(settings)) == (1, 2, 3, 4, 5)


def test_rounds_come_at_their_intervals() -> None:
    """Each kind by itself; the first one after a time of its own if it has one."""
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


async def test_a_wall_clock_that_leaps_forward_deletes_nothing_fresh(tmp_path: Path) -> None:
    """Records of today are two days old for a while, by a clock that is wrong; then it is mended."""
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


async def test_a_wall_clock_that_is_set_back_stops_no_upkeep(tmp_path: Path) -> None:
    """Checkpoints are written, records flushed and files removed in time, by the other clock."""
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
    """How far logs are durable, and where they begin."""
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
