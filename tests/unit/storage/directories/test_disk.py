"""The log directories: their owner, their files, and how they fail."""

import errno
import json
import os
from pathlib import Path
from typing import Any

import pytest

from ottla.base import uuids
from ottla.base.errors import ApiError, ConfigError, ErrorCode, StorageError
from ottla.base.rng import SeededRng
from ottla.storage.config import LogConfig
from ottla.storage.directories.disk import LogDirectories
from ottla.storage.directories.log_directory import LogDirectory, parse_directory_name
from ottla.storage.directories.strays import StrayReason
from ottla.storage.files import checkpoints
from ottla.testing.sim.files import SimFileSystem
from tests.unit.storage.world import TOPIC_ID, World, make_batch, offsets

CONFIG = LogConfig(segment_bytes=500, file_delete_delay_ms=1000)


@pytest.fixture
def world(tmp_path: Path) -> World:
    """Return a world with a log directory of its own."""
    return World(tmp_path / "data", CONFIG)


def open_many(world: World, paths: list[str], **opening: Any) -> LogDirectories:
    """Open several directories of one broker."""
    return LogDirectories.open(
        paths,
        files=world.files,
        clock=world.clock,
        rng=SeededRng(1),
        broker_id=1,
        topic_config=lambda topic: CONFIG,
        on_offline=lambda path, error: world.failures.append(error),
        **opening,
    )


def names(path: Path) -> set[str]:
    """Return the names in a directory."""
    return {item.name for item in path.iterdir()}


def test_new_directory_is_created_with_meta_properties(world: World) -> None:
    """A new log directory names its owner in meta.properties, which Kafka reads."""
    directories = world.directories(cluster_id="abc", broker_id=5)
    text = (world.path / "meta.properties").read_text()
    assert text == "version=0\nbroker.id=5\ncluster.id=abc\n"
    assert directories.cluster_id == "abc"
    directories.close()


def test_clean_shutdown_writes_the_files_of_kafka(world: World) -> None:
    """A clean shutdown writes the checkpoints and the marker that makes recovery unnecessary."""
    directories = world.directories()
    log = directories.create("t", 0, TOPIC_ID, CONFIG)
    for _ in range(9):
        log.append_as_leader(make_batch(), 3)
    log.truncation.advance_log_start_offset(2)
    directories.store_high_watermarks({("t", 0): 7})
    directories.close()
    assert (world.path / "recovery-point-offset-checkpoint").read_text() == "0\n1\nt 0 9\n"
    assert (world.path / "log-start-offset-checkpoint").read_text() == "0\n1\nt 0 2\n"
    assert (world.path / "replication-offset-checkpoint").read_text() == "0\n1\nt 0 7\n"
    assert json.loads((world.path / ".kafka_cleanshutdown").read_text()) == {
        "version": 0,
        "brokerEpoch": -1,
    }
    assert "00000000000000000009.snapshot" in names(world.folder)
    assert (world.folder / "partition.metadata").read_text().endswith(uuids.uuid_text(TOPIC_ID))
    assert (world.folder / "leader-epoch-checkpoint").read_text() == "0\n1\n3 2\n"


@pytest.mark.parametrize("clean", [True, False])
def test_restart_restores_all_logs(world: World, clean: bool) -> None:
    """A restart restores logs, topic ids, start offsets and high watermarks, and uses the marker
    once.
    """
    directories = world.directories()
    log = directories.create("t", 0, TOPIC_ID, CONFIG)
    for _ in range(9):
        log.append_as_leader(make_batch(), 0)
    log.truncation.advance_log_start_offset(2)
    directories.store_high_watermarks({("t", 0): 7})
    directories.checkpoint()
    directories.close() if clean else directories.abandon()
    directories = world.directories()
    assert not (world.path / ".kafka_cleanshutdown").exists()
    copy = directories.get("t", 0)
    assert copy is not None
    assert (copy.topic_id, copy.log_start_offset, copy.log_end_offset) == (TOPIC_ID, 2, 9)
    assert offsets(copy) == list(range(2, 9))
    assert directories.high_watermark("t", 0) == 7
    assert directories.high_watermark("t", 1) == 0
    assert list(directories.logs()) == [("t", 0)]
    directories.close()


