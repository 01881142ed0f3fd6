"""The metrics of an application over HTTP: `/metrics` in Prometheus' text format, and how to read them from there."""

import re
import socket
import threading
import urllib.request
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from ottla.base.errors import ConfigError
from ottla.metrics.exposition import CONTENT_TYPE, Family, counter, gauge, labels, render
from ottla.streams.application.progress import Progress

# The name that jmx_exporter gives to Kafka's stream-task-metrics:dropped-records-total.
DROPPED = "kafka_streams_stream_task_metrics_dropped_records_total"
_SAMPLE = re.compile(rf'{DROPPED}{{application_id="[^"]*",task_id="([^"]+)"}} (\d+)')
_TIMEOUT_S = 5.0


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
    yield counter("ottla_streams_records_total", "Records read.", [(own, progress.records)])
    yield gauge("ottla_streams_lag", "Records that wait.", [(own, progress.lag)])
    yield gauge("ottla_streams_batch", "The last micro-batch, from 0.", [(own, progress.batch)])
    yield gauge("ottla_streams_state_bytes", "The size of state.", [(own, progress.state_bytes)])


def read_dropped(address: str) -> dict[str, int]:
    """Return how many records each task dropped, as the application at host:port says; OSError if it does not answer."""
    with urllib.request.urlopen(f"http://{address}/metrics", timeout=_TIMEOUT_S) as answer:
        text = answer.read().decode()
    return {task: int(count) for task, count in _SAMPLE.findall(text)}


class MetricsServer:
    """Serves the metrics of an application from `start` to `stop`.

    `listener` is host:port, port 0 for any that is free.
    """

    def __init__(
        self, listener: str, application_id: str, progress: Callable[[], Progress]
    ) -> None:
        host, _, port = listener.rpartition(":")
        if not host or not port.isdecimal() or int(port) > 65_535:
            raise ConfigError(f"metrics_listener cannot be {listener!r}: write it as host:port.")
        self._listener = host.strip("[]"), int(port)
        self._application_id = application_id
        self._progress = progress
        self._server: ThreadingHTTPServer | None = None

    def start(self) -> str:
        """Listen; return host:port. ConfigError if the address cannot be used."""
        host, port = self._listener
        kind = _Server6 if ":" in host else ThreadingHTTPServer
        try:
            server = kind((host, port), _handler(self._text))
        except OSError as error:
            reason = error.strerror or error
            raise ConfigError(
                f"metrics_listener cannot be '{host}:{port}' ({reason}): name a free port of this machine."
            ) from None
        self._server = server
        threading.Thread(target=server.serve_forever, name="metrics", daemon=True).start()
        shown = f"[{host}]" if ":" in host else host
        return f"{shown}:{server.server_port}"

    def stop(self) -> None:
        """Stop listening; idempotent."""
        server, self._server = self._server, None
        if server is not None:
            server.shutdown()
            server.server_close()

    def _text(self) -> str:
        return "".join(render(families(self._application_id, self._progress())))


class _Server6(ThreadingHTTPServer):
    address_family = socket.AF_INET6


def _handler(text: Callable[[], str]) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        """Answers GET /metrics."""

        # A client that sends nothing does not keep a thread.
        timeout = _TIMEOUT_S

        def do_GET(self) -> None:
            """Send the metrics, or 404 for another path."""
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
            """Log nothing: a scraper comes every few seconds."""

    return Handler
