"""A log that moves to another directory: events at the log and at the copy during the move."""

import asyncio
import errno
import struct
from collections.abc import AsyncIterator, Callable
from typing import Any, cast

import pytest
from kafka.record.legacy_records import LegacyRecordBatchBuilder

from ottla.base.errors import ErrorCode
from ottla.replication.replicas import Replicas
from ottla.storage.config import LogConfig
from ottla.storage.directories.disk import LogDirectories
from ottla.storage.log.log import Log
from tests.handlers.logs import NODE, LogsBroker, logs_broker, values


@pytest.fixture
async def broker() -> AsyncIterator[LogsBroker]:
    """Yield a broker with two log directories; `t` is in the first."""
    async with logs_broker() as running:
        open_directories(running)
        yield running


def open_directories(broker: LogsBroker) -> None:
    """Open the two log directories, for the first time or again."""
    broker.directories = LogDirectories.open(
        ["/x", "/y"],
        files=broker.files,
        clock=broker.clock,
        rng=broker.rng,
        broker_id=NODE,
        on_offline=lambda path, error: broker.replicas.directory_offline(path, error),
    )
    broker.replicas = Replicas(
        NODE,
        broker.directories,
        clock=broker.clock,
        files=broker.files,
        tasks=broker.tasks,
        topic_options=broker.options_of,
        image=lambda: broker.image,
    )


def begin(broker: LogsBroker, **config: str) -> Log:
    """Append records and begin the move; return the copy."""
    broker.create("t", config=config)
    broker.write("t", *(b"%d" % number for number in range(20)))
    assert broker.replicas.move_log("t", 0, "/y") is ErrorCode.NONE
    future = broker.directories.moves.future("t", 0)
    assert future is not None
    return future


async def until(condition: Callable[[], Any]) -> None:
    """Wait until the move has made the condition true."""
    async with asyncio.timeout(20):
        while not condition():
            await asyncio.sleep(0)  # Lets the move continue.


async def moved(broker: LogsBroker) -> list[bytes | None]:
    """Wait until the log has moved; return its records."""
    partition = broker.partition("t")
    await until(lambda: partition.log.directory == "/y/t-0")
    log = partition.log
    result = log.read(log.log_start_offset, 1 << 20, max_offset=log.log_end_offset)
    assert result is not None
    return values(result.records)


async def test_records_are_durable_when_the_copy_replaces_the_log(broker: LogsBroker) -> None:
    """A record that was acknowledged with flush.on.ack must be on disk afterwards, too."""
    begin(broker, **{"flush.on.ack": "true"})
    await moved(broker)
    log = broker.partition("t").log
    assert log.recovery_point == log.log_end_offset == 20
    files = broker.files.power_loss(broker.rng)
    broker.files = files
    open_directories(broker)
    copy = broker.directories.get("t", 0)
    assert copy is not None
    assert (copy.directory, copy.log_end_offset) == ("/y/t-0", 20)