@pytest.mark.parametrize("damage", [None, b"", b"\0" * 30, b"0\n1\nt 0 x\n"])
@pytest.mark.parametrize(
    "name",
    [
        checkpoints.RECOVERY_POINT_FILE,
        checkpoints.HIGH_WATERMARK_FILE,
        checkpoints.LOG_START_FILE,
        checkpoints.CLEANER_FILE,
    ],
)
def test_damaged_checkpoints_lose_no_record(world: World, name: str, damage: bytes | None) -> None:
    """Values of a damaged checkpoint are read from the logs, or count as unknown."""
    directories = world.directories()
    log = directories.create("t", 0, TOPIC_ID, CONFIG)
    for _ in range(9):
        log.append_as_leader(make_batch(), 0)
    directories.store_high_watermarks({("t", 0): 9})
    directories.checkpoint()
    directories.abandon()
    if damage is None:
        (world.path / name).unlink(missing_ok=True)
    else:
        (world.path / name).write_bytes(damage)
    directories = world.directories()
    copy = directories.get("t", 0)
    assert copy is not None
    assert offsets(copy) == list(range(9))
    directories.close()


def test_creating_a_log_twice_returns_the_first(world: World) -> None:
    """Creating a log again returns the existing one, unless the topic id differs."""
    directories = world.directories()
    log = directories.create("t", 0, TOPIC_ID, CONFIG)
    assert directories.create("t", 0, TOPIC_ID, CONFIG) is log
    with pytest.raises(ApiError) as error:
        directories.create("t", 0, bytes(16)[:-1] + b"\x09", CONFIG)
    assert error.value.code == ErrorCode.INCONSISTENT_TOPIC_ID
    directories.close()


async def test_a_deleted_log_is_renamed_and_removed_later(world: World) -> None:
    """A deleted log's name can be used again at once; its files are removed after
    file.delete.delay.ms.
    """
    directories = world.directories()
    log = directories.create("t", 0, TOPIC_ID, CONFIG)
    log.append_as_leader(make_batch(), 0)
    directories.delete("t", 0)
    assert directories.get("t", 0) is None
    (doomed,) = [name for name in names(world.path) if name.endswith("-delete")]
    assert doomed.startswith("t-0.") and len(doomed) == len("t-0.") + 32 + len("-delete")
    again = directories.create("t", 0, bytes(15) + b"\x01", CONFIG)
    assert again.log_end_offset == 0
    await directories.upkeep.maintain()
    assert doomed in names(world.path)
    world.clock.now_ms += 1000
    await directories.upkeep.maintain()
    assert doomed not in names(world.path)
    directories.close()


def test_long_topic_names_can_be_deleted(world: World) -> None:
    """The name of a deleted log's directory fits the limit of 255 bytes."""
    topic = "x" * 249
    directories = world.directories()
    directories.create(topic, 0, TOPIC_ID, CONFIG)
    directories.delete(topic, 0)
    (doomed,) = [name for name in names(world.path) if name.endswith("-delete")]
    assert len(doomed) == 255
    directories.close()


def test_start_removes_logs_that_were_deleted_before_a_crash(world: World) -> None:
    """The next start removes the directories of deleted logs."""
    directories = world.directories()
    directories.create("t", 0, TOPIC_ID, CONFIG)
    directories.delete("t", 0)
    directories.abandon()
    directories = world.directories()
    assert not directories.logs()
    assert not [name for name in names(world.path) if name.endswith("-delete")]
    directories.close()


async def test_stray_log_is_kept_but_not_loaded(world: World) -> None:
    """A log that is set aside has another name; a restart does not remove its files."""
    directories = world.directories()
    log = directories.create("t", 0, TOPIC_ID, CONFIG)
    log.append_as_leader(make_batch(), 0)
    directories.store_high_watermarks({("t", 0): 1})
    path = directories.set_aside("t", 0, StrayReason.UNASSIGNED)
    directories.settle_deletions()
    assert directories.get("t", 0) is None
    assert directories.create("t", 0, bytes(15) + b"\x01", CONFIG).log_end_offset == 0
    assert directories.high_watermark("t", 0) == 0
    world.clock.now_ms += 1_000_000
    await directories.upkeep.maintain()
    directories.close()
    directories = world.directories()
    assert list(directories.logs()) == [("t", 0)]
    assert Path(path).name in names(world.path)
    assert (Path(path) / "00000000000000000000.log").stat().st_size > 0
    directories.close()


