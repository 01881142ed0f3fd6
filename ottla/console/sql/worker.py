"""The door to DuckDB: runs one statement in a process of its own, which the console starts.

The process has no file and no network: DuckDB's access to both is switched off and locked before
the statement is parsed, and the operating system limits memory, processor time and the size of
files. A statement that crashes or fills DuckDB ends this process, not the console.

Frames on standard input and output have a length of four bytes. Input: the statement; then, for
each table, its name and chunks of records; then an empty frame. Output: the plan; then the result.
After a chunk, the frame `?` asks for the first rows of the result of the records so far.
"""

import json
import math
import os
import struct
import sys
from collections.abc import Callable
from functools import partial
from typing import Any, BinaryIO

import duckdb

from ottla.base.platform.processes import limit_this_process
from ottla.console.sql.pushdown import OFFSET, Node, TooDeep, keys_of, ranges_of

_LENGTH = struct.Struct(">I")
_FRAME_MAX = 1 << 28
_PEEK = b"?"
_PEEK_ROWS = 50
# DuckDB reserves address space beyond its own limit of memory.
_ADDRESS_FACTOR = 4
_ADDRESS_BYTES = 1 << 30
_FIELDS_MAX = 200
_FIELD_LENGTH = 100
_NUMBERS = ("TINYINT", "SMALLINT", "INTEGER", "BIGINT", "UTINYINT", "USMALLINT", "UINTEGER",
            "UBIGINT", "HUGEINT", "UHUGEINT", "FLOAT", "DOUBLE", "BOOLEAN")  # fmt: skip
_RAW = "\"'raw'\""
_COLUMNS = """
    _partition INTEGER, _offset BIGINT, _ms BIGINT, _key VARCHAR, _value VARCHAR, _map VARCHAR,
    _pairs VARCHAR, _is_deep BOOLEAN
"""
_RECORD = """[{"p": "INTEGER", "o": "BIGINT", "t": "BIGINT", "k": "VARCHAR", "v": "VARCHAR",
    "m": "VARCHAR", "h": "VARCHAR", "d": "BOOLEAN"}]"""
_INSERT = f"""
INSERT INTO {_RAW} SELECT r.p, r.o, r.t, r.k, r.v, r.m, r.h, r.d
FROM (SELECT unnest(from_json(?::JSON, '{_RECORD}')) AS r)
"""  # noqa: S608 - constants
# DuckDB's times have microseconds in 64 bits; later ones of a log are infinity.
_MS_MAX = 2**63 // 1000 - 1
# A map has one value for each name, the last one; the list has every header.
_TIME = f"""
CASE WHEN _ms > {_MS_MAX} THEN 'infinity' ELSE make_timestamptz(least(_ms, {_MS_MAX}) * 1000) END
"""
_SELECT = (
    f"_partition, _offset, {_TIME} AS _time, _key, _value,"
    + """
from_json(_map::JSON, '"MAP(VARCHAR, VARCHAR)"') AS headers,
from_json(_pairs::JSON, '[{"name": "VARCHAR", "value": "VARCHAR"}]') AS _headers
"""
)
# DuckDB fails at JSON that nests deeper than 128 levels.
_OBJECT = (
    "CASE WHEN _is_deep OR NOT json_valid(_value) THEN FALSE ELSE json_type(_value) = 'OBJECT' END"
)


class NotAllowed(Exception):
    """A statement that is not run; the message is for its author."""


def main() -> None:
    """Run one statement."""
    source, target = sys.stdin.buffer, sys.stdout.buffer
    settings = json.loads(_read(source))
    _limit(settings)
    try:
        connection = _open(settings)
        statement, tables = _plan(connection, settings["sql"])
        _write(target, {"tables": tables})
        hidden = _load(
            connection, source, lambda name: _write(target, _peek(connection, name, statement))
        )
        _write(target, {**_run(connection, statement, settings), "hidden": hidden})
    except (duckdb.Error, NotAllowed, TooDeep, RecursionError) as error:
        _write(target, {"error": str(error) or type(error).__name__})
    except MemoryError:
        _write(target, {"error": "the statement needs more memory than it may have"})


def _read(source: BinaryIO) -> bytes:
    (length,) = _LENGTH.unpack(source.read(_LENGTH.size))
    if length > _FRAME_MAX:
        raise ValueError("a frame is too large")
    return source.read(int(length))


def _write(target: BinaryIO, value: Any) -> None:
    data = json.dumps(value, ensure_ascii=False).encode("utf-8", "replace")
    target.write(_LENGTH.pack(len(data)) + data)
    target.flush()


