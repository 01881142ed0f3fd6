"""One replica as leader and as follower, and its high watermark."""

from dataclasses import replace

import pytest

from ottla.base.errors import ApiError, ErrorCode
from ottla.cluster.image import PartitionState
from ottla.replication import leading
from ottla.replication.isr import CLIENT_WAIT_SECONDS
from ottla.replication.partition import ACKS_ALL, NO_EPOCH, READ_UNCOMMITTED
from ottla.storage.cleaner.compaction import empty_batch
from ottla.storage.config import LONG_MAX
from ottla.wire.records.batch import parse_header
from ottla.wire.records.records import Record, encode_batch
from tests.handlers.logs import NODE, OTHER, LogsBroker, batch


def state(
    broker: LogsBroker, *, leader: int = NODE, epoch: int = 3, partition_epoch: int = 0,
    isr: tuple[int, ...] = (NODE, OTHER),
) -> PartitionState:  # fmt: skip
    topic = broker.image.topics["t"]
    return PartitionState(
        topic="t",
        topic_id=topic.topic_id,
        partition=0,
        leader=leader,
        leader_epoch=epoch,
        isr=isr,
        replicas=(NODE, OTHER),
        partition_epoch=partition_epoch,
    )


async def test_an_older_epoch_changes_nothing(broker: LogsBroker) -> None:
    """An older leader epoch is rejected."""
    broker.create("t", replicas=(NODE, OTHER), leader_epoch=3)
    partition = broker.partition("t")
    assert not partition.apply(state(broker, leader=OTHER, epoch=2))
    assert partition.is_leader


async def test_the_same_epoch_may_change_the_isr(broker: LogsBroker) -> None:
    """Within an epoch, a smaller ISR may commit pending records."""
    broker.create("t", replicas=(NODE, OTHER))
    broker.write("t", b"a")
    partition = broker.partition("t")
    assert partition.high_watermark == 0
    assert partition.apply(state(broker, partition_epoch=1, isr=(NODE,)))
    assert partition.high_watermark == 1
    assert not partition.apply(state(broker, partition_epoch=0))


@pytest.mark.parametrize(
    ("isr", "expected"),
    [
        ((NODE, OTHER), ErrorCode.NOT_LEADER_OR_FOLLOWER),
        ((NODE,), ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER),
    ],
    ids=["deserted", "alone"],
)
async def test_a_deserted_leader_does_not_judge_sequences(
    broker: LogsBroker, isr: tuple[int, ...], expected: ErrorCode
) -> None:
    """A leader that was replaced without knowing it lacks the producer's last records."""
    broker.create("t", replicas=(NODE, OTHER))
    partition = broker.partition("t")
    partition.apply(state(broker, partition_epoch=1, isr=isr))
    producer = {"producer_id": 1, "producer_epoch": 0, "timestamp": 1}
    first, third = (
        encode_batch([Record(None, b"a")], base_sequence=number, **producer) for number in (0, 2)
    )
    partition.append_as_leader(first, acks=ACKS_ALL)
    with pytest.raises(ApiError) as refused:
        partition.append_as_leader(third, acks=ACKS_ALL)
    assert refused.value.code is expected


async def test_a_new_leader_waits_for_the_first_batch_of_a_producer(broker: LogsBroker) -> None:
    """The second batch of an unknown producer cannot overtake the first one.

    A client may still wait for the former leader's response to the first batch when it sends the
    second one to the new leader. If the second was written, the first was out of order for ever.
    """
    broker.create("t", replicas=(NODE, OTHER), leader_epoch=1)
    partition = broker.partition("t")
    producer = {"producer_id": 1, "producer_epoch": 0, "timestamp": 1}
    first, second = (
        encode_batch([Record(None, b"a")], base_sequence=number, **producer) for number in (0, 1)
    )
    with pytest.raises(ApiError) as refused:
        partition.append_as_leader(second, acks=ACKS_ALL)
    assert refused.value.code is ErrorCode.NOT_LEADER_OR_FOLLOWER
    offsets = [
        partition.append_as_leader(records, acks=ACKS_ALL).base_offset
        for records in (first, second)
    ]
    assert offsets == [0, 1]


