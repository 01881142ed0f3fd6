"""AlterReplicaLogDirs: replicas move between directories of a broker during reads and writes."""

import asyncio
from collections.abc import AsyncIterator, Callable
from functools import partial
from itertools import count
from typing import Any, cast

import pytest

from ottla.base.errors import ErrorCode, StorageError
from ottla.server.handlers import alter_replica_log_dirs, describe_log_dirs
from ottla.storage.directories.disk import LogDirectories
from ottla.wire.messages.alter_replica_log_dirs import (
    AlterReplicaLogDir,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirTopic,
)
from ottla.wire.messages.describe_log_dirs import DescribeLogDirsRequest
from tests.handlers.logs import NODE, OTHER, LogsBroker, logs_broker, values

VERSIONS = range(alter_replica_log_dirs.MIN_VERSION, alter_replica_log_dirs.MAX_VERSION + 1)
LONG_NAME = "t" * 240


@pytest.fixture
async def broker() -> AsyncIterator[LogsBroker]:
    """Return a broker with three log directories."""
    async with logs_broker() as running:
        running.directories = running.replicas.directories = LogDirectories.open(
            ["/x", "/y", "/z"],
            files=running.files,
            clock=running.clock,
            rng=running.rng,
            broker_id=NODE,
            on_offline=running.replicas.directory_offline,
        )
        yield running


async def alter(broker: LogsBroker, path: str, topic: str = "t", version: int = 2) -> ErrorCode:
    """Move partition 0 of a topic to a directory."""
    topics = [AlterReplicaLogDirTopic(name=topic, partitions=[0])]
    request = AlterReplicaLogDirsRequest(dirs=[AlterReplicaLogDir(path=path, topics=topics)])
    response = await broker.ask(alter_replica_log_dirs, request, version)
    (result,) = response.results
    (item,) = result.partitions
    assert (result.topic_name, item.partition_index) == (topic, 0)
    return ErrorCode(item.error_code)


async def settled(condition: Callable[[], Any]) -> None:
    """Wait until background tasks have made the condition true."""
    async with asyncio.timeout(20):
        while not condition():
            await asyncio.sleep(0)  # Lets the move continue.


async def places(broker: LogsBroker) -> dict[str, tuple[bool, int]]:
    """Return the directories of t-0 in DescribeLogDirs, with is_future_key and offset_lag."""
    response = await broker.ask(describe_log_dirs, DescribeLogDirsRequest(topics=None), 4)
    return {
        result.log_dir: (item.is_future_key, item.offset_lag)
        for result in response.results
        for topic in result.topics
        for item in topic.partitions
        if topic.name == "t"
    }


@pytest.mark.parametrize("version", VERSIONS)
async def test_a_replica_moves_to_another_directory(broker: LogsBroker, version: int) -> None:
    """All records are moved, and appends and reads continue."""
    broker.create("t")
    broker.write("t", *(b"%d" % number for number in range(50)))
    partition = broker.partition("t")
    assert partition.log.directory == "/x/t-0"
    assert await alter(broker, "/y", version=version) is ErrorCode.NONE
    broker.write("t", b"during")
    await settled(lambda: partition.log.directory == "/y/t-0")
    broker.write("t", b"after")
    fetched = partition.read(0, 1 << 20, 52, at_least_one=True, only_if_cached=False)
    assert fetched is not None
    expected = [*(b"%d" % number for number in range(50)), b"during", b"after"]
    assert values(fetched.records) == expected
    assert (partition.high_watermark, partition.log.high_watermark) == (52, 52)
    assert await places(broker) == {"/y": (False, 0)}
    assert not broker.files.exists("/x/t-0")


async def test_current_move_is_described(broker: LogsBroker) -> None:
    """It is a future log in its new directory, with its offset lag."""
    broker.create("t")
    broker.write("t", b"a", b"b")
    assert await alter(broker, "/y") is ErrorCode.NONE
    assert await places(broker) == {"/x": (False, 0), "/y": (True, 2)}


