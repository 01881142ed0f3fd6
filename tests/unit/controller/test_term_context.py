"""The steps that all parts of a controller term share: large images are treated in slices."""

import asyncio
import itertools
from collections.abc import Callable, Iterable
from types import SimpleNamespace
from typing import Any, cast

import pytest

from ottla.base.clock import RealClock
from ottla.cluster.image import BrokerImage, ClusterImage, PartitionImage, TopicImage
from ottla.controller import term_context
from ottla.controller.planning import planner
from ottla.controller.planning.notices import Notice
from ottla.controller.state import Term
from ottla.controller.term_context import TermContext

BROKERS = {number: BrokerImage(number, "h", 9090 + number, epoch=number) for number in (1, 2, 3)}
TOPICS, PARTITIONS = 40, 5


class TickingClock(RealClock):
    """Time passes with each look at the clock, so that each slice is over after one step."""

    def __init__(self) -> None:
        self._times = itertools.count(0.0)

    def monotonic(self) -> float:
        return next(self._times)


def cluster() -> ClusterImage:
    topics = [
        TopicImage(
            f"t{number}",
            bytes([number]) * 16,
            tuple(
                PartitionImage(index, 1 + index % 3, 5, isr=(1, 2, 3), replicas=(1, 2, 3))
                for index in range(PARTITIONS)
            ),
        )
        for number in range(TOPICS)
    ]
    image = ClusterImage(controller_id=1, controller_epoch=1)
    return image.with_brokers(BROKERS.values()).with_topics(topics)


class Tree:
    """Counts the multis and their operations."""

    def __init__(self) -> None:
        self.sizes: list[int] = []

    async def write(self, operations: Any) -> None:
        self.sizes.append(len(operations))


class Sent:
    """Keeps the notices."""

    def __init__(self) -> None:
        self.notices: list[Notice] = []

    def send(self, notices: Iterable[Notice]) -> list[Any]:
        self.notices += notices
        return []


@pytest.fixture
def context(monkeypatch: pytest.MonkeyPatch) -> TermContext:
    monkeypatch.setattr(term_context, "PARTITIONS_AT_ONCE", 10)
    dependencies = SimpleNamespace(clock=TickingClock(), tasks=None, port_of=None)
    result = TermContext(cast(Any, None), Term(1, 1), 1, cast(Any, dependencies), cast(Any, None))
    result.tree, result.outbox = cast(Any, Tree()), cast(Any, Sent())
    result.image = cluster()
    return result


def without_third(image: ClusterImage) -> ClusterImage:
    live = {number: broker for number, broker in BROKERS.items() if number != 3}
    return planner.plan_brokers(image, live, lambda _: False)


async def turns_of(work: Callable[[], Any]) -> tuple[int, Any]:
    """Return how often the event loop ran during the work, and its result."""
    task, turns = asyncio.ensure_future(work()), 0
    while not task.done():
        await asyncio.sleep(0)
        turns += 1
    return turns, task.result()


async def test_a_plan_of_many_partitions_lets_the_loop_run(context: TermContext) -> None:
    """The result is that of the whole plan, after a turn of the loop for each ten partitions."""
    turns, after = await turns_of(lambda: context.planned(without_third))
    assert turns >= TOPICS * PARTITIONS // 10
    assert after == without_third(cluster())


async def test_a_plan_that_changes_nothing_returns_the_image(context: TermContext) -> None:
    """Callers compare images by identity: nothing is written and sent then."""
    assert await context.planned(lambda image: image) is context.image


async def test_a_plan_without_topics_changes_the_brokers(context: TermContext) -> None:
    """A cluster may have no topics yet."""
    context.image = ClusterImage().with_brokers(BROKERS.values())
    assert set((await context.planned(without_third)).brokers) == {1, 2}


async def test_states_of_many_partitions_are_written_a_few_at_a_time(context: TermContext) -> None:
    """A multi is encoded at a stretch, so it has a few partitions."""
    after = without_third(context.image)
    await context.write_states(after)
    sizes = cast(Any, context.tree).sizes
    assert (sum(sizes), max(sizes)) == (TOPICS * PARTITIONS, 10)
    assert all(
        partition.partition_epoch == 1
        for topic in context.image.topics.values()
        for partition in topic.partitions
    )


@pytest.mark.parametrize("registered", [(), (2,)])
async def test_notices_of_many_partitions_are_planned_in_slices(
    context: TermContext, registered: tuple[int, ...]
) -> None:
    """Each broker gets one notice, as if it had been planned at once."""
    before = context.image
    deleted = TopicImage("old", b"o" * 16, ())
    before = before.with_topics([deleted])
    context.image = without_third(context.image)
    turns, _ = await turns_of(lambda: context.send(before, registered))
    assert turns >= TOPICS * PARTITIONS // 10
    expected: Any = planner.plan_notices(before, context.image, frozenset(registered))
    sent = cast(Any, context.outbox).notices
    assert [one.broker_id for one in sent] == [one.broker_id for one in expected]
    for one, other in zip(sent, expected, strict=True):
        assert list(one.leaders) == list(other.leaders)
        assert one.metadata.brokers == other.metadata.brokers
        assert list(one.metadata.changed) == list(other.metadata.changed)
        assert list(one.metadata.deleted) == list(other.metadata.deleted)
        assert one.metadata.is_complete == other.metadata.is_complete
