"""Requests to registries and identity providers: redirects, credentials, size and time."""

import ssl
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from ottla.net.web_requests import (
    REDIRECTS_MAX,
    RejectedRequest,
    WebRequest,
    read_lines,
    redirected,
    send,
    send_directly,
    url_of,
)
from tests.certificates import self_signed

_AUTHORIZATION = {"Authorization": "Basic c2VjcmV0"}
_TIMEOUT_S = 10.0


@pytest.mark.parametrize(
    ("url", "location", "target"),
    [
        ("https://a/keys", "/v2/keys", "https://a/v2/keys"),
        ("https://a/keys", "https://b/keys", "https://b/keys"),
        ("http://a/keys", "https://a/keys", "https://a/keys"),
        ("http://a/keys", "http://b/keys", "http://b/keys"),
    ],
)
def test_redirect_of_a_get_is_followed(url: str, location: str, target: str) -> None:
    """Without credentials also to another server, because the documents are public."""
    assert redirected(WebRequest(url), location).url == target


@pytest.mark.parametrize(
    ("location", "reason"),
    [
        ("http://a/keys", "not encrypted"),
        ("HTTP://a/keys", "not encrypted"),
        ("file:///etc/passwd", "neither http nor https"),
        ("ftp://a/keys", "neither http nor https"),
        ("gopher://a/", "neither http nor https"),
    ],
)
def test_redirect_to_less_security_is_refused(location: str, reason: str) -> None:
    """Others could read or replace the response."""
    with pytest.raises(OSError, match=reason):
        redirected(WebRequest("https://a/keys"), location)


@pytest.mark.parametrize(
    "location", ["https://b/", "https://a:8443/", "//b/", "https://a.b/", "https://a@b/"]
)
def test_credentials_stay_at_their_origin(location: str) -> None:
    """Scheme, host and port must be the same."""
    request = WebRequest("https://a/", headers=_AUTHORIZATION)
    with pytest.raises(OSError, match="credentials are not sent"):
        redirected(request, location)
    assert redirected(request, "https://a:443/x").headers == _AUTHORIZATION


def test_request_with_a_body_is_not_redirected() -> None:
    """It has the secret of a client, or registers a schema."""
    with pytest.raises(OSError, match="a request with a body"):
        redirected(WebRequest("https://a/", b"x"), "https://a/y")


class Server:
    """A server whose paths misbehave; `seen` has the headers of each request."""

    def __init__(self, context: ssl.SSLContext | None = None) -> None:
        self.seen: list[dict[str, str]] = []
        self.is_over = threading.Event()
        server = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                server.seen.append(dict(self.headers))
                if self.path == "/slow":
                    server.drip(self)
                    return
                self.send_response(302 if self.path.startswith("/to/") else 200)
                if self.path.startswith("/to/"):
                    self.send_header("Location", self.path.removeprefix("/to/"))
                    self.send_header("Content-Length", "0")
                    self.end_headers()
                    return
                body = b"x" * (5000 if self.path == "/large" else 5)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_arguments: object) -> None:
                return

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.thread = threading.Thread(target=self._server.serve_forever, args=(0.02,))
        scheme = "http"
        if context is not None:
            scheme = "https"
            self._server.socket = context.wrap_socket(self._server.socket, server_side=True)
        self.url = f"{scheme}://127.0.0.1:{self._server.server_port}"

    def drip(self, handler: BaseHTTPRequestHandler) -> None:
        """Send a byte of the header now and then, until the peer has gone or the test is over."""
        try:
            handler.wfile.write(b"HTTP/1.0 200 OK\r\nX: ")
            while not self.is_over.wait(0.02):
                handler.wfile.write(b"x")
        except OSError:
            return

    def stop(self) -> None:
        """Stop."""
        self.is_over.set()
        self._server.shutdown()
        self._server.server_close()
        self.thread.join()


@pytest.fixture
def server() -> Iterator[Server]:
    """Return a running server."""
    running = Server()
    running.thread.start()
    yield running
    running.stop()


def test_response_of_any_status_has_its_body(server: Server) -> None:
    """A redirect on the same server is followed with its credentials."""
    request = WebRequest(f"{server.url}/to//next", headers=_AUTHORIZATION)
    response = send(request, timeout_s=_TIMEOUT_S)
    assert (response.status, response.body, response.reason) == (200, b"xxxxx", "OK")
    assert [headers["Authorization"] for headers in server.seen] == ["Basic c2VjcmV0"] * 2


def test_https_is_read_within_the_same_limits(tmp_path: Path) -> None:
    """The certificate is checked, and a slow response ends in time."""
    path = self_signed(tmp_path)
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(path)
    trusting = ssl.create_default_context(cafile=str(path.with_suffix(".crt")))
    server = Server(context)
    server.thread.start()
    try:
        with pytest.raises(OSError, match="CERTIFICATE_VERIFY_FAILED"):
            send(WebRequest(server.url), timeout_s=_TIMEOUT_S)
        assert send(WebRequest(server.url), timeout_s=_TIMEOUT_S, context=trusting).status == 200
        with pytest.raises(TimeoutError):
            send(WebRequest(f"{server.url}/slow"), timeout_s=0.5, context=trusting)
    finally:
        server.stop()


