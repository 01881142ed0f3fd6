"""Queries of a running console: one at a time for each user, with limits, cancel, and downloads."""

import importlib.util
import json
import struct
import subprocess
import sys
import tempfile
import threading
from collections import OrderedDict
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, cast

from ottla.base.clock import Clock
from ottla.console.accounts.reading import Reader
from ottla.console.sql.partial import LookSchedule, PartialResult
from ottla.console.sql.pushdown import TimeRange
from ottla.console.sql.reading import Needed, TopicReader
from ottla.console.sql.suggestions import with_topics
from ottla.console.sql.values import (
    Column,
    QueryBusy,
    QueryLimits,
    QueryRejected,
    QueryResult,
    StoredResult,
    TopicRead,
)
from ottla.operations.survey.connections import ClusterConnection
from ottla.operations.survey.metadata import read_metadata

_WORKER = "ottla.console.sql.worker"
_LENGTH = struct.Struct(">I")
_ANSWER_MAX = 256 << 20
_RUNNING_MAX = 4
_RESULTS_MAX = 8
_ID_LENGTH = 64
_CANCELLED = "the query is cancelled"
_MISSING = "SQL needs DuckDB, which is not installed: pip install 'ottla[sql]'"


def is_available() -> bool:
    """Return True if DuckDB is installed; it is not imported."""
    return importlib.util.find_spec("duckdb") is not None


@dataclass(slots=True)
class _Running:
    """A query that runs; the process is ended by `stop`, from any thread."""

    sql: str
    query_id: str = ""
    is_read_committed: bool = True
    reason: str = ""
    reader: Reader | None = None
    partial: PartialResult | None = None
    _process: "subprocess.Popen[bytes] | None" = None
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def attach(self, process: "subprocess.Popen[bytes]") -> None:
        """Remember the process; it is ended at once if the query has been stopped."""
        with self._lock:
            self._process = process
            if self.reason:
                process.kill()

    def stop(self, reason: str) -> None:
        """End the query; the first reason counts."""
        with self._lock:
            self.reason = self.reason or reason
            if self._process is not None:
                self._process.kill()

    def is_stopped(self) -> bool:
        """Return True after `stop`."""
        return bool(self.reason)


