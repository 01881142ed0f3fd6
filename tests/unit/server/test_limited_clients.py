"""Clients with quotas at the dispatcher: measured, throttled and muted, one request at a time."""

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest

from ottla.base.options import Snapshot
from ottla.base.tasks import Tasks
from ottla.cluster.options.option_tables import BROKER_OPTIONS
from ottla.server.quotas.clients import client_quotas
from ottla.server.transport.apis import ApiRow
from ottla.wire.api_keys import ApiKey
from ottla.wire.messages.describe_cluster import DescribeClusterRequest, DescribeClusterResponse
from ottla.wire.messages.list_groups import ListGroupsRequest, ListGroupsResponse
from ottla.wire.messages.metadata import MetadataRequest, MetadataResponse
from ottla.wire.messages.produce import ProduceRequest, ProduceResponse
from tests.unit.server.transport.test_dispatch import Desk, handler, turn


class Clock:
    """A monotonic clock that handlers and tests advance."""

    def __init__(self) -> None:
        self.now = 50.0

    def monotonic(self) -> float:
        return self.now


class LimitedDesk(Desk):
    """A dispatcher that enforces quotas, with none set at first."""

    def __init__(self, tasks: Tasks, *rows: ApiRow) -> None:
        self.clock = Clock()
        super().__init__(tasks, *rows)
        dispatcher: Any = self.wire.connection._handle.__self__  # type: ignore[attr-defined]
        dispatcher._now = self.clock.monotonic
        self.quotas = client_quotas(Snapshot(BROKER_OPTIONS, {}), self.clock)  # type: ignore[arg-type]
        dispatcher.enforce(self.quotas)

    def limit(self, path: str = "client", **settings: str) -> None:
        """Set quotas of a client id."""
        self.quotas.settings_changed("clients", path, settings)


@pytest.fixture
async def tasks() -> AsyncIterator[Tasks]:
    running = Tasks()
    yield running
    await running.close()


def busy(desk: Callable[[], LimitedDesk], seconds: float, response: Any) -> Callable[..., Any]:
    """Return a handler that takes some seconds."""

    def handle(context: Any, request: Any) -> Any:
        desk().clock.now += seconds
        return response()

    return handle


async def test_client_beyond_its_request_time_is_throttled_and_muted(tasks: Tasks) -> None:
    """The response is sent at once with the throttle time, and the next request has to wait."""
    handle = busy(lambda: desk, 0.3, DescribeClusterResponse)
    desk = LimitedDesk(tasks, ApiRow(handler(ApiKey.DESCRIBE_CLUSTER, handle)))
    desk.limit(request_percentage="2")
    desk.send(DescribeClusterRequest(), 1)
    ((_, response),) = desk.answers(DescribeClusterResponse, 1)
    assert response.throttle_time_ms == 1_000
    assert desk.wire.connection.is_muted
    desk.send(DescribeClusterRequest(), 1)
    assert len(desk.answers(DescribeClusterResponse, 1)) == 1


async def test_unlimited_clients_are_not_throttled(tasks: Tasks) -> None:
    """Other clients get no throttle time and are not measured."""
    handle = busy(lambda: desk, 100, DescribeClusterResponse)
    desk = LimitedDesk(tasks, ApiRow(handler(ApiKey.DESCRIBE_CLUSTER, handle)))
    desk.limit("somebody else", request_percentage="1")
    desk.send(DescribeClusterRequest(), 1)
    ((_, response),) = desk.answers(DescribeClusterResponse, 1)
    assert response.throttle_time_ms == 0
    assert not desk.wire.connection.is_muted


async def test_requests_between_brokers_are_exempt(tasks: Tasks) -> None:
    """Requests between brokers are never throttled, as in Kafka."""
    handle = busy(lambda: desk, 100, DescribeClusterResponse)
    row = ApiRow(handler(ApiKey.DESCRIBE_CLUSTER, handle), is_among_brokers=True)
    desk = LimitedDesk(tasks, row)
    desk.limit(request_percentage="1")
    desk.send(DescribeClusterRequest(), 1)
    ((_, response),) = desk.answers(DescribeClusterResponse, 1)
    assert response.throttle_time_ms == 0
    assert not desk.wire.connection.is_muted


