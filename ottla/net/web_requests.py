"""Requests over HTTP to servers that the operator names; the one door for them.

`send` is for servers of others: registries, identity providers. A redirect is followed by a GET
only, never from https to http, and never with credentials to another origin. Proxies come from the
environment (`https_proxy`). `send_directly` and `read_lines` are for the ports of brokers and for
addresses that were checked before: no proxy, no redirect. Size and time of a response are bounded,
however slowly it arrives. Blocks: call it in a thread.
"""

import contextlib
import http.client
import io
import ssl
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from types import MappingProxyType
from typing import Any, NamedTuple, NoReturn
from urllib.parse import urljoin, urlsplit

from ottla.base.clock import RealClock

REDIRECTS_MAX = 3
BYTES_MAX = 1 << 20
_REDIRECTS = frozenset({301, 302, 303, 307, 308})
_CREDENTIALS = frozenset({"authorization", "cookie", "proxy-authorization"})
_SCHEMES = {"http": 80, "https": 443}
_REASON_BYTES_MAX = 1000
_FAILURES = (OSError, ValueError, http.client.HTTPException)


class WebRequest(NamedTuple):
    """A GET, or a POST if it has a body.

    With `redirects_need_https` it is not redirected to http from http either.
    """

    url: str
    body: bytes | None = None
    headers: Mapping[str, str] = MappingProxyType({})
    redirects_need_https: bool = False

    @property
    def has_credentials(self) -> bool:
        """True if a header proves who the sender is."""
        return any(name.lower() in _CREDENTIALS for name in self.headers)


class WebResponse(NamedTuple):
    """The status of a response and its body."""

    status: int
    body: bytes

    @property
    def reason(self) -> str:
        """The usual words for the status; empty for an unknown one."""
        return http.client.responses.get(self.status, "")


class RejectedRequest(OSError):
    """The status of a response is not 200; `response` has the start of the body."""

    def __init__(self, url: str, response: WebResponse) -> None:
        super().__init__(f"{url} responds {response.status}")
        self.response = response


def url_of(host: str, port: int, path: str = "", *, is_tls: bool = False) -> str:
    """Return the URL of a path, which begins with a slash, on a port."""
    scheme = "https" if is_tls else "http"
    return f"{scheme}://{f'[{host}]' if ':' in host else host}:{port}{path}"


def redirected(request: WebRequest, location: str) -> WebRequest:
    """Return the request that follows a redirect; OSError if it must not be followed. Pure."""
    url = urljoin(request.url, location)
    before, after = urlsplit(request.url), urlsplit(url)
    if request.body is not None:
        raise OSError(f"{request.url} redirects to {url}: a request with a body is not redirected")
    if after.scheme not in _SCHEMES:
        raise OSError(f"{request.url} redirects to {url}, which is neither http nor https")
    needs_https = before.scheme == "https" or request.redirects_need_https
    if needs_https and after.scheme == "http":
        raise OSError(f"{request.url} redirects to {url}, which is not encrypted")
    if request.has_credentials and _origin(request.url) != _origin(url):
        raise OSError(
            f"{request.url} redirects to {url}: credentials are not sent to other servers"
        )
    return request._replace(url=url)


def _origin(url: str) -> tuple[str, str | None, int]:
    parts = urlsplit(url)
    return parts.scheme, parts.hostname, parts.port or _SCHEMES[parts.scheme]


def send(
    request: WebRequest,
    *,
    timeout_s: float,
    bytes_max: int = BYTES_MAX,
    context: ssl.SSLContext | None = None,
) -> WebResponse:
    """Send a request, and return the response of any status; OSError if that is impossible.

    `timeout_s` bounds the whole exchange. `context` has the trusted certificates of https.
    """
    if urlsplit(request.url).scheme not in _SCHEMES:
        raise OSError(f"unknown url type: {request.url}")
    deadline = _Deadline(timeout_s)
    opener = _opener(deadline, context or ssl.create_default_context())
    try:
        for _ in range(REDIRECTS_MAX + 1):
            response = _exchange(opener, request, timeout_s, bytes_max)
            if isinstance(response, WebResponse):
                return response
            request = redirected(request, response)
    except _FAILURES as error:
        _fail(request, error, deadline)
    raise OSError(f"{request.url} redirects more than {REDIRECTS_MAX} times")


def send_directly(
    request: WebRequest,
    *,
    timeout_s: float,
    bytes_max: int = BYTES_MAX,
    is_cut: bool = False,
    address: str | None = None,
) -> WebResponse:
    """Send a request to its own server, and return the response of any status, redirects too.

    `timeout_s` bounds the whole exchange. A body of more than `bytes_max` is an OSError, or with
    `is_cut` it ends there. The connection goes to the IP `address`, by default to an address of the
    host's name; certificates are checked for the name in both cases.
    """
    deadline = _Deadline(timeout_s)
    try:
        with _response(request, timeout_s, deadline, address) as response:
            body = response.read(bytes_max) if is_cut else _body(response, request, bytes_max)
            return WebResponse(response.status, body)
    except _FAILURES as error:
        _fail(request, error, deadline)


def read_lines(
    request: WebRequest, *, wait_s: float, bytes_max: int = BYTES_MAX
) -> Iterator[bytes]:
    """Yield the lines of a response of its own server as they arrive; longer ones are divided.

    `wait_s` bounds the wait for each line. Closing the iterator closes the connection. Raises
    RejectedRequest for a status other than 200, and OSError if the exchange fails.
    """
    try:
        with _response(request, wait_s, None, None) as response:
            if response.status != http.HTTPStatus.OK:
                start = WebResponse(response.status, response.read(_REASON_BYTES_MAX))
                raise RejectedRequest(request.url, start)
            while line := response.readline(bytes_max):
                yield line
    except _FAILURES as error:
        _fail(request, error, None)


