"""SQL over topics: the statement, its result as table and chart, downloads, cancel."""

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Any

from ottla.console.accounts.roles import Role
from ottla.console.formats import number
from ottla.console.page import Action, Done, Download, NotFound, Page, Source, View
from ottla.console.spreadsheets import csv_line
from ottla.console.sql.queries import is_available
from ottla.console.sql.values import Column, QueryRejected, QueryResult, StoredResult

EXAMPLE = "SELECT * FROM {topic} WHERE _time > now() - INTERVAL 1 HOUR LIMIT 100"
_SHOWN = 1000
_BARS = 50
_LINES = 6
_NUMBERS = ("TINYINT", "SMALLINT", "INTEGER", "BIGINT", "UTINYINT", "USMALLINT", "UINTEGER",
            "UBIGINT", "HUGEINT", "UHUGEINT", "FLOAT", "DOUBLE")  # fmt: skip
_TIMES = ("TIMESTAMP", "DATE")


def show(view: View) -> Mapping[str, Any]:
    """Return the form, and the user's last result on request."""
    user = view.actor.user
    stored = view.console.queries.last(view.reader) if view.query.is_checked("last") else None
    return {
        "is_available": is_available(),
        "sql": view.form.get("sql") or view.query.text("sql"),
        "uncommitted": view.form.is_checked("uncommitted"),
        "running": view.console.queries.running(user),
        "running_id": view.console.queries.running_id(user),
        "limits": view.console.queries.limits,
        "example": EXAMPLE.format(topic=view.query.text("topic") or "orders"),
        **_shown(None if stored is None else stored.result),
    }


def run(view: View) -> Done:
    """Run the statement and show its result."""
    queries, reader = view.console.queries, view.reader
    sql, query_id = view.form.get("sql", ""), view.form.text("query_id")
    result = queries.run(
        view.cluster,
        reader,
        sql,
        query_id=query_id,
        is_read_committed=not view.form.is_checked("uncommitted"),
    )
    if not view.may_still_read(reader):
        raise QueryRejected("your rights have changed while the query was running: run it again")
    return Done(data=_shown(result))


def cancel(view: View) -> Done:
    """Cancel the running query of the user."""
    query_id = view.form.text("query_id")
    was_running = view.console.queries.cancel(view.actor.user, query_id)
    text = "The query is cancelled." if was_running else "No query of yours is running."
    return Done(view.say(text))


def read_partial(view: View) -> Mapping[str, Any]:
    """Return the first rows so far of the query of this session that runs; None before them."""
    partial = view.console.queries.partial_result(view.reader)
    if partial is None:
        return {"partial": None}
    note = view.say(
        "Partial result: {records} of {total} records of {topic} are read.",
        records=number(partial.records),
        total=number(partial.total),
        topic=partial.topic,
    )
    columns = [column.name for column in partial.columns]
    # Numbers of browsers have 53 bits.
    rows = [[value if value is None else str(value) for value in row] for row in partial.rows]
    return {"partial": {"note": note, "columns": columns, "rows": rows}}


def download_csv(view: View) -> Download:
    """Return the last result of the user as CSV."""
    result = _last(view).result

    def lines() -> Iterator[bytes]:
        yield csv_line(column.name for column in result.columns)
        for row in result.rows:
            yield csv_line(row)

    return Download("result.csv", "text/csv; charset=utf-8", lines())


def download_parquet(view: View) -> Download:
    """Return the last result of the user as Parquet."""
    media_type = "application/vnd.apache.parquet"
    return Download("result.parquet", media_type, iter([_last(view).parquet]))


def _last(view: View) -> StoredResult:
    stored = view.console.queries.last(view.reader)
    if stored is None:
        raise NotFound("the result is no longer kept: run the query again")
    return stored


def _shown(result: QueryResult | None) -> dict[str, Any]:
    if result is None:
        return {"result": None}
    return {
        "sql": result.sql,
        "uncommitted": not result.is_read_committed,
        "result": result,
        "rows": result.rows[:_SHOWN],
        "numbers": [column.type in _NUMBERS for column in result.columns],
        "lines": lines_of(result),
        "bars": bars_of(result),
    }


def lines_of(result: QueryResult) -> dict[str, Any] | None:
    """Return the points of a line chart, if a column is a time and others are numbers. Pure."""
    times = [n for n, column in enumerate(result.columns) if column.type.startswith(_TIMES)]
    numbers = _numbers(result.columns)
    if not times or not numbers or len(result.rows) < 2:
        return None
    at = times[0]
    rows = sorted((moment, row) for row in result.rows if (moment := _seconds(row[at])) is not None)
    return {
        "at_s": [moment for moment, _ in rows],
        "series": {
            result.columns[n].name: [row[n] if _is_number(row[n]) else None for _, row in rows]
            for n in numbers[:_LINES]
        },
    }


def bars_of(result: QueryResult) -> list[tuple[str, float]]:
    """Return labels and lengths of bars, if the first column is a text and another a number. Pure."""
    numbers = _numbers(result.columns)
    if not numbers or 0 in numbers or result.columns[0].type.startswith(_TIMES):
        return []
    rows = [row for row in result.rows[:_BARS] if _is_number(row[numbers[0]])]
    return [(str(row[0]), row[numbers[0]]) for row in rows]


def _numbers(columns: tuple[Column, ...]) -> list[int]:
    """Return the columns with numbers that are worth drawing: not positions in a log."""
    positions = ("_partition", "_offset")
    return [
        n
        for n, column in enumerate(columns)
        if column.type in _NUMBERS and column.name not in positions
    ]


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _seconds(text: Any) -> float | None:
    # Python 3.11 reads the zone with minutes only, and a time without a zone is one of UTC.
    name = f"{text}:00" if str(text).endswith("+00") else str(text)
    try:
        at = datetime.fromisoformat(name)
        return (at if at.tzinfo else at.replace(tzinfo=UTC)).timestamp()
    except (ValueError, OverflowError):
        return None


PAGES = (
    Page(
        "/sql",
        "sql.html",
        show,
        "sql",
        actions={
            "run": Action(run, role=Role.VIEWER, is_preview=True),
            "cancel": Action(cancel, role=Role.VIEWER, is_preview=True),
        },
    ),
)
SOURCES = (
    Source("/sql/partial.json", read_partial),
    Source("/sql/result.csv", download_csv),
    Source("/sql/result.parquet", download_parquet),
)
