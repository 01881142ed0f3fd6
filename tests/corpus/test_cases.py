"""Small inputs that tools show or copy wrongly, with the right result."""

import html
import json
from datetime import UTC, datetime
from typing import Any
from urllib.parse import quote

import pytest
from confluent_kafka import Consumer, TopicPartition

from ottla.base.clock import RealClock
from ottla.base.search.conditions import Condition, Field, JsonComparison, Operator
from ottla.client.arrow_table import read_table
from ottla.client.producer.producer import Producer
from ottla.console.accounts.reading import Reader
from ottla.console.accounts.roles import Role
from ottla.console.model.groups import list_groups, summarize_groups
from ottla.console.model.messages.browsing import BrowseRequest, Seek, browse
from ottla.console.model.messages.masking import MASK, MaskingRule
from ottla.console.sql.queries import Queries
from ottla.console.sql.values import QueryLimits
from ottla.testing.corpus.names import GROUPS, TRANSACTIONAL_IDS
from ottla.testing.corpus.records import BEGIN_MS
from tests.corpus.judges import Reading, read_with_librdkafka
from tests.corpus.setting import Setting

pytestmark = pytest.mark.slow

MINUTE_MS = BEGIN_MS + 60_000
# A record at +600 s is before those at +2 s and +3 s; the other partition has single records.
EARLY = [0, 1, 3, 4]


def _offset(oracle: dict[str, list[Reading]], value: bytes) -> int:
    """Return the offset of the first record with a value."""
    return next(row.offset for row in oracle["corpus-values"] if row.value == value)


def _page(setting: Setting, offset: int) -> str:
    """Return the text of the record page."""
    return html.unescape(
        setting.session.get(f"/c/local/topics/corpus-values/messages/0/{offset}").text
    )


@pytest.mark.parametrize("seek", [Seek.OLDEST, Seek.NEWEST])
def test_until_is_compared_with_the_time_of_each_record(setting: Setting, seek: Seek) -> None:
    """The first record at or after the time is not the end."""
    request = BrowseRequest("corpus-times", (0,), seek=seek, until_ms=MINUTE_MS)
    offsets = [row.offset for row in browse(setting.connection, request).rows]
    assert sorted(offsets) == EARLY


def test_from_is_compared_with_the_time_of_each_record(setting: Setting) -> None:
    """After the first record at the time there are older ones, which are no matches."""
    request = BrowseRequest("corpus-times", seek=Seek.TIMESTAMP, timestamp_ms=BEGIN_MS + 8000)
    rows = browse(setting.connection, request).rows
    assert [(row.partition, row.offset) for row in rows] == [(1, 0), (0, 2)]
    path = "/api/v1/clusters/local/topics/corpus-times/messages"
    found = setting.call(f"{path}?seek=timestamp&start={BEGIN_MS + 8000}").json["rows"]
    assert [(row["partition"], row["offset"]) for row in found] == [(1, 0), (0, 2)]


@pytest.mark.parametrize(
    "words", [("topic", "search"), ("topic", "search", "--local"), ("consume",)]
)
def test_commands_compare_the_time_of_each_record(setting: Setting, words: tuple[str, ...]) -> None:
    """An end at a time leaves out later records, and no others."""
    options = ["-o", "beginning", "-o", f"@{MINUTE_MS}", "-p", "0", "-f", "%o\\n"]
    extra = ["-q"] if words == ("consume",) else []
    done = setting.run(*words, "corpus-times", *options, *extra)
    assert [int(line) for line in done.out.split()] == EARLY


def test_tables_compare_the_time_of_each_record(setting: Setting) -> None:
    """SQL and `read_table` have the same rows."""
    at = datetime.fromtimestamp(MINUTE_MS / 1000, UTC)
    table = read_table(
        "corpus-times",
        bootstrap=setting.cluster.bootstrap,
        partitions=[0],
        end=at,
        columns=["offset"],
    )
    assert table.column("offset").to_pylist() == EARLY
    statement = (
        'SELECT _offset FROM "corpus-times" WHERE _partition = 0 AND '
        f"_time < TIMESTAMPTZ '{at.isoformat()}' ORDER BY 1"
    )
    rows = setting.call("/api/v1/clusters/local/sql", json.dumps({"sql": statement})).json["rows"]
    assert [row[0] for row in rows] == EARLY