async def test_move_is_cancelled_or_redirected(broker: LogsBroker) -> None:
    """The request names the replica's current directory, or a third one."""
    broker.create("t")
    broker.write("t", b"a")
    assert await alter(broker, "/y") is ErrorCode.NONE
    assert await alter(broker, "/x") is ErrorCode.NONE
    assert await places(broker) == {"/x": (False, 0)}
    assert await alter(broker, "/y") is ErrorCode.NONE
    assert await alter(broker, "/z") is ErrorCode.NONE
    assert await places(broker) == {"/x": (False, 0), "/z": (True, 1)}
    partition = broker.partition("t")
    await settled(lambda: partition.log.directory == "/z/t-0")
    assert await places(broker) == {"/z": (False, 0)}


async def test_unknown_directory_is_rejected(broker: LogsBroker) -> None:
    """The error is LOG_DIR_NOT_FOUND, whether the topic exists or not."""
    broker.create("t")
    assert await alter(broker, "/nope") is ErrorCode.LOG_DIR_NOT_FOUND
    assert await alter(broker, "/nope", "u") is ErrorCode.LOG_DIR_NOT_FOUND


async def test_topic_name_too_long_for_a_future_log_is_rejected(broker: LogsBroker) -> None:
    """The name of the directory has at most 255 bytes."""
    broker.create(LONG_NAME)
    assert await alter(broker, "/y", LONG_NAME) is ErrorCode.INVALID_TOPIC_EXCEPTION


async def test_new_replica_is_created_in_the_requested_directory(broker: LogsBroker) -> None:
    """The error differs for a replica of another broker, and the directory is remembered for a new
    one.
    """
    assert await alter(broker, "/z") is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    broker.create("t")
    assert broker.partition("t").log.directory == "/z/t-0"
    broker.create("theirs", leader=OTHER, replicas=(OTHER,))
    assert await alter(broker, "/y", "theirs") is ErrorCode.REPLICA_NOT_AVAILABLE


async def test_offline_directories_are_rejected(broker: LogsBroker) -> None:
    """Any offline directory is an error, because it may have an unfinished copy."""
    broker.create("t")
    broker.create("u")
    broker.directories.failed(StorageError("/z", "gone"))
    assert await alter(broker, "/z") is ErrorCode.KAFKA_STORAGE_ERROR
    assert await alter(broker, "/y") is ErrorCode.KAFKA_STORAGE_ERROR
    assert await alter(broker, "/x") is ErrorCode.NONE
    broker.directories.failed(StorageError("/x", "gone"))
    assert await alter(broker, "/y") is ErrorCode.KAFKA_STORAGE_ERROR
    assert await alter(broker, "/y", "u") is ErrorCode.NONE


async def test_last_directory_of_a_repeated_partition_applies(broker: LogsBroker) -> None:
    """The partition has one result."""
    broker.create("t")
    topics = [AlterReplicaLogDirTopic(name="t", partitions=[0])]
    dirs = [AlterReplicaLogDir(path=path, topics=topics) for path in ("/nope", "/y")]
    request = AlterReplicaLogDirsRequest(dirs=dirs)
    response = await broker.ask(alter_replica_log_dirs, request, 2)
    (result,) = response.results
    assert [item.error_code for item in result.partitions] == [0]


async def test_empty_request_has_an_empty_response(broker: LogsBroker) -> None:
    """An empty list is no error."""
    response = await broker.ask(alter_replica_log_dirs, AlterReplicaLogDirsRequest(dirs=[]), 2)
    assert response.results == []


async def test_many_moves_are_started_in_slices(broker: LogsBroker) -> None:
    """A move of all partitions does not block the event loop."""
    broker.create("t", partitions=200)
    paused = 0

    async def sleep(seconds: float) -> None:
        nonlocal paused
        paused += 1
        await asyncio.sleep(0)

    clock = cast(Any, broker.clock)
    clock.sleep = sleep
    # Every reading of the clock takes a millisecond, however fast the machine is.
    clock.monotonic = partial(next, count(0, 0.001))
    topics = [AlterReplicaLogDirTopic(name="t", partitions=list(range(200)))]
    request = AlterReplicaLogDirsRequest(dirs=[AlterReplicaLogDir(path="/z", topics=topics)])
    response = await broker.ask(alter_replica_log_dirs, request, 2)
    assert {item.error_code for item in response.results[0].partitions} == {0}
    assert paused > 0
