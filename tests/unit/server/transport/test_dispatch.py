"""Dispatch from frames to handlers and back, without a network."""

import asyncio
import struct
from collections.abc import AsyncIterator, Callable
from types import ModuleType, SimpleNamespace
from typing import Any, cast

import pytest

from ottla.base.clock import RealClock
from ottla.base.errors import ApiError, ErrorCode
from ottla.base.slices import Lane
from ottla.base.tasks import Tasks
from ottla.cluster.image import ClusterImage
from ottla.cluster.options.option_tables import BROKER_OPTIONS
from ottla.net.limits import Limits
from ottla.security.acls import ANY, AclBinding
from ottla.security.authorization import Rules
from ottla.security.broker_proof import ProofToPeer
from ottla.server.authentication.identity import CertificateUser
from ottla.server.authorization.authorizer import Authorizer
from ottla.server.context import Broker
from ottla.server.current import Current
from ottla.server.transport import first_metadata
from ottla.server.transport.apis import ApiRow
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
from tests.handlers.audited import audit_log
from tests.unit.net.conftest import HandHousehold, Wire
from tests.unit.server.authorization.conftest import TOPIC, Stores, entry

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
    """A dispatcher on a simulated connection."""

    def __init__(self, tasks: Tasks, *rows: ApiRow) -> None:
        self.current = Current(image=ClusterImage(), options=BROKER_OPTIONS.parse({}))
        clock = RealClock()
        self.lane = Lane(clock)
        self.broker = cast(
            Broker,
            SimpleNamespace(
                current=self.current,
                clock=clock,
                tasks=tasks,
                audit=audit_log(tasks=tasks),
                lane=self.lane,
            ),
        )
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
    """The response has the request's correlation id, and the context its version and client id."""
    seen: list[Any] = []

    def handle(context: Any, request: DescribeClusterRequest) -> DescribeClusterResponse:
        seen.append((context.api_version, context.client_id, context.correlation_id))
        return DescribeClusterResponse(cluster_id="c")

    desk = Desk(tasks, ApiRow(handler(ApiKey.DESCRIBE_CLUSTER, handle)))
    for correlation_id in (5, 6):
        desk.send(DescribeClusterRequest(), 1, correlation_id)
    desk.send(DescribeClusterRequest(), 2, 7)
    responses = [headers.decode_response(DescribeClusterResponse, 1, body) for body in
               desk.wire.answers()[:2]]  # fmt: skip
    assert [(number, response.cluster_id) for number, response in responses] == [(5, "c"), (6, "c")]
    assert seen == [(1, "client", 5), (1, "client", 6), (2, "client", 7)]


async def test_a_connection_may_change_its_client_id(tasks: Tasks) -> None:
    """A cached header is not used for a different one."""
    seen: list[str | None] = []

    def handle(context: Any, request: Any) -> DescribeClusterResponse:
        seen.append(context.client_id)
        return DescribeClusterResponse()

    desk = Desk(tasks, ApiRow(handler(ApiKey.DESCRIBE_CLUSTER, handle)))
    for name in ("a", "b", None, "ab", "a", ""):
        desk.send_bytes(headers.encode_request(DescribeClusterRequest(), 0, 1, name))
    assert seen == ["a", "b", None, "ab", "a", ""]


async def test_a_future_is_answered_when_it_is_done(tasks: Tasks) -> None:
    """The next request waits for the future, unless the row allows reading ahead."""
    futures: list[asyncio.Future[Any]] = []

    def handle(context: Any, request: Any) -> Any:
        futures.append(asyncio.get_running_loop().create_future())
        return futures[-1]

    for is_read_ahead in (False, True):
        futures.clear()
        row = ApiRow(handler(ApiKey.DESCRIBE_CLUSTER, handle), is_read_ahead=is_read_ahead)
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
    """The receive buffer is reused while the coroutine waits."""
    gate = asyncio.Event()

    async def handle(context: Any, request: MetadataRequest) -> MetadataResponse:
        await gate.wait()
        assert request.topics == []
        return MetadataResponse(cluster_id=context.client_id)

    desk = Desk(tasks, ApiRow(handler(ApiKey.METADATA, handle)))
    desk.send(MetadataRequest(topics=[]), 9)
    assert desk.endpoint.budget.held_bytes > 0
    desk.endpoint.buffers.shared[:100] = b"?" * 100
    gate.set()
    await turn()
    assert [response.cluster_id for _, response in desk.answers(MetadataResponse, 9)] == ["client"]
    assert desk.endpoint.budget.held_bytes == 0