@pytest.mark.parametrize(
    "document",
    [
        '{"price":100.00}',
        '{"rate":12345678901234567890.125}',
        '{"a":1,"a":2}',
        '{"n":1E2,"m":1.50e+3}',
    ],
)
def test_json_is_shown_with_its_own_digits(
    setting: Setting, oracle: dict[str, list[Reading]], document: str
) -> None:
    """Laying out adds white space only."""
    page = _page(setting, _offset(oracle, document.encode()))
    assert document in "".join(page.split())


def test_masked_json_keeps_its_digits(setting: Setting) -> None:
    """Only the masked values change, all of one name."""
    rule = MaskingRule("corpus-values", path="$.a")
    request = BrowseRequest(
        "corpus-values", seek=Seek.OLDEST, limit=10_000, masking=(rule,), is_read_committed=True
    )
    texts = [row.value.text for row in browse(setting.connection, request).rows if row.value]
    assert f'{{"a":"{MASK}","a":"{MASK}"}}' in texts
    assert '{"price":100.00}' in texts


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (b"\x1b[32mINFO\x1b[0m server started", "\\x1b[32mINFO\\x1b[0m server started"),
        (b"page one\x0cpage two", "page one\\x0cpage two"),
        (b"name\x00value", "name\\x00value"),
        ("abc\u202edef\u2066ghi".encode(), "abc\\u202edef\\u2066ghi"),
    ],
)
def test_control_characters_are_shown_as_codes(
    setting: Setting, oracle: dict[str, list[Reading]], value: bytes, shown: str
) -> None:
    """A text stays a text, on the page and in the list."""
    offset = _offset(oracle, value)
    assert shown in _page(setting, offset)
    listed = f"/c/local/topics/corpus-values/messages?seek=offset&offset={offset}&limit=20"
    assert shown in html.unescape(setting.session.get(listed).text)


def test_json_schema_values_are_readable_and_found(setting: Setting) -> None:
    """The id of the schema is beside the value, which a path searches."""
    condition = Condition(
        Field.VALUE, Operator.JSON_PATH, '"Praha"', path="$.city", comparison=JsonComparison.EQUALS
    )
    request = BrowseRequest("corpus-values", seek=Seek.OLDEST, conditions=(condition,))
    row = browse(setting.connection, request).rows[0]
    assert row.value is not None
    assert (row.value.text, row.value.schema_id) == ('{"id": 7, "city": "Praha"}', 5)
    page = _page(setting, row.offset)
    assert '"city": "Praha"' in page
    assert "schema 5" in page
    done = setting.run(
        "topic", "search", "corpus-values", "--where", '$.city == "Praha"', "-f", "%o\\n"
    )
    assert str(row.offset).encode() in done.out.split()


def test_producers_accept_what_the_topic_accepts(setting: Setting) -> None:
    """A record of 1 040 000 bytes fits into a topic with the default limit."""
    value = b"x" * 1_040_000
    with Producer(bootstrap_servers=setting.cluster.bootstrap) as producer:
        producer.send("accepted", value)
    assert setting.run("produce", "accepted", "-D", "<end>", stdin=value).code == 0
    rows = read_with_librdkafka(setting.cluster.bootstrap, "accepted")
    assert [row.value for row in rows] == [value, value]


def test_a_topic_of_any_name_has_its_page(setting: Setting) -> None:
    """`new` is not the form, and the longest name is a topic, too."""
    for name in ("new", "search", "a.b-c_d", "x" * 249):
        page = setting.session.get(f"/c/local/topics/{name}")
        assert page.status == 200
        assert name in page.text
        assert 'name="cleanup_policy"' not in page.text


@pytest.mark.parametrize("group", GROUPS)
def test_groups_of_any_name_are_found_by_the_rest_api(setting: Setting, group: str) -> None:
    """A slash in an id is %2F in its address."""
    assert _read(setting, "groups", group)["group_id"] == group


@pytest.mark.parametrize("transactional_id", TRANSACTIONAL_IDS)
def test_transactions_of_any_name_are_found_by_the_rest_api(
    setting: Setting, transactional_id: str
) -> None:
    """A slash in an id is %2F in its address."""
    found = _read(setting, "transactions", transactional_id)
    assert found["transactional_id"] == transactional_id


