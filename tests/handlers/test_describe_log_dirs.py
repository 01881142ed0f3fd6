"""DescribeLogDirs: the directories of logs, their sizes and free space."""

import re
from typing import Any

import pytest

from ottla.base.errors import ErrorCode, StorageError
from ottla.server.handlers import describe_log_dirs
from ottla.storage.config import LogConfig
from ottla.storage.directories.disk import LogDirectories
from ottla.storage.directories.strays import StrayReason
from ottla.testing.sim.files import UNLIMITED_BYTES
from ottla.wire.messages.describe_log_dirs import DescribableLogDirTopic, DescribeLogDirsRequest
from tests.handlers.logs import LogsBroker

VERSIONS = range(describe_log_dirs.MIN_VERSION, describe_log_dirs.MAX_VERSION + 1)


async def describe(broker: LogsBroker, *topics: tuple[str, int], version: int = 5) -> Any:
    """Describe single partitions of topics, or all of them."""
    requested = [DescribableLogDirTopic(topic=name, partitions=[number]) for name, number in topics]
    request = DescribeLogDirsRequest(topics=requested or None)
    return await broker.ask(describe_log_dirs, request, version)


@pytest.mark.parametrize("version", VERSIONS)
async def test_every_log_has_its_size(broker: LogsBroker, version: int) -> None:
    """Topics are sorted; the lag of a leader is 0."""
    broker.create("u", partitions=2)
    broker.create("t")
    broker.write("t", b"a", b"b")
    response = await describe(broker, version=version)
    (result,) = response.results
    assert (response.error_code, result.error_code, result.log_dir) == (0, 0, "/data")
    entries = {
        (topic.name, item.partition_index): (item.partition_size, item.offset_lag)
        for topic in result.topics
        for item in topic.partitions
    }
    size = broker.partition("t").log.size_bytes
    assert size > 0
    assert list(entries.items()) == [(("t", 0), (size, 0)), (("u", 0), (0, 0)), (("u", 1), (0, 0))]
    assert not any(item.is_future_key for topic in result.topics for item in topic.partitions)
    assert not result.is_cordoned


async def test_the_device_has_a_size_since_version_4(broker: LogsBroker) -> None:
    """Earlier versions have no fields for it."""
    (result,) = (await describe(broker, version=4)).results
    assert (result.total_bytes, result.usable_bytes) == (UNLIMITED_BYTES, UNLIMITED_BYTES)
    (result,) = (await describe(broker, version=3)).results
    assert (result.total_bytes, result.usable_bytes) == (-1, -1)


async def test_stray_logs_are_listed_by_their_folders(broker: LogsBroker) -> None:
    """A log that was set aside belongs to no topic, so it is listed only if all are requested."""
    broker.create("t")
    broker.create("u")
    broker.write("t", b"a")
    broker.replicas.set_aside(("t", 0), StrayReason.UNASSIGNED)
    (result,) = (await describe(broker)).results
    served, stray = result.topics
    assert served.name == "u"
    assert re.fullmatch(r"t-0\.[0-9a-f]{32}-stray", stray.name)
    (row,) = stray.partitions
    assert (row.partition_index, row.offset_lag, row.is_future_key) == (0, -1, False)
    assert row.partition_size > 0
    (result,) = (await describe(broker, ("u", 0))).results
    assert [topic.name for topic in result.topics] == ["u"]


async def test_only_requested_partitions_are_described(broker: LogsBroker) -> None:
    """Missing partitions are omitted, and the directory is still described."""
    broker.create("t", partitions=2)
    (result,) = (await describe(broker, ("t", 1), ("t", 7), ("nope", 0))).results
    assert [(topic.name, len(topic.partitions)) for topic in result.topics] == [("t", 1)]
    (result,) = (await describe(broker, ("nope", 0))).results
    assert (result.log_dir, result.topics) == ("/data", [])


async def test_failed_directory_has_an_error(broker: LogsBroker) -> None:
    """Its logs and its size are omitted."""
    broker.create("t")
    broker.directories.failed(StorageError("/data", "gone"))
    (result,) = (await describe(broker)).results
    assert result.error_code == ErrorCode.KAFKA_STORAGE_ERROR
    assert (result.log_dir, result.topics, result.total_bytes) == ("/data", [], -1)


async def test_failed_directory_does_not_affect_the_others(broker: LogsBroker) -> None:
    """The logs of other directories are described as before."""
    directories = LogDirectories.open(
        ["/x", "/y"], files=broker.files, clock=broker.clock, rng=broker.rng, broker_id=1
    )
    broker.replicas.directories = directories
    for name in ("a", "b"):
        directories.create(name, 0, bytes(16), LogConfig())
    rows = [
        (result.log_dir, [topic.name for topic in result.topics])
        for result in (await describe(broker)).results
    ]
    assert rows == [("/x", ["a"]), ("/y", ["b"])]
    directories.failed(StorageError("/x", "gone"))
    first, second = (await describe(broker)).results
    assert (first.error_code, first.topics) == (ErrorCode.KAFKA_STORAGE_ERROR, [])
    assert (second.error_code, [topic.name for topic in second.topics]) == (0, ["b"])
    directories.close()
