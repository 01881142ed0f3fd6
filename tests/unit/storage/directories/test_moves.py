"""Logs that move from one log directory to another, with crashes and disk failures in between."""

import re
from collections.abc import Callable
from dataclasses import replace

import pytest

from ottla.base.errors import ApiError, ConfigError, ErrorCode, StorageError
from ottla.base.rng import SeededRng
from ottla.storage.config import LogConfig
from ottla.storage.directories.disk import LogDirectories
from ottla.storage.log.log import Log
from ottla.testing.sim.files import SimFileSystem
from tests.unit.storage.world import START_MS, TOPIC_ID, ManualClock, make_batch, offsets

CONFIG = LogConfig(segment_bytes=450, index_interval_bytes=100)
BOTH = ("/a", "/b")
FUTURE = re.compile(r"t-0\.[0-9a-f]{32}-future")


class Machine:
    """Two log directories on a simulated disk, and the logs in them."""

    def __init__(self) -> None:
        self.files = SimFileSystem()
        self.failed: list[str] = []
        self.config = CONFIG

    def open(self, *paths: str) -> LogDirectories:
        """Open the log directories again."""
        return LogDirectories.open(
            paths or BOTH,
            files=self.files,
            clock=ManualClock(START_MS),
            rng=SeededRng(1),
            cluster_id="c",
            broker_id=1,
            topic_config=lambda topic: self.config,
            on_offline=lambda path, _: self.failed.append(path),
        )

    def names(self, path: str) -> list[str]:
        """Return the names in a directory, except for the checkpoints."""
        return [name for name in self.files.list(path) if name.startswith("t-0")]


def copy(directories: LogDirectories, source: Log, future: Log) -> None:
    """Copy the missing records to the future log."""
    while future.log_end_offset < source.log_end_offset:
        end = source.log_end_offset
        result = source.read(future.log_end_offset, 300, max_offset=end)
        assert result is not None
        future.append_as_follower(result.records)


def begin(directories: LogDirectories, config: LogConfig = CONFIG) -> tuple[Log, Log]:
    """Make a durable log in the first directory and an empty copy in the second."""
    source = directories.create("t", 0, TOPIC_ID, config)
    for number in range(8):
        source.append_as_leader(make_batch(sequence=number), 3)
    source.durability.flush()
    future = directories.moves.begin("t", 0, directories.at_path("/b"))
    assert future is not None
    return source, future


def move(directories: LogDirectories) -> Log:
    """Move the log to the second directory."""
    source, future = begin(directories)
    copy(directories, source, future)
    future.durability.flush()
    moved = directories.moves.finish("t", 0)
    directories.moves.remove_superseded("t", 0)
    return moved


def test_copy_replaces_its_log() -> None:
    """The copy gets the log's name and its producers, leader epochs and offsets."""
    machine = Machine()
    directories = machine.open()
    source, future = begin(directories)
    assert FUTURE.fullmatch(machine.names("/b")[0])
    assert directories.moves.future("t", 0) is future
    copy(directories, source, future)
    source.truncation.advance_log_start_offset(3)
    source.high_watermark = 8
    directories.store_high_watermarks({("t", 0): 8})
    future.durability.flush()
    moved = directories.moves.finish("t", 0)
    directories.moves.remove_superseded("t", 0)
    directories.store_high_watermarks({("t", 0): 8})
    assert directories.get("t", 0) is moved is future
    assert machine.names("/b") == ["t-0"]
    assert [name.rpartition("-")[2] for name in machine.names("/a")] == ["delete"]
    assert (moved.directory, moved.topic_id, moved.high_watermark) == ("/b/t-0", TOPIC_ID, 8)
    assert offsets(moved) == list(range(3, 8))
    assert moved.epochs.entries == [(3, 3)]
    assert moved.append_as_leader(make_batch(sequence=7), 3).is_duplicate
    assert directories.high_watermark("t", 0) == 8
    directories.close()
    again = machine.open()
    log = again.get("t", 0)
    assert log is not None
    assert (offsets(log), again.high_watermark("t", 0)) == (list(range(3, 8)), 8)
    assert again.moves.future("t", 0) is None