async def test_handler_that_returns_none_sends_no_response(tasks: Tasks) -> None:
    """With acks=0 nothing is sent, and the connection stays open."""
    desk = Desk(tasks, ApiRow(handler(ApiKey.DESCRIBE_CLUSTER, lambda context, request: None)))
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
    """The error code is set if the response has one at the top level."""
    desk = Desk(tasks, ApiRow(handler(ApiKey.DESCRIBE_CLUSTER, handle)))
    desk.send(DescribeClusterRequest(), 0)
    await turn()
    ((_, response),) = desk.answers(DescribeClusterResponse, 0)
    assert response.error_code == ErrorCode.CLUSTER_AUTHORIZATION_FAILED
    assert response.error_message == "not you"
    assert not desk.is_closed


@pytest.mark.parametrize("handle", [_raise, _raise_later, _raise_in_future])
async def test_error_without_a_field_in_that_version_closes_the_connection(
    tasks: Tasks, handle: Handle
) -> None:
    """ElectLeaders has a top-level error code only from version 1."""
    desk = Desk(tasks, ApiRow(handler(ApiKey.ELECT_LEADERS, handle)))
    desk.send(ElectLeadersRequest(), 0)
    await turn()
    assert desk.answers(ElectLeadersResponse, 0) == []
    assert desk.is_closed
    desk.wire.connection.connection_lost(None)
    assert desk.endpoint.budget.held_bytes == 0


async def test_response_that_cannot_be_encoded_closes_the_connection(tasks: Tasks) -> None:
    """A handler sets a field that the version lacks: a bug, which must not leave the client
    waiting.
    """
    heard: list[Any] = []
    asyncio.get_running_loop().set_exception_handler(lambda loop, told: heard.append(told))

    async def handle(context: Any, request: Any) -> Any:
        return ElectLeadersResponse(error_code=7)

    desk = Desk(tasks, ApiRow(handler(ApiKey.ELECT_LEADERS, handle)))
    desk.send(ElectLeadersRequest(), 0)
    await turn()
    assert desk.is_closed
    assert isinstance(heard[0]["exception"], ApiError)


@pytest.mark.parametrize("handle", [_raise, _raise_in_future])
async def test_error_without_a_field_closes_the_connection(tasks: Tasks, handle: Handle) -> None:
    """A response without the error code would report success."""
    desk = Desk(tasks, ApiRow(handler(ApiKey.DELETE_RECORDS, handle)))
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
async def test_invalid_request_closes_the_connection(tasks: Tasks, body: bytes) -> None:
    """The connection is closed without a response, as in Kafka."""
    row = ApiRow(
        handler(ApiKey.DESCRIBE_CLUSTER, lambda context, request: DescribeClusterResponse())
    )
    desk = Desk(tasks, ApiRow(VERSIONS), row)
    if body:
        desk.send_bytes(body)
    else:
        desk.wire.receive(bytes(4))
    assert desk.is_closed
    assert desk.wire.transport.sent == b""


@pytest.mark.parametrize("version", [5, 99, -1])
async def test_newer_api_versions_request_is_answered_in_version_0(
    tasks: Tasks, version: int
) -> None:
    """A newer client learns from it which version to use (KIP-511)."""
    desk = Desk(tasks, ApiRow(VERSIONS))
    desk.send_bytes(struct.pack(">hhih", 18, version, 42, -1) + b"\xff" * 9)
    ((number, response),) = desk.answers(ApiVersionsResponse, 0)
    assert (number, response.error_code) == (42, ErrorCode.UNSUPPORTED_VERSION)
    assert [(api.api_key, api.min_version, api.max_version) for api in response.api_keys] == [
        (18, 0, 4)
    ]
    desk.send(ApiVersionsRequest(), 4)
    assert len(desk.wire.answers()) == 2


async def test_extra_bytes_after_a_request_are_ignored(tasks: Tasks) -> None:
    """Librdkafka sends three extra bytes with its request for all topics."""
    seen: list[Any] = []

    def handle(context: Any, request: MetadataRequest) -> MetadataResponse:
        seen.append(request.topics)
        return MetadataResponse()

    desk = Desk(tasks, ApiRow(handler(ApiKey.METADATA, handle)))
    desk.send_bytes(headers.encode_request(MetadataRequest(topics=None), 9, 1, "x") + b"\0\0\0")
    assert seen == [None]
    assert not desk.is_closed


