"""APIs that a broker on ZooKeeper does not serve: not told, and closed upon, as Kafka 3.9.2 does."""

import socket
import struct
import subprocess
from collections.abc import Iterator

import pytest

from ottla.testing.cluster import Cluster
from ottla.wire.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from tests.compat import java

pytestmark = pytest.mark.compat

needs_java = pytest.mark.skipif(java.why_not() is not None, reason=str(java.why_not()))
# Those of KRaft that its tools send to brokers: DescribeQuorum, UnregisterBroker, AddRaftVoter, RemoveRaftVoter.
KRAFT = {55: "DescribeQuorum", 64: "UnregisterBroker", 80: "AddRaftVoter", 81: "RemoveRaftVoter"}


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    """A broker for this file."""
    with Cluster() as running:
        yield running


def test_they_are_not_told_to_clients(cluster: Cluster) -> None:
    """So that a client says UNSUPPORTED_VERSION itself, without asking."""
    with cluster.admin() as brokers:
        request = ApiVersionsRequest(client_software_name="test", client_software_version="1")
        told = {item.api_key for item in brokers.ask(request, ApiVersionsResponse).api_keys}
    assert not told & set(KRAFT)


@pytest.mark.parametrize("key", KRAFT)
def test_whoever_asks_all_the_same_is_closed_upon(cluster: Cluster, key: int) -> None:
    """Without an answer; Kafka 3.9.2 on ZooKeeper was asked the same."""
    body = struct.pack(">hhih", key, 0, 7, 1) + b"x\0\x01\0"
    with socket.create_connection((cluster.host, cluster.port), 5) as line:
        line.sendall(struct.pack(">i", len(body)) + body)
        assert line.recv(100) == b""


@pytest.mark.slow
@needs_java
def test_kafkas_quorum_tool_says_that_there_is_no_quorum(cluster: Cluster) -> None:
    """It fails on its own side, at once."""
    command = java.command(
        java.client_class_path("4.3.0"),
        "org.apache.kafka.tools.MetadataQuorumCommand",
        *("--bootstrap-server", cluster.bootstrap, "describe", "--status"),
    )
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.returncode != 0
    assert "UnsupportedVersionException" in done.stdout + done.stderr
