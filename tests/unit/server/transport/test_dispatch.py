"""From frames to handlers and back, without a network."""

import asyncio
import struct
from collections.abc import AsyncIterator, Callable
from types import ModuleType
from typing import Any

import pytest

from ottla.base.clock import RealClock
from ottla.base.errors import ApiError, ErrorCode
from ottla.base.tasks import Tasks
from ottla.net.limits import Limits
from ottla.server.context import Broker
from ottla.server.transport.apis import Row
from ottla.server.transport.dispatch import Dispatcher
from ottla.wire import headers
from ottla.wire.api_keys import APIS, ApiKey
from ottla.wire.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from ottla.wire.messages.create_topics import (
    CreatableTopicResult,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from ottla.wire.messages.delete_records import DeleteRecordsRequest, DeleteRecordsResponse
from ottla.wire.messages.describe_cluster import DescribeClusterRequest, DescribeClusterResponse
from ottla.wire.messages.elect_leaders import ElectLeadersRequest, ElectLeadersResponse
from ottla.wire.messages.metadata import (
    MetadataRequest,
    MetadataResponse,
    MetadataResponseTopic,
)
from tests.unit.net.conftest import HandHousehold, Wire

Handle = Callable[[Any, Any], Any]


def handler(key: ApiKey, handle: Handle) -> ModuleType:
    """Return a handler module that serves every version of an API."""
    module = ModuleType(f"handler_{key.name}")
    module.API = key  # type: ignore[attr-defined]
    module.MIN_VERSION = APIS[key].min_version  # type: ignore[attr-defined]
    module.MAX_VERSION = APIS[key].max_version  # type: ignore[attr-defined]
    module.handle = handle  # type: ignore[attr-defined]
    return module


class Desk:
    """A dispatcher behind a hand-driven connection."""

    def __init__(self, tasks: Tasks, *rows: Row) -> None:
        self.broker = Broker()
        self.broker.image = object()  # type: ignore[assignment]
        self.broker.clock = RealClock()
        self.wire = Wire(lambda connection, body: None, Limits())
        self.dispatcher = Dispatcher(self.broker, tasks, rows)
        self.wire.connection._handle = self.dispatcher.frame
        self.endpoint: HandHousehold = self.wire.endpoint

    def send(self, message: Any, version: int, correlation_id: int = 5) -> None:
        self.send_bytes(headers.encode_request(message, version, correlation_id, "client"))

    def send_bytes(self, body: bytes) -> None:
        self.wire.receive(struct.pack(">i", len(body)) + body)

    def answers(self, cls: type[Any], version: int) -> list[tuple[int, Any]]:
        return [headers.decode_response(cls, version, body) for body in self.wire.answers()]

    @property
    def is_closed(self) -> bool:
        return self.wire.transport.is_closed


@pytest.fixture
async def tasks() -> AsyncIterator[Tasks]:
    running = Tasks()
    yield running
    await running.close()


async def turn() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


VERSIONS = handler(ApiKey.API_VERSIONS, lambda context, request: ApiVersionsResponse())


async def test_a_plain_handler_answers_at_once(tasks: Tasks) -> None:
    """With the correlation id of the request, and what the context says."""
    seen: list[Any] = []

    def handle(context: Any, request: DescribeClusterRequest) -> DescribeClusterResponse:
        seen.append((context.api_version, context.client_id, context.correlation_id))
        return DescribeClusterResponse(cluster_id="c")

    desk = Desk(tasks, Row(handler(ApiKey.DESCRIBE_CLUSTER, handle)))
    for correlation_id in (5, 6):
        desk.send(DescribeClusterRequest(), 1, correlation_id)
    desk.send(DescribeClusterRequest(), 2, 7)
    answers = [headers.decode_response(DescribeClusterResponse, 1, body) for body in
               desk.wire.answers()[:2]]  # fmt: skip
    assert [(number, answer.cluster_id) for number, answer in answers] == [(5, "c"), (6, "c")]
    assert seen == [(1, "client", 5), (1, "client", 6), (2, "client", 7)]


async def test_a_connection_may_change_its_client_id(tasks: Tasks) -> None:
    """What is remembered of a header is not mistaken for another."""
    seen: list[str | None] = []

    def handle(context: Any, request: Any) -> DescribeClusterResponse:
        seen.append(context.client_id)
        return DescribeClusterResponse()

    desk = Desk(tasks, Row(handler(ApiKey.DESCRIBE_CLUSTER, handle)))
    for name in ("a", "b", None, "ab", "a", ""):
        desk.send_bytes(headers.encode_request(DescribeClusterRequest(), 0, 1, name))
    assert seen == ["a", "b", None, "ab", "a", ""]


async def test_a_future_is_answered_when_it_is_done(tasks: Tasks) -> None:
    """Nothing behind it is handled before, unless the row allows it."""
    futures: list[asyncio.Future[Any]] = []

    def handle(context: Any, request: Any) -> Any:
        futures.append(asyncio.get_running_loop().create_future())
        return futures[-1]

    for is_read_ahead in (False, True):
        futures.clear()
        row = Row(handler(ApiKey.DESCRIBE_CLUSTER, handle), is_read_ahead=is_read_ahead)
        desk = Desk(tasks, row)
        desk.send(DescribeClusterRequest(), 0, 1)
        desk.send(DescribeClusterRequest(), 0, 2)
        assert len(futures) == (2 if is_read_ahead else 1)
        futures[0].set_result(DescribeClusterResponse())
        await turn()
        assert len(futures) == 2
        assert [number for number, _ in desk.answers(DescribeClusterResponse, 0)] == [1]
        futures[1].set_result(DescribeClusterResponse())
        await turn()
        assert [number for number, _ in desk.answers(DescribeClusterResponse, 0)] == [1, 2]


async def test_a_coroutine_runs_on_a_copy_of_the_frame(tasks: Tasks) -> None:
    """The receive buffer is used again while it waits."""
    gate = asyncio.Event()

    async def handle(context: Any, request: MetadataRequest) -> MetadataResponse:
        await gate.wait()
        assert request.topics == []
        return MetadataResponse(cluster_id=context.client_id)

    desk = Desk(tasks, Row(handler(ApiKey.METADATA, handle)))
    desk.send(MetadataRequest(topics=[]), 9)
    assert desk.endpoint.budget.held_bytes > 0
    desk.endpoint.buffers.shared[:100] = b"?" * 100
    gate.set()
    await turn()
    assert [answer.cluster_id for _, answer in desk.answers(MetadataResponse, 9)] == ["client"]
    assert desk.endpoint.budget.held_bytes == 0


async def test_none_is_no_answer(tasks: Tasks) -> None:
    """For acks=0: not a byte, and the connection stays."""
    desk = Desk(tasks, Row(handler(ApiKey.DESCRIBE_CLUSTER, lambda context, request: None)))
    desk.send(DescribeClusterRequest(), 0)
    assert desk.wire.transport.sent == b""
    assert not desk.is_closed


def _raise(context: Any, request: Any) -> Any:
    raise ApiError(ErrorCode.CLUSTER_AUTHORIZATION_FAILED, "not you")


async def _raise_later(context: Any, request: Any) -> Any:
    raise ApiError(ErrorCode.CLUSTER_AUTHORIZATION_FAILED, "not you")


def _raise_in_future(context: Any, request: Any) -> Any:
    future = asyncio.get_running_loop().create_future()
    future.set_exception(ApiError(ErrorCode.CLUSTER_AUTHORIZATION_FAILED, "not you"))
    return future


@pytest.mark.parametrize("handle", [_raise, _raise_later, _raise_in_future])
async def test_an_error_goes_into_the_response(tasks: Tasks, handle: Handle) -> None:
    """Where the response has a place for it at the top."""
    desk = Desk(tasks, Row(handler(ApiKey.DESCRIBE_CLUSTER, handle)))
    desk.send(DescribeClusterRequest(), 0)
    await turn()
    ((_, answer),) = desk.answers(DescribeClusterResponse, 0)
    assert answer.error_code == ErrorCode.CLUSTER_AUTHORIZATION_FAILED
    assert answer.error_message == "not you"
    assert not desk.is_closed


@pytest.mark.parametrize("handle", [_raise, _raise_later, _raise_in_future])
async def test_an_error_without_a_place_in_that_version_closes(
    tasks: Tasks, handle: Handle
) -> None:
    """ElectLeaders says it at the top from version 1 on; nobody waits for ever before."""
    desk = Desk(tasks, Row(handler(ApiKey.ELECT_LEADERS, handle)))
    desk.send(ElectLeadersRequest(), 0)
    await turn()
    assert desk.answers(ElectLeadersResponse, 0) == []
    assert desk.is_closed
    desk.wire.connection.connection_lost(None)
    assert desk.endpoint.budget.held_bytes == 0


async def test_an_answer_that_cannot_be_written_closes_and_is_heard_of(tasks: Tasks) -> None:
    """A handler that sets a field the version lacks: a bug, but the peer does not wait for ever."""
    heard: list[Any] = []
    asyncio.get_running_loop().set_exception_handler(lambda loop, told: heard.append(told))

    async def handle(context: Any, request: Any) -> Any:
        return ElectLeadersResponse(error_code=7)

    desk = Desk(tasks, Row(handler(ApiKey.ELECT_LEADERS, handle)))
    desk.send(ElectLeadersRequest(), 0)
    await turn()
    assert desk.is_closed
    assert isinstance(heard[0]["exception"], ApiError)


@pytest.mark.parametrize("handle", [_raise, _raise_in_future])
async def test_an_error_without_a_place_closes(tasks: Tasks, handle: Handle) -> None:
    """A response that cannot say it would say that all is well."""
    desk = Desk(tasks, Row(handler(ApiKey.DELETE_RECORDS, handle)))
    desk.send(DeleteRecordsRequest(), 1)
    await turn()
    assert desk.answers(DeleteRecordsResponse, 1) == []
    assert desk.is_closed


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"\0\x12\0\0",
        struct.pack(">hhih", 99, 0, 1, -1),
        struct.pack(">hhih", 18, 0, 1, 5) + b"ab",
        struct.pack(">hhih", 60, 9, 1, -1),
        struct.pack(">hhih", 60, -1, 1, -1),
        struct.pack(">hhih", 60, 0, 1, -1) + b"\0",
    ],
    ids=["empty", "cut", "unknown key", "client id", "version", "negative version", "cut body"],
)
async def test_what_cannot_be_read_closes(tasks: Tasks, body: bytes) -> None:
    """As Kafka does: no answer, the connection ends."""
    row = Row(handler(ApiKey.DESCRIBE_CLUSTER, lambda context, request: DescribeClusterResponse()))
    desk = Desk(tasks, Row(VERSIONS), row)
    if body:
        desk.send_bytes(body)
    else:
        desk.wire.receive(bytes(4))
    assert desk.is_closed
    assert desk.wire.transport.sent == b""


