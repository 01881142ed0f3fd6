"""The endpoint `/metrics` of an application, for Prometheus and for `ottla streams describe`."""

import re
import socket
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from ottla.base.errors import ConfigError
from ottla.streams import StreamsBuilder
from ottla.streams.application.metrics_server import MetricsServer, read_dropped
from ottla.streams.application.progress import Progress
from ottla.streams.kafka_streams import KafkaStreams

_PROGRESS = Progress(7, 120, 3, "", 4096, 12, {"1_0": 2, "0_1": 5}, {"customers": 4})


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