def test_foreign_directories_are_not_touched(world: World) -> None:
    """KRaft's metadata log, a coordination journal, lost+found and files named like logs stay."""
    for name in ("__cluster_metadata-0", "coordination", "lost+found", "t-0-stray", "t-x"):
        (world.path / name).mkdir(parents=True)
    (world.path / "file-7").write_bytes(b"")
    directories = world.directories()
    assert not directories.logs()
    directories.close()
    assert (world.path / "__cluster_metadata-0").exists()


@pytest.mark.parametrize(
    ("name", "key"),
    [
        ("t-0", ("t", 0)),
        ("a-b-12", ("a-b", 12)),
        ("__consumer_offsets-49", ("__consumer_offsets", 49)),
        ("t", None),
        ("t-", None),
        ("-1", None),
        ("t-0.abc-delete", None),
        ("__cluster_metadata-0", None),
    ],
)
def test_a_directory_is_named_after_topic_and_partition(
    name: str, key: tuple[str, int] | None
) -> None:
    """The last dash separates the topic from the partition."""
    assert parse_directory_name(name) == key


def test_locked_directory_names_the_process_that_holds_the_lock(world: World) -> None:
    """The error names the process that holds the lock, and closing releases the lock."""
    directories = world.directories()
    with pytest.raises(StorageError, match=f"another broker is using .*process {os.getpid()}"):
        world.directories()
    directories.close()
    world.directories().close()


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("version=0\nbroker.id=7\ncluster.id=c\n", "broker 7.*broker.id=7"),
        ("version=1\nnode.id=7\ncluster.id=c\n", "broker 7"),
        ("version=0\nbroker.id=1\ncluster.id=other\n", "cluster other.*joins c"),
        ("version=2\nbroker.id=1\ncluster.id=c\n", "unknown format '2'.*version of Ottla"),
        ("nonsense\n", "meta.properties cannot be read"),
        ("\0\0\0\0", "meta.properties cannot be read"),
    ],
)
def test_directory_of_another_broker_is_rejected(world: World, content: str, words: str) -> None:
    """The error names both owners and what to do; the lock is released and no file is changed."""
    world.path.mkdir()
    (world.path / "meta.properties").write_text(content)
    with pytest.raises(ConfigError, match=words):
        world.directories()
    assert (world.path / "meta.properties").read_text() == content
    (world.path / "meta.properties").unlink()
    world.directories().close()


@pytest.mark.parametrize(
    "content",
    [
        "#\n#Sat Nov 21 11:32:18 UTC 2026\nbroker.id=1\nversion=0\ncluster.id=c\n",
        "node.id=1\nversion=1\ncluster.id=c\ndirectory.id=AAAA\n",
    ],
)
def test_directory_with_meta_properties_of_kafka_is_opened(world: World, content: str) -> None:
    """Kafka's meta.properties, of ZooKeeper or KRaft mode, is accepted and not rewritten."""
    world.path.mkdir()
    (world.path / "meta.properties").write_text(content)
    directories = world.directories(cluster_id=None)
    assert directories.cluster_id == "c"
    directories.close()
    assert (world.path / "meta.properties").read_text() == content


def test_missing_cluster_id_is_added(world: World) -> None:
    """A later start adds the cluster id, which the first start may not know."""
    world.directories(cluster_id=None).close()
    assert "cluster.id" not in (world.path / "meta.properties").read_text()
    world.directories(cluster_id="late").close()
    assert "cluster.id=late" in (world.path / "meta.properties").read_text()


def test_error_says_why_a_path_cannot_be_a_directory(tmp_path: Path) -> None:
    """The error says why a path cannot be a log directory: it is a file, or below a file."""
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(ConfigError, match="is a file"):
        World(tmp_path / "file").directories()
    with pytest.raises(StorageError, match="cannot be used: Not a directory"):
        World(tmp_path / "file" / "below").directories()
    with pytest.raises(ConfigError, match=r"log\.dirs names no directory"):
        open_many(World(tmp_path), [])


