"""Dispatch: from a frame to a handler and back to bytes, inside the transport's read callback.

A plain handler runs at once and returns a response, a future of one, or None if the protocol has no
response (Produce with acks=0). An `async def` handler gets a copied frame and runs as a supervised
task. An ApiError that escapes a handler is put into the response's own top-level error code; if a
response has none, the connection is closed. As in Kafka, an unknown key or version closes the
connection, except for ApiVersions (KIP-511).

`Dispatcher.frame` answers a request by the fast path of its API, or by one of five variants:

    plain     the handler is called at once
    async     the handler runs as a task
    cached    the response may be one that was sent before
    limited   for a client with quotas: the use of the request is counted, the response contains
              the throttle time, and the connection is muted for that time (KIP-219)
    large     by the table of costs: the handler runs in the lane of large work (`large_requests`)
"""

import asyncio
import inspect
import struct
import sys
from collections.abc import Awaitable, Callable, Coroutine, Iterable
from functools import partial
from typing import TYPE_CHECKING, Any

from ottla.base.buffers import Buffer
from ottla.base.errors import ApiError, ErrorCode, ProtocolError
from ottla.base.loading import deferred_module
from ottla.base.tasks import Tasks
from ottla.net.connection import Connection, Reply
from ottla.server.authentication.identity import user_of
from ottla.server.context import Broker, RequestContext
from ottla.server.quotas.clients import ClientQuotas, LimitedClient, RequestUsage
from ottla.server.quotas.steps import Timed
from ottla.server.shortcuts import RouteParts
from ottla.server.transport.apis import ROWS, ApiRow
from ottla.server.transport.brokers_only import (
    for_brokers_only,
    is_for_brokers,
    refused_in_parts,
)
from ottla.server.transport.cached_responses import CachedResponses
from ottla.server.transport.costs import COSTS, UNKNOWN
from ottla.server.transport.first_metadata import after_first_metadata
from ottla.server.transport.request_probe import ApiProbe
from ottla.wire import headers, schema
from ottla.wire.api_keys import APIS, ApiKey
from ottla.wire.messages.api_versions import ApiVersion, ApiVersionsResponse

if TYPE_CHECKING:
    from ottla.server.audit import apis as audit_apis
    from ottla.server.audit import auditing
    from ottla.server.authorization import checks, guarding
    from ottla.server.authorization.authorizer import Authorizer
    from ottla.server.transport import large_requests
    from ottla.server.transport.parts import LargeResponse
else:
    # Administrative and large requests need these, and brokers with an authorizer the others.
    audit_apis = deferred_module("ottla.server.audit.apis")
    auditing = deferred_module("ottla.server.audit.auditing")
    checks = deferred_module("ottla.server.authorization.checks")
    guarding = deferred_module("ottla.server.authorization.guarding")
    large_requests = deferred_module("ottla.server.transport.large_requests")

# Key, version, correlation id: the same in every version of the request header.
_PREFIX = struct.Struct(">hhi")
_PREFIX_BYTES = _PREFIX.size
# The header of a response; a flexible one ends with an empty list of tagged fields.
_HEADER = struct.Struct(">i")
_FLEXIBLE_HEADER = struct.Struct(">ix")


