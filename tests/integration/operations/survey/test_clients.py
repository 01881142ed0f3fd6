"""Clients that push metrics, from HTTP ports that respond well, wrongly or not at all."""

import json
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from ottla.base.errors import ApiError
from ottla.operations.survey.clients import ClientMetric, describe_client, list_clients
from ottla.operations.survey.connections import ClusterConnection, ClusterSettings
from ottla.testing import Cluster

METRIC = {"name": "a.rate", "labels": {"node": "1"}, "value": None, "is_delta": True}
Connect = Callable[[Mapping[int, str]], ClusterConnection]


def page_of(age_seconds: float, *, port: str = "7000", **fields: object) -> bytes:
    """Return the page of a broker with one client, as docs/monitoring.md describes it."""
    client = {
        "instance_id": "abc",
        "client_id": "checkout",
        "client_software_name": None,
        "client_software_version": None,
        "client_source_address": "10.0.0.7",
        "client_source_port": port,
        "age_seconds": age_seconds,
        "is_terminating": False,
        "metrics": [METRIC],
        **fields,
    }
    return b'{"clients": [\n' + json.dumps(client).encode() + b"\n]}\n"


@contextmanager
def port_with(body: bytes) -> Iterator[str]:
    """Serve a body at every path, and return the address."""

    class Port(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            """Return the body."""
            self.send_response(200)
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *words: object) -> None:
            """Log nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Port)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    """Return a broker, whose own HTTP port is closed."""
    with Cluster() as running:
        yield running


@pytest.fixture
def connect(cluster: Cluster) -> Iterator[Connect]:
    """Return a function that connects with the HTTP addresses of brokers."""
    opened = []

    def connect(urls: Mapping[int, str]) -> ClusterConnection:
        opened.append(ClusterConnection(ClusterSettings("c", cluster.bootstrap, http_urls=urls)))
        return opened[-1]

    yield connect
    for connection in opened:
        connection.close()


def test_the_latest_push_of_a_client_counts(connect: Connect) -> None:
    """A client that has changed its broker is listed once, at the broker of its last push."""
    with port_with(page_of(40.0)) as former, port_with(page_of(2.5, port="7001")) as current:
        connection = connect({1: former, 2: current})
        (row,) = list_clients(connection).clients
        assert (row.broker, row.age_seconds, row.address) == (2, 2.5, "10.0.0.7:7001")
        assert (row.software_name, row.metric_count) == ("", 1)
        detail = describe_client(connection, "abc")
        assert detail.row == row
        assert detail.metrics == (ClientMetric("a.rate", {"node": "1"}, None, True),)


def test_a_broker_that_cannot_be_read_is_reported(connect: Connect) -> None:
    """The clients of the other brokers are listed beside the reason."""
    with port_with(page_of(1.0)) as url:
        connection = connect({1: url, 3: "http://127.0.0.1:1"})
        listed = list_clients(connection)
        assert [row.client_id for row in listed.clients] == ["checkout"]
        assert [row.node_id for row in listed.unread] == [3]
        assert "does not respond" in listed.unread[0].reason
        with pytest.raises(ApiError, match="Not all brokers could be read: broker 3"):
            describe_client(connection, "nobody")


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"<html>\n",
        b'{"clients": [\n{"instance_id": "abc"\n]}\n',
        b'{"clients": [\n{"instance_id": "abc"}\n]}\n',
        page_of(1.0, metrics=7),
        page_of(1.0, metrics=["a"]),
    ],
)
def test_a_page_that_is_no_list_of_clients_is_reported(connect: Connect, body: bytes) -> None:
    """Another program at the address, or a damaged page, is an error of that broker only."""
    with port_with(body) as url:
        connection = connect({1: url})
        with pytest.raises(ApiError, match="returns no list of clients"):
            describe_client(connection, "abc")


def test_brokers_without_an_address_are_named(connect: Connect) -> None:
    """Without any address there is no list, and the error of a client says so."""
    connection = connect({})
    listed = list_clients(connection)
    assert (listed.brokers, listed.clients, listed.brokers_without_address) == ((), (), (1,))
    with pytest.raises(ApiError, match="has an HTTP address"):
        describe_client(connection, "abc")
