"""Writes each micro-batch to a database table once: the rows and the batch number in one
transaction.

A batch is first written to a table of its own beside the target (`<table>_ottla_<query>`), by any
number of Spark's tasks. Then one transaction of the driver replaces the rows of the same keys, and
stores the batch number in the table `ottla_batches`. If Spark repeats a batch, its number is found
there, and its rows are not taken over again. Only SQL that every database supports is used.

A table that does not exist is created with an index of its key: without one, each batch would read
the whole table.
"""

import contextlib
import logging
import os
from collections.abc import Iterator, Sequence
from typing import Any

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession, Window
from pyspark.sql import functions as sql

from ottla.base.errors import ConfigError
from ottla.streams.pipelines.model import JdbcSink

_log = logging.getLogger(__name__)

_BATCHES = "ottla_batches"
_CREATE = (
    "CREATE TABLE ottla_batches "
    "(query_id VARCHAR(64) NOT NULL PRIMARY KEY, batch_id BIGINT NOT NULL)"
)
_LAST = "SELECT batch_id FROM ottla_batches WHERE query_id = ?"
_BEGIN = "INSERT INTO ottla_batches (query_id, batch_id) VALUES (?, -1)"
_ADVANCE = "UPDATE ottla_batches SET batch_id = ? WHERE query_id = ? AND batch_id < ?"
# There is no row yet: a query's first batch has the number 0, and -1 is stored before it.
_NOTHING = -2
# The type of text keys: databases cannot index texts of unlimited length.
_KEY_TYPE = "VARCHAR(255)"


class JdbcTable:
    """The target of a sink. Batches are counted for each query, by the query id in its checkpoint."""

    def __init__(self, sink: JdbcSink) -> None:
        self._sink = sink
        self._query = ""
        self._table = sink.table.text
        self._key = [text.text for text in sink.key]

    @property
    def _stage(self) -> str:
        """The table of a batch; each query has its own, since several may write to one table."""
        return f"{self._table}_ottla_{self._query[:8]}"

    def write(self, batch: DataFrame, batch_id: int) -> None:
        """Write a micro-batch, unless it is in the target already; for `foreachBatch`."""
        spark = batch.sparkSession
        self._query = str(spark.sparkContext.getLocalProperty("sql.streaming.queryId"))
        with self._connection(spark) as connection:
            self._make_tables(batch, _Statements(connection))
        # Always read the whole batch: if it has totals, reading it updates their state.
        self._save(self._latest(batch), self._stage, "overwrite")
        with self._connection(spark) as connection:
            connection.setAutoCommit(False)
            try:
                self._take_over(batch.columns, batch_id, _Statements(connection))
                connection.commit()
            except BaseException:
                connection.rollback()
                raise
            connection.setAutoCommit(True)
            _Statements(connection).change(f"DROP TABLE {self._stage}")

    def last_batch(self, spark: SparkSession, query_id: str) -> int:
        """Return the number of a query's last batch in the target; -1 before the first."""
        with self._connection(spark) as connection:
            tables = _Statements(connection)
            return tables.number(_LAST, [query_id], -1) if tables.is_there(_BATCHES) else -1

    def _take_over(self, columns: Sequence[str], batch_id: int, tables: "_Statements") -> None:
        # The transaction locks this query's row: of two runs, the second waits and then sees the
        # new number.
        changed = tables.change(_ADVANCE, [batch_id, self._query, batch_id])
        if not changed:
            return
        quote = tables.quote
        # Databases change the case of names; the tables that Spark creates keep the case of the
        # frame.
        database_names = tables.columns(self._table)
        target = {name: quote(database_names.get(name.lower(), name)) for name in columns}
        if self._key:
            self._delete(
                tables, [(f"s.{quote(k)}", f"{self._table}.{target[k]}") for k in self._key]
            )
        into, values = ", ".join(target.values()), ", ".join(map(quote, columns))
        tables.change(f"INSERT INTO {self._table} ({into}) SELECT {values} FROM {self._stage}")  # noqa: S608

    def _delete(self, tables: "_Statements", key: Sequence[tuple[str, str]]) -> None:
        """Delete the rows of the target that have a key of the stage; the pairs are its columns in
        both tables.
        """
        delete = f"DELETE FROM {self._table} WHERE EXISTS (SELECT 1 FROM {self._stage} s WHERE "  # noqa: S608
        tables.change(f"{delete}{' AND '.join(f'{new} = {old}' for new, old in key)})")
        # Databases look up equal values in an index, and NULL equals nothing: NULLs are rare.
        is_null = " OR ".join(f"{new} IS NULL" for new, _ in key)
        if tables.number(f"SELECT COUNT(*) FROM {self._stage} s WHERE {is_null}", [], 0):  # noqa: S608
            same = [f"({new} = {old} OR ({new} IS NULL AND {old} IS NULL))" for new, old in key]
            tables.change(f"{delete}({is_null}) AND {' AND '.join(same)})")

    def _make_tables(self, batch: DataFrame, tables: "_Statements") -> None:
        """Create the target as Spark would, and the table of batches, if they do not exist."""
        missing = [name for name in self._key if name not in batch.columns]
        if missing:
            raise ConfigError(
                f"Sink {self._sink.name}: there is no column {missing[0]} for the key."
            )
        if not tables.is_there(self._table):
            self._create(batch, tables)
        if not tables.is_there(_BATCHES):
            try:
                tables.change(_CREATE)
            except Py4JJavaError:
                # Another sink created it first.
                if not tables.is_there(_BATCHES):
                    raise
        if tables.number(_LAST, [self._query], _NOTHING) == _NOTHING:
            tables.change(_BEGIN, [self._query])

    def _create(self, batch: DataFrame, tables: "_Statements") -> None:
        """Create the target, with an index of its key if the database can have one."""
        empty = batch.sparkSession.createDataFrame([], batch.schema)
        try:
            self._save(empty, self._table, "append")
        except (Py4JJavaError, PySparkException):
            # Another sink created it first.
            if not tables.is_there(self._table):
                raise
            return
        if self._key:
            columns = ", ".join(map(tables.quote, self._key))
            name = f"{self._table.rpartition('.')[2]}_ottla_key"
            try:
                tables.change(f"CREATE INDEX {name} ON {self._table} ({columns})")
            except Py4JJavaError as error:
                _log.warning(
                    "Sink %s: the table %s has no index of its key, so that large tables are slow: %s",
                    self._sink.name,
                    self._table,
                    error.java_exception.getMessage(),
                )

    def _latest(self, batch: DataFrame) -> DataFrame:
        """Return one row for each key: the latest, if the sink has an order."""
        latest = self._sink.latest_by
        if latest is None or not self._key:
            return batch
        ranks = Window.partitionBy(*self._key).orderBy(sql.expr(latest.text).desc())
        ranked = batch.withColumn("_rank", sql.row_number().over(ranks))
        return ranked.where("_rank = 1").drop("_rank")

    def _save(self, rows: DataFrame, table: str, mode: str) -> None:
        writer = rows.write.format("jdbc").mode(mode).options(**self._options())
        kinds = {field.name: field.dataType.simpleString() for field in rows.schema}
        texts = [f"{name} {_KEY_TYPE}" for name in self._key if kinds.get(name) == "string"]
        if texts:
            writer = writer.option("createTableColumnTypes", ", ".join(texts))
        writer.option("dbtable", table).save()

    def _options(self) -> dict[str, str]:
        sink = self._sink
        options = {"url": sink.url.text}
        if sink.user:
            options["user"] = sink.user
        if sink.password_variable:
            options["password"] = password(sink)
        if sink.driver:
            options["driver"] = sink.driver
        return options

    @contextlib.contextmanager
    def _connection(self, spark: SparkSession) -> Iterator[Any]:
        jvm: Any = spark._jvm
        if self._sink.driver:
            drivers = jvm.org.apache.spark.sql.execution.datasources.jdbc
            drivers.DriverRegistry.register(self._sink.driver)
        options = self._options()
        properties = jvm.java.util.Properties()
        for name in ("user", "password"):
            if name in options:
                properties.setProperty(name, options[name])
        connection = jvm.java.sql.DriverManager.getConnection(self._sink.url.text, properties)
        try:
            yield connection
        finally:
            connection.close()


