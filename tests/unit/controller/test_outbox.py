"""The lanes of the outbox: order, retries, fencing, and the release of waiting callers."""

import asyncio
from collections.abc import AsyncIterator

import pytest

from ottla.base.errors import ErrorCode
from ottla.base.tasks import Tasks
from ottla.cluster.image import BrokerImage, ClusterImage, PartitionImage, TopicImage
from ottla.controller.outbox import Outbox
from ottla.controller.planning.notices import Delivered, Fence, MetadataUpdate, Notice
from tests.unit.controller.conftest import ImpatientClock, NotingPort

TOPIC = TopicImage("t", b"i" * 16, (PartitionImage(0, 1, 0, isr=(1,), replicas=(1,)),))
FENCE = Fence(controller_id=1, controller_epoch=2, broker_epoch=3)
EVERYTHING = Notice(
    broker_id=1,
    leaders=TOPIC.states(),
    metadata=MetadataUpdate(None, [TOPIC], []),
    stop=[("gone", 0)],
    delete=True,
)


class Lane:
    """An outbox with a lane to broker 1."""

    def __init__(self) -> None:
        self.port = NotingPort(1)
        self.delivered: list[Delivered] = []
        self.tasks = Tasks()
        self.outbox = Outbox(self.tasks, ImpatientClock(), lambda _: self.port)
        self.open()

    def open(self, fence: Fence = FENCE) -> None:
        """Open the lane, as for a broker that has joined."""
        self.outbox.open(BrokerImage(1, "host", 9092), fence, self.delivered.append)


@pytest.fixture
async def lane() -> AsyncIterator[Lane]:
    """A lane that is closed at the end of the test."""
    new_lane = Lane()
    yield new_lane
    new_lane.outbox.close()
    await new_lane.tasks.close()


async def test_a_broker_receives_leaders_then_metadata_then_stops(lane: Lane) -> None:
    """A client that has read the metadata finds a leader that is ready."""
    (done,) = lane.outbox.send([EVERYTHING])
    await done
    assert lane.port.names() == ["leaders", "metadata", "delete"]
    assert set(lane.port.fences) == {FENCE}
    assert lane.delivered == [Delivered(EVERYTHING, {})]


async def test_notices_keep_their_order(lane: Lane) -> None:
    """The next notice is sent after the previous one has its response."""
    lane.port.is_open.clear()
    first, second = lane.outbox.send([EVERYTHING, Notice(broker_id=1, stop=[("t", 0)])])
    await asyncio.sleep(0)
    assert not first.done()
    lane.port.is_open.set()
    await second
    assert first.done()
    assert lane.port.names() == ["leaders", "metadata", "delete", "stop"]


async def test_an_unreachable_broker_is_retried(lane: Lane) -> None:
    """The broker may be starting; the whole notice is sent again."""
    lane.port.failures = [ErrorCode.BROKER_NOT_AVAILABLE] * 3
    (done,) = lane.outbox.send([EVERYTHING])
    await done
    assert lane.port.names() == ["leaders", "metadata", "delete"]


@pytest.mark.parametrize("code", [ErrorCode.STALE_CONTROLLER_EPOCH, ErrorCode.STALE_BROKER_EPOCH])
async def test_a_fenced_lane_ends_and_releases_waiting_callers(lane: Lane, code: ErrorCode) -> None:
    """A lane ends when a newer controller or a newer broker epoch exists."""
    lane.port.failures = [code]
    waiting = lane.outbox.send([EVERYTHING, EVERYTHING])
    await asyncio.gather(*waiting)
    (late,) = lane.outbox.send([EVERYTHING])
    assert late.done()
    assert lane.port.calls == []
    assert lane.delivered == []


async def test_closing_a_lane_releases_waiting_callers(lane: Lane) -> None:
    """The callers do not wait for a broker that has left."""
    lane.port.is_open.clear()
    waiting = lane.outbox.send([EVERYTHING, EVERYTHING])
    await asyncio.sleep(0)
    lane.outbox.close_lane(1)
    await asyncio.gather(*waiting)
    assert lane.outbox.send([EVERYTHING]) == []


async def test_a_broker_that_returns_gets_a_lane_with_its_new_epoch(lane: Lane) -> None:
    """Notices for the former broker epoch are not sent to the restarted broker."""
    lane.port.is_open.clear()
    lane.outbox.send([EVERYTHING])
    lane.open(FENCE._replace(broker_epoch=9))
    lane.port.is_open.set()
    (done,) = lane.outbox.send([Notice(broker_id=1, stop=[("t", 0)])])
    await done
    assert lane.port.names() == ["stop"]
    assert lane.port.fences[0].broker_epoch == 9


async def test_errors_of_partitions_are_reported(lane: Lane) -> None:
    """The controller receives the errors of the logs that could not be deleted."""
    lane.port.undeletable = {("gone", 0)}
    (done,) = lane.outbox.send([EVERYTHING])
    await done
    assert lane.delivered[0].errors == {("gone", 0): ErrorCode.KAFKA_STORAGE_ERROR}


def test_an_update_changes_only_the_named_topics() -> None:
    """The update replaces all brokers, and its sender is the controller."""
    before = ClusterImage(cluster_id="c").with_brokers([BrokerImage(5, "old", 1)])
    before = before.with_topics([TopicImage("old", b"o" * 16, ()), TopicImage("x", b"x" * 16, ())])
    brokers = {1: BrokerImage(1, "host", 9092)}
    after = MetadataUpdate(brokers, [TOPIC], ["old"]).apply(before, FENCE)
    assert set(after.topics) == {"t", "x"}
    assert set(after.brokers) == {1}
    assert (after.controller_id, after.controller_epoch, after.cluster_id) == (1, 2, "c")


def test_a_complete_update_removes_other_topics() -> None:
    """A broker that missed a deletion removes the topic."""
    before = ClusterImage().with_topics([TopicImage("old", b"o" * 16, ())])
    after = MetadataUpdate({}, [TOPIC], (), is_complete=True).apply(before, FENCE)
    assert set(after.topics) == {"t"}
