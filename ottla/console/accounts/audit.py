"""The audit log: who changed what, when, from which address, and with which result.

Every change through the console is one row, also if it failed. Rows are never changed; the oldest
are deleted beyond the limit. Values of passwords and of records are not written. Users choose
names and values: control characters and ends of lines are escaped before they are stored, so that
neither a page nor a line of the download shows a row that was not written.
"""

import json
from collections.abc import Mapping
from sqlite3 import Row
from typing import NamedTuple

from ottla.base.clock import Clock
from ottla.base.logs import one_line
from ottla.console.accounts.database import Database

MAX_ROWS = 100_000
_TABLE = """
CREATE TABLE IF NOT EXISTS audit (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    at_ms INTEGER NOT NULL,
    user TEXT NOT NULL,
    address TEXT NOT NULL,
    cluster TEXT NOT NULL,
    action TEXT NOT NULL,
    target TEXT NOT NULL,
    details TEXT NOT NULL,
    result TEXT NOT NULL
)
"""
_MAX_VALUE = 500


class Actor(NamedTuple):
    """The user and the address of a change."""

    user: str
    address: str


class AuditEntry(NamedTuple):
    """One row of the log; `result` is `ok` or the error."""

    at_ms: int
    user: str
    address: str
    cluster: str
    action: str
    target: str
    details: dict[str, str]
    result: str


class AuditLog:
    """The table of changes."""

    def __init__(self, database: Database, clock: Clock) -> None:
        self._database = database
        self._clock = clock
        database.create(_TABLE)

    def write(
        self,
        actor: Actor,
        action: str,
        *,
        cluster: str = "",
        target: str = "",
        details: Mapping[str, str] | None = None,
        result: str = "ok",
    ) -> None:
        """Add a row; long values are cut."""
        values = {_plain(name): _plain(value) for name, value in (details or {}).items()}
        texts = map(_plain, (*actor, cluster, action, target))
        row = (*texts, json.dumps(values, ensure_ascii=False), _plain(result))
        self._database.change(
            "INSERT INTO audit VALUES (NULL, ?, ?, ?, ?, ?, ?, ?, ?)",
            (self._clock.time_ms(), *row),
        )
        self._database.change(
            "DELETE FROM audit WHERE id <= (SELECT max(id) FROM audit) - ?", (MAX_ROWS,)
        )

    def entries(
        self, *, text: str = "", cluster: str = "", limit: int = 200, before_ms: int | None = None
    ) -> list[AuditEntry]:
        """Return rows, newest first, optionally those that contain a text or are older than a time."""
        pattern = f"%{_escaped(text)}%"
        rows = self._database.rows(
            "SELECT * FROM audit WHERE (? IS NULL OR at_ms < ?) AND (? = '' OR cluster = ?)"
            " AND (user || ' ' || action || ' ' || target || ' ' || details || ' ' || result)"
            " LIKE ? ESCAPE '!' ORDER BY id DESC LIMIT ?",
            (before_ms, before_ms, cluster, cluster, pattern, limit),
        )
        return [_entry(row) for row in rows]


def _plain(text: str) -> str:
    """Return a text that is one line and can be stored; a long one is cut."""
    return one_line(text[:_MAX_VALUE])


def _escaped(text: str) -> str:
    for sign in "!%_":
        text = text.replace(sign, "!" + sign)
    return text


def _entry(row: Row) -> AuditEntry:
    return AuditEntry(
        row["at_ms"],
        row["user"],
        row["address"],
        row["cluster"],
        row["action"],
        row["target"],
        json.loads(row["details"]),
        row["result"],
    )