def password(sink: JdbcSink) -> str:
    """Return the password of a database; raise ConfigError if its environment variable is not set."""
    result = os.environ.get(sink.password_variable)
    if result is None:
        raise ConfigError(
            f"Sink {sink.name}: the environment variable {sink.password_variable}, which holds the "
            "password, is not set."
        )
    return result


class _Statements:
    """SQL statements over one java.sql connection."""

    def __init__(self, connection: Any) -> None:
        self._connection = connection
        self._sign = str(connection.getMetaData().getIdentifierQuoteString()).strip()

    def quote(self, name: str) -> str:
        """Return a name quoted for this database, which preserves its case."""
        return f"{self._sign}{name}{self._sign}"

    def columns(self, table: str) -> dict[str, str]:
        """Return the columns of a table by their lower-case names."""
        statement = self._connection.createStatement()
        try:
            metadata = statement.executeQuery(f"SELECT * FROM {table} WHERE 1 = 0").getMetaData()  # noqa: S608
            names = [
                str(metadata.getColumnName(n)) for n in range(1, metadata.getColumnCount() + 1)
            ]
            return {name.lower(): name for name in names}
        finally:
            statement.close()

    def change(self, text: str, values: Sequence[int | str] = ()) -> int:
        """Execute a statement; return the number of changed rows."""
        with self._prepared(text, values) as statement:
            return int(statement.executeUpdate())

    def number(self, text: str, values: Sequence[int | str], default: int) -> int:
        """Return the first number of a query's result, or the default."""
        with self._prepared(text, values) as statement:
            rows = statement.executeQuery()
            return int(rows.getLong(1)) if rows.next() else default

    def is_there(self, table: str) -> bool:
        """Return True if statements find a table: in the schema of its name, or in the
        connection's.
        """
        try:
            self.columns(table)
        except Py4JJavaError as error:
            state = error.java_exception.getSQLState()
            # The class of wrong statements, or a database that gives no class.
            if not state or str(state).startswith(("42", "HY", "S0")):
                return False
            raise
        return True

    @contextlib.contextmanager
    def _prepared(self, text: str, values: Sequence[int | str]) -> Iterator[Any]:
        statement = self._connection.prepareStatement(text)
        try:
            for number, value in enumerate(values, 1):
                if isinstance(value, int):
                    statement.setLong(number, value)
                else:
                    statement.setString(number, value)
            yield statement
        finally:
            statement.close()