class ApiRoute:
    """One API in one version, with its compiled codec."""

    __slots__ = (
        "answer",
        "copy",
        "cost",
        "decode",
        "encode",
        "fields",
        "handle",
        "has_records",
        "header",
        "is_async",
        "large_bytes",
        "probe",
        "requests_count",
        "response",
        "row",
        "sampled_mask",
        "shortcut",
        "version",
    )

    def __init__(
        self,
        row: ApiRow,
        version: int,
        broker: Broker,
        probe: ApiProbe,
        authorizer: "Authorizer | None",
    ) -> None:
        api = APIS[int(row.handler.API)]
        self.row = row
        self.version = version
        self.probe = probe
        self.requests_count = 0
        # A request is timed if its number has none of these bits.
        self.sampled_mask = probe.weight - 1
        self.handle: Callable[[RequestContext, Any], Any] = row.handler.handle
        self.is_async = inspect.iscoroutinefunction(self.handle)
        if authorizer is not None:
            check = checks.CHECKS[row.handler.API]
            self.handle = guarding.guarded(
                self.handle, check, authorizer, broker.current, is_traced=row.is_administrative
            )
        if row.is_administrative:
            audited_api = audit_apis.AUDITED[row.handler.API]
            self.handle = auditing.audited(self.handle, row.handler.API, audited_api)
        if is_for_brokers(row, version, is_authorized=authorizer is not None):
            self.handle = for_brokers_only(self.handle)
        if row.refuse is not None:
            self.handle = refused_in_parts(self.handle, row.refuse)
        if row.needs_metadata:
            self.handle = after_first_metadata(self.handle)
        # The variant that answers requests of clients without quotas, set by the dispatcher.
        self.answer: Answer
        # Copies the frame of a request whose handler is a task.
        self.copy: Callable[[memoryview], Buffer] = bytes
        self.response: type[Any] = api.response
        # The fields that this version has.
        self.fields = {field.name for field in api.response.FIELDS if field.is_in(version)}
        self.cost = COSTS.get(row.handler.API, UNKNOWN)
        self.large_bytes = self.cost.large_bytes
        self.decode: Callable[..., tuple[Any, int]] = schema.decoder(api.request, version)
        self.encode = schema.encoder(api.response, version)
        self.has_records = schema.has_records(api.response)
        is_flexible = version >= api.response.FLEXIBLE_HEADER_SINCE
        # From the correlation id to the header of the response.
        self.header: Callable[[int], bytes] = (_FLEXIBLE_HEADER if is_flexible else _HEADER).pack
        self.shortcut = None
        if row.shortcut is not None:
            may = None
            if authorizer is not None:
                operation = checks.OF_SHORTCUTS[row.handler.API]
                may = guarding.topic_right(operation, authorizer, broker.current)
            parts = RouteParts(
                lambda response, correlation_id: self.parts(correlation_id, response),
                probe,
                lambda connection, correlation_id: RequestContext(
                    broker, connection, int(row.handler.API), version, correlation_id, None
                ),
                may,
            )
            self.shortcut = row.shortcut(broker, version, parts)

    def parts(
        self, correlation_id: int, response: Any, large: "LargeResponse | None" = None
    ) -> list[Buffer]:
        """Return header and body of a response; record bytes are separate parts."""
        if large is not None:
            return large.parts(self.header(correlation_id), self.encode)
        encoded = self.encode(response, self.header(correlation_id))
        return encoded if self.has_records else [encoded]

    def result(self, context: RequestContext, request: Any) -> Any:
        """Call the handler; return the response that contains its ApiError if it raises one."""
        try:
            return self.handle(context, request)
        except ApiError as error:
            return self.failure(error)

    def failure(self, error: ApiError) -> Any:
        """Return the response that contains `error`; raises ProtocolError if it has no error code."""
        if "error_code" not in self.fields:
            raise ProtocolError(f"{self.row.handler.API.name} failed: {error.message}") from error
        response = self.response(error_code=int(error.code))
        if "error_message" in self.fields:
            response.error_message = error.message
        return response


# Returns the function that handles the requests of a route in place of its handler; None for none.
WrapHandler = Callable[[ApiRoute], Callable[[RequestContext, Any], Awaitable[Any]] | None]


def _writable_copy(frame: memoryview) -> memoryview:
    """Return a copy in which handlers may patch batches, as in the frame itself."""
    return memoryview(bytearray(frame))


# Answers a request in a frame, whose body begins at a position; the request, if it is decoded.
Answer = Callable[[ApiRoute, RequestContext, memoryview, int, Any], None]


class KnownHeader:
    """The header of a request, except for its correlation id, as last sent on a connection."""

    __slots__ = ("client_id", "end", "limited", "quotas_generation", "route", "software", "tail")

    def __init__(self, route: ApiRoute, frame: memoryview, former: "KnownHeader | None") -> None:
        header = headers.decode_request_header(frame)
        # The client's software name and version from ApiVersions.
        self.software: tuple[str, str] | None = former.software if former else None
        # The measures that limit the client, as of a generation of the quotas.
        self.limited: LimitedClient | None = None
        self.quotas_generation = -1
        self.route = route
        self.client_id = header.client_id
        self.end = header.body_position
        self.tail = bytes(frame[_PREFIX_BYTES : self.end])


