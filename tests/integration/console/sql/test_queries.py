"""SQL over the topics of a running broker: results, limits, cancel, and hostile statements."""

import json
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import duckdb
import pytest
from confluent_kafka import Producer

from ottla.base.clock import RealClock
from ottla.client.raw.batches import append_batch
from ottla.console.accounts.reading import Reader
from ottla.console.accounts.roles import Role
from ottla.console.model.messages.masking import MaskingRule
from ottla.console.model.messages.scanning import Span
from ottla.console.model.topics import NewTopic, create_topic
from ottla.console.sql import partial
from ottla.console.sql import queries as query_module
from ottla.console.sql.partial import LookSchedule
from ottla.console.sql.queries import Queries
from ottla.console.sql.reading import newest_spans
from ottla.console.sql.values import MIB, QueryBusy, QueryLimits, QueryRejected, QueryResult
from ottla.operations.survey.connections import ClusterConnection, ClusterSettings
from ottla.testing import Cluster
from ottla.wire.records.records import Record

pytestmark = pytest.mark.slow

RECORDS = 60
# An hour between two records, the last one now.
STEP_MS = 3_600_000
# A thousand billion rows, one after the other: it needs time, and no memory.
ENDLESS = "SELECT sum(range % 7) FROM range(1000000000000)"


def reader_of(user: str, rules: tuple[MaskingRule, ...] = (), session: str = "") -> Reader:
    """Return a viewer with a session of its own."""
    return Reader(user, session or f"session of {user}", Role.VIEWER, rules)


ADA, BOB = reader_of("ada"), reader_of("bob")


@pytest.fixture(scope="module")
def connection() -> Iterator[ClusterConnection]:
    """Return a connection to a broker with the topics orders, and orders.v1 without records."""
    with Cluster() as cluster:
        cluster.create_topic("orders", partitions=2)
        cluster.create_topic("orders.v1", partitions=1)
        producer = Producer({"bootstrap.servers": cluster.bootstrap})
        now_ms = int(time.time() * 1000)
        for number in range(RECORDS):
            value = {"price": number, "country": ["de", "fr"][number % 2], "item": {"id": number}}
            producer.produce(
                "orders",
                key=f"k{number}",
                value=json.dumps(value) if number % 10 else b"\x00\xff no JSON",
                headers={"trace": str(number)},
                partition=number % 2,
                timestamp=now_ms - (RECORDS - 1 - number) * STEP_MS,
            )
        producer.flush()
        opened = ClusterConnection(ClusterSettings("test", cluster.bootstrap))
        yield opened
        opened.close()


def query(connection: ClusterConnection, sql: str, **limits: int | float) -> QueryResult:
    """Run a statement with other limits."""
    queries = Queries(RealClock(), QueryLimits(**limits))  # type: ignore[arg-type]
    return queries.run(connection, ADA, sql)


def test_the_time_range_is_pushed_down_to_offsets(connection: ClusterConnection) -> None:
    """Only the 3 records of the last 3 hours are read, of 60; fields of JSON are columns."""
    sql = "SELECT _key, price, item.id FROM orders WHERE _time > now() - interval 150 minutes"
    result = query(connection, f"{sql} ORDER BY _offset, _partition;  -- newest")
    assert [column.name for column in result.columns] == ["_key", "price", "id"]
    assert result.rows == (("k57", 57, 57), ("k58", 58, 58), ("k59", 59, 59))
    (read,) = result.topics
    assert (read.records, read.total, read.is_complete) == (3, 3, True)


def test_all_columns_of_a_record(connection: ClusterConnection) -> None:
    """A value without JSON has no fields, and binary text does not stop the query."""
    sql = (
        "SELECT *, headers['trace'] AS trace FROM orders WHERE _key IN ('k10', 'k11') ORDER BY _key"
    )
    result = query(connection, sql)
    names = [column.name for column in result.columns]
    assert names == [
        *("_partition", "_offset", "_time", "_key", "_value", "headers", "_headers"),
        *("price", "country", "item", "trace"),
    ]
    rows = [dict(zip(names, row, strict=True)) for row in result.rows]
    assert [(row["_partition"], row["_offset"], row["trace"]) for row in rows] == [
        (0, 5, "10"),
        (1, 5, "11"),
    ]
    assert [(row["price"], row["country"]) for row in rows] == [(None, None), (11, "fr")]


