"""Large requests through the dispatcher: in parts, in turns, and with one response."""

import asyncio
import struct
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from ottla.base.errors import ApiError, ErrorCode, ProtocolError
from ottla.base.tasks import Tasks
from ottla.net.receive_budget import ReceiveBudget
from ottla.net.unsent import UnsentBudget
from ottla.server.transport import costs
from ottla.server.transport.apis import ApiRow
from ottla.server.transport.costs import COSTS, Cost
from ottla.wire import headers
from ottla.wire.api_keys import ApiKey
from ottla.wire.messages.create_topics import (
    CreatableTopic,
    CreatableTopicResult,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from ottla.wire.messages.describe_cluster import DescribeClusterRequest, DescribeClusterResponse
from ottla.wire.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResourceResult,
    DescribeConfigsResponse,
    DescribeConfigsResult,
)
from ottla.wire.messages.fetch import FetchPartition, FetchRequest, FetchResponse, FetchTopic
from ottla.wire.messages.metadata import MetadataRequest, MetadataRequestTopic, MetadataResponse
from ottla.wire.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
)
from ottla.wire.messages.produce import (
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
    TopicProduceResponse,
)
from tests.unit.server.transport import test_dispatch
from tests.unit.server.transport.test_dispatch import VERSIONS, handler


class Desk(test_dispatch.Desk):
    """One that may hold larger responses, and where what was sent is read once."""

    def __init__(self, tasks: Tasks, *rows: ApiRow) -> None:
        super().__init__(tasks, *rows)
        self.endpoint.unsent = UnsentBudget(10**8)
        self.endpoint.budget = ReceiveBudget(10**8)

    @property
    def has_sent(self) -> bool:
        return bool(self.wire.transport.sent)

    def answers(self, cls: type[Any], version: int) -> list[tuple[int, Any]]:
        found = super().answers(cls, version)
        self.wire.transport.sent = b""
        return found


@pytest.fixture
async def tasks() -> AsyncIterator[Tasks]:
    running = Tasks()
    yield running
    await running.close()


@contextmanager
def with_cost(key: ApiKey, **changed: Any) -> Iterator[Cost]:
    """Change a row of the table for dispatchers that are created before the change is undone."""
    former = COSTS[key]
    COSTS[key] = former._replace(**changed)
    try:
        yield COSTS[key]
    finally:
        COSTS[key] = former


async def until(condition: Any) -> None:
    async with asyncio.timeout(10):
        while not condition():
            await asyncio.sleep(0)


def topics(count: int) -> CreateTopicsRequest:
    names = [f"a-topic-with-a-long-name-{number}" for number in range(count)]
    return CreateTopicsRequest(
        topics=[CreatableTopic(name=name, num_partitions=1) for name in names], timeout_ms=77
    )


class Creator:
    """A handler of CreateTopics in several styles."""

    def __init__(self) -> None:
        self.parts: list[int] = []
        self.open: list[asyncio.Future[CreateTopicsResponse]] = []
        self.error: ApiError | ProtocolError | None = None

    def answer(self, request: CreateTopicsRequest) -> CreateTopicsResponse:
        assert request.timeout_ms == 77
        self.parts.append(len(request.topics))
        if self.error is not None:
            raise self.error
        return CreateTopicsResponse(
            topics=[CreatableTopicResult(name=topic.name) for topic in request.topics]
        )

    def plain(self, context: Any, request: CreateTopicsRequest) -> CreateTopicsResponse:
        return self.answer(request)

    async def slow(self, context: Any, request: CreateTopicsRequest) -> CreateTopicsResponse:
        await asyncio.sleep(0)
        return self.answer(request)

    def later(
        self, context: Any, request: CreateTopicsRequest
    ) -> "asyncio.Future[CreateTopicsResponse]":
        done: asyncio.Future[CreateTopicsResponse] = asyncio.get_running_loop().create_future()
        done.set_result(self.answer(request))
        self.open.append(done)
        return done


