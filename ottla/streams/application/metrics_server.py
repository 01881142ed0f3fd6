"""Serves the metrics of an application at `/metrics` in Prometheus' text format, and reads them."""

import platform
import re
import socket
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any

from ottla.base.errors import ConfigError
from ottla.base.loading import deferred_module
from ottla.base.options import is_port
from ottla.metrics.exposition import CONTENT_TYPE, Family, counter, gauge, labels, render
from ottla.metrics.host_names import HostNames
from ottla.streams.application.progress import Progress

if TYPE_CHECKING:
    from ottla.net import web_requests
else:
    # Only a command that asks another instance needs it.
    web_requests = deferred_module("ottla.net.web_requests")

# The name that jmx_exporter uses for Kafka's stream-task-metrics:dropped-records-total.
DROPPED = "kafka_streams_stream_task_metrics_dropped_records_total"
_SAMPLE = re.compile(rf'{DROPPED}{{application_id="[^"]*",task_id="([^"]+)"}} (\d+)')
_TIMEOUT_S = 5.0
_OK = 200
_BYTES_MAX = 16 << 20
_CONNECTIONS_MAX = 16
_CONNECTION_S = 30.0


def families(application_id: str, progress: Progress) -> Iterator[Family]:
    """Return the metrics of an application."""
    own = labels(application_id=application_id)
    yield counter(
        DROPPED,
        "Records that tasks dropped since the queries started.",
        [
            (labels(application_id=application_id, task_id=task), count)
            for task, count in sorted(progress.dropped.items())
        ],
    )
    yield counter(
        "ottla_streams_misplaced_keys_total",
        "Keys in another partition than murmur2 chooses, among the checked ones.",
        [
            (labels(application_id=application_id, topic=topic), count)
            for topic, count in sorted(progress.misplaced_keys.items())
        ],
    )
    yield gauge(
        "ottla_streams_tasks",
        "The tasks of this instance of the local engine, by state.",
        [
            (labels(application_id=application_id, state=state), count)
            for state, count in sorted(progress.tasks.items())
        ],
    )
    yield counter("ottla_streams_records_total", "Records read.", [(own, progress.records)])
    yield gauge("ottla_streams_lag", "Records that have not been read.", [(own, progress.lag)])
    yield gauge("ottla_streams_batch", "The last micro-batch, from 0.", [(own, progress.batch)])
    yield gauge("ottla_streams_state_bytes", "The size of state.", [(own, progress.state_bytes)])


def read_dropped(address: str) -> dict[str, int]:
    """Return the number of dropped records by task, read from host:port. Raises OSError on failure."""
    request = web_requests.WebRequest(f"http://{address}/metrics")
    response = web_requests.send(request, timeout_s=_TIMEOUT_S, bytes_max=_BYTES_MAX)
    if response.status != _OK:
        raise OSError(f"{request.url} returned {response.status} {response.reason}")
    text = response.body.decode("utf-8", "replace")
    return {task: int(count) for task, count in _SAMPLE.findall(text)}


class MetricsEndpoint:
    """An HTTP server for metrics, which `families` returns at each scrape.

    `listener` is host:port; port 0 selects a free port.
    """

    def __init__(self, listener: str, families: Callable[[], Iterable[Family]]) -> None:
        host, _, port = listener.rpartition(":")
        if not host or not is_port(port):
            raise ConfigError(f"metrics_listener cannot be {listener!r}: write it as host:port.")
        self._listener = host.strip("[]"), int(port)
        self._names = HostNames([self._listener[0], platform.node()], [])
        self._families = families
        self._server: ThreadingHTTPServer | None = None

    def start(self) -> str:
        """Start to listen and return host:port. Raises ConfigError if the address cannot be used."""
        host, port = self._listener
        kind = _Server6 if ":" in host else _Server
        try:
            server = kind((host, port), _handler(self._text, self._names))
        except OSError as error:
            reason = error.strerror or error
            raise ConfigError(
                f"metrics_listener cannot be '{host}:{port}' ({reason}): set a free port of this machine."
            ) from None
        self._server = server
        threading.Thread(target=server.serve_forever, name="metrics", daemon=True).start()
        url_host = f"[{host}]" if ":" in host else host
        return f"{url_host}:{server.server_port}"

    def stop(self) -> None:
        """Stop listening; idempotent."""
        server, self._server = self._server, None
        if server is not None:
            server.shutdown()
            server.server_close()

    def _text(self) -> str:
        return "".join(render(self._families()))


class MetricsServer(MetricsEndpoint):
    """An HTTP server for the metrics of an application."""

    def __init__(
        self, listener: str, application_id: str, progress: Callable[[], Progress]
    ) -> None:
        super().__init__(listener, lambda: families(application_id, progress()))


class _Server(ThreadingHTTPServer):
    """Serves a few connections at once, each for a bounded time; further ones are closed."""

    def __init__(self, address: tuple[str, int], handler: type[BaseHTTPRequestHandler]) -> None:
        super().__init__(address, handler)
        self._free = threading.BoundedSemaphore(_CONNECTIONS_MAX)

    def process_request(self, request: Any, client_address: Any) -> None:
        """Start a thread for a connection."""
        if not self._free.acquire(blocking=False):
            self.shutdown_request(request)
            return
        super().process_request(request, client_address)

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        """Serve a connection; single bytes that arrive again and again do not prolong it."""
        timer = threading.Timer(_CONNECTION_S, _break, (request,))
        timer.daemon = True
        timer.start()
        try:
            super().process_request_thread(request, client_address)
        finally:
            timer.cancel()
            self._free.release()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Ignore the errors of connections that have ended."""


class _Server6(_Server):
    address_family = socket.AF_INET6


def _break(connection: socket.socket) -> None:
    with suppress(OSError):
        connection.shutdown(socket.SHUT_RDWR)


def _handler(text: Callable[[], str], names: HostNames) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        """Handles GET /metrics."""

        # The timeout disconnects clients that send nothing, so that they do not block a thread.
        timeout = _TIMEOUT_S

        def do_GET(self) -> None:
            """Send the metrics; 404 for other paths, 403 for the name of a web page."""
            host = self.headers.get("Host")
            if host is not None and not names.have(host):
                self.send_error(403, "the host is not a name of this application: use its address")
                return
            if self.path != "/metrics":
                self.send_error(404)
                return
            body = text().encode()
            self.send_response(200)
            self.send_header("Content-Type", CONTENT_TYPE)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *arguments: object) -> None:
            """Log nothing: metrics are requested every few seconds."""

    return Handler
