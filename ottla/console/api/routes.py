"""The routes of the API for Starlette: one for each operation, the OpenAPI document, and MCP."""

from collections.abc import Callable
from functools import partial
from urllib.parse import quote, unquote

import anyio
from starlette.requests import ClientDisconnect
from starlette.requests import Request as HttpRequest
from starlette.responses import Response
from starlette.routing import BaseRoute, Match, Route
from starlette.types import Scope

from ottla.console.api import mcp
from ottla.console.api.answers import answer, openapi
from ottla.console.api.table import OPERATIONS
from ottla.console.state import Console
from ottla.console.web.requests import Reply, Request
from ottla.console.web.routes import read_request

# Calls that wait for a cluster leave threads for the pages.
_THREADS = 8

Answer = Callable[[Request], Reply]


def api_routes(console: Console) -> list[BaseRoute]:
    """Return the routes."""
    route = partial(_route, _Threads())
    return [
        route("/api/openapi.json", "GET", partial(openapi, console)),
        route("/api/mcp", "POST", partial(mcp.serve, console, with_changes=False)),
        route("/api/mcp/write", "POST", partial(mcp.serve, console, with_changes=True)),
        *(
            route(operation.full_path, operation.method, partial(answer, console, operation))
            for operation in OPERATIONS
        ),
    ]


class SegmentRoute(Route):
    """A route whose parameters may contain an encoded slash: it splits the path, then decodes it."""

    def matches(self, scope: Scope) -> tuple[Match, Scope]:
        """Return the match of a request, with the decoded parameters."""
        if scope["type"] != "http":
            return Match.NONE, {}
        raw = scope.get("raw_path") or quote(scope["path"]).encode()
        parameters = parameters_of(self.path, raw.decode("ascii", "replace"))
        if parameters is None:
            return Match.NONE, {}
        known = scope.get("path_params", {})
        child: Scope = {"endpoint": self.endpoint, "path_params": {**known, **parameters}}
        is_allowed = not self.methods or scope["method"] in self.methods
        return Match.FULL if is_allowed else Match.PARTIAL, child


def parameters_of(template: str, raw_path: str) -> dict[str, str] | None:
    """Return the parameters of an encoded path; None if it does not match. Pure."""
    names, segments = template.split("/"), raw_path.partition("?")[0].split("/")
    if len(names) != len(segments):
        return None
    parameters = {}
    for name, segment in zip(names, segments, strict=True):
        text = unquote(segment)
        if name.startswith("{") and text:
            parameters[name.strip("{}")] = text
        elif name != text:
            return None
    return parameters


class _Threads:
    """The limit of concurrent calls; made in the event loop that uses it."""

    def __init__(self) -> None:
        self._limiter: anyio.CapacityLimiter | None = None

    def limiter(self) -> anyio.CapacityLimiter:
        """Return the limit."""
        if self._limiter is None:
            self._limiter = anyio.CapacityLimiter(_THREADS)
        return self._limiter


def _route(threads: _Threads, path: str, method: str, call: Answer) -> Route:
    async def endpoint(http: HttpRequest) -> Response:
        try:
            request = await read_request(http)
        except ClientDisconnect:
            return Response(status_code=400)
        reply = await anyio.to_thread.run_sync(call, request, limiter=threads.limiter())
        assert isinstance(reply.body, str | bytes), "the API streams nothing"
        headers = dict(reply.headers)
        return Response(reply.body, reply.status, headers=headers, media_type=reply.media_type)

    return SegmentRoute(path, endpoint, methods=[method])