def test_log_is_used_in_its_new_directory() -> None:
    """Appends, flushes and deletions use the log in its new directory."""
    machine = Machine()
    directories = machine.open()
    moved = move(directories)
    moved.append_as_leader(make_batch(sequence=8), 3)
    moved.durability.flush()
    directories.delete("t", 0)
    assert [name.rpartition("-")[2] for name in machine.names("/b")] == ["delete"]
    assert directories.get("t", 0) is None


Crash = Callable[[SimFileSystem, int], SimFileSystem]
CRASHES: dict[str, Crash] = {
    "killed": lambda files, _: files.kill(),
    "power": lambda files, change: files.power_loss(SeededRng(change)),
}


@pytest.mark.parametrize("crash", CRASHES.values(), ids=CRASHES)
def test_crash_at_any_step_leaves_one_complete_log(crash: Crash) -> None:
    """Either the old or the new log survives a crash, and no stray copy is left."""
    change, locations = 0, set()
    ended = False
    while not ended:
        change += 1
        machine = Machine()
        directories = machine.open()
        source, future = begin(directories)
        copy(directories, source, future)
        machine.files.faults.lose_power_at(change)
        try:
            future.durability.flush()
            directories.moves.finish("t", 0)
            directories.moves.remove_superseded("t", 0)
            ended = True
        except KeyboardInterrupt:
            pass
        machine.files = crash(machine.files, change)
        for _ in range(2):
            # A second start has nothing left to repair.
            later = machine.open()
            log = later.get("t", 0)
            assert log is not None
            assert offsets(log) == list(range(8)), f"change {change}"
            assert log.append_as_leader(make_batch(sequence=7), 3).is_duplicate
            locations.add(log.directory)
            copies = [name for path in BOTH for name in machine.names(path) if "-f" in name]
            assert len(copies) == (later.moves.future("t", 0) is not None)
            assert not machine.files.exists(f"{log.directory}/superseded")
            later.abandon()
            machine.files = machine.files.kill()
    assert change > 8
    assert locations == {"/a/t-0", "/b/t-0"}


def test_copy_resumes_after_a_restart() -> None:
    """A restart resumes the copy; after a crash it is cut to the durable part of the log."""
    machine = Machine()
    directories = machine.open()
    source, future = begin(directories)
    copy(directories, source, future)
    directories.close()
    directories = machine.open()
    log, copied = directories.get("t", 0), directories.moves.future("t", 0)
    assert log is not None
    assert copied is not None
    assert log.is_being_copied
    assert offsets(copied) == list(range(8))
    log.append_as_leader(make_batch(sequence=8), 3)
    copy(directories, log, copied)
    copied.durability.flush()
    directories.checkpoint()
    machine.files = machine.files.kill()
    copied = machine.open().moves.future("t", 0)
    assert copied is not None
    # The log may have lost the last record and assigned its offset to another.
    assert offsets(copied) == list(range(8))


def test_copy_of_rewritten_records_is_truncated() -> None:
    """Leader epochs show where the log was rewritten since the copy began; the copy is truncated
    there.
    """
    machine = Machine()
    directories = machine.open()
    source, future = begin(directories)
    copy(directories, source, future)
    source.truncation.truncate_to(5)
    for _ in range(5):
        source.append_as_leader(make_batch(), 4)
    directories.close()
    log = machine.open().moves.future("t", 0)
    assert log is not None
    assert offsets(log) == list(range(5))