class Dispatcher:
    """The FrameHandler of a broker's endpoints."""

    def __init__(self, broker: Broker, tasks: Tasks, rows: tuple[ApiRow, ...] = ROWS) -> None:
        self._broker = broker
        self._current = broker.current
        self._tasks = tasks
        self._rows = {int(row.handler.API): row for row in rows}
        # By key << 16 | version; filled on first use, because compiling a codec takes time.
        self._routes: dict[int, ApiRoute] = {}
        self._probes: dict[int, ApiProbe] = {}
        self._now = broker.clock.monotonic
        self._cached_responses = CachedResponses()
        # None while no client can have a quota.
        self._quotas: ClientQuotas | None = None
        self._authorizer: Authorizer | None = None
        self._wrap: WrapHandler | None = None

    def authorize_by(self, authorizer: "Authorizer") -> None:
        """Check every request from now on; call this before the first one."""
        assert not self._routes, "requests have been handled without a check"
        self._authorizer = authorizer
        authorizer.store.on_change.append(self._cached_responses.clear)

    def enforce(self, quotas: ClientQuotas) -> None:
        """Enforce quotas whenever there are any."""

        def changed(limits_clients: bool) -> None:
            self._quotas = quotas if limits_clients else None

        quotas.on_change.append(changed)
        changed(quotas.book.limits_clients())

    def wrap_handlers(self, wrap: WrapHandler | None) -> None:
        """Let the functions that `wrap` returns handle requests, as tasks; None ends that.

        Tests of clients use it to inject faults. All routes are created again.
        """
        self._wrap = wrap
        self._routes.clear()

    def routes(self) -> Iterable[ApiRoute]:
        """Return the APIs and versions that have been requested, with their counters."""
        return list(self._routes.values())

    def frame(self, connection: Connection, frame: memoryview) -> None:
        """Handle one request; raises ProtocolError if it cannot be parsed or is not served."""
        if len(frame) < _PREFIX_BYTES:
            raise ProtocolError(f"a request of {len(frame)} bytes has no header")
        key, version, correlation_id = _PREFIX.unpack_from(frame)
        route = self._routes.get(key << 16 | version) or self.add_route(key, version)
        if route is None:
            connection.send(_fallback(correlation_id, self._rows[key]))
            return
        count = route.requests_count
        route.requests_count = count + 1
        started_at = 0.0 if count & route.sampled_mask else self._now()
        # A connection repeats the bytes after the correlation id with every request of the same
        # API. Copying so few bytes is cheaper than comparing a memoryview.
        known = connection.memo
        if (
            known is None
            or known.route is not route
            or frame[_PREFIX_BYTES : known.end].tobytes() != known.tail
        ):
            known = connection.memo = KnownHeader(route, frame, known)
        quotas = self._quotas
        client = None if quotas is None else self._limited_client(connection, known, quotas)
        if (
            client is None
            and (shortcut := route.shortcut) is not None
            and shortcut.answer(connection, frame, known.end, correlation_id, started_at)
        ):
            return
        context = RequestContext(
            self._broker, connection, key, version, correlation_id, known.client_id
        )
        context.started_at = started_at
        answer, request = route.answer, None
        if client is not None:
            produced_bytes = len(frame) if key == ApiKey.PRODUCE else 0
            context.usage = RequestUsage(client, self._now(), produced_bytes)
            answer = self._answer_async if route.is_async else self._answer_limited
        if len(frame) > route.large_bytes:
            request = _decode_small(route, frame, known.end)
            if request is None:
                answer = self._answer_large
        answer(route, context, frame, known.end, request)

    def _limited_client(
        self, connection: Connection, known: KnownHeader, quotas: ClientQuotas
    ) -> LimitedClient | None:
        """Return the client whose quotas limit a request; None if none does."""
        if known.quotas_generation != quotas.generation:
            known.limited = quotas.client(user_of(connection), known.client_id or "")
            known.quotas_generation = quotas.generation
        return None if known.route.row.is_among_brokers else known.limited

    def _answer_plain(
        self,
        route: ApiRoute,
        context: RequestContext,
        frame: memoryview,
        position: int,
        request: Any,
    ) -> None:
        """Call the handler, and let the fast path learn from what it returns."""
        if request is None:
            request, _ = route.decode(frame, position)
        result = route.result(context, request)
        if type(result) is not route.response:
            if result is not None:
                self._wait(route, context, result)
                if route.shortcut is not None:
                    route.shortcut.learn(frame, position, request, None)
            return
        connection, header = context.connection, route.header(context.correlation_id)
        if route.has_records:
            connection.send(route.encode(result, header))
        else:
            connection.send((route.encode(result, header),))
        if not route.has_records or context.has_errors or result.error_code:
            route.probe.count_errors(result)
        if context.started_at:
            route.probe.took(context.started_at, self._now())
        if route.shortcut is not None:
            route.shortcut.learn(frame, position, request, result)

    def _answer_limited(
        self,
        route: ApiRoute,
        context: RequestContext,
        frame: memoryview,
        position: int,
        request: Any,
    ) -> None:
        """Call the handler, never a fast path or a cache, and settle the use of the request."""
        assert context.usage is not None
        if request is None:
            request, _ = route.decode(frame, position)
        result = route.result(context, request)
        if result is not None and type(result) is not route.response:
            context.usage.stopped(self._now())
            self._wait(route, context, result)
            return
        self._throttle(context, result)
        if result is not None:
            context.connection.send(route.parts(context.correlation_id, result))
            route.probe.count_errors(result)
        if context.started_at:
            route.probe.took(context.started_at, self._now())

    def _throttle(self, context: RequestContext, response: Any) -> None:
        """Settle the use of a request; a client that exceeded its quota is informed and muted."""
        assert context.usage is not None
        throttle_ms = context.usage.settle(self._now(), is_answered=response is not None)
        if throttle_ms:
            if response is not None and "throttle_time_ms" in response.__slots__:
                response.throttle_time_ms = throttle_ms
            context.connection.mute(throttle_ms / 1000)

    def _answer_cached(
        self,
        route: ApiRoute,
        context: RequestContext,
        frame: memoryview,
        position: int,
        request: Any,
    ) -> None:
        """Answer from the cache, or call the handler and store its plain response."""
        connection, image = context.connection, self._current.image
        key: tuple[Any, ...] = (
            route.version,
            connection.listener_name,
            connection.local_address,
            bytes(frame[position:]),
        )
        if self._authorizer is not None:
            # Responses to principals with different rights differ.
            key += guarding.identity_key(connection)
        header = route.header(context.correlation_id)
        body = self._cached_responses.find(image, key)
        if body is None:
            if request is None:
                request, _ = route.decode(frame, position)
            result = route.result(context, request)
            if type(result) is not route.response:
                self._wait(route, context, result)
                return
            body = route.encode(result)
            # Responses with errors are not cached, so that each error is counted.
            if not route.probe.count_errors(result):
                self._cached_responses.keep(image, key, body)
        connection.send((header, body))
        if context.started_at:
            route.probe.took(context.started_at, self._now())

    def add_route(self, key: int, version: int) -> ApiRoute | None:
        """Create the route of an API and version on its first use.

        Returns None for an unknown version of ApiVersions. Raises ProtocolError for other unknown
        versions, and for an API that is not served.
        """
        row = self._rows.get(key)
        if row is None:
            raise ProtocolError(f"API {key} is not served")
        if not row.handler.MIN_VERSION <= version <= row.handler.MAX_VERSION:
            if key == ApiKey.API_VERSIONS:
                return None
            raise ProtocolError(f"{row.handler.API.name} is not served in version {version}")
        probe = self._probes.get(key)
        if probe is None:
            api = APIS[key]
            probe = self._probes[key] = ApiProbe(row.handler.API, api.response, api.name)
        route = self._routes[key << 16 | version] = ApiRoute(
            row, version, self._broker, probe, self._authorizer
        )
        handle = None if self._wrap is None else self._wrap(route)
        if handle is not None:
            route.handle, route.is_async, route.copy = handle, True, _writable_copy
            route.shortcut, route.large_bytes = None, sys.maxsize
        if route.is_async:
            route.answer = self._answer_async
        else:
            route.answer = self._answer_cached if row.is_cached else self._answer_plain
        return route

    def _wait(
        self, route: ApiRoute, context: RequestContext, future: "asyncio.Future[Any]"
    ) -> None:
        # As in Kafka, a limited client's requests are handled one after the other.
        is_in_order = context.keeps_order or context.usage is not None
        is_blocking = is_in_order or not route.row.is_read_ahead
        reply = context.connection.defer(is_blocking=is_blocking)
        if route.row.ends_with_connection:
            reply.on_abandon = future.cancel
        times = self._times(context)
        respond = partial(self._finish, route, context, reply, times)
        if future.done():
            respond(future)
        else:
            future.add_done_callback(respond)

    def _answer_async(
        self, route: ApiRoute, context: RequestContext, frame: memoryview, position: int, _: Any
    ) -> None:
        """Run the handler as a task, with a request that does not refer to the frame."""
        request, _ = route.decode(route.copy(frame), position)
        self._spawn(route, context, len(frame), self._supervise(route, context, request))

    def _answer_large(
        self, route: ApiRoute, context: RequestContext, frame: memoryview, position: int, _: Any
    ) -> None:
        """Run the handler in the lane of large work, which also decodes the request."""
        work = large_requests.handle_in_lane(
            self._broker.lane, route, context, bytes(frame), position
        )
        self._spawn(route, context, len(frame), work)

    def _spawn(
        self,
        route: ApiRoute,
        context: RequestContext,
        held_bytes: int,
        work: Coroutine[Any, Any, Any],
    ) -> None:
        reply = context.connection.defer(held_bytes=held_bytes)
        name = f"{route.row.handler.API.name} from {context.client_id}"
        if context.usage is not None:
            context.usage.stopped(self._now())
            work = Timed(work, context.usage, self._now)
        task = self._tasks.spawn(work, name)
        if route.row.ends_with_connection:
            reply.on_abandon = task.cancel
        times = self._times(context)
        task.add_done_callback(partial(self._finish, route, context, reply, times))

    def _times(self, context: RequestContext) -> tuple[float, float] | None:
        """Return when a request arrived and when it was parked, if it is timed."""
        return (context.started_at, self._now()) if context.started_at else None

    async def _supervise(self, route: ApiRoute, context: RequestContext, request: Any) -> Any:
        try:
            return await route.handle(context, request)
        except (ApiError, ProtocolError) as error:
            # This is not a failure of the task: `_finish` reports it to the peer.
            return error

    def _finish(
        self,
        route: ApiRoute,
        context: RequestContext,
        reply: Reply,
        times: tuple[float, float] | None,
        future: "asyncio.Future[Any]",
    ) -> None:
        """Send the response of a future that is done, or close the connection."""
        if future.cancelled():
            reply.close("the broker abandoned the request")
            return
        error = future.exception()
        response = future.result() if error is None else None
        if isinstance(response, ApiError | ProtocolError):
            error = response
        if isinstance(error, ApiError) and "error_code" in route.fields:
            response = route.failure(error)
        elif error is not None:
            reply.close(f"{route.row.handler.API.name} failed: {error}")
            if not isinstance(error, ApiError | ProtocolError):
                # An invariant is violated; the loop's exception handler logs it.
                raise error
            return
        large: LargeResponse | None = None
        if response is not None and type(response) is not route.response:
            large, response = response, response.head
        if context.usage is not None:
            # Before the response: sending it lets the next request in.
            self._throttle(context, response)
        if response is None:
            reply.send_nothing()
        else:
            try:
                parts = route.parts(context.correlation_id, response, large)
            except BaseException:
                # A bug of the handler; the peer must not wait for ever.
                reply.close(f"the response to {route.row.handler.API.name} cannot be encoded")
                raise
            reply.send(parts)
            if large is None:
                route.probe.count_errors(response)
        if times is not None:
            route.probe.waited(*times, self._now())


def _decode_small(route: ApiRoute, frame: memoryview, position: int) -> Any:
    """Return a request of many bytes and few objects, or None; raises ProtocolError."""
    cost = route.cost
    if len(frame) > cost.request_bytes_max:
        raise ProtocolError(
            f"{route.row.handler.API.name} with {len(frame)} bytes is too large; "
            f"{cost.request_bytes_max} are allowed"
        )
    if not cost.small_objects:
        return None
    try:
        request, _ = route.decode(frame, position, budget=cost.small_objects)
    except ProtocolError:
        return None
    return request


def _fallback(correlation_id: int, row: ApiRow) -> list[Buffer]:
    """Answer an ApiVersions request of a future version with version 0 and the served APIs."""
    response = ApiVersionsResponse(
        error_code=int(ErrorCode.UNSUPPORTED_VERSION),
        api_keys=[
            ApiVersion(
                api_key=int(row.handler.API),
                min_version=row.handler.MIN_VERSION,
                max_version=row.handler.MAX_VERSION,
            )
        ],
    )
    return headers.encode_response_parts(correlation_id, response, 0)