async def test_cached_responses_do_not_call_the_handler(tasks: Tasks) -> None:
    """The cached response is used until the image changes, with the correlation id of each request."""
    calls: list[int] = []

    def handle(context: Any, request: MetadataRequest) -> MetadataResponse:
        calls.append(context.correlation_id)
        return MetadataResponse(cluster_id="c")

    desk = Desk(tasks, ApiRow(handler(ApiKey.METADATA, handle), is_cached=True))
    for number in (1, 2):
        desk.send(MetadataRequest(topics=None), 9, number)
    desk.send(MetadataRequest(topics=[]), 9, 3)
    desk.current.image = ClusterImage()
    desk.send(MetadataRequest(topics=None), 9, 4)
    assert calls == [1, 3, 4]
    assert [number for number, _ in desk.answers(MetadataResponse, 9)] == [1, 2, 3, 4]


def proven_broker() -> ProofToPeer:
    proof = ProofToPeer({1: b"s" * 32}, b"n" * 16)
    proof.broker_id = 2
    return proof


class Guarded(Desk):
    """A dispatcher with an authorizer: cached metadata of a topic `t` that the sender may see."""

    def __init__(self, tasks: Tasks, authorizer: Authorizer) -> None:
        self.calls = 0
        row = ApiRow(handler(ApiKey.METADATA, self.handle), is_cached=True)
        super().__init__(tasks, row)
        self.authorizer = authorizer
        self.dispatcher.authorize_by(authorizer)

    def handle(self, _context: Any, _request: MetadataRequest) -> MetadataResponse:
        self.calls += 1
        return MetadataResponse(topics=[MetadataResponseTopic(name="t")])

    def topics(self) -> list[str | None]:
        """Return the topics of a new response."""
        self.send(MetadataRequest(topics=None), 9)
        (_, response) = self.answers(MetadataResponse, 9)[-1]
        return [topic.name for topic in response.topics]

    async def allow(self, principal: str) -> None:
        await self.authorizer.create([AclBinding(TOPIC, entry(principal))])


@pytest.fixture
async def guarded(tasks: Tasks) -> AsyncIterator[Guarded]:
    """Return a dispatcher whose authorizer has no list."""
    stores = Stores()
    yield Guarded(tasks, Authorizer(Rules(), await stores.store()))
    await stores.tasks.close()
    await stores.tree.close()


async def test_cached_response_is_for_one_principal_and_host(guarded: Guarded) -> None:
    """A broker has all rights, although its principal may have no rights."""
    await guarded.allow("User:ann")
    wire = guarded.wire.connection
    expected: list[tuple[Any, str, list[str]]] = [
        (None, "10.0.0.1", []),
        (CertificateUser("ann"), "10.0.0.1", ["t"]),
        (CertificateUser("ann"), "10.0.0.2", ["t"]),
        (CertificateUser("ben"), "10.0.0.1", []),
        (proven_broker(), "10.0.0.1", ["t"]),
    ]
    for _ in range(2):
        for identity, host, topics in expected:
            wire.identity, wire.peer_address = identity, (host, 1)
            assert guarded.topics() == topics
    assert guarded.calls == len(expected)


async def test_change_of_a_list_clears_the_cache(guarded: Guarded) -> None:
    """The next response has the new rights; so does one after a change of the topics."""
    assert [guarded.topics(), guarded.topics(), guarded.calls] == [[], [], 1]
    await guarded.allow("User:ANONYMOUS")
    assert [guarded.topics(), guarded.topics(), guarded.calls] == [["t"], ["t"], 2]
    await guarded.authorizer.delete([ANY])
    assert [guarded.topics(), guarded.topics(), guarded.calls] == [[], [], 3]
    guarded.current.image = ClusterImage()
    assert [guarded.topics(), guarded.topics(), guarded.calls] == [[], [], 4]