def _fail(request: WebRequest, error: Exception, deadline: "_Deadline | None") -> NoReturn:
    """Raise the error of an exchange as an OSError."""
    if deadline is not None and deadline.is_over:
        raise TimeoutError(f"{request.url} took longer than {deadline.seconds:g} s") from error
    if isinstance(error, OSError):
        raise error
    raise OSError(f"{request.url} sent no valid response: {error!r}") from error


def _exchange(
    opener: urllib.request.OpenerDirector, request: WebRequest, timeout_s: float, bytes_max: int
) -> WebResponse | str:
    """Return the response, or the location of a redirect."""
    outgoing = urllib.request.Request(  # noqa: S310 - the scheme was checked
        request.url, request.body, dict(request.headers)
    )
    with opener.open(outgoing, timeout=timeout_s) as response:
        location = response.headers.get("Location")
        if response.status in _REDIRECTS and location:
            return str(location)
        return WebResponse(response.status, _body(response, request, bytes_max))


def _body(response: Any, request: WebRequest, bytes_max: int) -> bytes:
    """Return a whole body; OSError if it is larger, or if the connection ends within it."""
    body: bytes = response.read(bytes_max + 1)
    if len(body) > bytes_max:
        raise OSError(f"{request.url} sent more than {bytes_max} bytes")
    if response.length:
        raise OSError(f"{request.url} ended its response too early")
    return body


@contextlib.contextmanager
def _response(
    request: WebRequest, timeout_s: float, deadline: "_Deadline | None", address: str | None
) -> Iterator[http.client.HTTPResponse]:
    """Yield the response of the server itself, and close the connection at the end."""
    parts = urlsplit(request.url)
    if parts.scheme not in _SCHEMES or parts.hostname is None:
        raise OSError(f"unknown url type: {request.url}")
    kind: Any = http.client.HTTPConnection
    options: dict[str, Any] = {}
    if parts.scheme == "https":
        kind, options = http.client.HTTPSConnection, {"context": ssl.create_default_context()}
    if deadline is not None:
        kind = _limited(kind, deadline)
    connection = kind(parts.hostname, parts.port, timeout=timeout_s, **options)
    if address is not None:
        _connect_to(connection, address)
    path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    method = "GET" if request.body is None else "POST"
    try:
        connection.request(method, path, request.body, {**request.headers, "Connection": "close"})
        with connection.getresponse() as response:
            yield response
    finally:
        connection.close()


def _connect_to(connection: Any, address: str) -> None:
    """Use an address for the connection; the name remains in the Host header and for TLS."""
    connect = connection._create_connection
    connection._create_connection = lambda target, *rest: connect((address, target[1]), *rest)


class _Deadline:
    """The end of an exchange: each wait for the peer lasts until then at most."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self._now = RealClock().monotonic
        self._ends_at = self._now() + seconds

    @property
    def is_over(self) -> bool:
        """True after the end."""
        return self._now() >= self._ends_at

    def limit(self, connection: Any) -> None:
        """Let the next operation on a socket wait until the end; TimeoutError after it."""
        seconds = self._ends_at - self._now()
        if seconds <= 0:
            raise TimeoutError
        connection.settimeout(seconds)


class _LimitedSocket:
    """The part of a socket that http.client uses, with a deadline for each operation."""

    def __init__(self, connection: Any, deadline: _Deadline) -> None:
        self._connection = connection
        self._deadline = deadline

    def sendall(self, data: bytes) -> None:
        self._deadline.limit(self._connection)
        self._connection.sendall(data)

    def makefile(self, *_arguments: Any) -> io.BufferedReader:
        raw = self._connection.makefile("rb", 0)
        return io.BufferedReader(_LimitedFile(raw, self._connection, self._deadline))

    def close(self) -> None:
        self._connection.close()


class _LimitedFile(io.RawIOBase):
    def __init__(self, raw: Any, connection: Any, deadline: _Deadline) -> None:
        self._raw = raw
        self._connection = connection
        self._deadline = deadline

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int | None:
        self._deadline.limit(self._connection)
        count: int | None = self._raw.readinto(buffer)
        return count

    def close(self) -> None:
        self._raw.close()
        super().close()


def _opener(deadline: _Deadline, context: ssl.SSLContext) -> urllib.request.OpenerDirector:
    """Return an opener that follows no redirect and returns the responses of all statuses."""

    class Http(urllib.request.HTTPHandler):
        def http_open(self, req: urllib.request.Request) -> Any:
            return self.do_open(_limited(http.client.HTTPConnection, deadline), req)

    class Https(urllib.request.HTTPSHandler):
        def https_open(self, req: urllib.request.Request) -> Any:
            kind = _limited(http.client.HTTPSConnection, deadline)
            return self.do_open(kind, req, context=context)

    opener = urllib.request.OpenerDirector()
    for handler in (urllib.request.ProxyHandler(), Http(), Https(context=context)):
        opener.add_handler(handler)
    return opener


def _limited(kind: Any, deadline: _Deadline) -> Callable[..., Any]:
    class Limited(kind):  # type: ignore[misc]
        sock: Any

        def connect(self) -> None:
            super().connect()
            self.sock = _LimitedSocket(self.sock, deadline)

    return Limited
