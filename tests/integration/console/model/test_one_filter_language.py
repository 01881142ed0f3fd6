"""One language of filters: brokers, `ottla topic search` and the console select the same records."""

import json
import random
import struct
from collections.abc import Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as some

from ottla.base.search.conditions import Condition, Field, JsonComparison, Operator
from ottla.base.search.language import filter_text, parse_filter
from ottla.base.search.matching import Matcher
from ottla.client.producer.producer import Producer
from ottla.client.raw.consumer import ConsumedRecord
from ottla.console.model.messages.browsing import BrowseRequest, Seek, search
from ottla.operations.search.brokers import RemoteSearch
from ottla.operations.search.local import LocalSearch
from ottla.operations.search.request import Search
from ottla.operations.survey.connections import ClusterConnection, ClusterSettings
from ottla.testing import Cluster
from tests.integration.tools.test_mirror import records_of

pytestmark = pytest.mark.slow

_SEED = 20261128
_DIGITS = "123456789012345678901234567890123456789012345678901234567890"
_TEXTS = ["a", "A", "b c", "\u00c4nne", "\u00e4NNE", "7", _DIGITS, "\ufffd", "\x00", "'\"\\", "k.*"]
_KEYS = [
    None,
    b"",
    struct.pack(">i", 7),
    struct.pack(">q", -1),
    b"\xff\xfea",
    *map(str.encode, _TEXTS),
]
_DOCUMENTS = [
    {"a": 7}, {"a": "7"}, {"a": True}, {"a": None}, {"a": int(_DIGITS)}, {"a": int(_DIGITS) + 1},
    {"a": _DIGITS}, {"a": {"a": [1.5, {"a": "b c"}]}}, {"a": "\u00c4nne"}, {"b c": ["A", ["a"]]}, [[7]], 7,
]  # fmt: skip
_VALUES = [
    None, b"", b"\xc3", b"[" * 5000, b'{"a": %s}' % (b"9" * 5000), b'{"a": "\\ud800"}', b'{"a": 1e400}', b"NaN",
    *(json.dumps(row).encode() for row in _DOCUMENTS),
    *(json.dumps(row, ensure_ascii=False).encode() for row in _DOCUMENTS),
]  # fmt: skip
_NAMES = ["h", "a.b", "b c", "\u00fc", ""]
_PATHS = ["$", "$.a", "$..a", "$['b c'][*]", "$.*", "$[0]", "$..*"]
_COUNT = 150


class Searched:
    """A topic of awkward records, with and without the HTTP port of its broker."""

    def __init__(self, cluster: Cluster, records: list[ConsumedRecord]) -> None:
        self.cluster, self.records = cluster, records
        (node,) = cluster.brokers
        self.addresses = {node: cluster.node(node).monitoring_address}
        host, port = self.addresses[node]
        urls = {node: f"http://{host}:{port}"}
        self.by_port = ClusterConnection(ClusterSettings("a", cluster.bootstrap, http_urls=urls))
        self.by_reading = ClusterConnection(ClusterSettings("b", cluster.bootstrap))


@pytest.fixture(scope="module")
def searched() -> Iterator[Searched]:
    """Return a running cluster whose topic has every kind of record."""
    chance = random.Random(_SEED)
    options = {"metrics.listener": "127.0.0.1:0", "search.enable": "true"}
    with Cluster(brokers=1, options=options) as cluster:
        cluster.create_topic("odd", partitions=2, config={"retention.ms": "-1"})
        with Producer(bootstrap_servers=cluster.bootstrap) as producer:
            for number in range(_COUNT):
                headers = [
                    (chance.choice(_NAMES), chance.choice([*_KEYS, *_VALUES[:3]]))
                    for _ in range(chance.randrange(4))
                ]
                producer.send(
                    "odd", chance.choice(_VALUES), key=chance.choice(_KEYS), headers=headers,
                    partition=number % 2, timestamp=1_000 + number,
                )  # fmt: skip
        records = [
            row._replace(headers=list(row.headers))
            for number in (0, 1)
            for row in records_of(cluster, "odd", number)
        ]
        running = Searched(cluster, records)
        yield running
        running.by_port.close()
        running.by_reading.close()


