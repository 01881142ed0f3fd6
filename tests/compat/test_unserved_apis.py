"""APIs that a broker on ZooKeeper does not serve are not advertised, and requests close the
connection, as in Kafka 3.9.2.
"""

import socket
import struct
import subprocess
from collections.abc import Iterator

import pytest

from ottla.testing.cluster import Cluster
from ottla.wire.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from tests.compat import java

pytestmark = [pytest.mark.compat, pytest.mark.slow]

# KRaft APIs that its tools send to brokers: DescribeQuorum, UnregisterBroker, AddRaftVoter,
# RemoveRaftVoter.
KRAFT = {55: "DescribeQuorum", 64: "UnregisterBroker", 80: "AddRaftVoter", 81: "RemoveRaftVoter"}


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    """Return a broker for this file."""
    with Cluster() as running:
        yield running


def test_they_are_not_advertised(cluster: Cluster) -> None:
    """A client raises UNSUPPORTED_VERSION itself, without a request."""
    with cluster.admin() as brokers:
        request = ApiVersionsRequest(client_software_name="test", client_software_version="1")
        advertised = {item.api_key for item in brokers.ask(request, ApiVersionsResponse).api_keys}
    assert not advertised & set(KRAFT)


@pytest.mark.parametrize("key", KRAFT)
def test_request_closes_connection_without_response(cluster: Cluster, key: int) -> None:
    """A client that sends such a request is disconnected without a response, as by Kafka 3.9.2 on
    ZooKeeper.
    """
    body = struct.pack(">hhih", key, 0, 7, 1) + b"x\0\x01\0"
    with socket.create_connection((cluster.host, cluster.port), 5) as line:
        line.sendall(struct.pack(">i", len(body)) + body)
        assert line.recv(100) == b""


@pytest.mark.slow
@pytest.mark.needs("java")
def test_kafkas_quorum_tool_reports_missing_quorum(cluster: Cluster) -> None:
    """`kafka-metadata-quorum` fails immediately, without a request."""
    command = java.command(
        java.client_class_path("4.3.0"),
        "org.apache.kafka.tools.MetadataQuorumCommand",
        *("--bootstrap-server", cluster.bootstrap, "describe", "--status"),
    )
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.returncode != 0
    assert "UnsupportedVersionException" in done.stdout + done.stderr