def _limit(settings: dict[str, Any]) -> None:
    limit_this_process(
        cpu_seconds=int(settings["timeout_s"]) + 2,
        address_bytes=_ADDRESS_BYTES + _ADDRESS_FACTOR * int(settings["memory_bytes"]),
        file_bytes=int(settings["file_bytes"]),
    )
    os.environ.clear()


def _open(settings: dict[str, Any]) -> duckdb.DuckDBPyConnection:
    config: dict[str, Any] = {
        "memory_limit": f"{settings['memory_bytes']}B",
        "threads": 1,
        # Nothing is swapped to files.
        "temp_directory": "",
        "autoinstall_known_extensions": False,
        "autoload_known_extensions": False,
        "allow_community_extensions": False,
        # Names of Python's variables are no tables.
        "python_enable_replacements": False,
    }
    connection = duckdb.connect(":memory:", config=config)
    connection.execute("SET TimeZone = 'UTC'")
    # Files and network are off for good, except for the one file of the result.
    path = settings["parquet"].replace("'", "''")
    connection.execute(f"SET allowed_paths = ['{path}']")
    connection.execute("SET enable_external_access = false")
    connection.execute("SET lock_configuration = true")
    return connection


def _plan(connection: duckdb.DuckDBPyConnection, sql: str) -> tuple[str, list[dict[str, Any]]]:
    """Return the statement, as DuckDB writes it, and its tables with their ranges.

    NotAllowed unless it is one SELECT.
    """
    text = _one(connection, "SELECT json_serialize_sql(?::VARCHAR)", sql)
    tree = json.loads(text)
    if tree.get("error"):
        message = str(tree.get("error_message", ""))
        if "Only SELECT" in message:
            message = "only SELECT statements are allowed"
        raise NotAllowed(message)
    statements = tree["statements"]
    if len(statements) != 1:
        raise NotAllowed("write one statement")
    template = json.loads(_one(connection, "SELECT json_serialize_sql('SELECT 1')"))

    def evaluate(form: str, expression: Node) -> Any:
        template["statements"][0]["node"]["select_list"] = [expression]
        try:
            text = _one(connection, "SELECT json_deserialize_sql(?::JSON)", json.dumps(template))
            return _one(connection, form.format(f"({text.rstrip(';')})"))
        except duckdb.Error:
            # The statement itself will report the error, or needs no range.
            return None

    tree = statements[0]
    times = ranges_of(tree, partial(evaluate, "SELECT epoch_ms(CAST({} AS TIMESTAMPTZ))"))
    offsets = ranges_of(tree, partial(evaluate, "SELECT CAST(floor({}) AS BIGINT)"), OFFSET)
    keys = keys_of(tree, partial(evaluate, "SELECT CAST({} AS VARCHAR)"))
    tables = [
        {
            "name": name,
            "times": (time_range.start_ms, time_range.end_ms),
            "offsets": (offsets[name].start_ms, offsets[name].end_ms),
            "key": keys.get(name),
        }
        for name, time_range in times.items()
    ]
    # Without comments and semicolons, it can be a part of another statement.
    return _one(connection, "SELECT json_deserialize_sql(?::JSON)", text), tables


def _one(connection: duckdb.DuckDBPyConnection, sql: str, *values: Any) -> Any:
    rows = connection.execute(sql, list(values)).fetchall()
    return rows[0][0] if rows else None


def _load(
    connection: duckdb.DuckDBPyConnection, source: BinaryIO, peek: Callable[[str], None]
) -> dict[str, int]:
    """Create the tables from the frames up to the empty one; call `peek` when it is requested.

    Returns how many fields of each table are no columns.
    """
    hidden: dict[str, int] = {}
    frame = _read(source)
    while frame:
        name = frame.decode()
        connection.execute(f"CREATE TABLE {_RAW} ({_COLUMNS})")
        while (frame := _read(source))[:1] in (b"[", _PEEK):
            if frame == _PEEK:
                peek(name)
                continue
            connection.execute(_INSERT, [frame.decode("utf-8", "replace")])
        hidden[name] = _create(connection, name)
        connection.execute(f"DROP TABLE {_RAW}")
    return hidden


