"""Logs that move from one log directory to another: what is in the folders, whatever happens."""

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
        """Start once more."""
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
        """Return what is in a directory, but for the checkpoints."""
        return [name for name in self.files.list(path) if name.startswith("t-0")]


def copy(directories: LogDirectories, source: Log, future: Log) -> None:
    """Copy what is missing."""
    while future.log_end_offset < source.log_end_offset:
        end = source.log_end_offset
        found = source.read(future.log_end_offset, 300, max_offset=end)
        assert found is not None
        future.append_as_follower(found.records)


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


def test_a_copy_takes_the_place_of_its_log() -> None:
    """Under the log's name, with all that was known of producers, epochs and offsets."""
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
    found = again.get("t", 0)
    assert found is not None
    assert (offsets(found), again.high_watermark("t", 0)) == (list(range(3, 8)), 8)
    assert again.moves.future("t", 0) is None


def test_the_log_goes_on_in_its_new_directory() -> None:
    """Appends, flushes and deletions find it there."""
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
def test_a_crash_at_any_step_leaves_one_whole_log(crash: Crash) -> None:
    """The old one or the new one, and no copy is left that nobody knows."""
    change, places = 0, set()
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
            # The second time nothing is left to be settled.
            later = machine.open()
            found = later.get("t", 0)
            assert found is not None
            assert offsets(found) == list(range(8)), f"change {change}"
            assert found.append_as_leader(make_batch(sequence=7), 3).is_duplicate
            places.add(found.directory)
            copies = [name for path in BOTH for name in machine.names(path) if "-f" in name]
            assert len(copies) == (later.moves.future("t", 0) is not None)
            assert not machine.files.exists(f"{found.directory}/superseded")
            later.abandon()
            machine.files = machine.files.kill()
    assert change > 8
    assert places == {"/a/t-0", "/b/t-0"}


def test_a_copy_goes_on_after_a_restart() -> None:
    """With what is there of it; after a crash with what the log is sure to have as well."""
    machine = Machine()
    directories = machine.open()
    source, future = begin(directories)
    copy(directories, source, future)
    directories.close()
    directories = machine.open()
    log, found = directories.get("t", 0), directories.moves.future("t", 0)
    assert log is not None
    assert found is not None
    assert log.is_being_copied
    assert offsets(found) == list(range(8))
    log.append_as_leader(make_batch(sequence=8), 3)
    copy(directories, log, found)
    found.durability.flush()
    directories.checkpoint()
    machine.files = machine.files.kill()
    found = machine.open().moves.future("t", 0)
    assert found is not None
    # The log may have lost the last record, and given its offset to another.
    assert offsets(found) == list(range(8))


def test_a_copy_of_what_was_written_anew_is_cut() -> None:
    """Leader epochs show where the log is another one since the copy was made."""
    machine = Machine()
    directories = machine.open()
    source, future = begin(directories)
    copy(directories, source, future)
    source.truncation.truncate_to(5)
    for _ in range(5):
        source.append_as_leader(make_batch(), 4)
    directories.close()
    found = machine.open().moves.future("t", 0)
    assert found is not None
    assert offsets(found) == list(range(5))


@pytest.mark.parametrize("first_dirty_offset", [0, 4])
def test_a_copy_of_a_log_that_was_compacted_since_begins_anew(first_dirty_offset: int) -> None:
    """It could hold what the log has forgotten; without that it goes on."""
    machine = Machine()
    machine.config = replace(CONFIG, cleanup_policy=frozenset({"compact"}))
    directories = machine.open()
    source, future = begin(directories, config=machine.config)
    copy(directories, source, future)
    source.first_dirty_offset = first_dirty_offset
    directories.close()
    found = machine.open().moves.future("t", 0)
    assert found is not None
    assert offsets(found) == ([] if first_dirty_offset else list(range(8)))
    assert found.first_dirty_offset == first_dirty_offset


def test_a_move_is_given_up_by_naming_the_directory_where_the_log_is() -> None:
    """The copy goes, durably, and the log may be compacted again."""
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


def test_a_move_may_be_sent_elsewhere() -> None:
    """The copy in the former target goes; asking for the same target again changes nothing."""
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


