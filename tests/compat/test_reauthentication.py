"""Clients renew sessions that end (KIP-368), each on its connection."""

import contextlib
import re
import subprocess
import threading
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import confluent_kafka
import pytest

from ottla.base.clock import RealClock
from ottla.client import AdminClient
from ottla.security.sessions import Session
from ottla.server.authentication.identity import ClientLogin
from ottla.testing import Cluster
from tests.compat import java

pytestmark = [pytest.mark.compat, pytest.mark.slow]

_PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule required"
_LIFETIME_MS = 2000
_PAUSE = threading.Event()
_PATIENCE_S = 30.0


@contextlib.contextmanager
def limited_cluster() -> Iterator[tuple[Cluster, str]]:
    """Run a broker with short sessions; yields its address for users."""
    options = {
        "connections.max.reauth.ms": str(_LIFETIME_MS),
        "metrics.listener": "127.0.0.1:0",
        "sasl.enabled.mechanisms": "PLAIN",
        "listener.name.sasl_plaintext.plain.sasl.jaas.config": f'{_PLAIN} user_ann="secret";',
        "listeners": "PLAINTEXT://127.0.0.1:0,SASL_PLAINTEXT://127.0.0.1:0",
    }
    with Cluster(options=options) as cluster:
        endpoint = cluster.node(1).broker.image.brokers[1].endpoint("SASL_PLAINTEXT")
        assert endpoint is not None
        yield cluster, f"{endpoint.host}:{endpoint.port}"


def sessions(cluster: Cluster) -> list[Session]:
    """Return the sessions of the connected clients."""
    found = []
    for endpoint in cluster.node(1)._listeners.endpoints:
        for connection in list(endpoint._connections):
            login: Any = connection.identity
            if isinstance(login, ClientLogin) and login.session is not None:
                found.append(login.session)
    return found


def renewals(cluster: Cluster) -> set[float]:
    """Return when the sessions of the connected clients were last renewed."""
    return {row.renewed_at for row in sessions(cluster) if row.renewed_at is not None}


def metrics(cluster: Cluster) -> dict[str, float]:
    """Return the metrics of the listener with SASL, as Prometheus reads them."""
    address = cluster.node(1).monitoring_address
    assert address is not None
    host, port = address
    with urllib.request.urlopen(f"http://{host}:{port}/metrics", timeout=20) as response:
        text = response.read().decode()
    prefix = "kafka_server_socket_server_metrics_"
    rows = re.findall(rf'^{prefix}(\w+)\{{listener="SASL_PLAINTEXT".*?\}} (\S+)$', text, re.M)
    return {name: float(value) for name, value in rows}


def repeat_until_renewed(cluster: Cluster, request: Callable[[], object], count: int) -> None:
    """Send requests until this number of renewals was seen."""
    seen: set[float] = set()
    deadline = RealClock().monotonic() + _PATIENCE_S
    while len(seen) < count:
        assert RealClock().monotonic() < deadline
        request()
        seen |= renewals(cluster)
        _PAUSE.wait(0.02)


def test_librdkafka_renews_its_sessions() -> None:
    """No record is lost or delayed, and no connection is closed."""
    errors: list[object] = []
    with limited_cluster() as (cluster, address):
        producer = confluent_kafka.Producer(
            {
                "bootstrap.servers": address,
                "security.protocol": "SASL_PLAINTEXT",
                "sasl.mechanism": "PLAIN",
                "sasl.username": "ann",
                "sasl.password": "secret",
                "error_cb": errors.append,
            }
        )

        def produce() -> None:
            producer.produce("t", b"v", on_delivery=lambda error, _: error and errors.append(error))
            producer.poll(0)

        repeat_until_renewed(cluster, produce, 2)
        assert producer.flush(20) == 0
        shown = metrics(cluster)
        assert shown["successful_reauthentication_total"] >= 2
        assert shown["successful_authentication_total"] >= 1
        assert shown["failed_reauthentication_total"] == 0
        assert shown["expired_connections_killed_count"] == 0
        assert 1 <= shown["reauthentication_latency_avg"] <= shown["reauthentication_latency_max"]
        assert errors == []


def test_clients_of_ottla_renew_their_sessions() -> None:
    """An AdminClient stays on its connection."""
    with limited_cluster() as (cluster, address):
        settings = {
            "bootstrap.servers": address,
            "security.protocol": "SASL_PLAINTEXT",
            "sasl.mechanism": "PLAIN",
            "sasl.jaas.config": f'{_PLAIN} username="ann" password="secret";',
        }
        with AdminClient(settings) as admin:
            repeat_until_renewed(cluster, admin.describe_cluster, 2)
            assert len(sessions(cluster)) == 1


@pytest.mark.slow
@pytest.mark.needs("java")
def test_java_client_renews_its_sessions(tmp_path: Path) -> None:
    """A producer writes for several sessions without an error."""
    with limited_cluster() as (cluster, address):
        config = tmp_path / "client.properties"
        config.write_text(
            f"bootstrap.servers={address}\nsecurity.protocol=SASL_PLAINTEXT\nsasl.mechanism=PLAIN\n"
            f'sasl.jaas.config={_PLAIN} username="ann" password="secret";\nretries=0\n'
            "enable.idempotence=false\n"
        )
        command = java.command(
            java.client_class_path("4.3.0"),
            "org.apache.kafka.tools.ProducerPerformance",
            *("--topic", "t", "--num-records", "120", "--record-size", "10"),
            *("--throughput", "20", "--command-config", str(config)),
        )
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        try:
            repeat_until_renewed(cluster, process.poll, 2)
        finally:
            output, _ = process.communicate(timeout=60)
        assert process.returncode == 0, output
        assert b"120 records sent" in output
        assert b"Exception" not in output
