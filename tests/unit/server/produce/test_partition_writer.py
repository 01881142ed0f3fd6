"""Writes and reads of the coordinators' partitions."""

import pytest

from ottla.base.errors import ApiError, ErrorCode, OutOfDescriptorsError, StorageError
from ottla.server.produce.partition_writer import ReplicaWriter
from ottla.wire.records.records import Record
from tests.handlers.logs import NODE, OTHER, LogsBroker, values

RECORDS = [Record(b"k", b"v", (), 1000), Record(b"k", None, (), 1000)]


async def test_write_without_followers_is_committed_at_once(broker: LogsBroker) -> None:
    """The future is done on return, with the offset of the last record."""
    broker.create("state")
    done = ReplicaWriter(broker.replicas, broker.clock).append("state", 0, RECORDS)
    assert done.done()
    assert await done == 1


async def test_write_with_followers_is_committed_later(broker: LogsBroker) -> None:
    """The write is committed when the in-sync replicas have it."""
    broker.create("state", replicas=(NODE, OTHER))
    done = ReplicaWriter(broker.replicas, broker.clock).append("state", 0, RECORDS)
    assert not done.done()
    broker.partition("state").follower_fetched(OTHER, 2, 0)
    assert await done == 1


async def test_new_leader_fails_uncommitted_writes(broker: LogsBroker) -> None:
    """The records may still be lost."""
    broker.create("state", replicas=(NODE, OTHER))
    done = ReplicaWriter(broker.replicas, broker.clock).append("state", 0, RECORDS)
    broker.create("state", replicas=(NODE, OTHER), leader=OTHER, leader_epoch=4)
    with pytest.raises(ApiError) as lost:
        await done
    assert lost.value.code is ErrorCode.NOT_LEADER_OR_FOLLOWER


@pytest.mark.parametrize("epoch", [2, 4])
async def test_another_epoch_writes_nothing(broker: LogsBroker, epoch: int) -> None:
    """A coordinator of a former leader epoch must not write."""
    broker.create("state", leader_epoch=3)
    writer = ReplicaWriter(broker.replicas, broker.clock)
    with pytest.raises(ApiError) as refused:
        writer.append("state", 0, RECORDS, epoch)
    assert refused.value.code is ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert writer.bounds("state", 0) == (0, 0)


async def test_written_records_can_be_read(broker: LogsBroker) -> None:
    """A read returns records up to the log end, also uncommitted ones."""
    broker.create("state", replicas=(NODE, OTHER))
    writer = ReplicaWriter(broker.replicas, broker.clock)
    waiting = writer.append("state", 0, RECORDS, compression=1)
    assert writer.bounds("state", 0) == (0, 2)
    ((_, data),) = writer.read("state", 0, 0, 10).batches
    assert values(data) == [b"v", None]
    assert writer.read("state", 0, 2, 10).batches == []
    waiting.cancel()


async def test_only_the_leader_reads_and_writes(broker: LogsBroker) -> None:
    """Other brokers return an error, because they are not the leader."""
    broker.create("state", replicas=(NODE, OTHER), leader=OTHER)
    writer = ReplicaWriter(broker.replicas, broker.clock)
    for action in (
        lambda: writer.append("state", 0, RECORDS),
        lambda: writer.read("state", 0, 0, 10),
        lambda: writer.bounds("state", 0),
        lambda: writer.bounds("nope", 0),
    ):
        with pytest.raises(ApiError):
            action()


async def test_read_without_a_free_descriptor_can_be_repeated(broker: LogsBroker) -> None:
    """A lack of descriptors is passed on, so that the load is repeated; other failures end it."""
    broker.create("state")
    writer = ReplicaWriter(broker.replicas, broker.clock)
    log = broker.partition("state").log
    log.failure = OutOfDescriptorsError("/a", "state-0: Too many open files")
    with pytest.raises(OutOfDescriptorsError):
        writer.read("state", 0, 0, 10)
    log.failure = StorageError("/a", "state-0: the disk failed")
    with pytest.raises(ApiError) as refused:
        writer.read("state", 0, 0, 10)
    assert refused.value.code is ErrorCode.KAFKA_STORAGE_ERROR
