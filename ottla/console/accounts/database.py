"""The console's SQLite file: one connection that all threads share, one statement at a time.

The packages that store something (accounts, history, alerts) each create their own tables with
`create`. The file holds password hashes: it is readable by its owner only.
"""

import logging
import sqlite3
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from ottla.base.errors import ConfigError

FILE_NAME = "console.sqlite3"
_OWNER_ONLY, _OWNER_FOLDER = 0o600, 0o700
# Attempts to open a file that another console creates: 5 seconds.
_ATTEMPTS, _PAUSE_S = 100, 0.05

_log = logging.getLogger(__name__)

Values = Sequence[Any] | Mapping[str, Any]
"""The values of a statement, by position or by name."""


def _keep_others_out(file: Path) -> None:
    """Restrict the files of an earlier version, and those that SQLite has beside the first one."""
    try:
        for path in (file, *file.parent.glob(f"{file.name}-*")):
            path.chmod(_OWNER_ONLY)
    except OSError as error:
        _log.warning("other users may read this path=%s error=%s", file, error.strerror)


class Database:
    """An open SQLite file; `path` may be `:memory:`."""

    def __init__(self, path: str | Path) -> None:
        """Open or create the file; ConfigError if SQLite cannot open it."""
        if str(path) != ":memory:":
            file = Path(path)
            file.parent.mkdir(mode=_OWNER_FOLDER, parents=True, exist_ok=True)
            file.touch(_OWNER_ONLY, exist_ok=True)
            _keep_others_out(file)
        self._lock = threading.RLock()
        try:
            self._connection = sqlite3.connect(
                path, isolation_level=None, check_same_thread=False, timeout=5
            )
            self._connection.row_factory = sqlite3.Row
            # Readers do not wait for writers, and a commit costs no sync: a crash of the machine
            # may lose the last changes, never the file.
            self._switch_to_wal()
            self._connection.execute("PRAGMA synchronous=NORMAL")
            self._connection.execute("PRAGMA foreign_keys=ON")
        except sqlite3.Error as error:
            raise ConfigError(
                f"cannot open {str(path)!r}: {error}: move the file away, or use another --data folder"
            ) from error

    def create(self, statements: str) -> None:
        """Run statements that create tables; they must be repeatable (IF NOT EXISTS)."""
        with self._lock:
            self._connection.executescript(statements)

    def rows(self, statement: str, values: Values = ()) -> list[sqlite3.Row]:
        """Return all rows of a query."""
        with self._lock:
            return self._connection.execute(statement, values).fetchall()

    def row(self, statement: str, values: Values = ()) -> sqlite3.Row | None:
        """Return the first row of a query, or None."""
        with self._lock:
            row: sqlite3.Row | None = self._connection.execute(statement, values).fetchone()
            return row

    def change(self, statement: str, values: Values = ()) -> int:
        """Run a statement that changes rows; return how many it changed."""
        with self._lock:
            return self._connection.execute(statement, values).rowcount

    def change_many(self, statement: str, rows: Iterable[Sequence[Any]]) -> None:
        """Run a statement that changes rows once for each row of values."""
        with self._lock:
            self._connection.executemany(statement, rows)

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """Commit the changes of a block together, or none of them if it raises."""
        with self._lock:
            self._connection.execute("BEGIN IMMEDIATE")
            try:
                yield
            except BaseException:
                self._connection.execute("ROLLBACK")
                raise
            self._connection.execute("COMMIT")

    def close(self) -> None:
        """Close the file."""
        with self._lock:
            self._connection.close()

    def __del__(self) -> None:
        """Close a file that was not: Python 3.13 warns, also about one that could not be opened."""
        if hasattr(self, "_connection"):
            self._connection.close()

    def _switch_to_wal(self) -> None:
        """Retry while another console creates the file: SQLite does not wait for this statement."""
        for attempt in range(_ATTEMPTS):
            try:
                self._connection.execute("PRAGMA journal_mode=WAL")
                return
            except sqlite3.OperationalError as error:
                if error.sqlite_errorcode != sqlite3.SQLITE_BUSY or attempt == _ATTEMPTS - 1:
                    raise
            threading.Event().wait(_PAUSE_S)