@pytest.mark.parametrize(
    ("epoch", "replicas", "seconds"),
    [(0, (NODE, OTHER), 0.0), (1, (NODE,), 0.0), (1, (NODE, OTHER), CLIENT_WAIT_SECONDS)],
    ids=["first leader", "only replica", "no client waits"],
)
async def test_an_unknown_producer_continues_if_it_had_no_other_leader(
    broker: LogsBroker, epoch: int, replicas: tuple[int, ...], seconds: float
) -> None:
    """A producer whose state has expired continues with its next sequence number."""
    broker.create("t", replicas=replicas, leader_epoch=epoch)
    partition = broker.partition("t")
    broker.clock.now += seconds
    producer = {"producer_id": 1, "producer_epoch": 0, "timestamp": 1}
    records = encode_batch([Record(None, b"a")], base_sequence=5, **producer)
    assert partition.append_as_leader(records, acks=ACKS_ALL).base_offset == 0


async def test_a_repeated_state_keeps_the_proposal_on_its_way(broker: LogsBroker) -> None:
    """A new controller repeats the state: a proposed member may still join, and must not miss a
    record.
    """
    broker.create("t", replicas=(NODE, OTHER))
    partition = broker.partition("t")
    partition.apply(state(broker, partition_epoch=1, isr=(NODE,)))
    assert partition.isr is not None
    partition.isr.joining, partition.isr.is_change_pending = frozenset({OTHER}), True
    partition.apply(state(broker, partition_epoch=1, isr=(NODE,)))
    assert partition.isr.is_change_pending
    broker.write("t", b"a")
    assert partition.high_watermark == 0
    partition.apply(state(broker, partition_epoch=2, isr=(NODE,)))
    assert not partition.isr.is_change_pending
    assert partition.high_watermark == 1


async def test_a_leader_applies_the_isr_that_the_controller_publishes(broker: LogsBroker) -> None:
    """A leader that missed the response to its proposal could propose nothing that is accepted."""
    broker.create("t", replicas=(NODE, OTHER), leader_epoch=3)
    partition = broker.partition("t")
    assert partition.isr is not None
    partition.isr.is_change_pending = True
    stored = replace(broker.image.topics["t"].partitions[0], isr=(NODE,), partition_epoch=7)
    leading.isr_published(partition, replace(stored, leader_epoch=2))
    assert partition.isr.is_change_pending
    leading.isr_published(partition, stored)
    assert partition.isr.isr == {NODE}
    assert partition.partition_epoch == 7
    assert not partition.isr.is_change_pending


async def test_a_new_epoch_begins_at_the_end_of_the_log(broker: LogsBroker) -> None:
    """The epoch's start is recorded, and the log end is unknown until it is committed (KIP-207)."""
    broker.create("t", replicas=(NODE, OTHER), leader_epoch=3)
    broker.write("t", b"a")
    partition = broker.partition("t")
    partition.apply(state(broker, epoch=4))
    assert partition.log.epochs.epoch_of(0) == 3
    assert partition.epoch_start_offset == 1
    assert not partition.is_end_known
    partition.follower_fetched(OTHER, 1, 0)
    assert partition.is_end_known


async def test_follower_rejects_records_of_clients(broker: LogsBroker) -> None:
    """A follower rejects produce requests, and fetches of consumers."""
    broker.create("t", replicas=(NODE, OTHER), leader=OTHER)
    partition = broker.partition("t")
    for action in (
        lambda: partition.append_as_leader(batch(b"a"), acks=1),
        lambda: partition.check_leader(),
        lambda: leading.delete_records(partition, 0),
    ):
        with pytest.raises(ApiError) as refused:
            action()
        assert refused.value.code is ErrorCode.NOT_LEADER_OR_FOLLOWER


async def test_the_position_of_a_follower_moves_the_high_watermark(broker: LogsBroker) -> None:
    """A follower that fetches at an offset has everything below it."""
    broker.create("t", replicas=(NODE, OTHER))
    broker.write("t", b"a", b"b")
    partition = broker.partition("t")
    partition.follower_fetched(OTHER, 0, 0)
    assert partition.high_watermark == 0
    partition.follower_fetched(OTHER, 2, 0)
    assert partition.high_watermark == 2
    assert partition.log.high_watermark == 2


async def test_a_broker_without_a_replica_cannot_fetch_as_a_follower(broker: LogsBroker) -> None:
    """The position of a broker without a replica is rejected: it would commit records that no
    replica has.
    """
    broker.create("t", replicas=(NODE, OTHER))
    with pytest.raises(ApiError) as refused:
        broker.partition("t").follower_fetched(9, 0, 0)
    assert refused.value.code is ErrorCode.NOT_LEADER_OR_FOLLOWER


