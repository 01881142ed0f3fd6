"""All replicas of a broker: lookup, creation, deletion, and failed directories."""

import asyncio
import errno
import gc
import weakref

import pytest

from ottla.base.errors import ApiError, ErrorCode, StorageError
from tests.handlers.logs import NODE, OTHER, LogsBroker, batch


def code_of(broker: LogsBroker, topic: str, partition: int = 0) -> ErrorCode:
    try:
        broker.replicas.get(topic, partition)
    except ApiError as error:
        return error.code
    return ErrorCode.NONE


async def test_replicas_are_found_by_name_and_by_id(broker: LogsBroker) -> None:
    """Name and id return the same partition."""
    topic = broker.create("t", partitions=2)
    partition = broker.replicas.get_by_id(topic.topic_id, 1)
    assert partition is broker.replicas.get("t", 1)


async def test_missing_replica_has_an_error_code(broker: LogsBroker) -> None:
    """The partition is unknown, or another broker's."""
    broker.create("theirs", leader=OTHER, replicas=(OTHER,))
    assert code_of(broker, "nope") is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert code_of(broker, "theirs", 5) is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert code_of(broker, "theirs") is ErrorCode.NOT_LEADER_OR_FOLLOWER
    with pytest.raises(ApiError) as refused:
        broker.replicas.get_by_id(broker.image.topics["theirs"].topic_id, 0)
    assert refused.value.code is ErrorCode.NOT_LEADER_OR_FOLLOWER
    with pytest.raises(ApiError) as refused:
        broker.replicas.get_by_id(bytes(15) + b"\x09", 0)
    assert refused.value.code is ErrorCode.UNKNOWN_TOPIC_ID


async def test_only_own_replicas_are_created(broker: LogsBroker) -> None:
    """A state with other brokers creates no log."""
    broker.create("theirs", leader=OTHER, replicas=(OTHER,))
    assert broker.directories.get("theirs", 0) is None


async def test_replaced_controller_is_rejected(broker: LogsBroker) -> None:
    """All its requests fail with STALE_CONTROLLER_EPOCH."""
    topic = broker.create("t")
    broker.replicas.apply_leader_and_isr(5, [])
    codes = broker.replicas.apply_leader_and_isr(4, topic.states())
    assert codes == {("t", 0): ErrorCode.STALE_CONTROLLER_EPOCH}
    stopped = broker.replicas.stop_replicas(4, [("t", 0)], delete=True)
    assert stopped == {("t", 0): ErrorCode.STALE_CONTROLLER_EPOCH}
    assert code_of(broker, "t") is ErrorCode.NONE


async def test_another_topic_of_the_same_name_is_rejected(broker: LogsBroker) -> None:
    """The log belongs to an earlier topic, and must be deleted first."""
    topic = broker.create("t")
    other = type(topic)("t", bytes(15) + b"\x09", topic.partitions)
    codes = broker.replicas.apply_leader_and_isr(1, other.states())
    assert codes == {("t", 0): ErrorCode.INCONSISTENT_TOPIC_ID}


async def test_topic_created_again_while_its_broker_was_cut_off(broker: LogsBroker) -> None:
    """After a lost registration the log of the former topic is set aside for the new one, once."""
    topic = broker.create("t")
    broker.write("t", b"a")
    kept = broker.create("kept")
    broker.replicas.registration_lost()
    broker.replicas.apply_leader_and_isr(1, kept.states())
    other, later = (
        type(topic)(name, bytes(15) + b"\x09", topic.partitions) for name in ("t", "kept")
    )
    codes = broker.replicas.apply_leader_and_isr(1, [*other.states(), *later.states()])
    assert codes == {("t", 0): ErrorCode.NONE, ("kept", 0): ErrorCode.INCONSISTENT_TOPIC_ID}
    log = broker.replicas.get("t", 0).log
    assert (log.topic_id, log.log_end_offset) == (other.topic_id, 0)
    assert [name for name in broker.files.list("/data") if name.endswith("-stray")]
    codes = broker.replicas.apply_leader_and_isr(1, topic.states())
    assert codes == {("t", 0): ErrorCode.INCONSISTENT_TOPIC_ID}


