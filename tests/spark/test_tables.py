"""The tables of a pipeline's jdbc sinks: their keys, their schemas, and several sinks in one table."""

import json
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from ottla.client.raw.producer import RecordProducer
from ottla.streams.pipelines import check
from ottla.streams.spark.pipelines.run import RunSettings, start
from ottla.testing.cluster import Cluster
from tests.spark.test_local_files import java
from tests.spark.test_pipeline_files import url as url

pytestmark = [pytest.mark.spark, pytest.mark.timeout(300), pytest.mark.slow, pytest.mark.alone]


class Tables:
    """A topic, a database, and pipelines from one to the other."""

    def __init__(self, spark: SparkSession, broker: Cluster, folder: Path, url: str) -> None:
        self._spark, self._broker, self._folder, self._url = spark, broker, folder, url

    def produce(self, topic: str, *rows: dict[str, Any]) -> None:
        """Write values of JSON."""
        with RecordProducer(self._broker.bootstrap) as producer:
            for row in rows:
                producer.send(topic, json.dumps(row).encode(), partition=0)

    def run(self, topic: str, *sinks: str) -> None:
        """Run a pipeline until all existing records are read."""
        listed = [f"  s{n}: {{from: rows, jdbc: '{self._url}', {s}}}" for n, s in enumerate(sinks)]
        source = f"{{topic: {topic}, format: json, schema: 'id int, part int, n int'}}"
        text = f"name: {topic}\nsources: {{rows: {source}}}\nsinks:\n" + "\n".join(listed)
        result = check(text)
        assert result.pipeline is not None, list(map(str, result.problems))
        settings = RunSettings(self._broker.bootstrap, str(self._folder / topic), once=True)
        with start(result.pipeline, self._spark, settings) as running:
            assert running.await_termination(timeout_s=120)

    def execute(self, *statements: str) -> None:
        """Execute statements of SQL."""
        with self._connection() as connection:
            for statement in statements:
                connection.createStatement().execute(statement)

    def query(self, statement: str) -> list[tuple[Any, ...]]:
        """Return the rows of a query, in order."""
        with self._connection() as connection:
            rows = connection.createStatement().executeQuery(statement)
            count, results = rows.getMetaData().getColumnCount(), []
            while rows.next():
                results.append(tuple(rows.getObject(n) for n in range(1, count + 1)))
        return sorted(results, key=repr)

    def _connection(self) -> Any:
        jvm = java(self._spark)
        return _Closing(jvm.java.sql.DriverManager.getConnection(self._url))


class _Closing:
    """A context of a connection of Java."""

    def __init__(self, connection: Any) -> None:
        self._connection = connection

    def __enter__(self) -> Any:
        """Return the connection."""
        return self._connection

    def __exit__(self, *_: object) -> None:
        """Close it."""
        self._connection.close()


@pytest.fixture
def tables(spark: SparkSession, broker: Cluster, tmp_path: Path, url: str) -> Tables:
    """The tables of a new database."""
    return Tables(spark, broker, tmp_path, url)


_KEYED = "table: keyed, key: [id, part], mode: append"
_INDEXES = (
    "SELECT c.conglomeratename FROM sys.sysconglomerates c JOIN sys.systables t ON t.tableid = "
    "c.tableid WHERE c.isindex AND t.tablename = 'KEYED'"
)


def test_a_row_whose_key_has_a_null_is_replaced(broker: Cluster, tables: Tables) -> None:
    """NULL equals nothing in SQL, but two rows without a part have the same key."""
    broker.create_topic("null-keys")
    tables.produce("null-keys", {"id": 1, "n": 1}, {"id": 2, "part": 7, "n": 1}, {"n": 1})
    tables.run("null-keys", _KEYED)
    tables.produce("null-keys", {"id": 1, "n": 2}, {"id": 1, "part": 7, "n": 2}, {"n": 2})
    tables.run("null-keys", _KEYED)
    rows = tables.query('SELECT "id", "part", "n" FROM keyed')
    assert rows == [(1, 7, 2), (1, None, 2), (2, 7, 1), (None, None, 2)]


def test_a_new_table_has_an_index_of_its_key(broker: Cluster, tables: Tables) -> None:
    """A batch looks up its keys instead of reading the whole table; its own table is removed."""
    broker.create_topic("indexed")
    tables.produce("indexed", {"id": 1, "part": 7, "n": 1})
    tables.run("indexed", _KEYED)
    assert tables.query(_INDEXES) == [("KEYED_OTTLA_KEY",)]
    names = "SELECT tablename FROM sys.systables WHERE tabletype = 'T'"
    assert tables.query(names) == [("KEYED",), ("OTTLA_BATCHES",)]


def test_a_table_of_another_schema_is_another_table(broker: Cluster, tables: Tables) -> None:
    """A table is looked up where statements find it."""
    broker.create_topic("schemas")
    others = ("other.kept", "other.ottla_batches")
    tables.execute("CREATE SCHEMA other", *(f"CREATE TABLE {name} (x INT)" for name in others))
    tables.produce("schemas", {"id": 1, "part": 7, "n": 1})
    tables.run("schemas", "table: kept", "table: other.new")
    assert tables.query('SELECT "id" FROM kept') == tables.query('SELECT "id" FROM other.new')
    assert tables.query("SELECT * FROM other.kept") == []


def test_two_sinks_write_to_one_table(broker: Cluster, tables: Tables) -> None:
    """Each has a table of its own for its batches."""
    broker.create_topic("shared-table")
    tables.produce("shared-table", *({"id": n, "part": 7, "n": n} for n in range(50)))
    tables.run("shared-table", "table: shared", "table: shared")
    rows = tables.query('SELECT "id", COUNT(*) FROM shared GROUP BY "id"')
    assert sorted(rows) == [(n, 2) for n in range(50)]
