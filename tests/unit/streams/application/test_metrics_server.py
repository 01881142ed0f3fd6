"""The endpoint `/metrics` of an application, for Prometheus and for `ottla streams describe`."""

import re
import socket
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from ottla.base.errors import ConfigError
from ottla.streams import StreamsBuilder
from ottla.streams.application import metrics_server
from ottla.streams.application.metrics_server import MetricsServer, read_dropped
from ottla.streams.application.progress import Progress
from ottla.streams.kafka_streams import KafkaStreams

_TASKS = {"standby": 1, "active": 2}
_PROGRESS = Progress(7, 120, 3, "", 4096, 12, {"1_0": 2, "0_1": 5}, {"customers": 4}, _TASKS)


@pytest.fixture
def address() -> Iterator[str]:
    """The address of an application that serves its metrics."""
    server = MetricsServer("127.0.0.1:0", "words", lambda: _PROGRESS)
    yield server.start()
    server.stop()
    server.stop()


def test_metrics_are_served_in_prometheus_text_format(address: str) -> None:
    """Dropped records are a counter by task, with the name that jmx_exporter gives to Kafka's."""
    with urllib.request.urlopen(f"http://{address}/metrics", timeout=10) as response:
        assert response.headers["Content-Type"].startswith("text/plain; version=0.0.4")
        lines = response.read().decode().splitlines()
    assert [line for line in lines if not line.startswith("#")] == [
        'kafka_streams_stream_task_metrics_dropped_records_total{application_id="words",task_id="0_1"} 5',
        'kafka_streams_stream_task_metrics_dropped_records_total{application_id="words",task_id="1_0"} 2',
        'ottla_streams_misplaced_keys_total{application_id="words",topic="customers"} 4',
        'ottla_streams_tasks{application_id="words",state="active"} 2',
        'ottla_streams_tasks{application_id="words",state="standby"} 1',
        'ottla_streams_records_total{application_id="words"} 120',
        'ottla_streams_lag{application_id="words"} 3',
        'ottla_streams_batch{application_id="words"} 7',
        'ottla_streams_state_bytes{application_id="words"} 4096',
    ]


def test_dropped_records_are_read_from_the_endpoint(address: str) -> None:
    """The counts are read by task; any other path is 404."""
    assert read_dropped(address) == {"0_1": 5, "1_0": 2}
    with pytest.raises(urllib.error.HTTPError, match="404"):
        urllib.request.urlopen(f"http://{address}/", timeout=10)


@pytest.mark.parametrize("listener", ["9404", "host:", "host:port", "host:70000", ":9404"])
def test_a_listener_is_host_and_port(listener: str, tmp_path: Path) -> None:
    """Any other form is rejected when the application is created."""
    with pytest.raises(ConfigError, match=f"metrics_listener cannot be '{listener}': write it as"):
        KafkaStreams(
            StreamsBuilder().build(),
            application_id="words",
            bootstrap_servers="127.0.0.1:1",
            state_dir=str(tmp_path),
            metrics_listener=listener,
        )


def test_an_address_in_use_is_rejected() -> None:
    """The error names the address and the reason."""
    with socket.create_server(("127.0.0.1", 0)) as used:
        listener = f"127.0.0.1:{used.getsockname()[1]}"
        sentence = f"metrics_listener cannot be '{re.escape(listener)}' .*: set a free port"
        with pytest.raises(ConfigError, match=sentence):
            MetricsServer(listener, "words", Progress).start()


def _status(address: str, request: bytes) -> bytes:
    host, _, port = address.rpartition(":")
    with socket.create_connection((host, int(port)), timeout=10) as peer:
        peer.sendall(request)
        return peer.makefile("rb").readline()


def test_name_of_a_web_page_is_refused() -> None:
    """It could point to this address, and read it through the browser of a user."""
    server = MetricsServer("127.0.0.1:0", "words", lambda: _PROGRESS)
    address = server.start()
    try:
        for host, status in (("evil.example", b"403"), ("localhost:1", b"200"), ("words", b"200")):
            request = f"GET /metrics HTTP/1.0\r\nHost: {host}\r\n\r\n".encode()
            assert status in _status(address, request)
    finally:
        server.stop()


def test_half_requests_hold_neither_threads_nor_places_for_ever(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Too many connections are closed at once; the others end, although single bytes arrive."""
    monkeypatch.setattr(metrics_server, "_CONNECTIONS_MAX", 2)
    monkeypatch.setattr(metrics_server, "_CONNECTION_S", 0.3)
    server = MetricsServer("127.0.0.1:0", "words", lambda: _PROGRESS)
    address = server.start()
    host, _, port = address.rpartition(":")
    peers = [socket.create_connection((host, int(port)), timeout=0.02) for _ in range(2)]
    try:
        deadline = time.monotonic() + 10
        while b"200" not in _status_or_nothing(address):
            assert time.monotonic() < deadline
            for peer in peers:
                with suppress(OSError):
                    peer.sendall(b"x")
    finally:
        for peer in peers:
            peer.close()
        server.stop()


def _status_or_nothing(address: str) -> bytes:
    try:
        return _status(address, b"GET /metrics HTTP/1.0\r\n\r\n")
    except OSError:
        return b""