@pytest.mark.parametrize("version", [5, 99, -1])
async def test_a_future_api_versions_gets_an_answer_in_version_0(
    tasks: Tasks, version: int
) -> None:
    """So that a newer client learns which version to use (KIP-511)."""
    desk = Desk(tasks, Row(VERSIONS))
    desk.send_bytes(struct.pack(">hhih", 18, version, 42, -1) + b"\xff" * 9)
    ((number, answer),) = desk.answers(ApiVersionsResponse, 0)
    assert (number, answer.error_code) == (42, ErrorCode.UNSUPPORTED_VERSION)
    assert [(api.api_key, api.min_version, api.max_version) for api in answer.api_keys] == [
        (18, 0, 4)
    ]
    desk.send(ApiVersionsRequest(), 4)
    assert len(desk.wire.answers()) == 2


async def test_stray_bytes_behind_a_request_are_borne(tasks: Tasks) -> None:
    """librdkafka leaves three behind its request for all topics."""
    seen: list[Any] = []

    def handle(context: Any, request: MetadataRequest) -> MetadataResponse:
        seen.append(request.topics)
        return MetadataResponse()

    desk = Desk(tasks, Row(handler(ApiKey.METADATA, handle)))
    desk.send_bytes(headers.encode_request(MetadataRequest(topics=None), 9, 1, "x") + b"\0\0\0")
    assert seen == [None]
    assert not desk.is_closed