def test_topics_with_dots_and_without_records_are_tables(connection: ClusterConnection) -> None:
    """They are quoted; without quotes the error says so."""
    assert query(connection, 'SELECT count(*) FROM "orders.v1"').rows == ((0,),)
    with pytest.raises(QueryRejected, match=r"tables are topics: quote names"):
        query(connection, "SELECT 1 FROM absent")


def test_a_misspelt_topic_is_suggested(connection: ClusterConnection) -> None:
    """The topics of the cluster are the tables; DuckDB does not know them."""
    with pytest.raises(QueryRejected, match=r"no topic 'ordres' \(did you mean \"orders\" or"):
        query(connection, "SELECT * FROM ordres")


def test_masked_fields_are_masked_before_the_statement_sees_them(
    connection: ClusterConnection,
) -> None:
    """Neither a condition nor a function gets at the hidden text."""
    rules = (MaskingRule("orders", "value", "$.country"), MaskingRule("orders", "key"))
    sql = (
        "SELECT DISTINCT country, _key, contains(_value, 'fr') FROM orders WHERE price IS NOT NULL"
    )
    result = Queries(RealClock()).run(connection, reader_of("vera", rules), sql)
    assert result.rows == (("******", "******", False),)


def test_the_newest_records_are_read_within_the_limit(connection: ClusterConnection) -> None:
    """Each partition has its share, and the result says that it is not complete."""
    result = query(connection, "SELECT min(_offset), count(*) FROM orders", records=20)
    assert result.rows == ((20, 20),)
    assert not result.topics[0].is_complete
    assert result.topics[0].total == RECORDS
    assert newest_spans({0: 0, 1: 5}, {0: 100, 1: 5}, 10) == {0: Span(90, 100)}


def test_rows_beyond_the_limit_are_cut(connection: ClusterConnection) -> None:
    """The result says that there are more; numbers that are not finite are text."""
    result = query(connection, "SELECT range, 'nan'::DOUBLE, true FROM range(1000000)", rows=2)
    assert result.rows == ((0, "nan", True), (1, "nan", True))
    assert result.is_cut


def test_parquet_has_the_rows_with_their_types(
    connection: ClusterConnection, tmp_path: Path
) -> None:
    """Another program reads them."""
    queries = Queries(RealClock())
    queries.run(connection, ADA, "SELECT price, _time, item FROM orders WHERE price > 57")
    stored = queries.last(ADA)
    assert stored is not None
    assert queries.last(reader_of("eve")) is None
    path = tmp_path / "result.parquet"
    path.write_bytes(stored.parquet)
    with duckdb.connect() as reader:
        rows = reader.execute(f"SELECT price, item.id FROM '{path}' ORDER BY 1").fetchall()
    assert rows == [(58, 58), (59, 59)]


def test_result_belongs_to_its_session_and_its_rights(connection: ClusterConnection) -> None:
    """Neither a new user of the same name, nor the same user with fewer rights, gets it."""
    queries = Queries(RealClock())
    queries.run(connection, ADA, "SELECT 1")
    assert queries.last(reader_of("ada", session="another")) is None
    assert queries.last(ADA) is not None
    masked = ADA._replace(rules=(MaskingRule("orders"),))
    assert queries.last(masked) is None
    # It is forgotten, also if the rule is deleted later.
    assert queries.last(ADA) is None
    queries.run(connection, ADA, "SELECT 1")
    assert queries.last(ADA._replace(role=Role.EDITOR)) is None


def test_result_of_a_request_with_a_password_is_not_kept(connection: ClusterConnection) -> None:
    """It has no session; other requests of the kind must not find it."""
    queries = Queries(RealClock())
    script = ADA._replace(session="")
    queries.run(connection, script, "SELECT 1")
    assert queries.last(script) is None


