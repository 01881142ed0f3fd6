"""Requests that are handled in the lane of large work, in the parts that the table of costs gives.

Each part passes through the whole handler, with all checks around it. The responses to the parts
become one. Handlers that wait are awaited one after the other if they are coroutines, and together
if they return futures, because those act at once.
"""

import asyncio
import inspect
from collections.abc import Callable
from typing import Any, Protocol

from ottla.base.errors import ApiError, ProtocolError
from ottla.base.slices import Lane, Turn
from ottla.net.admission.origins import origin_of
from ottla.server.context import RequestContext
from ottla.server.transport.apis import ApiRow
from ottla.server.transport.costs import Cost, Split
from ottla.server.transport.parts import Merger, parts_of
from ottla.server.transport.request_probe import ApiProbe


class LargeRoute(Protocol):
    """The parts of the dispatcher's route that a large request needs."""

    row: ApiRow
    version: int
    cost: Cost
    probe: ApiProbe
    decode: Callable[..., tuple[Any, int]]
    response: type[Any]

    def result(self, context: RequestContext, request: Any) -> Any:
        """Call the handler; return the response that contains its ApiError if it raises one."""
        ...

    def failure(self, error: ApiError) -> Any:
        """Return the response that contains `error`; raises ProtocolError if it cannot."""
        ...


async def handle_in_lane(
    lane: Lane, route: LargeRoute, context: RequestContext, frame: bytes, position: int
) -> Any:
    """Return a response, a LargeResponse, None, or the error that closes the connection."""
    cost: Cost = route.cost
    origin = origin_of(context.connection.peer_address[0])
    async with lane.work(origin, is_urgent=cost.is_urgent) as turn:
        try:
            if context.connection.is_closed:
                raise ProtocolError("the client has disconnected")
            request, _ = route.decode(frame, position, budget=cost.objects_max)
            await turn.end_slice()
            if route.row.prepare is not None:
                response = route.row.prepare(request, context)
                if response is not None:
                    return response
            split = next((one for one in cost.splits if one.applies_to(request)), None)
            if split is None:
                return await _whole(turn, route, context, request)
            return await _in_parts(turn, route, context, request, split)
        except (ApiError, ProtocolError) as error:
            # This is not a failure of the task: the dispatcher reports it to the peer.
            return error


async def _whole(turn: Turn, route: LargeRoute, context: RequestContext, request: Any) -> Any:
    result = route.result(context, request)
    if inspect.isawaitable(result):
        result = await turn.outside(result)
    return result


async def _in_parts(
    turn: Turn, route: LargeRoute, context: RequestContext, request: Any, split: Split
) -> Any:
    cost: Cost = route.cost
    merger = Merger(split, route.response, route.version, cost.response_bytes_max)
    # From the first part on whose response is a future.
    waiting: list[Any] = []
    for part in parts_of(split, request):
        if part is not None:
            result = route.result(context, part)
            if inspect.iscoroutine(result):
                result = await _awaited(turn, route, result)
            if waiting or isinstance(result, asyncio.Future):
                waiting.append(result)
            else:
                _add(merger, route, result)
                context.connection.hold_unfinished(merger.size_bytes)
        await turn.pause()
        _check(turn, context, cost)
    if waiting:
        futures = [result for result in waiting if isinstance(result, asyncio.Future)]
        await turn.outside(asyncio.wait(futures))
        for result in waiting:
            _add(merger, route, _settled(route, result))
            await turn.pause()
    await turn.end_slice()
    return merger.response()


async def _awaited(turn: Turn, route: LargeRoute, result: Any) -> Any:
    try:
        return await turn.outside(result)
    except ApiError as error:
        return route.failure(error)


def _settled(route: LargeRoute, result: Any) -> Any:
    if not isinstance(result, asyncio.Future):
        return result
    try:
        settled = result.result()
    except ApiError as error:
        settled = error
    return route.failure(settled) if isinstance(settled, ApiError) else settled


def _add(merger: Merger, route: LargeRoute, result: Any) -> None:
    """Add the response to a part; errors of responses are counted as for any other request."""
    if isinstance(result, ProtocolError):
        raise result
    if result is not None:
        route.probe.count_errors(result)
        merger.add(result)


def _check(turn: Turn, context: RequestContext, cost: Cost) -> None:
    """Raise ProtocolError if the work takes too long, or its result is of no use any more."""
    if turn.used_seconds > cost.seconds_max:
        raise ProtocolError(f"the request takes more than {cost.seconds_max:g} s of processor time")
    if cost.is_query and context.connection.is_closed:
        raise ProtocolError("the client has disconnected")
