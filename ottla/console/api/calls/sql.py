"""Operations for SQL over topics."""

from dataclasses import dataclass

from ottla.console.accounts.reading import Reader
from ottla.console.accounts.roles import Role
from ottla.console.api.operations import CLUSTER_PATH, Operation
from ottla.console.sql.queries import Queries
from ottla.console.sql.values import QueryResult
from ottla.operations.survey.connections import ClusterConnection


@dataclass(frozen=True, slots=True)
class Cancelled:
    """The result of a cancellation; `was_running` is False if there was no query."""

    was_running: bool


def query_topics(
    connection: ClusterConnection,
    queries: Queries,
    reader: Reader,
    *,
    sql: str,
    query_id: str = "",
    is_read_committed: bool = True,
) -> QueryResult:
    """Run one SELECT statement over topics, in DuckDB's dialect. Columns are _partition, _offset,
    _time, _key, _value, headers, and the fields of JSON objects. Limit _time: the newest 100000
    records of a topic are read at most. query_id is a name of the query's own, for its cancel.
    Records of open and aborted transactions are left out unless is_read_committed is false.
    """
    return queries.run(
        connection, reader, sql, query_id=query_id, is_read_committed=is_read_committed
    )


def cancel_query(
    connection: ClusterConnection, queries: Queries, reader: Reader, *, query_id: str = ""
) -> Cancelled:
    """Cancel the caller's running query. With query_id only that query is cancelled, also if its
    statement arrives after this call.
    """
    return Cancelled(queries.cancel(reader.user, query_id))


_SQL = f"{CLUSTER_PATH}/sql"

OPERATIONS = (
    Operation("POST", _SQL, Role.VIEWER, query_topics, "sql", is_dry_run=True),
    Operation("POST", f"{_SQL}/cancel", Role.VIEWER, cancel_query, "sql", is_dry_run=True),
)