class Queries:
    """The queries of all users; any thread may use it."""

    def __init__(self, clock: Clock, limits: QueryLimits | None = None) -> None:
        self.limits = limits or QueryLimits()
        self._clock = clock
        self._lock = threading.Lock()
        self._running: dict[str, _Running] = {}
        # By user: the query that was cancelled before it began, or after its end.
        self._cancelled: dict[str, str] = {}
        # By session.
        self._results: OrderedDict[str, StoredResult] = OrderedDict()

    def run(
        self,
        connection: ClusterConnection,
        reader: Reader,
        sql: str,
        *,
        query_id: str = "",
        is_read_committed: bool = True,
    ) -> QueryResult:
        """Run a statement, and keep its result for downloads in the session of the reader.

        `query_id`, which the caller chooses, names the query to `cancel`. Records of open and
        aborted transactions are left out unless `is_read_committed` is False. Raises QueryBusy if
        another one of the user runs, QueryRejected if it cannot be run or is cancelled.
        """
        self._check(sql)
        if len(query_id) > _ID_LENGTH:
            raise QueryRejected(f"the id of a query has {_ID_LENGTH} characters at most")
        running = _Running(sql, query_id, is_read_committed, reader=reader)
        user = reader.user
        with self._lock:
            if query_id and self._cancelled.get(user) == query_id:
                raise QueryRejected(_CANCELLED)
            if user in self._running:
                raise QueryBusy("a query of yours is running: wait for it, or cancel it")
            if len(self._running) >= _RUNNING_MAX:
                raise QueryBusy(f"{_RUNNING_MAX} queries are running: try again in a moment")
            self._running[user] = running
        timer = threading.Timer(self.limits.timeout_s, running.stop, ("timeout",))
        timer.daemon = True
        timer.start()
        try:
            stored = self._execute(connection, running, reader)
        finally:
            timer.cancel()
            with self._lock:
                del self._running[user]
        self._keep(stored)
        return stored.result

    def cancel(self, user: str, query_id: str = "") -> bool:
        """Cancel the running query of a user; return False if it does not run.

        With `query_id`, no other query is cancelled, and this one is rejected if it begins later:
        a cancel that is sent while the statement is on its way may arrive first.
        """
        with self._lock:
            running = self._running.get(user)
            if query_id and (running is None or running.query_id != query_id):
                self._cancelled[user] = query_id[:_ID_LENGTH]
                return False
        if running is not None:
            running.stop("cancelled")
        return running is not None

    def running(self, user: str) -> str:
        """Return the statement of a user that runs, or an empty text."""
        with self._lock:
            running = self._running.get(user)
        return running.sql if running else ""

    def running_id(self, user: str) -> str:
        """Return the id of the query of a user that runs, or an empty text."""
        with self._lock:
            running = self._running.get(user)
        return running.query_id if running else ""

    def partial_result(self, reader: Reader) -> PartialResult | None:
        """Return the first rows so far of the query that runs in a session, if there are any and
        the user has the rights with which it began.
        """
        with self._lock:
            running = self._running.get(reader.user)
        return None if running is None or running.reader != reader else running.partial

    def last(self, reader: Reader) -> StoredResult | None:
        """Return the last result of a session, if it is still kept and the user has the rights
        with which it was read.
        """
        with self._lock:
            stored = self._results.get(reader.session)
            if stored is not None and stored.reader != reader:
                del self._results[reader.session]
                return None
            return stored

    def close(self) -> None:
        """Cancel all queries."""
        with self._lock:
            running = list(self._running.values())
        for query in running:
            query.stop("cancelled")

    def _check(self, sql: str) -> None:
        if not is_available():
            raise QueryRejected(_MISSING)
        if not sql.strip():
            raise QueryRejected("write a SELECT statement")
        if len(sql) > self.limits.sql_length:
            raise QueryRejected(f"a statement has {self.limits.sql_length} characters at most")

    def _keep(self, stored: StoredResult) -> None:
        session = stored.reader.session
        if not session:
            # A request with a password has its result already.
            return
        with self._lock:
            self._results.pop(session, None)
            self._results[session] = stored
            while len(self._results) > _RESULTS_MAX:
                self._results.popitem(last=False)

    def _execute(
        self, connection: ClusterConnection, running: _Running, reader: Reader
    ) -> StoredResult:
        started = self._clock.monotonic()
        with tempfile.TemporaryDirectory(prefix="ottla-sql-") as folder:
            path = Path(folder) / "result.parquet"
            process = subprocess.Popen(  # noqa: S603 - our own module
                [sys.executable, "-m", _WORKER],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
            )
            running.attach(process)
            try:
                answer, topics = self._talk(process, connection, running, reader, path)
            except QueryRejected as error:
                topics_of = partial(_topic_names, connection)
                raise QueryRejected(with_topics(str(error), topics_of)) from error
            finally:
                process.kill()
                process.communicate()
            parquet = path.read_bytes()
        result = QueryResult(
            running.sql,
            tuple(Column(name, kind) for name, kind in answer["columns"]),
            tuple(tuple(row) for row in answer["rows"]),
            answer["is_cut"],
            tuple(replace(read, hidden_fields=answer["hidden"][read.topic]) for read in topics),
            self._clock.monotonic() - started,
            running.is_read_committed,
        )
        return StoredResult(reader, result, parquet)

    def _talk(
        self,
        process: "subprocess.Popen[bytes]",
        connection: ClusterConnection,
        running: _Running,
        user: Reader,
        path: Path,
    ) -> tuple[dict[str, Any], list[TopicRead]]:
        """Pass the statement and its records to the process; return its response."""
        limits = self.limits
        settings = {
            "sql": running.sql,
            "timeout_s": limits.timeout_s,
            "memory_bytes": limits.memory_bytes,
            "file_bytes": limits.file_bytes,
            "rows": limits.rows,
            "parquet": str(path),
        }
        try:
            _send(process, json.dumps(settings).encode())
            plan = _receive(process)
            topics = []
            schedule = LookSchedule(self._clock.monotonic)
            readers = self._readers(plan, connection, running, user)
            for reader in readers:
                _send(process, reader.topic.encode())
                for chunk in reader.chunks():
                    _send(process, chunk)
                    # The other tables are complete.
                    if reader is readers[-1] and schedule.is_due():
                        rows = schedule.look(partial(_peek, process))
                        running.partial = _partial(reader.report(), rows) or running.partial
                topics.append(reader.report())
            _send(process, b"")
            return _receive(process), topics
        except (EOFError, OSError) as error:
            raise QueryRejected(self._ended(running)) from error

    def _ended(self, running: _Running) -> str:
        if running.reason == "timeout":
            return f"the query is stopped after {self.limits.timeout_s:g} s: read less, by _time"
        if running.reason:
            return _CANCELLED
        megabytes = self.limits.memory_bytes // (1 << 20)
        return f"the query has ended: it needs more than {megabytes} MiB of memory, or too long"

    def _readers(
        self,
        plan: dict[str, Any],
        connection: ClusterConnection,
        running: _Running,
        user: Reader,
    ) -> list[TopicReader]:
        known = read_metadata(connection).topics.keys()
        if any(table["name"] not in known for table in plan["tables"]):
            # It may have been created a moment ago.
            known = read_metadata(connection, is_fresh=True).topics.keys()
        for table in plan["tables"]:
            name = table["name"]
            if name in known and user.role_in(connection.name, name) is None:
                raise QueryRejected(f"you have no right for the topic {name!r}: ask an admin")
        tables = [table for table in plan["tables"] if table["name"] in known]
        if len(tables) > self.limits.topics:
            raise QueryRejected(f"a statement reads {self.limits.topics} topics at most")
        return [
            TopicReader(
                connection,
                table["name"],
                Needed(TimeRange(*table["times"]), TimeRange(*table["offsets"]), table["key"]),
                self.limits,
                user.rules,
                running.is_stopped,
                running.is_read_committed,
            )
            for table in tables
        ]