def test_credentials_do_not_reach_another_server(server: Server) -> None:
    """The other server receives no request at all."""
    other = Server()
    other.thread.start()
    try:
        request = WebRequest(f"{server.url}/to/{other.url}/x", headers=_AUTHORIZATION)
        with pytest.raises(OSError, match="credentials are not sent"):
            send(request, timeout_s=_TIMEOUT_S)
        assert other.seen == []
        assert send(WebRequest(request.url), timeout_s=_TIMEOUT_S).body == b"xxxxx"
    finally:
        other.stop()


def test_size_of_a_response_is_bounded(server: Server) -> None:
    """A larger one is an error, not a document that is cut."""
    with pytest.raises(OSError, match="sent more than 1000 bytes"):
        send(WebRequest(f"{server.url}/large"), timeout_s=_TIMEOUT_S, bytes_max=1000)


def test_time_of_a_response_is_bounded_as_a_whole(server: Server) -> None:
    """Single bytes that arrive again and again do not prolong it."""
    with pytest.raises(TimeoutError, match=r"took longer than 0\.3 s"):
        send(WebRequest(f"{server.url}/slow"), timeout_s=0.3)


def test_endless_redirects_end(server: Server) -> None:
    """A server that redirects in a circle is an error."""
    path = "/to/" * (REDIRECTS_MAX + 1)
    url = server.url + path.replace("/to//to/", "/to/") + "/to/" * 5
    with pytest.raises(OSError, match="redirects more than"):
        send(WebRequest(f"{server.url}/to/{url}"), timeout_s=_TIMEOUT_S)


@pytest.mark.parametrize("url", ["file:///etc/passwd", "ftp://a/", "x:y", "/path"])
def test_only_http_is_spoken(url: str) -> None:
    """Neither files nor other protocols can be named."""
    with pytest.raises(OSError, match="unknown url type"):
        send(WebRequest(url), timeout_s=_TIMEOUT_S)


def test_direct_request_follows_no_redirect(server: Server) -> None:
    """The response of the first server is returned, and its target receives no request."""
    request = WebRequest(f"{server.url}/to//next?a=b", headers=_AUTHORIZATION)
    assert send_directly(request, timeout_s=_TIMEOUT_S).status == 302
    assert [headers["Authorization"] for headers in server.seen] == ["Basic c2VjcmV0"]


def test_direct_request_ignores_proxies(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    """The ports of brokers are reached without the proxy of the environment."""
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:1")
    assert send_directly(WebRequest(server.url), timeout_s=_TIMEOUT_S).body == b"xxxxx"


def test_direct_request_goes_to_the_address_that_was_checked(server: Server) -> None:
    """The name is not resolved again, and it is in the Host header."""
    port = urlsplit(server.url).port
    request = WebRequest(f"http://checked.invalid:{port}/")
    response = send_directly(request, timeout_s=_TIMEOUT_S, address="127.0.0.1")
    assert response.status == 200
    assert server.seen[0]["Host"] == f"checked.invalid:{port}"


def test_certificate_is_checked_for_the_name_and_not_the_address(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A server at the right address with the certificate of another name is refused."""
    path = self_signed(tmp_path)
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(path)
    monkeypatch.setenv("SSL_CERT_FILE", str(path.with_suffix(".crt")))
    server = Server(context)
    server.thread.start()
    try:
        port = urlsplit(server.url).port
        assert send_directly(WebRequest(server.url), timeout_s=_TIMEOUT_S).status == 200
        request = WebRequest(f"https://checked.invalid:{port}/")
        with pytest.raises(OSError, match=r"checked\.invalid"):
            send_directly(request, timeout_s=_TIMEOUT_S, address="127.0.0.1")
    finally:
        server.stop()


def test_direct_response_can_be_cut(server: Server) -> None:
    """By default a large response is an error, as for other servers."""
    request = WebRequest(f"{server.url}/large")
    with pytest.raises(OSError, match="sent more than 1000 bytes"):
        send_directly(request, timeout_s=_TIMEOUT_S, bytes_max=1000)
    response = send_directly(request, timeout_s=_TIMEOUT_S, bytes_max=1000, is_cut=True)
    assert response.body == b"x" * 1000


def test_time_of_a_direct_response_is_bounded_as_a_whole(server: Server) -> None:
    """A server that sends single bytes does not occupy the thread of an alert."""
    with pytest.raises(TimeoutError, match=r"took longer than 0\.3 s"):
        send_directly(WebRequest(f"{server.url}/slow"), timeout_s=0.3)


def test_lines_are_read_until_the_end(server: Server) -> None:
    """A line that is longer than the limit is divided; another status than 200 is an error."""
    lines = list(read_lines(WebRequest(f"{server.url}/large"), wait_s=_TIMEOUT_S, bytes_max=4000))
    assert lines == [b"x" * 4000, b"x" * 1000]
    with pytest.raises(RejectedRequest, match="responds 302") as caught:
        list(read_lines(WebRequest(f"{server.url}/to//next"), wait_s=_TIMEOUT_S))
    assert caught.value.response.status == 302


@pytest.mark.parametrize(
    ("host", "is_tls", "url"),
    [
        ("h", False, "http://h:1/x"),
        ("h", True, "https://h:1/x"),
        ("::1", False, "http://[::1]:1/x"),
    ],
)
def test_url_of_a_port(host: str, is_tls: bool, url: str) -> None:
    """An IPv6 address is in brackets."""
    assert url_of(host, 1, "/x", is_tls=is_tls) == url