def test_logs_are_spread_over_the_directories(tmp_path: Path) -> None:
    """A new log is created in the directory with the fewest logs."""
    world = World(tmp_path)
    paths = [str(tmp_path / name) for name in "ab"]
    directories = open_many(world, [*paths, paths[0] + "/"])
    for partition in range(6):
        directories.create("t", partition, TOPIC_ID, CONFIG)
    directories.close()
    assert [
        len([name for name in names(Path(path)) if "-" in name and name[0] == "t"])
        for path in paths
    ] == [3, 3]


def test_creating_a_log_does_not_list_the_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Creating a log does not list the others, or creating a topic would be quadratic in its
    partitions.
    """
    world = World(tmp_path / "data", CONFIG)
    logs = open_many(world, [str(tmp_path / name) for name in "ab"])

    def listed(directory: LogDirectory) -> list[Any]:
        raise AssertionError("all logs were listed")

    with monkeypatch.context() as patch:
        patch.setattr(LogDirectory, "every_log", property(listed))
        for partition in range(6):
            logs.create("t", partition, TOPIC_ID, CONFIG)
    assert {directory.logs_count for directory in logs.directories()} == {3}
    logs.close()


def test_log_in_two_directories_is_rejected(tmp_path: Path) -> None:
    """A log in two directories is an error, because one of the copies is out of date."""
    world = World(tmp_path)
    for name in "ab":
        (tmp_path / name / "t-0").mkdir(parents=True)
    with pytest.raises(ConfigError, match="t-0 is both in"):
        open_many(world, [str(tmp_path / name) for name in "ab"])


def simulated() -> tuple[World, SimFileSystem]:
    """Return a world on a simulated disk."""
    world, files = World("/a", CONFIG), SimFileSystem()
    world.files = files
    return world, files


def test_failed_directory_takes_only_its_own_logs_offline() -> None:
    """A failure is reported once, the other directories stay online, and closing raises it again."""
    world, files = simulated()
    directories = open_many(world, ["/a", "/b"])
    first = directories.create("t", 0, TOPIC_ID, CONFIG)
    second = directories.create("t", 1, TOPIC_ID, CONFIG)
    third = directories.create("t", 2, TOPIC_ID, CONFIG)
    files.faults.fail("append", path="/a/t-0")
    with pytest.raises(StorageError):
        first.append_as_leader(make_batch(), 0)
    assert [error.directory for error in world.failures] == ["/a"]
    assert third.failure is not None
    with pytest.raises(StorageError):
        third.append_as_leader(make_batch(), 0)
    second.append_as_leader(make_batch(), 0)
    assert directories.create("t", 3, TOPIC_ID, CONFIG).directory == "/b/t-3"
    directories.checkpoint()
    directories.close()
    assert files.exists("/b/.kafka_cleanshutdown")
    assert not files.exists("/a/.kafka_cleanshutdown")


@pytest.mark.parametrize("operation", ["replace", "sync_directory", "open", "make_directories"])
def test_failed_checkpoint_or_new_log_takes_the_directory_offline(operation: str) -> None:
    """A disk error takes the directory offline in every operation."""
    world, files = simulated()
    directories = open_many(world, ["/a"])
    files.faults.fail(operation)
    with pytest.raises(StorageError):
        directories.create("t", 0, TOPIC_ID, CONFIG)
        directories.checkpoint()
    assert len(world.failures) == 1
    with pytest.raises(StorageError):
        directories.create("t", 1, TOPIC_ID, CONFIG)


def test_failed_close_leaves_no_clean_shutdown_marker() -> None:
    """After a failed close the next start recovers the logs, and the lock is free."""
    world, files = simulated()
    directories = open_many(world, ["/a"])
    directories.create("t", 0, TOPIC_ID, CONFIG).append_as_leader(make_batch(), 0)
    files.faults.fail("sync")
    with pytest.raises(StorageError):
        directories.close()
    assert not files.exists("/a/.kafka_cleanshutdown")
    open_many(world, ["/a"]).close()


def test_a_directory_that_cannot_be_read_is_offline_from_the_start() -> None:
    """If the only log directory cannot be read, the broker does not start."""
    world, files = simulated()
    open_many(world, ["/a", "/b"]).close()
    files.faults.fail("list", path="/a", times=2)
    directories = open_many(world, ["/a", "/b"])
    assert [error.directory for error in world.failures] == ["/a"]
    directories.close()
    with pytest.raises(StorageError, match="cannot be read or written"):
        open_many(world, ["/a"])


def test_close_writes_in_order_even_on_power_loss() -> None:
    """The clean shutdown marker exists only if everything it vouches for is on the disk."""
    changes = 0
    while True:
        changes += 1
        world, files = simulated()
        directories = open_many(world, ["/a"])
        log = directories.create("t", 0, TOPIC_ID, CONFIG)
        for _ in range(5):
            log.append_as_leader(make_batch(2), 0)
        files.faults.lose_power_at(changes)
        try:
            directories.close()
            ended = True
        except KeyboardInterrupt:
            ended = False
        world.files = later = files.power_loss(SeededRng(changes))
        if later.exists("/a/.kafka_cleanshutdown"):
            result = open_many(world, ["/a"]).get("t", 0)
            assert result is not None
            assert offsets(result) == list(range(10))
        if ended:
            break
    assert changes > 10


async def test_upkeep_makes_rolled_segments_durable_and_flushes_in_time(world: World) -> None:
    """Recovery points advance after a flush, and checkpoints are written every minute."""
    config = LogConfig(segment_bytes=300, flush_ms=5000)
    directories = world.directories()
    log = directories.create("t", 0, TOPIC_ID, config)
    for _ in range(5):
        log.append_as_leader(make_batch(), 0)
    await directories.upkeep.maintain()
    rolled = log.recovery_point
    assert 0 < rolled < 5
    world.clock.now_ms += 5000
    await directories.upkeep.maintain()
    assert log.recovery_point == 5
    assert not (world.path / "recovery-point-offset-checkpoint").exists()
    world.clock.now_ms += 60_000
    await directories.upkeep.maintain()
    assert (world.path / "recovery-point-offset-checkpoint").read_text() == "0\n1\nt 0 5\n"
    directories.close()


async def test_upkeep_closes_the_descriptors_of_sealed_segments(world: World) -> None:
    """Upkeep closes the descriptors of sealed segments, and reads open them again."""
    directories = world.directories()
    log = directories.create("t", 0, TOPIC_ID, LogConfig(segment_bytes=300))
    for _ in range(30):
        log.append_as_leader(make_batch(), 0)
    before = len(os.listdir("/dev/fd"))
    await directories.upkeep.maintain()
    assert len(os.listdir("/dev/fd")) <= before - log.segments_count + 1
    assert offsets(log) == list(range(30))
    directories.close()


async def test_upkeep_applies_retention_and_expires_producers(world: World) -> None:
    """Retention deletes segments up to the high watermark that the partition has set."""
    config = LogConfig(
        segment_bytes=300, retention_ms=3_600_000, producer_id_expiration_ms=3_600_000
    )
    directories = world.directories()
    log = directories.create("t", 0, TOPIC_ID, config)
    for sequence in range(5):
        log.append_as_leader(make_batch(sequence=sequence), 0)
    world.clock.now_ms += 2 * 3_600_000
    await directories.upkeep.maintain()
    assert log.log_start_offset == 0
    assert len(log.producers) == 0
    log.high_watermark = 5
    world.clock.now_ms += 5 * 60_000
    await directories.upkeep.maintain()
    assert log.log_start_offset == 5
    directories.close()


async def test_upkeep_survives_a_directory_that_fails() -> None:
    """Upkeep takes a failing directory offline and continues with the others."""
    world, files = simulated()
    directories = open_many(world, ["/a", "/b"])
    config = LogConfig(segment_bytes=300)
    logs = [directories.create("t", partition, TOPIC_ID, config) for partition in range(2)]
    for log in logs:
        for _ in range(5):
            log.append_as_leader(make_batch(), 0)
    files.faults.fail("sync", path="/a/", error=errno.EIO)
    await directories.upkeep.maintain()
    assert [error.directory for error in world.failures] == ["/a"]
    assert logs[1].recovery_point > 0
