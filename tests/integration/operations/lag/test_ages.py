"""The age of unread records by the HTTP port of a broker."""

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlsplit

import pytest

from ottla.console.model import topics
from ottla.console.model.producing import ProduceRequest, produce
from ottla.operations.lag.ages import Age, ages_of
from ottla.operations.survey.connections import ClusterConnection, ClusterSettings
from ottla.operations.survey.http import HttpError, get_lines
from ottla.testing import Cluster


class _Port(BaseHTTPRequestHandler):
    """Serves /lag as docs/http.md describes it, and anything else with an error."""

    protocol_version = "HTTP/1.0"

    def do_GET(self) -> None:
        """Return one line for each position."""
        address = urlsplit(self.path)
        if address.path != "/lag":
            self.send_error(404, "There is no such page.")
            return
        self.send_response(200)
        self.end_headers()
        for position in parse_qs(address.query)["position"]:
            topic, partition, offset = position.rsplit(":", 2)
            row = {"type": "lag", "topic": topic, "partition": int(partition), "seconds": 12.5}
            self.wfile.write(json.dumps({**row, "next_offset": int(offset)}).encode() + b"\n")
        self.wfile.write(b'{"type": "end"}\n')

    def log_message(self, *words: object) -> None:
        """Log nothing."""


@pytest.fixture
def url() -> Iterator[str]:
    """Return the address of the port."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Port)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    thread.join()
    server.server_close()


def test_the_http_port_is_preferred(url: str) -> None:
    """Ages are those that the broker reads from its log, if its address is configured."""
    with Cluster(brokers=1) as cluster:
        settings = ClusterSettings("test", cluster.bootstrap, http_urls={1: url})
        connection = ClusterConnection(settings)
        ages = ages_of(connection, {("orders", 0): 1}, {("orders", 0): 42})
        assert ages == {("orders", 0): Age(12.5, "broker")}
        connection.close()


def test_records_are_read_if_the_port_does_not_respond() -> None:
    """Without a response of the HTTP port, the record's own timestamp is used."""
    with Cluster(brokers=1) as cluster:
        settings = ClusterSettings("test", cluster.bootstrap, http_urls={1: "http://127.0.0.1:1"})
        connection = ClusterConnection(settings)
        topics.create_topic(connection, topics.NewTopic("orders", 1, 1))
        produce(connection, ProduceRequest("orders", "v"))
        age = ages_of(connection, {("orders", 0): 1}, {("orders", 0): 0})["orders", 0]
        assert age.source == "record"
        assert age.seconds is not None
        assert 0 <= age.seconds < 60
        connection.close()


@pytest.mark.parametrize("address", ["file:///etc/passwd", "ftp://a", "http://"])
def test_only_http_addresses_are_opened(address: str) -> None:
    """An address of another scheme raises an error and opens nothing."""
    with pytest.raises(HttpError):
        list(get_lines(address, "/lag", 1.0))


def test_errors_of_the_port_have_their_status(url: str) -> None:
    """A rejected request raises its status and the sentence of the broker."""
    with pytest.raises(HttpError) as error:
        list(get_lines(url, "/search", 5.0))
    assert error.value.status == 404