async def test_lower_min_insync_replicas_commits_pending_records(broker: LogsBroker) -> None:
    """The option min.insync.replicas can change while the topic is in use."""
    broker.create("t", replicas=(NODE, OTHER), config={"min.insync.replicas": "2"})
    partition = broker.partition("t")
    partition.apply(state(broker, partition_epoch=1, isr=(NODE,)))
    broker.write("t", b"a")
    assert partition.high_watermark == 0
    broker.topic_settings["t"]["min.insync.replicas"] = "1"
    broker.replicas.update_configs("t")
    assert partition.high_watermark == 1


async def test_wait_for_the_high_watermark(broker: LogsBroker) -> None:
    """The future is done when all records below the offset are committed."""
    broker.create("t", replicas=(NODE, OTHER))
    broker.write("t", b"a", b"b")
    partition = broker.partition("t")
    first = partition.wait_for_acknowledgement(ACKS_ALL, 1, 60)
    second = partition.wait_for_acknowledgement(ACKS_ALL, 2, 60)
    partition.follower_fetched(OTHER, 1, 0)
    assert await first is ErrorCode.NONE
    assert not second.done()
    broker.replicas.stop_replicas(1, [("t", 0)], delete=False)
    assert await second is ErrorCode.NOT_LEADER_OR_FOLLOWER


async def test_restored_high_watermark_is_limited_to_the_log(broker: LogsBroker) -> None:
    """A checkpoint beyond the log end is limited to it."""
    broker.create("t", replicas=(NODE, OTHER))
    broker.write("t", b"a")
    broker.directories.store_high_watermarks({("t", 0): 99})
    broker.replicas.stop_replicas(1, [("t", 0)], delete=False)
    broker.create("t", replicas=(NODE, OTHER), leader_epoch=4)
    assert broker.partition("t").high_watermark == 1


async def test_new_epoch_of_the_same_leader_keeps_waiting_producers(broker: LogsBroker) -> None:
    """The epoch that begins when a follower dies does not fail waiting producers, which would
    repeat their batches.
    """
    broker.create("t", replicas=(NODE, OTHER), leader_epoch=3)
    broker.write("t", b"a")
    partition = broker.partition("t")
    waiting = partition.acknowledgement(-1, 1, 60)
    partition.apply(state(broker, epoch=4, isr=(NODE,)))
    assert await waiting is ErrorCode.NONE


async def test_leader_that_was_deposed_in_between_acknowledges_nothing(broker: LogsBroker) -> None:
    """A leader that was deposed in between acknowledges nothing, because the other leader may have
    replaced the records.
    """
    broker.create("t", replicas=(NODE, OTHER), leader_epoch=3)
    broker.write("t", b"a")
    partition = broker.partition("t")
    waiting = partition.acknowledgement(-1, 1, 60)
    partition.apply(state(broker, epoch=4, leader=OTHER))
    partition.apply(state(broker, epoch=5, isr=(NODE,)))
    assert await waiting is ErrorCode.NOT_LEADER_OR_FOLLOWER


@pytest.mark.parametrize("room", [0, 1])
async def test_consumers_pass_segments_that_compaction_has_emptied(
    broker: LogsBroker, room: int
) -> None:
    """A response has the records behind them, if they fit; followers get the empty batches."""
    broker.create("t")
    partition = broker.partition("t")
    for number in range(9):
        data = batch(b"a", b"b", base_offset=2 * number)
        partition.log.append_as_follower(empty_batch(parse_header(data)))
        partition.log.rolling.roll()
    broker.write("t", b"c")
    size = len(batch(b"c"))
    options = (READ_UNCOMMITTED, LONG_MAX, True, False)
    fetched = partition.fetch(0, size - 1 + room, NO_EPOCH, options, at_least_one=False)
    assert fetched.records is not None
    first = parse_header(fetched.records)  # type: ignore[arg-type]
    assert (first.base_offset, first.records_count) == ((18, 1) if room else (16, 0))
    copied = partition.read(0, 1000, 19, at_least_one=True, only_if_cached=True)
    assert copied is not None
    assert parse_header(copied.data).base_offset == 0


async def test_an_emptied_batch_at_the_end_is_returned(broker: LogsBroker) -> None:
    """A consumer that has read it continues behind it."""
    broker.create("t")
    broker.write("t", b"a")
    partition = broker.partition("t")
    partition.log.append_as_follower(empty_batch(parse_header(batch(b"b", base_offset=1))))
    options = (READ_UNCOMMITTED, LONG_MAX, True, False)
    partition.advance()
    fetched = partition.fetch(1, 1000, NO_EPOCH, options, at_least_one=True)
    assert fetched.records is not None
    assert parse_header(fetched.records).base_offset == 1  # type: ignore[arg-type]
