"""A fetcher that is interrupted for a new partition, or loses its leader."""

import asyncio
from typing import Any, cast

from ottla.base.tasks import Tasks
from ottla.replication.fetcher import Dependencies, ReplicaFetchers
from ottla.replication.follower_fetches import FollowerFetchLimits
from ottla.replication.traffic.throttle import ReplicationTraffic
from ottla.wire.messages.fetch import FetchRequest, FetchResponse
from tests.handlers.logs import LogsBroker

OTHER = 2
BACKOFF_SECONDS = 1.0


class Leader:
    """A channel whose requests wait until they are interrupted, which takes some time.

    It gets messages, as a channel does while it is not connected yet.
    """

    is_connected = False

    def __init__(self, clock: Any) -> None:
        self.requests: list[tuple[float, int]] = []
        self._clock = clock
        self._waiting: asyncio.Future[Any] | None = None

    async def request(self, request: FetchRequest, version: int, *, seconds: float) -> Any:
        partitions = sum(len(topic.partitions) for topic in request.topics)
        self.requests.append((self._clock.now, partitions))
        self._waiting = asyncio.get_running_loop().create_future()
        return await self._waiting

    def disconnect(self) -> None:
        """Fail the request a moment later, as a real connection does."""
        self._clock.now += 0.002
        assert self._waiting is not None
        self._waiting.set_exception(ConnectionError("the broker closed the connection"))

    def answer(self) -> None:
        """Complete the request without records."""
        assert self._waiting is not None
        self._waiting.set_result(FetchResponse())

    def close(self) -> None:
        """Nothing is held."""


def fetchers_of(
    broker: LogsBroker, leader: Leader, tasks: Tasks, events: list[str], backoff_seconds: float
) -> ReplicaFetchers:
    """Return the fetchers of broker 1, which report to `events`."""
    return ReplicaFetchers(
        Dependencies(
            node_id=1,
            clock=broker.clock,
            tasks=tasks,
            connect=lambda _: cast(Any, leader),
            broker_epoch=lambda: 1,
            limits=lambda: FollowerFetchLimits(backoff_seconds=backoff_seconds),
            traffic=ReplicationTraffic(),
            timeout_seconds=lambda: 30.0,
            lost=lambda number: events.append(f"lost {number}"),
            fetched=lambda number: events.append(f"fetched {number}"),
        )
    )


async def test_lost_leader_is_reported_until_it_answers(broker: LogsBroker) -> None:
    """Metadata waits for a successor as soon as a follower has lost its connection."""
    clock, events = cast(Any, broker.clock), list[str]()
    leader, tasks = Leader(clock), Tasks(clock=broker.clock)
    fetchers = fetchers_of(broker, leader, tasks, events, backoff_seconds=0.0)
    broker.create("a", replicas=(1, OTHER), leader=OTHER)
    fetchers.follow(broker.partition("a"))
    for number, act in enumerate((leader.answer, leader.disconnect, leader.answer, leader.answer)):
        while len(leader.requests) == number:
            await asyncio.sleep(0)
        act()
    while len(leader.requests) < 5:
        await asyncio.sleep(0)
    assert events == [f"lost {OTHER}", f"fetched {OTHER}"]
    fetchers.close()
    await tasks.close()


async def test_new_partition_is_fetched_at_once_with_all_others(broker: LogsBroker) -> None:
    """An interrupted request causes no back-off, which would delay acknowledgements by a second."""
    clock = cast(Any, broker.clock)
    leader, events = Leader(clock), list[str]()
    tasks = Tasks(clock=broker.clock)
    fetchers = fetchers_of(broker, leader, tasks, events, BACKOFF_SECONDS)
    for name in ("a", "b"):
        broker.create(name, replicas=(1, OTHER), leader=OTHER)
    fetchers.follow(broker.partition("a"))
    while not leader.requests:
        await asyncio.sleep(0)
    started = clock.now
    fetchers.follow(broker.partition("b"))
    while len(leader.requests) < 2:
        await asyncio.sleep(0)
    assert leader.requests == [(started, 1), (started + 0.002, 2)]
    assert events == []
    fetchers.close()
    await tasks.close()
