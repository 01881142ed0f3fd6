"""Search inside the brokers over their HTTP port, as docs/http.md describes it."""

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, ClassVar
from urllib.parse import parse_qs, urlsplit

import pytest

from ottla.base.errors import ConfigError
from ottla.base.search.conditions import Condition, Field, JsonComparison, Operator
from ottla.console.model import topics
from ottla.console.model.messages.browsing import BrowseRequest, BrowseResult, Seek, browse
from ottla.console.model.messages.remote import remote_search
from ottla.console.model.messages.scanning import Span
from ottla.console.model.producing import ProduceRequest, produce
from ottla.operations.survey.connections import ClusterConnection, ClusterSettings
from ottla.testing import Cluster


class _Port(BaseHTTPRequestHandler):
    """Serves /search with every second record of ten, of which the broker claims that they match."""

    protocol_version = "HTTP/1.0"
    queries: ClassVar[list[dict[str, list[str]]]] = []
    status: ClassVar[int] = 200

    def do_GET(self) -> None:
        """Return the lines of a search."""
        query = parse_qs(urlsplit(self.path).query)
        self.queries.append(query)
        self.send_response(self.status)
        self.end_headers()
        if self.status != 200:
            return
        first, end = int(query["from"][0]), int(query["to"][0])
        self._line(type="start")
        for offset in range(first, end, 2):
            payload = json.dumps({"n": offset})
            self._line(type="match", offset=offset, ts=offset, tstype="create", payload=payload)
        self._line(type="progress", next_offset=end, bytes=100, partition=0)
        self._line(type="end", reason="complete", bytes=100)

    def _line(self, **fields: Any) -> None:
        self.wfile.write(json.dumps(fields).encode() + b"\n")

    def log_message(self, *words: object) -> None:
        """Log nothing."""


@pytest.fixture(scope="module")
def connection() -> Iterator[ClusterConnection]:
    """Return a connection to a broker with ten records and an HTTP port."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Port)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    with Cluster(brokers=1) as cluster:
        urls = {1: f"http://127.0.0.1:{server.server_port}"}
        opened = ClusterConnection(ClusterSettings("test", cluster.bootstrap, http_urls=urls))
        topics.create_topic(opened, topics.NewTopic("orders", 1, 1))
        request = ProduceRequest("orders", '{"n": {{n}}}', count=10, has_templates=True)
        produce(opened, request)
        yield opened
        opened.close()
    server.shutdown()
    thread.join()
    server.server_close()


def _offsets(connection: ClusterConnection, **fields: Any) -> tuple[list[int], BrowseResult]:
    condition = Condition(
        Field.VALUE,
        Operator.JSON_PATH,
        "4",
        path="$.n",
        comparison=JsonComparison.GREATER_OR_EQUAL,
    )
    request = BrowseRequest("orders", conditions=(condition,), **{"seek": Seek.OLDEST, **fields})
    _Port.queries.clear()
    result = browse(connection, request)
    return [row.offset for row in result.rows], result


def test_the_broker_searches_and_the_console_compares_again(
    connection: ClusterConnection,
) -> None:
    """The broker's matches are rows if they satisfy the whole condition."""
    offsets, result = _offsets(connection)
    assert offsets == [4, 6, 8]
    assert (result.ended_by, result.progress.scanned) == ("end", 10)
    (query,) = _Port.queries
    assert (query["where"], query["from"], query["to"]) == (["$.n >= 4"], ["0"], ["10"])


def test_a_limited_search_is_continued(connection: ClusterConnection) -> None:
    """The next positions are behind the last row, and the broker resumes there."""
    offsets, result = _offsets(connection, limit=2)
    assert (offsets, result.ended_by) == ([4, 6], "limit")
    assert result.next_positions == ((0, 7),)
    offsets, _ = _offsets(connection, limit=2, positions=result.next_positions)
    assert _Port.queries[0]["from"] == ["7"]
    assert offsets == [7, 9]


def test_a_broker_that_refuses_is_replaced(
    connection: ClusterConnection, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If search is disabled on the broker, the console reads the records itself."""
    monkeypatch.setattr(_Port, "status", 403)
    offsets, result = _offsets(connection)
    assert (offsets, result.ended_by) == ([4, 5, 6, 7, 8, 9], "end")


def test_the_newest_records_are_read_by_the_console(connection: ClusterConnection) -> None:
    """Brokers search upwards only: a search for the newest matches does not use them."""
    offsets, _ = _offsets(connection, seek=Seek.NEWEST, limit=2)
    assert (offsets, _Port.queries) == ([9, 8], [])


@pytest.mark.parametrize(
    ("comparison", "text", "parameter"),
    [
        (JsonComparison.EXISTS, "", "$.n"),
        (JsonComparison.LESS, "1.5", "$.n < 1.5"),
        (JsonComparison.GREATER, "abc", '$.n > "abc"'),
        (JsonComparison.EQUALS, "abc", '$.n == "abc"'),
        (JsonComparison.EQUALS, "true", "$.n == true"),
        (JsonComparison.EQUALS, "5", "$.n == 5"),
        (JsonComparison.NOT_EQUALS, "5", "$.n != 5"),
    ],
)
def test_brokers_compare_the_whole_condition(
    connection: ClusterConnection, comparison: JsonComparison, text: str, parameter: str
) -> None:
    """Brokers and console have one language, so no comparison is left to the console."""
    condition = Condition(Field.VALUE, Operator.JSON_PATH, text, path="$.n", comparison=comparison)
    request = BrowseRequest("orders", seek=Seek.OLDEST)
    search = remote_search(connection, request, (condition,), {0: 1})
    assert search is not None
    _Port.queries.clear()
    list(search.run(0, Span(0, 10)))
    assert [query["where"] for query in _Port.queries] == [[parameter]]


def test_order_of_truth_values_is_refused(connection: ClusterConnection) -> None:
    """The console used to find nothing, and brokers refused it."""
    with pytest.raises(ConfigError, match="only numbers and texts have an order"):
        browse(connection, BrowseRequest("orders", where="$.n < true"))