def _peek(connection: duckdb.DuckDBPyConnection, name: str, statement: str) -> dict[str, Any]:
    """Return the first rows of the result of the records so far; none if that fails, as for a
    table that is read later.
    """
    peeked = "\"'peek'\""
    rows: dict[str, Any] = {"columns": [], "rows": []}
    try:
        _create(connection, name, "VIEW")
        limited = f"SELECT * FROM ({statement}) LIMIT {_PEEK_ROWS}"  # noqa: S608
        connection.execute(f"CREATE TABLE {peeked} AS {limited}")
        columns, values = _rows_of(connection, peeked)
        rows = {"columns": columns, "rows": [[_plain(item) for item in row] for row in values]}
    except (duckdb.Error, MemoryError):
        pass
    connection.execute(f"DROP TABLE IF EXISTS {peeked}")
    connection.execute(f"DROP VIEW IF EXISTS {_quoted(name)}")
    return rows


def _create(connection: duckdb.DuckDBPyConnection, name: str, kind: str = "TABLE") -> int:
    """Create the table or view of a topic: the columns of records, and the fields of their JSON
    objects. Returns how many fields are no columns.
    """
    structure = _one(
        connection,
        f"SELECT json_group_structure(_value::JSON) FROM {_RAW} WHERE {_OBJECT}",  # noqa: S608
    )
    document = json.loads(structure) if structure else {}
    fields = _fields(document)
    hidden = len(document) - len(fields) if isinstance(document, dict) else 0
    table = _quoted(name)
    if not fields:
        connection.execute(f"CREATE {kind} {table} AS SELECT {_SELECT} FROM {_RAW}")  # noqa: S608
        return hidden
    shape = json.dumps(fields).replace("'", "''")
    values = f"json_transform(CASE WHEN {_OBJECT} THEN _value END, '{shape}') AS _fields"
    connection.execute(
        f"CREATE {kind} {table} AS SELECT * EXCLUDE (_fields), _fields.* "  # noqa: S608
        f"FROM (SELECT {_SELECT}, {values} FROM {_RAW})"
    )
    return hidden


def _fields(structure: Any) -> dict[str, Any]:
    """Return the fields that become columns, by a type of DuckDB or a nested structure."""
    if not isinstance(structure, dict):
        return {}
    known = {"_partition", "_offset", "_time", "_key", "_value", "headers", "_headers", "_fields"}
    fields = {}
    for field, kind in structure.items():
        is_short = 0 < len(field) <= _FIELD_LENGTH
        # Names of columns ignore case.
        if is_short and field.lower() not in known:
            known.add(field.lower())
            fields[field] = _type(kind)
        if len(fields) == _FIELDS_MAX:
            break
    return fields


def _type(kind: Any) -> Any:
    if isinstance(kind, dict):
        # Two names that differ in case only cannot be in one structure.
        if len({name.lower() for name in kind}) < len(kind) or "" in kind:
            return "JSON"
        return {name: _type(item) for name, item in kind.items()}
    if isinstance(kind, list):
        return [_type(item) for item in kind]
    # Numbers beyond 63 bits may be among others that are negative.
    return {"UBIGINT": "HUGEINT", "NULL": "JSON"}.get(kind, kind)


def _run(
    connection: duckdb.DuckDBPyConnection, statement: str, settings: dict[str, Any]
) -> dict[str, Any]:
    """Run the statement; return the columns and the rows."""
    most = settings["rows"]
    connection.execute(
        f"CREATE TABLE \"'result'\" AS SELECT * FROM ({statement}) LIMIT {most + 1}"  # noqa: S608
    )
    columns, rows = _rows_of(connection, "\"'result'\"")
    path = settings["parquet"].replace("'", "''")
    connection.execute(
        f"COPY (SELECT * FROM \"'result'\" LIMIT {most}) TO '{path}' (FORMAT parquet)"  # noqa: S608
    )
    return {
        "columns": columns,
        "rows": [[_plain(value) for value in row] for row in rows[:most]],
        "is_cut": len(rows) > most,
    }


def _rows_of(
    connection: duckdb.DuckDBPyConnection, table: str
) -> tuple[list[tuple[str, str]], list[Any]]:
    """Return the columns of a table with their types, and its rows: numbers, and texts."""
    described = connection.execute(f"DESCRIBE {table}").fetchall()
    columns = [(str(row[0]), str(row[1])) for row in described]
    selected = ", ".join(
        _quoted(name) if kind in _NUMBERS else f"CAST({_quoted(name)} AS VARCHAR)"
        for name, kind in columns
    )
    return columns, connection.execute(f"SELECT {selected} FROM {table}").fetchall()  # noqa: S608


def _plain(value: Any) -> Any:
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    return value


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


if __name__ == "__main__":
    main()