async def test_kept_answers_do_not_call_the_handler(tasks: Tasks) -> None:
    """Until the image is another one; the correlation id is always the request's."""
    calls: list[int] = []

    def handle(context: Any, request: MetadataRequest) -> MetadataResponse:
        calls.append(context.correlation_id)
        return MetadataResponse(cluster_id="c")

    desk = Desk(tasks, Row(handler(ApiKey.METADATA, handle), is_kept=True))
    for number in (1, 2):
        desk.send(MetadataRequest(topics=None), 9, number)
    desk.send(MetadataRequest(topics=[]), 9, 3)
    desk.broker.image = object()  # type: ignore[assignment]
    desk.send(MetadataRequest(topics=None), 9, 4)
    assert calls == [1, 3, 4]
    assert [number for number, _ in desk.answers(MetadataResponse, 9)] == [1, 2, 3, 4]


async def test_a_lost_connection_cancels_what_only_it_wants(tasks: Tasks) -> None:
    """A parked fetch ends with its connection; a group's join does not."""
    for ends in (True, False):
        futures: list[asyncio.Future[Any]] = []

        def handle(context: Any, request: Any, made: list[Any] = futures) -> Any:
            made.append(asyncio.get_running_loop().create_future())
            return made[-1]

        row = Row(handler(ApiKey.DESCRIBE_CLUSTER, handle), ends_with_connection=ends)
        desk = Desk(tasks, row)
        desk.send(DescribeClusterRequest(), 0)
        desk.wire.connection.connection_lost(None)
        assert futures[0].cancelled() is ends
        if not ends:
            futures[0].set_result(DescribeClusterResponse())
        await turn()
        assert desk.wire.transport.sent == b""