def _read(setting: Setting, kind: str, name: str) -> Any:
    response = setting.call(f"/api/v1/clusters/local/{kind}/{quote(name, safe='')}")
    assert response.status == 200, response.text
    return response.json


def test_equal_headers_and_unsigned_ids_are_in_sql(setting: Setting) -> None:
    """A list has every header, and an id of 64 bit is a number."""

    def query(statement: str) -> Any:
        body = json.dumps({"sql": statement})
        return setting.call("/api/v1/clusters/local/sql", body).json["rows"]

    where = 'FROM "corpus-values" WHERE'
    rows = query(
        f"SELECT list_transform(_headers, lambda h: h.name)::VARCHAR {where} len(_headers) = 4"
    )
    assert ["[h, h, g, h]"] in rows
    assert query(f"SELECT id {where} _value = '{{\"id\":18446744073709551615}}'")[0] == [
        18446744073709551615
    ]


def test_numbers_of_sql_keep_their_digits_on_the_page(setting: Setting) -> None:
    """A time in seconds with a fraction has more than twelve digits."""
    statement = "SELECT 1767225600.123456::DOUBLE AS f, 18446744073709551615::UBIGINT AS u"
    page = setting.session.post("/c/local/sql", "run", {"sql": statement}).text
    result = page.split('<table id="result">')[1]
    assert "1767225600.123456<" in result
    assert "18446744073709551615<" in result


def test_sql_counts_committed_records_only(setting: Setting) -> None:
    """Records of open and aborted transactions are not rows."""
    body = json.dumps({"sql": 'SELECT count(*) FROM "corpus-transactions"'})
    assert setting.call("/api/v1/clusters/local/sql", body).json["rows"] == [[9]]


def test_lag_counts_partitions_without_a_commit(setting: Setting) -> None:
    """A member that has committed nothing is as far behind as its partitions are long."""
    consumer = Consumer(
        {
            "bootstrap.servers": setting.cluster.bootstrap,
            "group.id": "without-commits",
            "enable.auto.commit": False,
            "auto.offset.reset": "earliest",
        }
    )
    consumer.subscribe(["corpus-times"])
    try:
        assert consumer.poll(20.0) is not None
        ends = {("corpus-times", 0): 5, ("corpus-times", 1): 4}
        groups = summarize_groups(setting.connection, ends)
        assert {row.lag for row in groups if row.group_id == "without-commits"} == {9}
        detail = setting.call("/api/v1/clusters/local/groups/without-commits").json
        assert (detail["lag"], [row["committed"] for row in detail["partitions"]]) == (
            9,
            [None] * 2,
        )
        done = setting.run("group", "describe", "without-commits", "--output", "json")
        assert [row["lag"] for row in done.json] == [5, 4]
        place = TopicPartition("corpus-times", 0, 5)
        consumer.commit(offsets=[place], asynchronous=False)
    finally:
        consumer.close()
    # The group is empty now, and has one commit.
    listed = list_groups(setting.connection, with_lag=True)
    assert [row.lag for row in listed if row.group_id == "without-commits"] == [4]


@pytest.mark.parametrize(
    ("condition", "offsets"),
    [
        ("_offset = 3", [3]),
        ("_offset BETWEEN 2 AND 3", [2, 3]),
        ("_key = 'first'", [0]),
        ("_time = make_timestamptz(1000000)", [1]),
    ],
)
def test_an_equality_reads_where_the_record_is(
    setting: Setting, condition: str, offsets: list[int]
) -> None:
    """A limit of records leaves out others; the topic was created a moment ago."""
    name = f"located-{len(condition)}"
    with Producer(bootstrap_servers=setting.cluster.bootstrap) as producer:
        for number in range(10):
            key = b"first" if number == 0 else b"other"
            producer.send(name, b"{}", key=key, timestamp=(number + 1) * 500)
    statement = f'SELECT _offset FROM "{name}" WHERE {condition} ORDER BY 1'
    reader = Reader("ada", "session", Role.VIEWER, ())
    result = Queries(RealClock(), QueryLimits(records=2)).run(setting.connection, reader, statement)
    assert [row[0] for row in result.rows] == offsets