async def test_lost_connection_cancels_its_own_work(tasks: Tasks) -> None:
    """A delayed fetch ends with its connection, and the join of a group does not."""
    for ends in (True, False):
        futures: list[asyncio.Future[Any]] = []

        def handle(context: Any, request: Any, created: list[Any] = futures) -> Any:
            created.append(asyncio.get_running_loop().create_future())
            return created[-1]

        row = ApiRow(handler(ApiKey.DESCRIBE_CLUSTER, handle), ends_with_connection=ends)
        desk = Desk(tasks, row)
        desk.send(DescribeClusterRequest(), 0)
        desk.wire.connection.connection_lost(None)
        assert futures[0].cancelled() is ends
        if not ends:
            futures[0].set_result(DescribeClusterResponse())
        await turn()
        assert desk.wire.transport.sent == b""


@pytest.mark.parametrize("is_known", [False, True], ids=["fails", "answers"])
async def test_requests_for_metadata_wait_until_there_is_some(tasks: Tasks, is_known: bool) -> None:
    """A broker that just started must not report that there are no brokers and no topics.

    The handler is called once the broker is informed, and may return a future or fail.
    """

    async def later() -> MetadataResponse:
        return MetadataResponse(cluster_id="c")

    def handle(context: Any, request: Any) -> Any:
        assert desk.current.informed.is_set()
        if not is_known:
            raise ApiError(ErrorCode.BROKER_NOT_AVAILABLE)
        return tasks.spawn(later(), "answer")

    row = ApiRow(handler(ApiKey.METADATA, handle), needs_metadata=True, is_cached=True)
    desk = Desk(tasks, row)
    desk.send(MetadataRequest(topics=[]), 13)
    await turn()
    assert not desk.wire.transport.sent
    desk.current.informed.set()
    await turn()
    ((_, answer),) = desk.answers(MetadataResponse, 13)
    code = ErrorCode.NONE if is_known else ErrorCode.BROKER_NOT_AVAILABLE
    assert (answer.error_code, answer.cluster_id) == (code, "c" if is_known else None)


async def test_connection_is_closed_if_no_controller_sends_metadata(
    tasks: Tasks, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The client has to ask another broker."""
    monkeypatch.setattr(first_metadata, "WAIT_SECONDS", 0)
    desk = Desk(tasks, ApiRow(handler(ApiKey.METADATA, lambda *_: MetadataResponse()),
                           needs_metadata=True))  # fmt: skip
    desk.send(MetadataRequest(topics=[]), 9)
    await turn()
    assert desk.is_closed
    assert not desk.wire.transport.sent


async def test_unexpected_exception_closes_the_connection_and_is_reported(tasks: Tasks) -> None:
    """An AssertionError in a future reaches the loop's exception handler."""
    heard: list[Any] = []
    asyncio.get_running_loop().set_exception_handler(lambda loop, told: heard.append(told))

    def handle(context: Any, request: Any) -> Any:
        future = asyncio.get_running_loop().create_future()
        future.set_exception(AssertionError("broken"))
        asyncio.get_running_loop().call_soon(lambda: None)
        return future

    desk = Desk(tasks, ApiRow(handler(ApiKey.DESCRIBE_CLUSTER, handle)))
    with pytest.raises(AssertionError):
        desk.send(DescribeClusterRequest(), 0)
    assert desk.is_closed
    assert heard == []


async def test_requests_and_errors_are_counted(tasks: Tasks) -> None:
    """Every kind of response is counted by API and version: immediate, cached, later and in a task."""
    future: asyncio.Future[Any] = asyncio.get_running_loop().create_future()

    async def slow(context: Any, request: Any) -> CreateTopicsResponse:
        return CreateTopicsResponse(topics=[CreatableTopicResult(name="t", error_code=36)])

    def refuse(context: Any, request: Any) -> MetadataResponse:
        return MetadataResponse(topics=[MetadataResponseTopic(name="t", error_code=3)])

    desk = Desk(
        tasks,
        ApiRow(handler(ApiKey.DESCRIBE_CLUSTER, lambda context, request: future)),
        ApiRow(handler(ApiKey.CREATE_TOPICS, slow)),
        ApiRow(handler(ApiKey.METADATA, refuse), is_cached=True),
        ApiRow(VERSIONS),
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
        # The first frequent request is measured, and counts for sixteen.
        "Metadata": (9, 3, {3: 3}, 16),
        "ApiVersions": (0, 1, {}, 1),
        "DescribeCluster": (0, 1, {41: 1}, 1),
        "CreateTopics": (5, 1, {36: 1}, 1),
    }
