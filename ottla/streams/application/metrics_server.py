"""Serves the metrics of an application at `/metrics` in Prometheus' text format, and reads them."""

import re
import socket
import threading
import urllib.request
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from ottla.base.errors import ConfigError
from ottla.base.options import is_port
from ottla.metrics.exposition import CONTENT_TYPE, Family, counter, gauge, labels, render
from ottla.streams.application.progress import Progress

# The name that jmx_exporter uses for Kafka's stream-task-metrics:dropped-records-total.
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
    yield counter(
        "ottla_streams_misplaced_keys_total",
        "Keys in another partition than murmur2 chooses, among the checked ones.",
        [
            (labels(application_id=application_id, topic=topic), count)
            for topic, count in sorted(progress.misplaced_keys.items())
        ],
    )
    yield counter("ottla_streams_records_total", "Records read.", [(own, progress.records)])
    yield gauge("ottla_streams_lag", "Records that have not been read.", [(own, progress.lag)])
    yield gauge("ottla_streams_batch", "The last micro-batch, from 0.", [(own, progress.batch)])
    yield gauge("ottla_streams_state_bytes", "The size of state.", [(own, progress.state_bytes)])


def read_dropped(address: str) -> dict[str, int]:
    """Return the number of dropped records by task, read from host:port. Raises OSError on failure."""
    with urllib.request.urlopen(f"http://{address}/metrics", timeout=_TIMEOUT_S) as response:
        text = response.read().decode()
    return {task: int(count) for task, count in _SAMPLE.findall(text)}


class MetricsServer:
    """An HTTP server for the metrics of an application.

    `listener` is host:port; port 0 selects a free port.
    """

    def __init__(
        self, listener: str, application_id: str, progress: Callable[[], Progress]
    ) -> None:
        host, _, port = listener.rpartition(":")
        if not host or not is_port(port):
            raise ConfigError(f"metrics_listener cannot be {listener!r}: write it as host:port.")
        self._listener = host.strip("[]"), int(port)
        self._application_id = application_id
        self._progress = progress
        self._server: ThreadingHTTPServer | None = None

    def start(self) -> str:
        """Start to listen and return host:port. Raises ConfigError if the address cannot be used."""
        host, port = self._listener
        kind = _Server6 if ":" in host else ThreadingHTTPServer
        try:
            server = kind((host, port), _handler(self._text))
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
        return "".join(render(families(self._application_id, self._progress())))


class _Server6(ThreadingHTTPServer):
    address_family = socket.AF_INET6


def _handler(text: Callable[[], str]) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        """Handles GET /metrics."""

        # The timeout disconnects clients that send nothing, so that they do not block a thread.
        timeout = _TIMEOUT_S

        def do_GET(self) -> None:
            """Send the metrics; 404 for other paths."""
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