def _send(process: "subprocess.Popen[bytes]", data: bytes) -> None:
    assert process.stdin is not None, "the process has pipes"
    process.stdin.write(_LENGTH.pack(len(data)) + data)
    process.stdin.flush()


def _peek(process: "subprocess.Popen[bytes]") -> dict[str, Any]:
    _send(process, b"?")
    return _receive(process)


def _partial(read: TopicRead, rows: dict[str, Any]) -> PartialResult | None:
    if not rows["columns"]:
        return None
    columns = tuple(Column(name, kind) for name, kind in rows["columns"])
    values = tuple(tuple(row) for row in rows["rows"])
    return PartialResult(read.topic, read.records, read.total, columns, values)


def _receive(process: "subprocess.Popen[bytes]") -> dict[str, Any]:
    """Return the next response; QueryRejected for an error, EOFError if the process has ended."""
    assert process.stdout is not None, "the process has pipes"
    header = process.stdout.read(_LENGTH.size)
    if len(header) < _LENGTH.size:
        raise EOFError
    (length,) = _LENGTH.unpack(header)
    data = process.stdout.read(length) if length <= _ANSWER_MAX else b""
    if len(data) < length:
        raise EOFError
    message = cast("dict[str, Any]", json.loads(data))
    if "error" in message:
        raise QueryRejected(str(message["error"]).partition("\n\nLINE")[0])
    return message


def _topic_names(connection: ClusterConnection) -> list[str]:
    return list(read_metadata(connection).topics)