@pytest.mark.parametrize(
    "sql",
    [
        "",
        "SELEC 1",
        "SELECT 1; SELECT 2",
        "SELECT 1) AS x; DROP TABLE orders; --",
        "DROP TABLE orders",
        "INSERT INTO orders VALUES (1)",
        "CREATE TABLE x AS SELECT 1",
        "COPY (SELECT 1) TO '/tmp/ottla-sql-test'",
        "COPY orders FROM '/etc/passwd'",
        "ATTACH '/tmp/x.db'",
        "INSTALL httpfs",
        "LOAD httpfs",
        "SET enable_external_access = true",
        "PRAGMA database_list",
        "CALL pragma_version()",
        "EXPORT DATABASE '/tmp/x'",
        "SELECT * FROM read_csv('/etc/passwd')",
        "SELECT * FROM read_text('/etc/passwd')",
        "SELECT * FROM read_blob('/proc/self/environ')",
        "SELECT * FROM glob('/*')",
        "SELECT * FROM '/etc/passwd'",
        "SELECT * FROM '/etc/passwd.csv'",
        "SELECT * FROM 'http://127.0.0.1:1/x.csv'",
        "SELECT * FROM read_parquet('s3://bucket/x')",
        "SELECT * FROM sqlite_scan('/tmp/x', 'users')",
        "SELECT * FROM query('COPY (SELECT 1) TO ''/tmp/ottla-sql-test''')",
        "SELECT * FROM settings",
        "SELECT * FROM connection",
        "SELECT getenv('HOME')",
        "SELECT * FROM orders WHERE _time > (SELECT content FROM read_text('/etc/passwd'))",
        "SELECT " + "(" * 5000 + "1" + ")" * 5000,
        "SELECT '" + "x" * 20_000 + "'",
    ],
)
def test_a_hostile_statement_is_refused(connection: ClusterConnection, sql: str) -> None:
    """Neither files nor network nor changes nor the variables of the process; with a reason."""
    with pytest.raises(QueryRejected) as caught:
        query(connection, sql)
    assert str(caught.value)
    assert not Path("/tmp/ottla-sql-test").exists()


def test_settings_cannot_be_changed_by_a_select(connection: ClusterConnection) -> None:
    """The access to files is off, and the environment of the console is not visible."""
    sql = "SELECT current_setting('enable_external_access'), current_setting('lock_configuration')"
    assert query(connection, sql).rows == ((False, True),)


def test_too_much_memory_ends_the_query_only(connection: ClusterConnection) -> None:
    """DuckDB reports it, or its process ends; the console continues with the next query."""
    sql = "SELECT list(range) FROM range(100000000)"
    with pytest.raises(QueryRejected, match=r"(?i)memory"):
        query(connection, sql, memory_bytes=32 * MIB)
    with pytest.raises(QueryRejected):
        query(connection, "SELECT repeat('x', 4000000000)", memory_bytes=32 * MIB)
    assert query(connection, "SELECT 1").rows == ((1,),)


def test_a_query_is_stopped_after_its_time(connection: ClusterConnection) -> None:
    """The statement that never ends, does."""
    with pytest.raises(QueryRejected, match=r"stopped after 0\.5 s"):
        query(connection, ENDLESS, timeout_s=0.5)


def test_one_query_at_a_time_for_each_user_and_cancel(connection: ClusterConnection) -> None:
    """A second query of the same user is refused, another user's is not; cancel ends the first."""
    queries = Queries(RealClock())
    reasons: list[str] = []

    def run() -> None:
        try:
            queries.run(connection, ADA, ENDLESS)
        except QueryRejected as error:
            reasons.append(str(error))

    thread = threading.Thread(target=run)
    thread.start()
    while not queries.running("ada"):
        connection.pause(0.005)
    with pytest.raises(QueryBusy):
        queries.run(connection, ADA, "SELECT 1")
    assert queries.run(connection, BOB, "SELECT 1").rows == ((1,),)
    assert not queries.cancel("eve")
    assert queries.cancel("ada")
    thread.join()
    assert reasons == ["the query is cancelled"]
    assert queries.run(connection, ADA, "SELECT 1").rows == ((1,),)


def test_a_cancel_counts_for_the_query_that_it_names(connection: ClusterConnection) -> None:
    """It may arrive before the statement, which is then rejected, or after the next one began."""
    queries = Queries(RealClock())
    assert not queries.cancel("ada", "first")
    with pytest.raises(QueryRejected, match="the query is cancelled"):
        queries.run(connection, ADA, ENDLESS, query_id="first")
    assert queries.run(connection, BOB, "SELECT 1", query_id="first").rows == ((1,),)
    reasons: list[str] = []

    def run() -> None:
        try:
            queries.run(connection, ADA, ENDLESS, query_id="second")
        except QueryRejected as error:
            reasons.append(str(error))

    thread = threading.Thread(target=run)
    thread.start()
    while not queries.running("ada"):
        connection.pause(0.005)
    assert not queries.cancel("ada", "first")
    assert queries.running_id("ada") == "second"
    assert queries.cancel("ada", "second")
    thread.join()
    assert reasons == ["the query is cancelled"]
    with pytest.raises(QueryRejected, match="64 characters"):
        queries.run(connection, ADA, "SELECT 1", query_id="x" * 65)