@pytest.mark.parametrize("first_dirty_offset", [0, 4])
def test_copy_restarts_if_its_log_was_compacted(first_dirty_offset: int) -> None:
    """The copy restarts if compaction may have removed records that it holds, and resumes if not."""
    machine = Machine()
    machine.config = replace(CONFIG, cleanup_policy=frozenset({"compact"}))
    directories = machine.open()
    source, future = begin(directories, config=machine.config)
    copy(directories, source, future)
    source.first_dirty_offset = first_dirty_offset
    directories.close()
    log = machine.open().moves.future("t", 0)
    assert log is not None
    assert offsets(log) == ([] if first_dirty_offset else list(range(8)))
    assert log.first_dirty_offset == first_dirty_offset


def test_move_back_to_the_current_directory_cancels_it() -> None:
    """Cancelling a move deletes the copy durably, and the log may be compacted again."""
    machine = Machine()
    directories = machine.open()
    source, _ = begin(directories)
    assert source.is_being_copied
    assert directories.moves.begin("t", 0, directories.at_path("/a")) is None
    assert directories.moves.future("t", 0) is None
    assert not source.is_being_copied
    machine.files = machine.files.power_loss(SeededRng(1))
    later = machine.open()
    assert later.moves.future("t", 0) is None
    assert later.get("t", 0) is not None


def test_target_of_a_move_can_be_changed() -> None:
    """A new target deletes the copy in the former one; the same target again changes nothing."""
    machine = Machine()
    directories = machine.open("/a", "/b", "/c")
    _, future = begin(directories)
    assert directories.moves.begin("t", 0, directories.at_path("/b")) is None
    assert directories.moves.future("t", 0) is future
    other = directories.moves.begin("t", 0, directories.at_path("/c"))
    assert other is not None
    assert other.directory.startswith("/c/t-0.")
    assert directories.moves.future("t", 0) is other
    assert not [name for name in machine.names("/b") if FUTURE.fullmatch(name)]


def test_deleting_a_log_deletes_its_copy() -> None:
    """An immediate power loss brings back neither the log nor its copy."""
    machine = Machine()
    directories = machine.open()
    begin(directories)
    directories.delete("t", 0)
    directories.settle_deletions()
    machine.files = machine.files.power_loss(SeededRng(2))
    later = machine.open()
    assert later.get("t", 0) is None
    assert later.moves.future("t", 0) is None


def test_copy_replaces_a_lost_log() -> None:
    """If a disk was replaced by an empty one, the copy becomes the log."""
    machine = Machine()
    directories = machine.open()
    source, future = begin(directories)
    copy(directories, source, future)
    directories.close()
    machine.files.remove_tree("/a/t-0")
    log = machine.open().get("t", 0)
    assert log is not None
    assert log.directory == "/b/t-0"
    assert offsets(log) == list(range(8))


def test_copy_is_kept_while_a_directory_is_offline() -> None:
    """A copy is kept while a directory is offline that may hold the longer log."""
    machine = Machine()
    directories = machine.open()
    begin(directories)
    directories.close()
    machine.files.faults.fail("list", path="/a")
    later = machine.open()
    assert machine.failed == ["/a"]
    assert later.get("t", 0) is None
    assert FUTURE.fullmatch(machine.names("/b")[0])


def test_no_move_begins_while_a_directory_is_offline() -> None:
    """The error names the offline directory, which may hold a copy."""
    machine = Machine()
    directories = machine.open("/a", "/b", "/c")
    directories.create("t", 0, TOPIC_ID, CONFIG)
    directories.failed(StorageError("/c", "gone"))
    with pytest.raises(StorageError) as refused:
        directories.moves.begin("t", 0, directories.at_path("/b"))
    assert refused.value.directory == "/c"


