"""A fetcher that is interrupted for a new partition."""

import asyncio
from typing import Any, cast

from ottla.base.tasks import Tasks
from ottla.replication.fetcher import Dependencies, ReplicaFetchers
from ottla.replication.follower_fetches import Limits
from ottla.replication.traffic.throttle import ReplicationTraffic
from ottla.wire.messages.fetch import FetchRequest
from tests.handlers.logs import LogsBroker

OTHER = 2
BACKOFF_SECONDS = 1.0


class Leader:
    """A channel whose requests wait until they are interrupted, which takes some time."""

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

    def close(self) -> None:
        """Nothing is held."""


async def test_new_partition_is_fetched_at_once_with_all_others(broker: LogsBroker) -> None:
    """An interrupted request causes no back-off, which would delay acknowledgements by a second."""
    clock = cast(Any, broker.clock)
    leader = Leader(clock)
    tasks = Tasks(clock=broker.clock)
    fetchers = ReplicaFetchers(
        Dependencies(
            node_id=1,
            clock=broker.clock,
            tasks=tasks,
            connect=lambda _: cast(Any, leader),
            broker_epoch=lambda: 1,
            limits=lambda: Limits(backoff_seconds=BACKOFF_SECONDS),
            traffic=ReplicationTraffic(),
            timeout_seconds=lambda: 30.0,
        )
    )
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
    fetchers.close()
    await tasks.close()