_TEXT = some.sampled_from(_TEXTS)
_LITERAL = some.one_of(
    some.sampled_from(["7", "-1", "true", "null", _DIGITS, "1.5", "[7]"]), _TEXT.map(json.dumps)
)
_ON_TEXTS = [JsonComparison.CONTAINS, JsonComparison.STARTS_WITH]
_ON_VALUES = [JsonComparison.EXISTS, JsonComparison.EQUALS, JsonComparison.NOT_EQUALS]
_ORDERED = [JsonComparison.LESS, JsonComparison.GREATER_OR_EQUAL]
_PARTS = some.fixed_dictionaries({
    "field": some.sampled_from(list(Field)),
    "header": some.sampled_from(["", *_NAMES]),
    "negated": some.booleans(),
    "ignores_case": some.booleans(),
})  # fmt: skip
_CONDITION = some.one_of(
    some.builds(
        lambda parts, compared, text: Condition(operator=compared, text=text, **parts),
        _PARTS,
        some.sampled_from([row for row in Operator if row is not Operator.JSON_PATH]),
        _TEXT.filter(lambda text: text not in ("'\"\\", "\x00")),
    ),
    *(
        some.builds(
            lambda parts, path, compared, text: Condition(
                operator=Operator.JSON_PATH, path=path, comparison=compared, text=text, **parts
            ),
            _PARTS,
            some.sampled_from(_PATHS),
            some.sampled_from(compared),
            texts,
        )
        for compared, texts in (
            (_ON_TEXTS, _TEXT),
            (_ON_VALUES, some.one_of(_LITERAL, _TEXT)),
            (_ORDERED, some.sampled_from(["7", _DIGITS, "1.5", '"b"'])),
        )
    ),
)


class _Never:
    requested = False

    def wait(self, seconds: float) -> None:
        """Return at once."""


def _by_verb(
    searched: Searched, text: str, kind: type[LocalSearch] | type[RemoteSearch]
) -> list[ConsumedRecord]:
    ranges = {0: (0, _COUNT // 2), 1: (0, _COUNT // 2)}
    request = Search(topic="odd", ranges=ranges, conditions=parse_filter(text))
    rows: list[ConsumedRecord] = []
    with searched.cluster.admin() as brokers:
        runner = (
            RemoteSearch(brokers, searched.addresses, request)
            if kind is RemoteSearch
            else LocalSearch(brokers, request)
        )
        result = runner.run(rows.append, lambda _: None, _Never())
    assert result.problems == []
    rows = [row._replace(headers=list(row.headers)) for row in rows]
    return sorted(rows, key=lambda row: (row.partition, row.offset))


def _by_page(connection: ClusterConnection, text: str, seek: Seek) -> list[tuple[int, int]]:
    request = BrowseRequest("odd", seek=seek, limit=1000, where=text)
    rows = [row for event in search(connection, request) for row in event.rows]
    return sorted((row.partition, row.offset) for row in rows)


@settings(max_examples=30)
@given(conditions=some.lists(_CONDITION, min_size=1, max_size=2))
def test_the_same_rows_everywhere(searched: Searched, conditions: list[Condition]) -> None:
    """Null keys, invalid UTF-8, nested JSON, long numbers and repeated headers make no difference."""
    text = filter_text(conditions)
    matcher = Matcher(conditions)
    expected = [row for row in searched.records if matcher.matches(row.key, row.value, row.headers)]
    positions = [(row.partition, row.offset) for row in expected]
    assert _by_verb(searched, text, LocalSearch) == expected
    assert _by_verb(searched, text, RemoteSearch) == expected
    assert _by_page(searched.by_reading, text, Seek.NEWEST) == positions
    assert _by_page(searched.by_reading, text, Seek.OLDEST) == positions
    assert _by_page(searched.by_port, text, Seek.OLDEST) == positions
