"""The door to Starlette: routes for pages, sources and assets; requests and replies as values."""

import functools
from collections.abc import AsyncIterator, Callable, Generator, Iterable
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import anyio
from starlette.applications import Starlette
from starlette.concurrency import iterate_in_threadpool
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.middleware.gzip import GZipMiddleware
from starlette.requests import ClientDisconnect
from starlette.requests import Request as HttpRequest
from starlette.responses import RedirectResponse, Response, StreamingResponse
from starlette.routing import BaseRoute, Mount, Route
from starlette.staticfiles import StaticFiles
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from ottla.console.oidc.settings import CALLBACK_PATH
from ottla.console.page import Page, Source
from ottla.console.state import Console
from ottla.console.web.login import login, logout, prefer, show_login
from ottla.console.web.oidc import LOGIN_PATH, begin_login, finish_login
from ottla.console.web.requests import SECURITY_HEADERS, Reply, Request
from ottla.console.web.respond import respond, respond_not_found, respond_with_data

# Records of the produce page are the largest forms.
MAX_BODY_BYTES = 4 * 1024 * 1024
_STATIC = Path(__file__).parent.parent / "static"
# Requests that wait for a cluster must not use up the threads of the others.
_THREADS = 16

Application = Starlette
Answer = Callable[[Console, Request], Reply]


def application(
    console: Console, pages: Iterable[Page], sources: Iterable[Source], mounts: Iterable[BaseRoute]
) -> Starlette:
    """Return the ASGI application."""
    routes: list[BaseRoute] = [
        _route("/login", console, show_login, login),
        _route(LOGIN_PATH, console, begin_login),
        _route(CALLBACK_PATH, console, finish_login),
        _route("/logout", console, None, logout),
        _route("/preferences", console, None, prefer),
        Mount("/static", StaticFiles(directory=_STATIC)),
        Route("/health", _health),
        Route("/ke", _to_root),
        *mounts,
    ]
    for page in pages:
        answer = functools.partial(_answer_page, page)
        routes.append(_route(_path(page), console, answer, answer if page.actions else None))
    for source in sources:
        routes.append(_route(_path(source), console, functools.partial(_answer_source, source)))
    return Starlette(
        routes=routes,
        middleware=[
            Middleware(SecurityHeaders),
            Middleware(GZipMiddleware, minimum_size=2000, compresslevel=3),
        ],
        exception_handlers={404: functools.partial(_not_found, console), 500: _failed},
    )


class SecurityHeaders:
    """Middleware: the headers of `SECURITY_HEADERS` on every response, and no caching of pages."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app
        self._headers = [(name.encode(), text.encode()) for name, text in SECURITY_HEADERS.items()]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on and add the headers to its response."""
        is_static = scope.get("path", "").startswith("/static/")

        async def with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = message["headers"]
                headers.extend(self._headers)
                if is_static:
                    headers.append((b"cache-control", b"no-cache"))
                elif not any(name.lower() == b"cache-control" for name, _ in headers):
                    headers.append((b"cache-control", b"no-store"))
            await send(message)

        await self._app(scope, receive, with_headers)


async def read_request(http: HttpRequest) -> Request:
    """Return a request as a value; HTTP error 413 if its body is too large."""
    body = bytearray()
    if http.method not in ("GET", "HEAD"):
        async for chunk in http.stream():
            body += chunk
            if len(body) > MAX_BODY_BYTES:
                raise HTTPException(413, f"a form may have {MAX_BODY_BYTES} bytes at most")
    headers = {name.lower(): text for name, text in http.headers.items()}
    return Request(
        method="GET" if http.method == "HEAD" else http.method,
        path=http.url.path,
        params=http.path_params,
        query=http.url.query,
        body=bytes(body),
        headers=headers,
        cookies=http.cookies,
        client=http.client.host if http.client else "",
        is_same_origin=_is_same_origin(headers),
        # A proxy with TLS sends this header; a client that forges it only restricts its own cookie.
        is_secure="https" in (http.url.scheme, headers.get("x-forwarded-proto")),
    )


def _is_same_origin(headers: dict[str, str]) -> bool:
    site = headers.get("sec-fetch-site")
    if site is not None and site not in ("same-origin", "none"):
        return False
    origin = headers.get("origin")
    return origin is None or urlsplit(origin).netloc == headers.get("host")


def _route(path: str, console: Console, show: Answer | None, act: Answer | None = None) -> Route:
    methods = [*(["GET"] if show else []), *(["POST"] if act else [])]

    async def endpoint(http: HttpRequest) -> Response:
        try:
            request = await read_request(http)
        except ClientDisconnect:
            return Response(status_code=400)
        answer = act if request.method == "POST" else show
        assert answer is not None, "the route allows only its methods"
        limiter = _limiter(http.app.state)
        reply = await anyio.to_thread.run_sync(answer, console, request, limiter=limiter)
        return _response(reply, request.is_secure)

    return Route(path, endpoint, methods=methods)


def _limiter(state: Any) -> anyio.CapacityLimiter:
    if not hasattr(state, "limiter"):
        state.limiter = anyio.CapacityLimiter(_THREADS)
    limiter: anyio.CapacityLimiter = state.limiter
    return limiter


def _response(reply: Reply, is_secure: bool) -> Response:
    response: Response
    if reply.location:
        response = RedirectResponse(reply.location, reply.status)
    elif isinstance(reply.body, str | bytes):
        response = Response(reply.body, reply.status, media_type=reply.media_type)
    else:
        chunks = _until_closed(reply.body, reply.stop or (lambda: None))
        response = StreamingResponse(chunks, reply.status, media_type=reply.media_type)
    response.headers.update(reply.headers)
    for cookie in reply.cookies:
        response.set_cookie(
            cookie.name,
            cookie.value,
            max_age=cookie.max_age_s,
            secure=is_secure,
            httponly=True,
            samesite="lax",
        )
    return response


async def _until_closed(chunks: Iterable[bytes], stop: Callable[[], None]) -> AsyncIterator[bytes]:
    """Read a stream in threads; stop it when the browser has closed the connection."""
    iterator = iter(chunks)
    try:
        async for chunk in iterate_in_threadpool(iterator):
            yield chunk
    finally:
        stop()
        # A search in a broker ends with its connection: now, not when the garbage is collected.
        if isinstance(iterator, Generator):
            iterator.close()


def _answer_page(page: Page, console: Console, request: Request) -> Reply:
    return respond(console, page, request)


def _answer_source(source: Source, console: Console, request: Request) -> Reply:
    return respond_with_data(console, source, request)


def _path(item: Page | Source) -> str:
    return item.path if item.is_global else "/c/{cluster}" + item.path


async def _health(_: HttpRequest) -> Response:
    return Response("ok\n", media_type="text/plain")


async def _to_root(_: HttpRequest) -> Response:
    # The address of Kafka Eagle, which its users have in their bookmarks.
    return RedirectResponse("/", 303)


async def _not_found(console: Console, http: HttpRequest, _: Exception) -> Response:
    request = await read_request(http)
    reply = await anyio.to_thread.run_sync(respond_not_found, console, request)
    return _response(reply, request.is_secure)


async def _failed(_: HttpRequest, __: Exception) -> Response:
    text = "The console failed: its log has the reason. Load the page again, or start at /.\n"
    return Response(text, 500, media_type="text/plain")