async def test_records_marks_and_deletions_are_synced_off_the_loop(
    broker: LogsBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only the copy's new name is synced in the step in which it replaces the log."""
    future = begin(broker)
    await until(lambda: future.log_end_offset == 20)
    assert future.recovery_point < 20
    in_background = broker.files.in_background
    is_on_loop = [True]
    synced: list[str] = []

    def elsewhere(work: Callable[[], Any]) -> Any:
        def run() -> Any:
            is_on_loop[0] = False
            try:
                return work()
            finally:
                is_on_loop[0] = True

        return in_background(run)

    def noting(name: str) -> Callable[..., Any]:
        operation = getattr(broker.files, name)

        def noted(path: str, *arguments: Any) -> Any:
            if is_on_loop[0]:
                synced.append(path)
            return operation(path, *arguments)

        return noted

    monkeypatch.setattr(broker.files, "in_background", elsewhere)
    for name in ("sync_directory", "replace"):
        monkeypatch.setattr(broker.files, name, noting(name))
    await moved(broker)
    await until(lambda: not broker.tasks._running)
    assert broker.partition("t").log.recovery_point == 20
    assert synced == ["/y"]
    assert [name.rpartition("-")[2] for name in broker.files.list("/x") if "t-0" in name] == [
        "delete"
    ]


async def test_a_move_that_is_cancelled_in_its_last_step_leaves_no_mark(broker: LogsBroker) -> None:
    """A log that stays in its directory can be served while another directory is offline."""
    begin(broker)
    await until(lambda: broker.files.exists("/x/t-0/superseded"))
    broker.directories.moves.cancel("t", 0)
    await until(lambda: not broker.tasks._running)
    assert broker.partition("t").log.directory == "/x/t-0"
    assert not broker.files.exists("/x/t-0/superseded")


async def test_a_crash_after_the_preparation_leaves_the_log(broker: LogsBroker) -> None:
    """The mark is removed by the next start, and the move continues."""
    begin(broker)
    await until(lambda: broker.files.exists("/x/t-0/superseded"))
    broker.files = broker.files.kill()
    open_directories(broker)
    log = broker.directories.get("t", 0)
    assert log is not None
    assert (log.directory, log.log_end_offset) == ("/x/t-0", 20)
    assert not broker.files.exists("/x/t-0/superseded")
    assert broker.directories.moves.future("t", 0) is not None


async def test_move_resumes_after_a_restart(broker: LogsBroker) -> None:
    """The move resumes as soon as the replica is loaded."""
    begin(broker)
    broker.directories.close()
    open_directories(broker)
    broker.create("t", leader_epoch=4)
    assert await moved(broker) == [b"%d" % number for number in range(20)]


async def test_deleting_a_topic_ends_its_move(broker: LogsBroker) -> None:
    """After the deletion of a topic during its move no copy and no task remain."""
    begin(broker)
    broker.replicas.stop_replicas(1, [("t", 0)], delete=True)
    await until(lambda: not broker.tasks._running)
    assert broker.directories.moves.future("t", 0) is None
    assert all("-delete" in name for name in broker.files.list("/y") if name.startswith("t-"))


async def test_truncated_records_are_not_in_the_copy(broker: LogsBroker) -> None:
    """The copy restarts when the log is truncated."""
    future = begin(broker)
    log = broker.partition("t").log
    await until(lambda: future.log_end_offset == 20)
    log.truncation.truncate_to(10)
    broker.write("t", b"x")
    expected = [*(b"%d" % number for number in range(10)), b"x"]
    assert await moved(broker) == expected


async def test_deleted_records_are_not_copied(broker: LogsBroker) -> None:
    """A copy that has not reached the log start begins there, even inside a batch."""
    begin(broker)
    log = broker.partition("t").log
    log.truncation.advance_log_start_offset(15)
    assert await moved(broker) == [b"%d" % number for number in range(15, 20)]
    assert broker.partition("t").log.log_start_offset == 15


async def test_offsets_without_records_at_the_end_are_kept(broker: LogsBroker) -> None:
    """Compaction and truncation may leave such offsets; the next record follows them."""
    begin(broker)
    broker.partition("t").log.truncation.skip_to(30)
    assert len(await moved(broker)) == 20
    broker.write("t", b"next")
    assert broker.partition("t").log.log_end_offset == 31


async def test_full_target_cancels_the_move(broker: LogsBroker) -> None:
    """If the target is full, the move is cancelled and only the target goes offline."""
    broker.files.faults.fail("append", error=errno.ENOSPC, path="-future/00", times=-1)
    begin(broker)
    await until(lambda: not broker.tasks._running)
    assert [item.failure is None for item in broker.directories.directories()] == [True, False]
    broker.write("t", b"more")
    assert broker.partition("t").log.directory == "/x/t-0"


@pytest.mark.parametrize(
    ("operation", "path"),
    [("open", "-future/0"), ("sync_directory", "-future"), ("replace", "/x/t-0/superseded")],
)
async def test_move_without_a_free_descriptor_waits(
    broker: LogsBroker, monkeypatch: pytest.MonkeyPatch, operation: str, path: str
) -> None:
    """The move continues when descriptors are free, and the log can be compacted afterwards."""
    monkeypatch.setattr("ottla.replication.moving._RETRY_SECONDS", 0)
    future = begin(broker)
    await until(lambda: future.log_end_offset == 20)
    future.update_config(LogConfig(segment_bytes=300))
    broker.files.faults.fail(operation, error=errno.EMFILE, path=path, times=3)
    broker.write("t", *(b"%d" % number for number in range(20, 40)))
    await moved(broker)
    log = broker.partition("t").log
    assert log.log_end_offset == 40
    assert not log.is_being_copied


async def test_copy_that_failed_midway_is_deleted(broker: LogsBroker) -> None:
    """The log is no longer being copied, so that it can be compacted, and moved again."""
    begin(broker)
    log = broker.partition("t").log
    log.truncation.truncate_to(3)
    broker.files.faults.fail("open", error=errno.EMFILE, path="-future/0")
    await until(lambda: not broker.tasks._running)
    assert not log.is_being_copied
    assert broker.directories.moves.future("t", 0) is None
    assert broker.replicas.move_log("t", 0, "/y") is ErrorCode.NONE
    assert len(await moved(broker)) == 3


async def test_a_source_that_fails_ends_the_move(broker: LogsBroker) -> None:
    """The partition is offline, and the copy stays for the next start."""
    broker.create("t")
    broker.write("t", b"a")
    broker.files.faults.fail("read_at", path="/x/t-0", times=-1)
    assert broker.replicas.move_log("t", 0, "/y") is ErrorCode.NONE
    await until(lambda: not broker.tasks._running)
    assert broker.replicas.move_log("t", 0, "/y") is ErrorCode.KAFKA_STORAGE_ERROR
    assert any("-future" in name for name in broker.files.list("/y"))


async def test_move_is_throttled(broker: LogsBroker) -> None:
    """The limit is replica.alter.log.dirs.io.max.bytes.per.second, and may change during the move."""
    rates = [1000.0]
    slept: list[float] = []

    async def sleep(seconds: float) -> None:
        slept.append(seconds)
        clock.now += seconds
        await asyncio.sleep(0)

    clock = cast(Any, broker.clock)
    clock.sleep = sleep
    broker.replicas.move_bytes_per_second = lambda: rates[0]
    begin(broker)
    size = broker.partition("t").log.size_bytes
    assert size > 1000
    await moved(broker)
    assert sum(slept) == pytest.approx(size / 1000, rel=0.1)
    assert max(slept) <= 1.0


async def test_records_of_old_formats_are_moved_unchanged(broker: LogsBroker) -> None:
    """A broker before 0.11 wrote the log, and its first batch does not have its first offset."""
    broker.create("t")
    builder = LegacyRecordBatchBuilder(1, 1, 1 << 20)
    for number in range(5):
        builder.append(number, timestamp=1000, key=None, value=b"old")
    data = bytearray(builder.build())
    struct.pack_into(">q", data, 0, 4)
    log = broker.partition("t").log
    log.append_as_follower(data)
    broker.write("t", b"new")
    log.truncation.advance_log_start_offset(2)
    assert broker.replicas.move_log("t", 0, "/y") is ErrorCode.NONE
    partition = broker.partition("t")
    await until(lambda: partition.log.directory == "/y/t-0")
    result = partition.log.read(2, 1 << 20, max_offset=6)
    assert result is not None
    assert bytes(result.records[: len(data)]) == data
    assert (partition.log.log_start_offset, partition.log.log_end_offset) == (2, 6)


async def test_damaged_log_stays_and_its_copy_is_deleted(broker: LogsBroker) -> None:
    """Its valid part is compacted as before, and a restart resumes no move."""
    begin(broker)
    log = broker.partition("t").log
    broker.files.damage("/x/t-0/00000000000000000000.log", log.size_bytes // 2)
    assert log.is_being_copied
    await until(lambda: not broker.tasks._running)
    assert broker.partition("t").log is log
    assert broker.directories.moves.future("t", 0) is None
    assert not log.is_being_copied