async def test_deleted_topic_is_removed_with_its_log(broker: LogsBroker) -> None:
    """The name of its directory is free for a new log."""
    broker.create("t")
    broker.write("t", b"a")
    broker.image = broker.image.with_topics(deleted=["t"])
    assert broker.replicas.stop_replicas(1, [("t", 0)], delete=True) == {("t", 0): ErrorCode.NONE}
    assert code_of(broker, "t") is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    broker.create("t")
    assert broker.partition("t").log.log_end_offset == 0


async def test_deleted_partition_is_freed_at_once(broker: LogsBroker) -> None:
    """Full collections are rare: a log with cycles would remain for hours after its topic."""
    broker.create("t")
    broker.write("t", b"a")
    partition = weakref.ref(broker.partition("t"))
    log = weakref.ref(broker.partition("t").log.all_segments)
    gc.collect()
    gc.disable()
    try:
        broker.replicas.stop_replicas(1, [("t", 0)], delete=True)
        for _ in range(5):
            await asyncio.sleep(0)
        assert (partition(), log()) == (None, None)
    finally:
        gc.enable()


async def test_leadership_changes_are_reported(broker: LogsBroker) -> None:
    """Coordinators follow the leadership of their partitions."""
    changes: list[tuple[str, int]] = []
    broker.replicas.on_leading.append(lambda item: changes.append(("leads", item.leader_epoch)))
    broker.replicas.on_ceasing.append(lambda item: changes.append(("ceases", item.leader_epoch)))
    topic = broker.create("t", replicas=(NODE, OTHER), leader_epoch=3)
    broker.replicas.apply_leader_and_isr(1, topic.states())
    broker.create("t", replicas=(NODE, OTHER), leader_epoch=4)
    broker.create("t", replicas=(NODE, OTHER), leader=OTHER, leader_epoch=5)
    broker.create("t", replicas=(NODE, OTHER), leader_epoch=6)
    broker.replicas.stop_replicas(1, [("t", 0)], delete=False)
    assert changes == [("leads", 3), ("leads", 4), ("ceases", 5), ("leads", 6), ("ceases", 6)]


async def test_failed_directory_affects_only_its_own_partitions(broker: LogsBroker) -> None:
    """Other partitions continue, and the failed ones return KAFKA_STORAGE_ERROR."""
    broker.create("t")
    ceased: list[str] = []
    broker.replicas.on_ceasing.append(lambda item: ceased.append(item.topic))
    elsewhere = StorageError("/data2", "gone")
    broker.replicas.directory_offline("/data2", elsewhere)
    assert code_of(broker, "t") is ErrorCode.NONE
    broker.replicas.directory_offline("/data", StorageError("/data", "gone"))
    broker.replicas.directory_offline("/data", StorageError("/data", "gone"))
    assert code_of(broker, "t") is ErrorCode.KAFKA_STORAGE_ERROR
    assert ceased == ["t"]


async def test_failed_log_creation_is_reported_to_the_controller(broker: LogsBroker) -> None:
    """The partition's error is KAFKA_STORAGE_ERROR."""
    broker.files.faults.fail("open", error=errno.ENOSPC, times=-1)
    broker.files.faults.fail("make_directories", error=errno.ENOSPC, times=-1)
    topic = broker.create("t")
    assert code_of(broker, "t") is not ErrorCode.NONE
    codes = broker.replicas.apply_leader_and_isr(1, topic.states())
    assert codes == {("t", 0): ErrorCode.KAFKA_STORAGE_ERROR}


async def test_high_watermarks_are_checkpointed(broker: LogsBroker) -> None:
    """The high watermark is known after a restart."""
    broker.create("t", replicas=(NODE, OTHER))
    broker.write("t", b"a", b"b")
    broker.partition("t").follower_fetched(OTHER, 1, 0)
    broker.replicas.checkpoint_high_watermarks()
    assert broker.directories.high_watermark("t", 0) == 1
    stored = broker.files.read("/data/replication-offset-checkpoint")
    assert b"t 0 1" in stored


async def test_flushes_of_one_log_are_shared(broker: LogsBroker) -> None:
    """Appends during a flush wait together for the next one (group commit)."""
    broker.create("t", config={"flush.on.ack": "true"})
    partition = broker.partition("t")
    waits = []
    for number in range(10):
        info = partition.append_as_leader(batch(b"%d" % number), acks=1)
        waits.append(partition.wait_for_acknowledgement(1, info.last_offset + 1, 60))
    for wait in waits:
        assert await wait is ErrorCode.NONE
    assert partition.log.recovery_point == 10