@pytest.mark.parametrize("style", ["plain", "slow", "later"])
async def test_one_response_for_all_parts(tasks: Tasks, style: str) -> None:
    """Whatever the handler returns; it never sees more elements than the table allows at once."""
    creator = Creator()
    desk = Desk(tasks, ApiRow(handler(ApiKey.CREATE_TOPICS, getattr(creator, style))))
    request = topics(1000)
    desk.send(request, 7, 5)
    assert creator.parts == []
    await until(lambda: desk.has_sent)
    ((number, response),) = desk.answers(CreateTopicsResponse, 7)
    assert number == 5
    assert [topic.name for topic in response.topics] == [topic.name for topic in request.topics]
    (split,) = COSTS[ApiKey.CREATE_TOPICS].splits
    assert creator.parts == [split.at_once] * (1000 // split.at_once)


async def test_small_requests_are_not_divided(tasks: Tasks) -> None:
    """They are handled at once, in the callback of the transport."""
    creator = Creator()
    desk = Desk(tasks, ApiRow(handler(ApiKey.CREATE_TOPICS, creator.plain)))
    desk.send(topics(3), 7)
    assert creator.parts == [3]
    assert len(desk.answers(CreateTopicsResponse, 7)) == 1


async def test_requests_behind_it_wait_and_others_do_not(tasks: Tasks) -> None:
    """Responses keep the order of requests on a connection; other connections are served."""
    creator = Creator()
    rows = ApiRow(handler(ApiKey.CREATE_TOPICS, creator.plain)), ApiRow(VERSIONS)
    desk, other = Desk(tasks, *rows), Desk(tasks, ApiRow(handler(
        ApiKey.DESCRIBE_CLUSTER, lambda context, request: DescribeClusterResponse(cluster_id="c")
    )))  # fmt: skip
    desk.send(topics(1000), 7, 5)
    desk.send(topics(1), 7, 6)
    other.send(DescribeClusterRequest(), 1)
    assert len(other.answers(DescribeClusterResponse, 1)) == 1
    assert not desk.has_sent
    await until(lambda: sum(creator.parts) == 1001)
    answers = desk.answers(CreateTopicsResponse, 7)
    assert [(number, len(one.topics)) for number, one in answers] == [(5, 1000), (6, 1)]


@pytest.mark.parametrize("style", ["plain", "slow"])
async def test_an_error_of_the_handler(tasks: Tasks, style: str) -> None:
    """A response without an error code of its own: the connection ends, as for a small request."""
    creator = Creator()
    creator.error = ApiError(ErrorCode.INVALID_REQUEST, "no")
    desk = Desk(tasks, ApiRow(handler(ApiKey.CREATE_TOPICS, getattr(creator, style))))
    desk.send(topics(1000), 7)
    await until(lambda: desk.is_closed)
    assert len(creator.parts) == 1


async def test_a_frame_that_cannot_be_decoded(tasks: Tasks) -> None:
    """The connection ends; the handler is not called."""
    creator = Creator()
    desk = Desk(tasks, ApiRow(handler(ApiKey.CREATE_TOPICS, creator.plain)))
    body = headers.encode_request(topics(1000), 7, 5, "client")
    desk.send_bytes(body[:-100])
    await until(lambda: desk.is_closed)
    assert creator.parts == []


async def test_too_many_objects(tasks: Tasks) -> None:
    """The bound of the decoder comes from the row."""
    creator = Creator()
    with with_cost(ApiKey.CREATE_TOPICS, objects_max=2000):
        desk = Desk(tasks, ApiRow(handler(ApiKey.CREATE_TOPICS, creator.plain)))
        desk.send(topics(1000), 7)
    await until(lambda: desk.is_closed)
    assert creator.parts == []


async def test_too_many_bytes(tasks: Tasks) -> None:
    """Not even a copy of the frame is made."""
    creator = Creator()
    with with_cost(ApiKey.CREATE_TOPICS, request_bytes_max=10_000):
        desk = Desk(tasks, ApiRow(handler(ApiKey.CREATE_TOPICS, creator.plain)))
        desk.send(topics(1000), 7)
    assert desk.is_closed
    assert creator.parts == []


async def test_a_response_of_too_many_bytes(tasks: Tasks) -> None:
    """The work ends as soon as the response is too large."""
    creator = Creator()
    with with_cost(ApiKey.CREATE_TOPICS, response_bytes_max=10_000):
        desk = Desk(tasks, ApiRow(handler(ApiKey.CREATE_TOPICS, creator.plain)))
        desk.send(topics(1000), 7)
    await until(lambda: desk.is_closed)
    assert 0 < len(creator.parts) < 10


async def test_too_much_time(tasks: Tasks) -> None:
    """So does work that takes longer than its row allows."""
    creator = Creator()
    with with_cost(ApiKey.CREATE_TOPICS, seconds_max=-1.0):
        desk = Desk(tasks, ApiRow(handler(ApiKey.CREATE_TOPICS, creator.plain)))
        desk.send(topics(1000), 7)
    await until(lambda: desk.is_closed)
    assert len(creator.parts) <= 1


def configs(*names: str) -> DescribeConfigsRequest:
    return DescribeConfigsRequest(
        resources=[DescribeConfigsResource(resource_type=2, resource_name=name) for name in names]
    )


async def test_a_topic_that_is_named_many_times(tasks: Tasks) -> None:
    """The handler sees two of them, which is enough to know that it is named more than once."""
    described: list[str] = []

    def handle(context: Any, request: DescribeConfigsRequest) -> DescribeConfigsResponse:
        described.extend(one.resource_name for one in request.resources)
        return DescribeConfigsResponse(
            results=[
                DescribeConfigsResult(
                    resource_type=2,
                    resource_name=one.resource_name,
                    configs=[DescribeConfigsResourceResult(name="k", value="v")],
                )
                for one in request.resources
            ]
        )

    desk = Desk(tasks, ApiRow(handler(ApiKey.DESCRIBE_CONFIGS, handle)))
    desk.send(configs(*["same"] * 20_000, "other"), 4)
    await until(lambda: desk.has_sent)
    ((_, response),) = desk.answers(DescribeConfigsResponse, 4)
    assert described == ["same", "same", "other"]
    assert len(response.results) == 3


async def test_unfinished_response_counts_in_the_budget(tasks: Tasks) -> None:
    """The budget of unsent bytes has the rows before the response is sent."""

    def handle(context: Any, request: DescribeConfigsRequest) -> DescribeConfigsResponse:
        config = DescribeConfigsResourceResult(name="k", value="v" * 10_000)
        return DescribeConfigsResponse(
            results=[DescribeConfigsResult(configs=[config]) for _ in request.resources]
        )

    desk = Desk(tasks, ApiRow(handler(ApiKey.DESCRIBE_CONFIGS, handle)))
    desk.send(configs(*map(str, range(100))), 4)
    await until(lambda: desk.endpoint.unsent.held_bytes > 1_000_000)
    assert not desk.has_sent
    await until(lambda: desk.has_sent)
    assert desk.endpoint.unsent.held_bytes == 0


async def test_a_client_that_has_left(tasks: Tasks) -> None:
    """Queries end with their connection; changes are completed."""
    seen: list[int] = []

    def handle(context: Any, request: DescribeConfigsRequest) -> DescribeConfigsResponse:
        seen.append(len(request.resources))
        return DescribeConfigsResponse()

    desk = Desk(tasks, ApiRow(handler(ApiKey.DESCRIBE_CONFIGS, handle)))
    desk.send(configs(*map(str, range(1000))), 4)
    desk.wire.connection.connection_lost(None)
    for _ in range(50):
        await asyncio.sleep(0)
    assert seen == []


async def test_large_fetch_ends_with_its_connection(tasks: Tasks) -> None:
    """A fetch that waits for records does not wait for a client that has disconnected."""
    waiting: list[asyncio.Future[FetchResponse]] = []

    def handle(context: Any, request: FetchRequest) -> "asyncio.Future[FetchResponse]":
        waiting.append(asyncio.get_running_loop().create_future())
        return waiting[0]

    desk = Desk(tasks, ApiRow(handler(ApiKey.FETCH, handle), ends_with_connection=True))
    partitions = [FetchPartition(partition=number) for number in range(3000)]
    desk.send(FetchRequest(topics=[FetchTopic(topic="t", partitions=partitions)]), 12)
    await until(lambda: waiting)
    desk.wire.connection.connection_lost(None)
    await until(lambda: waiting[0].cancelled())
    assert len(waiting) == 1


async def test_a_prepared_request(tasks: Tasks) -> None:
    """`prepare` of a row sees the whole request, and may respond to it."""
    creator, seen = Creator(), []

    def prepare(request: CreateTopicsRequest, context: Any) -> CreateTopicsResponse | None:
        seen.append(len(request.topics))
        if len(request.topics) < 200:
            return None
        return CreateTopicsResponse(topics=[CreatableTopicResult(name="all", error_code=44)])

    row = ApiRow(handler(ApiKey.CREATE_TOPICS, creator.plain), prepare=prepare)
    desk = Desk(tasks, row)
    desk.send(topics(150), 7, 5)
    await until(lambda: desk.has_sent)
    desk.send(topics(1000), 7, 6)
    await until(lambda: len(seen) == 2)
    for _ in range(10):
        await asyncio.sleep(0)
    answers = desk.answers(CreateTopicsResponse, 7)
    assert [(number, len(one.topics)) for number, one in answers] == [(5, 150), (6, 1)]
    assert seen == [150, 1000]
    assert sum(creator.parts) == 150


async def test_a_request_without_parts(tasks: Tasks) -> None:
    """It waits for its turn, too, and is handled as a whole."""
    seen: list[int] = []

    def handle(context: Any, request: OffsetCommitRequest) -> OffsetCommitResponse:
        seen.append(len(request.topics))
        return OffsetCommitResponse()

    desk = Desk(tasks, ApiRow(handler(ApiKey.OFFSET_COMMIT, handle)))
    names = [f"a-topic-with-a-long-name-{number}" for number in range(1000)]
    partitions = [OffsetCommitRequestPartition(partition_index=0)]
    desk.send(
        OffsetCommitRequest(
            group_id="g",
            topics=[OffsetCommitRequestTopic(name=name, partitions=partitions) for name in names],
        ),
        8,
    )
    assert seen == []
    await until(lambda: desk.has_sent)
    assert seen == [1000]


async def test_metadata_of_all_topics_is_not_large(tasks: Tasks) -> None:
    """A request without a list of topics has few bytes, and its response comes from the cache."""
    desk = Desk(tasks, ApiRow(handler(
        ApiKey.METADATA, lambda context, request: MetadataResponse(cluster_id="c")
    ), is_cached=True))  # fmt: skip
    desk.send(MetadataRequest(topics=None), 9)
    assert len(desk.answers(MetadataResponse, 9)) == 1
    many = [MetadataRequestTopic(name=f"topic-{number}") for number in range(9000)]
    desk.send(MetadataRequest(topics=many), 9)
    assert not desk.has_sent
    await until(lambda: desk.has_sent)


def produce(topics: int, record_bytes: int, acks: int = 1) -> ProduceRequest:
    return ProduceRequest(
        acks=acks,
        timeout_ms=1000,
        topic_data=[
            TopicProduceData(
                name=f"topic-{number}",
                partition_data=[PartitionProduceData(index=0, records=bytes(record_bytes))],
            )
            for number in range(topics)
        ],
    )


@pytest.mark.parametrize(("count", "is_divided"), [(50, False), (1000, True)])
async def test_only_many_partitions_are_a_large_produce(
    tasks: Tasks, count: int, is_divided: bool
) -> None:
    """Records do not count: a request for some partitions is handled at once, whatever its bytes."""
    seen: list[int] = []

    def handle(context: Any, request: ProduceRequest) -> ProduceResponse | None:
        seen.append(len(request.topic_data))
        if not request.acks:
            return None
        return ProduceResponse(
            responses=[
                TopicProduceResponse(
                    name=topic.name,
                    partition_responses=[PartitionProduceResponse(index=0, base_offset=7)],
                )
                for topic in request.topic_data
            ]
        )

    desk = Desk(tasks, ApiRow(handler(ApiKey.PRODUCE, handle)))
    desk.send(produce(count, 400), 9)
    assert bool(seen) is not is_divided
    await until(lambda: desk.has_sent)
    ((_, response),) = desk.answers(ProduceResponse, 9)
    assert len(response.responses) == count
    assert (len(seen) > 1) is is_divided
    # Without a response, too, requests behind it are handled.
    desk.send(produce(count, 400, acks=0), 9)
    desk.send(produce(1, 10), 9, 8)
    await until(lambda: desk.has_sent)
    ((number, _),) = desk.answers(ProduceResponse, 9)
    assert number == 8


def test_a_frame_is_compared_with_one_number() -> None:
    """An API without a row is never large."""
    assert (
        costs.UNKNOWN.large_bytes == costs.UNLIMITED > struct.unpack(">i", b"\x7f\xff\xff\xfe")[0]
    )
