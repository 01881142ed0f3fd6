"""AlterReplicaLogDirs: replicas move between the directories of their broker, while all goes on."""

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
    """A broker with three log directories."""
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
    """Ask for partition 0 of a topic to be in a directory."""
    topics = [AlterReplicaLogDirTopic(name=topic, partitions=[0])]
    request = AlterReplicaLogDirsRequest(dirs=[AlterReplicaLogDir(path=path, topics=topics)])
    answer = await broker.ask(alter_replica_log_dirs, request, version)
    (result,) = answer.results
    (item,) = result.partitions
    assert (result.topic_name, item.partition_index) == (topic, 0)
    return ErrorCode(item.error_code)


async def settled(condition: Callable[[], Any]) -> None:
    """Wait until background tasks have brought something about."""
    async with asyncio.timeout(20):
        while not condition():
            await asyncio.sleep(0)  # lets the move go on


async def places(broker: LogsBroker) -> dict[str, tuple[bool, int]]:
    """Return where t-0 is told to be: whether that is a future one, and how far it lags."""
    answer = await broker.ask(describe_log_dirs, DescribeLogDirsRequest(topics=None), 4)
    return {
        result.log_dir: (item.is_future_key, item.offset_lag)
        for result in answer.results
        for topic in result.topics
        for item in topic.partitions
        if topic.name == "t"
    }


@pytest.mark.parametrize("version", VERSIONS)
async def test_a_replica_moves_to_another_directory(broker: LogsBroker, version: int) -> None:
    """Everything is there, and appends and reads go on."""
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


async def test_a_move_that_goes_on_is_described(broker: LogsBroker) -> None:
    """As a future log in its new directory, with what it lags behind."""
    broker.create("t")
    broker.write("t", b"a", b"b")
    assert await alter(broker, "/y") is ErrorCode.NONE
    assert await places(broker) == {"/x": (False, 0), "/y": (True, 2)}


async def test_a_move_is_given_up_or_sent_elsewhere(broker: LogsBroker) -> None:
    """By naming the directory where the replica is, or a third one."""
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


async def test_a_directory_that_is_not_the_brokers_is_refused(broker: LogsBroker) -> None:
    """LOG_DIR_NOT_FOUND, whether the topic exists or not."""
    broker.create("t")
    assert await alter(broker, "/nope") is ErrorCode.LOG_DIR_NOT_FOUND
    assert await alter(broker, "/nope", "u") is ErrorCode.LOG_DIR_NOT_FOUND


async def test_a_name_that_leaves_no_room_for_the_ending_is_refused(broker: LogsBroker) -> None:
    """A folder's name has at most 255 bytes."""
    broker.create(LONG_NAME)
    assert await alter(broker, "/y", LONG_NAME) is ErrorCode.INVALID_TOPIC_EXCEPTION


async def test_what_does_not_exist_yet_is_made_in_that_directory(broker: LogsBroker) -> None:
    """The answer is an error, and the wish is remembered; another broker's has a code of its own."""
    assert await alter(broker, "/z") is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    broker.create("t")
    assert broker.partition("t").log.directory == "/z/t-0"
    broker.create("theirs", leader=OTHER, replicas=(OTHER,))
    assert await alter(broker, "/y", "theirs") is ErrorCode.REPLICA_NOT_AVAILABLE


async def test_offline_directories_are_refused(broker: LogsBroker) -> None:
    """As target, as source, and as any other: an unfinished copy may be in it."""
    broker.create("t")
    broker.create("u")
    broker.directories.failed(StorageError("/z", "gone"))
    assert await alter(broker, "/z") is ErrorCode.KAFKA_STORAGE_ERROR
    assert await alter(broker, "/y") is ErrorCode.KAFKA_STORAGE_ERROR
    assert await alter(broker, "/x") is ErrorCode.NONE
    broker.directories.failed(StorageError("/x", "gone"))
    assert await alter(broker, "/y") is ErrorCode.KAFKA_STORAGE_ERROR
    assert await alter(broker, "/y", "u") is ErrorCode.NONE


async def test_of_one_partition_the_last_directory_counts(broker: LogsBroker) -> None:
    """It is answered once."""
    broker.create("t")
    topics = [AlterReplicaLogDirTopic(name="t", partitions=[0])]
    dirs = [AlterReplicaLogDir(path=path, topics=topics) for path in ("/nope", "/y")]
    request = AlterReplicaLogDirsRequest(dirs=dirs)
    answer = await broker.ask(alter_replica_log_dirs, request, 2)
    (result,) = answer.results
    assert [item.error_code for item in result.partitions] == [0]


async def test_nothing_asked_is_nothing_answered(broker: LogsBroker) -> None:
    """An empty list is no error."""
    answer = await broker.ask(alter_replica_log_dirs, AlterReplicaLogDirsRequest(dirs=[]), 2)
    assert answer.results == []


async def test_many_moves_are_begun_in_slices(broker: LogsBroker) -> None:
    """Whoever moves all partitions of a broker stops nobody else meanwhile."""
    broker.create("t", partitions=200)
    paused = 0

    async def sleep(seconds: float) -> None:
        nonlocal paused
        paused += 1
        await asyncio.sleep(0)

    clock = cast(Any, broker.clock)
    clock.sleep = sleep
    # Every look at the clock takes a millisecond, however fast the machine is.
    clock.monotonic = partial(next, count(0, 0.001))
    topics = [AlterReplicaLogDirTopic(name="t", partitions=list(range(200)))]
    request = AlterReplicaLogDirsRequest(dirs=[AlterReplicaLogDir(path="/z", topics=topics)])
    answer = await broker.ask(alter_replica_log_dirs, request, 2)
    assert {item.error_code for item in answer.results[0].partitions} == {0}
    assert paused > 0
