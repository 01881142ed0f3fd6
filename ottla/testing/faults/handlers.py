"""The handlers of one broker under faults: they wait, fail or close the connection.

Only the routes that a fault may affect are wrapped, and only while it is in effect. Requests among
brokers are never affected.
"""

import inspect
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from ottla.base.errors import ErrorCode, ProtocolError
from ottla.server.context import RequestContext
from ottla.server.fetch import followers
from ottla.server.transport.dispatch import ApiRoute
from ottla.testing.faults.requests import ClientFault, Cut, named_partitions
from ottla.testing.faults.responses import error_response, with_error_in_topics
from ottla.wire.api_keys import ApiKey
from ottla.wire.messages.fetch import FetchResponse

_CUT = "a fault of the test closes the connection"


def wrapped(
    route: ApiRoute, broker: int, active: Callable[[], Sequence[ClientFault]]
) -> Callable[[RequestContext, Any], Awaitable[Any]] | None:
    """Return the handler of a route with the active faults; None if none may affect it."""
    api = ApiKey(route.row.handler.API)
    if route.row.is_among_brokers or not _candidates(active(), broker, api):
        return None
    handler = FaultyHandler(route, broker, api, active)
    return handler.handle


def _candidates(faults: Sequence[ClientFault], broker: int, api: ApiKey) -> list[ClientFault]:
    return [
        fault for fault in faults if not fault.is_over and fault.requests.may_match(broker, api)
    ]


class FaultyHandler:
    """The handler of one API in one version."""

    def __init__(
        self,
        route: ApiRoute,
        broker: int,
        api: ApiKey,
        active: Callable[[], Sequence[ClientFault]],
    ) -> None:
        self._route = route
        self._inner = route.handle
        self._broker = broker
        self._api = api
        self._active = active

    async def handle(self, context: RequestContext, request: Any) -> Any:
        """Handle a request as the faults want it."""
        faults = _candidates(self._active(), self._broker, self._api)
        if not faults or self._is_of_follower(request):
            return await self._respond(context, request)
        if self._hides_partitions(request, faults):
            # The client sends a request that names its partitions.
            return FetchResponse(error_code=int(ErrorCode.FETCH_SESSION_ID_NOT_FOUND))
        partitions = list(named_partitions(request, context.broker.image.topic_names))
        faults = [fault for fault in faults if fault.take(context.client_id, partitions)]
        delay_seconds = sum(fault.effect.delay_seconds for fault in faults)
        if delay_seconds:
            await context.broker.clock.sleep(delay_seconds)
        if any(fault.effect.cut is Cut.BEFORE for fault in faults):
            raise ProtocolError(_CUT)
        for fault in faults:
            if fault.effect.code is not None:
                return await self._failed(context, request, fault)
        response = await self._respond(context, request)
        if any(fault.effect.cut is Cut.AFTER for fault in faults):
            raise ProtocolError(_CUT)
        return response

    async def _failed(self, context: RequestContext, request: Any, fault: ClientFault) -> Any:
        code = fault.effect.code
        assert code is not None
        if self._api is not ApiKey.METADATA:
            return error_response(self._route, context, request, code)
        response = await self._respond(context, request)
        return with_error_in_topics(response, code, fault.requests.topic)

    async def _respond(self, context: RequestContext, request: Any) -> Any:
        result = self._inner(context, request)
        return await result if inspect.isawaitable(result) else result

    def _is_of_follower(self, request: Any) -> bool:
        if self._api is not ApiKey.FETCH:
            return False
        return followers.replica_of(request)[0] > followers.NO_REPLICA

    def _hides_partitions(self, request: Any, faults: Sequence[ClientFault]) -> bool:
        """Return True if a request of a fetch session may leave out the partitions of a fault."""
        if self._api is not ApiKey.FETCH or request.session_epoch <= 0:
            return False
        return any(
            fault.requests.names_partitions or fault.effect.code is not None for fault in faults
        )