@pytest.mark.parametrize("operation", ["rename", "sync_directory"])
def test_log_stays_if_the_target_fails_in_the_last_step(operation: str) -> None:
    """The log stays online in its directory, and only the target goes offline."""
    machine = Machine()
    directories = machine.open()
    source, future = begin(directories)
    copy(directories, source, future)
    future.durability.flush()
    path = "/b/t-0" if operation == "rename" else "/b"
    machine.files.faults.fail(operation, path=path)
    with pytest.raises(StorageError):
        directories.moves.finish("t", 0)
    assert machine.failed == ["/b"]
    assert directories.get("t", 0) is source
    assert source.append_as_leader(make_batch(), 3).base_offset == 8
    source.durability.flush()
    for paths in (BOTH, BOTH[::-1]):
        # The target comes back, and may hold a log of that name.
        machine.files = machine.files.kill()
        log = machine.open(*paths).get("t", 0)
        assert log is not None
        assert (log.directory, log.log_end_offset) == ("/a/t-0", 9)
    assert not machine.files.exists("/a/t-0/prevailing")


def test_failed_source_does_not_replace_the_moved_log() -> None:
    """The log stays online in the target, and the next start knows that the source is out of date."""
    machine = Machine()
    directories = machine.open()
    source, future = begin(directories)
    copy(directories, source, future)
    future.durability.flush()
    moved = directories.moves.finish("t", 0)
    machine.files.faults.fail("rename", path="/a/t-0")
    directories.moves.remove_superseded("t", 0)
    assert machine.failed == ["/a"]
    assert moved.append_as_leader(make_batch(sequence=8), 3).base_offset == 8
    moved.durability.flush()
    directories.abandon()
    for paths in (BOTH, BOTH[::-1]):
        machine.files = machine.files.kill()
        later = machine.open(*paths)
        log = later.get("t", 0)
        assert log is not None
        assert (log.directory, offsets(log)) == ("/b/t-0", list(range(9)))


def test_superseded_log_is_not_served_while_a_directory_is_offline() -> None:
    """The log is not served while the copy that replaced it may be in an offline directory."""
    machine = Machine()
    directories = machine.open()
    source, future = begin(directories)
    copy(directories, source, future)
    future.durability.flush()
    directories.moves.finish("t", 0)
    machine.files = machine.files.kill()
    machine.files.faults.fail("list", path="/b")
    later = machine.open()
    assert later.get("t", 0) is None
    later.abandon()
    machine.files = machine.files.kill()
    log = machine.open().get("t", 0)
    assert log is not None
    assert log.directory == "/b/t-0"


def test_two_logs_of_one_name_without_a_mark_are_rejected() -> None:
    """The operator has to decide which of the two logs is out of date."""
    machine = Machine()
    for path in BOTH:
        directories = machine.open(path)
        directories.create("t", 0, TOPIC_ID, CONFIG)
        directories.close()
    with pytest.raises(ConfigError, match="move the one that is out of date away"):
        machine.open()


def test_log_is_created_in_the_preferred_directory() -> None:
    """A directory can be chosen before the log exists, but only one that is configured."""
    machine = Machine()
    directories = machine.open()
    directories.moves.prefer("t", 0, directories.at_path("/b"))
    assert directories.create("t", 0, TOPIC_ID, CONFIG).directory == "/b/t-0"
    assert directories.create("u", 0, TOPIC_ID, CONFIG).directory == "/a/u-0"
    with pytest.raises(ApiError) as refused:
        directories.at_path("/c")
    assert refused.value.code == ErrorCode.LOG_DIR_NOT_FOUND


def test_copies_count_when_a_directory_is_chosen() -> None:
    """A copy counts as a log when the directory of a new log is chosen."""
    machine = Machine()
    directories = machine.open()
    begin(directories)
    assert directories.create("t", 1, TOPIC_ID, CONFIG).directory == "/a/t-1"
    assert directories.create("t", 2, TOPIC_ID, CONFIG).directory == "/b/t-2"


def test_nothing_is_compacted_while_it_is_copied() -> None:
    """The copy could keep a key's older value after compaction removed its tombstone."""
    machine = Machine()
    directories = machine.open()
    source, _ = begin(directories)
    segments = list(source.segments[:2])
    assert not source.deletion.replace_segments(segments, segments[0])
    assert source.segments[:2] == segments
