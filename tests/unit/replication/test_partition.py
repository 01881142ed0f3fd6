"""One replica: leading, following, committing."""

import pytest

from ottla.base.errors import ApiError, ErrorCode
from ottla.cluster.image import PartitionState
from ottla.replication.partition import ACKS_ALL
from tests.handlers.logs import NODE, OTHER, LogsBroker, batch, values


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
    """Words of the past are refused."""
    broker.create("t", replicas=(NODE, OTHER), leader_epoch=3)
    partition = broker.partition("t")
    assert not partition.apply(state(broker, leader=OTHER, epoch=2))
    assert partition.is_leader


async def test_the_same_epoch_may_change_the_isr(broker: LogsBroker) -> None:
    """Within an epoch a smaller ISR may commit what was waiting."""
    broker.create("t", replicas=(NODE, OTHER))
    broker.write("t", b"a")
    partition = broker.partition("t")
    assert partition.high_watermark == 0
    assert partition.apply(state(broker, partition_epoch=1, isr=(NODE,)))
    assert partition.high_watermark == 1
    assert not partition.apply(state(broker, partition_epoch=0))


async def test_a_new_epoch_begins_at_the_end_of_the_log(broker: LogsBroker) -> None:
    """The epoch's start is noted, and the end is not known until it is committed (KIP-207)."""
    broker.create("t", replicas=(NODE, OTHER), leader_epoch=3)
    broker.write("t", b"a")
    partition = broker.partition("t")
    partition.apply(state(broker, epoch=4))
    assert partition.log.epochs.epoch_of(0) == 3
    assert partition.epoch_start_offset == 1
    assert not partition.is_end_known
    partition.follower_fetched(OTHER, 1, 0)
    assert partition.is_end_known


async def test_a_follower_takes_no_records_from_clients(broker: LogsBroker) -> None:
    """Nor does it answer readers."""
    broker.create("t", replicas=(NODE, OTHER), leader=OTHER)
    partition = broker.partition("t")
    for action in (
        lambda: partition.append_as_leader(batch(b"a"), acks=1),
        lambda: partition.check_leader(),
        lambda: partition.delete_records(0),
    ):
        with pytest.raises(ApiError) as refused:
            action()
        assert refused.value.code is ErrorCode.NOT_LEADER_OR_FOLLOWER


async def test_a_follower_that_fetches_moves_the_high_watermark(broker: LogsBroker) -> None:
    """It gets records up to the log's end, and its offset says what it has."""
    broker.create("t", replicas=(NODE, OTHER))
    broker.write("t", b"a", b"b")
    partition = broker.partition("t")
    fetched = partition.read_as_follower(OTHER, 0, 1 << 20, log_start_offset=0, at_least_one=True)
    assert values(fetched.records) == [b"a", b"b"]
    assert partition.high_watermark == 0
    partition.read_as_follower(OTHER, 2, 1 << 20, log_start_offset=0, at_least_one=True)
    assert partition.high_watermark == 2
    assert partition.log.high_watermark == 2


async def test_a_stranger_cannot_fetch_as_a_follower(broker: LogsBroker) -> None:
    """A broker without a replica is not listened to."""
    broker.create("t", replicas=(NODE, OTHER))
    with pytest.raises(ApiError) as refused:
        broker.partition("t").read_as_follower(9, 0, 1 << 20, log_start_offset=0, at_least_one=True)
    assert refused.value.code is ErrorCode.NOT_LEADER_OR_FOLLOWER


async def test_a_lower_minimum_commits_what_waited(broker: LogsBroker) -> None:
    """min.insync.replicas can be changed while the topic runs."""
    broker.create("t", replicas=(NODE, OTHER), config={"min.insync.replicas": "2"})
    partition = broker.partition("t")
    partition.apply(state(broker, partition_epoch=1, isr=(NODE,)))
    broker.write("t", b"a")
    assert partition.high_watermark == 0
    broker.topic_settings["t"]["min.insync.replicas"] = "1"
    broker.replicas.update_configs("t")
    assert partition.high_watermark == 1


async def test_waiting_for_the_high_watermark(broker: LogsBroker) -> None:
    """A future that is done when all below the offset is committed."""
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


async def test_the_high_watermark_of_a_restart_is_kept_in_bounds(broker: LogsBroker) -> None:
    """A checkpoint that says more than the log holds is not believed."""
    broker.create("t", replicas=(NODE, OTHER))
    broker.write("t", b"a")
    broker.directories.store_high_watermarks({("t", 0): 99})
    broker.replicas.stop_replicas(1, [("t", 0)], delete=False)
    broker.create("t", replicas=(NODE, OTHER), leader_epoch=4)
    assert broker.partition("t").high_watermark == 1