async def test_quota_applies_from_the_next_request(tasks: Tasks) -> None:
    """A new, changed or removed quota applies to open connections."""
    handle = busy(lambda: desk, 0.01, DescribeClusterResponse)
    desk = LimitedDesk(tasks, ApiRow(handler(ApiKey.DESCRIBE_CLUSTER, handle)))

    def throttle_ms() -> int:
        desk.send(DescribeClusterRequest(), 1)
        desk.wire.connection._unmute()
        return int(desk.answers(DescribeClusterResponse, 1)[-1][1].throttle_time_ms)

    assert throttle_ms() == 0
    desk.limit(request_percentage="0.1")
    # A tenth of a percent of ten seconds is one hundredth of a second.
    assert [throttle_ms(), throttle_ms() > 0] == [0, True]
    desk.limit(request_percentage="50")
    assert throttle_ms() == 0
    desk.limit(request_percentage="0.0001")
    assert throttle_ms() == 1_000
    desk.limit()
    assert throttle_ms() == 0


async def test_request_with_a_future_is_settled_when_it_is_done(tasks: Tasks) -> None:
    """The wait does not count, and the client is muted before its next request is read."""
    futures: list[asyncio.Future[Any]] = []

    def handle(context: Any, request: Any) -> Any:
        desk.clock.now += 0.3
        futures.append(asyncio.get_running_loop().create_future())
        return futures[-1]

    row = ApiRow(handler(ApiKey.DESCRIBE_CLUSTER, handle), is_read_ahead=True)
    desk = LimitedDesk(tasks, row)
    desk.limit(request_percentage="2.5")
    desk.send(DescribeClusterRequest(), 1)
    desk.send(DescribeClusterRequest(), 1)
    # Requests of a limited client are not read ahead.
    assert len(futures) == 1
    desk.clock.now += 1000
    futures[0].set_result(DescribeClusterResponse())
    await turn()
    ((_, response),) = desk.answers(DescribeClusterResponse, 1)
    assert response.throttle_time_ms == 1_000
    assert len(futures) == 1


async def test_the_steps_of_a_task_are_counted(tasks: Tasks) -> None:
    """Only the steps of an async handler count, and not its waits."""
    gate = asyncio.get_running_loop().create_future()

    async def handle(context: Any, request: Any) -> ListGroupsResponse:
        desk.clock.now += 0.2
        await gate
        desk.clock.now += 0.2
        return ListGroupsResponse()

    desk = LimitedDesk(tasks, ApiRow(handler(ApiKey.LIST_GROUPS, handle)))
    desk.limit(request_percentage="3.9")
    desk.send(ListGroupsRequest(), 4)
    await turn()
    desk.clock.now += 60
    gate.set_result(None)
    await turn()
    ((_, response),) = desk.answers(ListGroupsResponse, 4)
    # 40 % of a second over ten seconds is 4 %: a quarter of a second too much.
    assert response.throttle_time_ms == 256
    assert desk.wire.connection.is_muted


async def test_cached_response_is_not_used_for_a_limited_client(tasks: Tasks) -> None:
    """A cached response has no throttle time."""
    handle = busy(lambda: desk, 0.1, MetadataResponse)
    desk = LimitedDesk(tasks, ApiRow(handler(ApiKey.METADATA, handle), is_cached=True))
    desk.send(MetadataRequest(topics=[]), 9)
    desk.limit(request_percentage="0.5")
    desk.send(MetadataRequest(topics=[]), 9)
    assert [response.throttle_time_ms > 0 for _, response in desk.answers(MetadataResponse, 9)] == [
        False,
        True,
    ]


async def test_produced_bytes_are_the_whole_request(tasks: Tasks) -> None:
    """Header and body both count; with acks=0 the client is muted without a response."""

    def handle(context: Any, request: ProduceRequest) -> ProduceResponse | None:
        return ProduceResponse() if request.acks else None

    desk = LimitedDesk(tasks, ApiRow(handler(ApiKey.PRODUCE, handle), is_read_ahead=True))
    desk.limit(producer_byte_rate="1")
    desk.send(ProduceRequest(transactional_id=None, acks=1, timeout_ms=1000, topic_data=[]), 9)
    ((_, response),) = desk.answers(ProduceResponse, 9)
    # Ten bytes are allowed in ten seconds; each further one takes a second.
    assert response.throttle_time_ms == 1000 * (FRAME_BYTES - 10)
    assert desk.wire.connection.is_muted

    silent = LimitedDesk(tasks, ApiRow(handler(ApiKey.PRODUCE, handle), is_read_ahead=True))
    silent.limit(producer_byte_rate="1")
    silent.send(ProduceRequest(transactional_id=None, acks=0, timeout_ms=1000, topic_data=[]), 9)
    assert silent.answers(ProduceResponse, 9) == []
    assert silent.wire.connection.is_muted


# Key, version, correlation id, client id, tags: 8 + 8 + 1; transactional id, acks, timeout, topics,
# tags.
FRAME_BYTES = 17 + 1 + 2 + 4 + 1 + 1
