"""With flush.on.ack acknowledged records are on disk, appends share flushes, and failures are
errors.
"""

import asyncio
import errno

import pytest

from ottla.base.errors import ApiError, ErrorCode, OutOfDescriptorsError, StorageError
from ottla.replication.partition import Partition
from tests.handlers.logs import LogsBroker, batch


def durable(broker: LogsBroker) -> Partition:
    """Create a topic that flushes before it acknowledges."""
    broker.create("t", config={"flush.on.ack": "true"})
    return broker.partition("t")


def count_syncs(broker: LogsBroker, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return a list that grows with every fsync of a log file."""
    synced: list[str] = []
    enter = broker.files.enter

    def counting(operation: str, path: str, *details: object) -> None:
        if operation == "sync" and path.endswith(".log"):
            synced.append(path)
        enter(operation, path, *details)

    monkeypatch.setattr(broker.files, "enter", counting)
    return synced


@pytest.mark.parametrize("acks", [1, -1])
async def test_no_append_is_acknowledged_at_once(broker: LogsBroker, acks: int) -> None:
    """With flush.on.ack an append waits for the flush; without it no flush is awaited."""
    broker.create("u")
    for partition, waits in ((durable(broker), True), (broker.partition("u"), False)):
        info = partition.append_as_leader(batch(b"x"), acks=acks)
        response = partition.acknowledgement(acks, info.last_offset + 1, 10)
        assert (response is not None) == waits
        if response is not None:
            assert not response.done()
            async with asyncio.timeout(20):
                assert await response == ErrorCode.NONE


async def test_appends_during_a_flush_share_the_next_one(
    broker: LogsBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In a group commit two flushes are enough for a hundred appends, which are all acknowledged."""
    partition = durable(broker)
    synced = count_syncs(broker, monkeypatch)
    responses = []
    for _ in range(100):
        info = partition.append_as_leader(batch(b"x"), acks=-1)
        responses.append(partition.wait_for_acknowledgement(-1, info.last_offset + 1, 10))
        if len(responses) == 50:
            # The first flush is running now.
            await asyncio.sleep(0)
    assert not any(response.done() for response in responses)
    async with asyncio.timeout(20):
        assert set(await asyncio.gather(*responses)) == {ErrorCode.NONE}
    assert len(synced) <= 2
    assert partition.log.recovery_point == partition.high_watermark == 100


@pytest.mark.parametrize("acks", [1, -1])
async def test_unflushed_records_are_never_acknowledged(broker: LogsBroker, acks: int) -> None:
    """A failed fsync takes the directory offline, because a later fsync could succeed without the
    lost data.
    """
    partition = durable(broker)
    broker.files.faults.fail("sync", path=".log")
    info = partition.append_as_leader(batch(b"x"), acks=acks)
    response = partition.wait_for_acknowledgement(acks, info.last_offset + 1, 10)
    async with asyncio.timeout(20):
        assert await response is ErrorCode.KAFKA_STORAGE_ERROR
    assert partition.is_offline
    assert partition.high_watermark == 0
    with pytest.raises(ApiError) as refused:
        partition.append_as_leader(batch(b"y"), acks=acks)
    assert refused.value.code is ErrorCode.KAFKA_STORAGE_ERROR


async def test_a_full_disk_acknowledges_nothing(broker: LogsBroker) -> None:
    """If an append fails with ENOSPC, this request and all later ones get an error."""
    partition = durable(broker)
    broker.files.faults.fail("append", error=errno.ENOSPC, path=".log")
    for _ in range(2):
        with pytest.raises(ApiError) as refused:
            partition.append_as_leader(batch(b"x"), acks=1)
        assert refused.value.code is ErrorCode.KAFKA_STORAGE_ERROR
    assert (partition.log.log_end_offset, partition.high_watermark) == (0, 0)


async def test_a_flush_ends_when_another_log_has_taken_the_directory_offline(
    broker: LogsBroker,
) -> None:
    """A flush of a log in an offline directory ends instead of being retried, which would block the
    event loop.
    """
    broker.create("t", config={"flush.on.ack": "true"})
    broker.write("t", b"a")
    log = broker.partition("t").log
    log.take_offline(StorageError("/data", "u-0: broken"))
    async with asyncio.timeout(20):
        while broker.tasks._running:
            await asyncio.sleep(0)
    assert log.recovery_point == 0


async def test_flush_without_a_free_descriptor_is_retried(
    broker: LogsBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An append is acknowledged when descriptors are free again, without another append."""
    monkeypatch.setattr("ottla.replication.replicas.RETRY_SECONDS", 0)
    partition = durable(broker)
    broker.files.faults.fail("sync_directory", error=errno.EMFILE, times=3)
    info = partition.append_as_leader(batch(b"x"), acks=-1)
    response = partition.wait_for_acknowledgement(-1, info.last_offset + 1, 10)
    async with asyncio.timeout(20):
        assert await response is ErrorCode.NONE
    assert partition.high_watermark == partition.log.recovery_point == 1


async def test_flush_of_a_log_that_failed_midway_ends(broker: LogsBroker) -> None:
    """It is not retried, because the log is unusable until the next start."""
    partition = durable(broker)
    partition.append_as_leader(batch(b"x"), acks=-1)
    partition.log.failure = OutOfDescriptorsError("/data", "t-0: Too many open files")
    async with asyncio.timeout(20):
        while broker.tasks._running:
            await asyncio.sleep(0)
    assert partition.high_watermark == 0