def test_the_first_rows_are_seen_while_records_are_read(
    connection: ClusterConnection, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of the records so far, in the session that runs the query; the result is of all of them."""
    topic, count = "many", 5000
    create_topic(connection, NewTopic(topic, 1, 1))
    producer = connection.open_producer()
    for number in range(count):
        producer.produce(topic, json.dumps({"n": number}))
    assert producer.flush(10) == 0
    queries = Queries(RealClock())
    seen, others = [], []

    class Recording(LookSchedule):
        def look(self, take: Callable[[], dict[str, Any]]) -> dict[str, Any]:
            seen.append(queries.partial_result(ADA))
            others.append(queries.partial_result(BOB))
            return super().look(take)

    monkeypatch.setattr(partial, "FIRST_S", 0.0)
    monkeypatch.setattr(partial, "_PAUSES", 0.0)
    monkeypatch.setattr(query_module, "LookSchedule", Recording)
    sql = "SELECT count(*) AS rows, max(n) AS largest FROM many"
    result = queries.run(connection, ADA, sql)
    assert result.rows == ((count, count - 1),)
    shown = [row for row in seen if row is not None]
    assert [(row.records, row.total) for row in shown] == [(2000, count), (4000, count)]
    assert [row.rows for row in shown] == [((2000, 1999),), ((4000, 3999),)]
    assert [column.name for column in shown[0].columns] == ["rows", "largest"]
    assert set(others) == {None}
    assert queries.partial_result(ADA) is None


def test_a_look_that_fails_does_not_end_the_query(
    connection: ClusterConnection, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A cast that only the last records break, or that needs a column of them."""
    monkeypatch.setattr(partial, "FIRST_S", 0.0)
    queries = Queries(RealClock())
    sql = "SELECT CASE WHEN count(*) < 60 THEN error('early') ELSE 'whole' END AS a FROM orders"
    assert queries.run(connection, ADA, sql).rows == (("whole",),)


def test_times_and_characters_beyond_duckdb(connection: ClusterConnection) -> None:
    """A time that DuckDB does not have is infinity, a record without a time is before 1970, and
    the result counts the records whose NUL characters it replaces.
    """
    topic = "awkward"
    far = {"message.timestamp.after.max.ms": str(2**63 - 1), "retention.ms": "-1"}
    create_topic(connection, NewTopic(topic, 1, 1, far))
    rows = [(2**63 - 1, b"last"), (-1, b"a\x00b"), (1000, b"first")]
    with connection.brokers() as brokers:
        records = [Record(b"k", value, (), time_ms) for time_ms, value in rows]
        append_batch(brokers, topic, 0, records)
    result = query(connection, f"SELECT _offset, _time FROM {topic} ORDER BY _time")
    assert [row[0] for row in result.rows] == [1, 2, 0]
    assert result.rows[2][1] == "infinity"
    assert result.topics[0].replaced_values == 1
    early = f"SELECT _offset FROM {topic} WHERE _time > TIMESTAMPTZ '1960-01-01 00:00:00Z'"
    assert {row[0] for row in query(connection, early).rows} == {0, 1, 2}


def test_a_limit_of_bytes_leaves_out_the_newest(connection: ClusterConnection) -> None:
    """Records are read from the oldest of the range, which the result says."""
    create_topic(connection, NewTopic("heavy", 1, 1))
    now_ms = int(time.time() * 1000)
    with connection.brokers() as brokers:
        for _ in range(4):
            append_batch(brokers, "heavy", 0, [Record(b"k", b"x" * 1_000_000, (), now_ms)])
    (read,) = query(connection, "SELECT _offset FROM heavy", read_bytes=1000).topics
    assert read.records < 4
    assert (read.is_complete, read.is_newest) == (False, False)
    (read,) = query(connection, "SELECT _offset FROM heavy").topics
    assert (read.records, read.is_complete, read.is_newest) == (4, True, True)


def test_fields_that_are_no_columns_are_counted(connection: ClusterConnection) -> None:
    """`_id` is a column; a name that a column of records has, and the empty one, are none."""
    create_topic(connection, NewTopic("underscores", 1, 1))
    with connection.brokers() as brokers:
        value = b'{"_id": 7, "_time": 1, "": 2, "ID": 3, "id": 4}'
        now_ms = int(time.time() * 1000)
        append_batch(brokers, "underscores", 0, [Record(b"k", value, (), now_ms)])
    result = query(connection, 'SELECT _id, "ID" FROM underscores')
    assert result.rows == ((7, 3),)
    assert result.topics[0].hidden_fields == 3
    assert query(connection, "SELECT count(*) FROM orders").topics[0].hidden_fields == 0