async def test_a_bug_closes_the_connection_and_is_heard_of(tasks: Tasks) -> None:
    """A broken invariant behind a future reaches the loop's exception handler."""
    heard: list[Any] = []
    asyncio.get_running_loop().set_exception_handler(lambda loop, told: heard.append(told))

    def handle(context: Any, request: Any) -> Any:
        future = asyncio.get_running_loop().create_future()
        future.set_exception(AssertionError("broken"))
        asyncio.get_running_loop().call_soon(lambda: None)
        return future

    desk = Desk(tasks, Row(handler(ApiKey.DESCRIBE_CLUSTER, handle)))
    with pytest.raises(AssertionError):
        desk.send(DescribeClusterRequest(), 0)
    assert desk.is_closed
    assert heard == []


async def test_requests_and_errors_are_counted(tasks: Tasks) -> None:
    """By API and version: what is answered at once, kept, later, and in a task."""
    future: asyncio.Future[Any] = asyncio.get_running_loop().create_future()

    async def slow(context: Any, request: Any) -> CreateTopicsResponse:
        return CreateTopicsResponse(topics=[CreatableTopicResult(name="t", error_code=36)])

    def refuse(context: Any, request: Any) -> MetadataResponse:
        return MetadataResponse(topics=[MetadataResponseTopic(name="t", error_code=3)])

    desk = Desk(
        tasks,
        Row(handler(ApiKey.DESCRIBE_CLUSTER, lambda context, request: future)),
        Row(handler(ApiKey.CREATE_TOPICS, slow)),
        Row(handler(ApiKey.METADATA, refuse), is_kept=True),
        Row(VERSIONS),
    )
    for _ in range(3):
        desk.send(MetadataRequest(topics=[]), 9)
    desk.send(ApiVersionsRequest(), 0)
    desk.send(DescribeClusterRequest(), 0)
    future.set_result(DescribeClusterResponse(error_code=41))
    await turn()
    desk.send(CreateTopicsRequest(), 5)
    await turn()
    counted = {
        route.probe.name: (route.version, route.requests_count, route.probe.errors,
                           route.probe.total.count)
        for route in desk.dispatcher.routes()
    }  # fmt: skip
    assert counted == {
        # Of the frequent kinds the first stands for sixteen.
        "Metadata": (9, 3, {3: 3}, 16),
        "ApiVersions": (0, 1, {}, 1),
        "DescribeCluster": (0, 1, {41: 1}, 1),
        "CreateTopics": (5, 1, {36: 1}, 1),
    }