def test_a_deleted_log_takes_its_copy_along() -> None:
    """Not even a loss of power at once brings either back."""
    machine = Machine()
    directories = machine.open()
    begin(directories)
    directories.delete("t", 0)
    directories.settle_deletions()
    machine.files = machine.files.power_loss(SeededRng(2))
    later = machine.open()
    assert later.get("t", 0) is None
    assert later.moves.future("t", 0) is None


def test_of_a_lost_log_its_copy_is_taken() -> None:
    """Somebody has put in an empty disk: what was copied is better than nothing."""
    machine = Machine()
    directories = machine.open()
    source, future = begin(directories)
    copy(directories, source, future)
    directories.close()
    machine.files.remove_tree("/a/t-0")
    found = machine.open().get("t", 0)
    assert found is not None
    assert found.directory == "/b/t-0"
    assert offsets(found) == list(range(8))


def test_a_copy_is_left_alone_while_a_directory_is_offline() -> None:
    """The log may be there, and have more."""
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
    """A copy may be in it; the error says which directory it is."""
    machine = Machine()
    directories = machine.open("/a", "/b", "/c")
    directories.create("t", 0, TOPIC_ID, CONFIG)
    directories.failed(StorageError("/c", "gone"))
    with pytest.raises(StorageError) as refused:
        directories.moves.begin("t", 0, directories.at_path("/b"))
    assert refused.value.directory == "/c"


@pytest.mark.parametrize("operation", ["rename", "sync_directory"])
def test_a_target_that_fails_in_the_last_step_leaves_the_log(operation: str) -> None:
    """It goes on where it was, and only the target is offline."""
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
        found = machine.open(*paths).get("t", 0)
        assert found is not None
        assert (found.directory, found.log_end_offset) == ("/a/t-0", 9)
    assert not machine.files.exists("/a/t-0/prevailing")


def test_a_source_that_fails_in_the_last_step_does_not_come_back() -> None:
    """The log goes on in the target; the next start knows which of the two is out of date."""
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
        found = later.get("t", 0)
        assert found is not None
        assert (found.directory, offsets(found)) == ("/b/t-0", list(range(9)))


def test_a_log_that_waits_for_its_copy_is_not_served_while_a_directory_is_offline() -> None:
    """The copy that replaced it may be there."""
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
    found = machine.open().get("t", 0)
    assert found is not None
    assert found.directory == "/b/t-0"


def test_two_logs_of_one_name_without_a_mark_are_refused() -> None:
    """Nobody knows which is out of date, so a person has to say it."""
    machine = Machine()
    for path in BOTH:
        directories = machine.open(path)
        directories.create("t", 0, TOPIC_ID, CONFIG)
        directories.close()
    with pytest.raises(ConfigError, match="move the one that is out of date away"):
        machine.open()


def test_a_log_is_made_where_it_was_wanted() -> None:
    """Named before it existed; a directory that is not configured cannot be named."""
    machine = Machine()
    directories = machine.open()
    directories.moves.prefer("t", 0, directories.at_path("/b"))
    assert directories.create("t", 0, TOPIC_ID, CONFIG).directory == "/b/t-0"
    assert directories.create("u", 0, TOPIC_ID, CONFIG).directory == "/a/u-0"
    with pytest.raises(ApiError) as refused:
        directories.at_path("/c")
    assert refused.value.code == ErrorCode.LOG_DIR_NOT_FOUND


def test_copies_count_where_new_logs_are_placed() -> None:
    """They are as much work as a log."""
    machine = Machine()
    directories = machine.open()
    begin(directories)
    assert directories.create("t", 1, TOPIC_ID, CONFIG).directory == "/a/t-1"
    assert directories.create("t", 2, TOPIC_ID, CONFIG).directory == "/b/t-2"


def test_nothing_is_compacted_while_it_is_copied() -> None:
    """A key's older value would live on in the copy after the word that it was deleted has gone."""
    machine = Machine()
    directories = machine.open()
    source, _ = begin(directories)
    segments = list(source.segments[:2])
    assert not source.deletion.replace_segments(segments, segments[0])
    assert source.segments[:2] == segments
