"""The database of a task: the entries of its maps, and the changelog offsets that they cover.

SQLite, with a checksum for each entry, because SQLite does not check its pages. A database is read
completely when it is opened: damage that is found later would be in results already. A crash of the
machine loses the last batches, never parts of one: they are read from the changelog again.
"""

import contextlib
import os
import sqlite3
import struct
import zlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, NoReturn

from ottla.streams.local.disk.maps import MapChanges, PersistentMap
from ottla.streams.model.errors import StateDamaged, StreamsError
from ottla.streams.model.packing import pack, unpack

FILE_NAME = "state.db"
_FORMAT = b"\1"
_TABLES = """
CREATE TABLE IF NOT EXISTS entries (
    map INTEGER NOT NULL, key BLOB NOT NULL, value BLOB NOT NULL, PRIMARY KEY (map, key)
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS meta (id INTEGER PRIMARY KEY, value BLOB NOT NULL);
"""
PRAGMAS = (
    # Readers and a crash of this process see whole batches.
    "PRAGMA journal_mode=WAL",
    "PRAGMA synchronous=NORMAL",
    "PRAGMA cache_size=-8192",
    "PRAGMA temp_store=MEMORY",
)
_SUM = struct.Struct(">I")
_DAMAGED = (
    sqlite3.SQLITE_CORRUPT,
    sqlite3.SQLITE_NOTADB,
    sqlite3.SQLITE_SCHEMA,
    # The statements are right: the format or the tables of the file are not.
    sqlite3.SQLITE_ERROR,
)
_PRIMARY_CODE = 0xFF
_ROWS = "SELECT key, value FROM entries WHERE map = ?"


@dataclass
class SavedState:
    """The contents of a database besides the entries of its maps."""

    fingerprint: str = ""
    """The changelogs that the state belongs to; state of others is not used."""
    positions: dict[str, int] = field(default_factory=dict)
    """The offset after the last record of each changelog that the entries contain."""
    remembered: dict[str, Any] = field(default_factory=dict)
    """The state of each store that is not in its maps."""
    saved_ms: int = 0
    """The wall-clock time of the last batch."""


class StateDatabase:
    """The database of one task. One thread writes; others may read."""

    def __init__(self, folder: str) -> None:
        """Open the database of a folder, which exists; StateDamaged if it cannot be read."""
        self.folder = folder
        self._path = os.path.join(folder, FILE_NAME)
        self._maps: dict[str, PersistentMap] = {}
        self._numbers: dict[str, int] = {}
        self.saved = SavedState()
        self.damage = ""
        """The damage that was found since the database was opened; a caller may have ignored it."""
        with self._errors():
            self._connection = sqlite3.connect(
                self._path, isolation_level=None, check_same_thread=False, cached_statements=64
            )
        try:
            with self._errors():
                for pragma in PRAGMAS:
                    self._connection.execute(pragma).close()
                self._connection.executescript(_TABLES)
                self._verify()
        except BaseException:
            self._connection.close()
            raise

    def _verify(self) -> None:
        for (report,) in self._connection.execute("PRAGMA quick_check(1)"):
            if report != "ok":
                raise self._damaged(report)
        row = self._connection.execute("SELECT value FROM meta WHERE id = 0").fetchone()
        maps = set()
        for number, key, value in self._connection.execute("SELECT map, key, value FROM entries"):
            self.checked(number, key, value)
            maps.add(number)
        if row is None:
            if maps:
                raise self._damaged("entries without the offsets that they cover")
            return
        meta = self.checked(0, b"", row[0])
        if meta[:1] != _FORMAT:
            raise self._damaged(f"its format {meta[:1]!r} is not known")
        document = unpack(meta[1:])
        self._numbers = document["maps"]
        self.saved = SavedState(**document["saved"])

    @property
    def names(self) -> frozenset[str]:
        """The names of the maps that were opened, or are in the last batch."""
        return frozenset(self._numbers)

    def open_map(self, name: str) -> PersistentMap:
        """Return the map of a name; equal names are the same map."""
        entries = self._maps.get(name)
        if entries is None:
            number = self._numbers.get(name)
            if number is None:
                number = self._numbers[name] = 1 + max(self._numbers.values(), default=0)
            entries = self._maps[name] = PersistentMap(self, number)
        return entries

    @property
    def uncommitted_bytes(self) -> int:
        """The size of the writes since the last batch, approximately."""
        return sum(entries.uncommitted_bytes for entries in self._maps.values())

    def save(self, saved: SavedState) -> None:
        """Write everything since the last batch, and the offsets that it covers, in one batch."""
        batch = [(entries, entries.changes()) for entries in self._maps.values()]
        dropped = {name for name, entries in self._maps.items() if entries.is_dropped}
        numbers = {name: row for name, row in self._numbers.items() if name not in dropped}
        document = {"maps": numbers, "saved": vars(saved)}
        execute = self._connection.execute
        with self._errors():
            execute("BEGIN IMMEDIATE")
            try:
                for entries, changes in batch:
                    self._write(entries.number, changes)
                meta = self._row(0, b"", _FORMAT + pack(document))[2]
                execute("INSERT OR REPLACE INTO meta VALUES (0, ?)", (meta,))
                execute("COMMIT")
            except BaseException:
                with contextlib.suppress(sqlite3.Error):
                    execute("ROLLBACK")
                raise
        self.saved = saved
        for entries, _ in batch:
            entries.note_saved()

    def _write(self, number: int, changes: MapChanges) -> None:
        if changes.is_cleared:
            self._connection.execute("DELETE FROM entries WHERE map = ?", (number,))
        if changes.removed:
            self._connection.executemany(
                "DELETE FROM entries WHERE map = ? AND key = ?",
                [(number, key) for key in sorted(changes.removed)],
            )
        if changes.written:
            self._connection.executemany(
                "INSERT OR REPLACE INTO entries VALUES (?, ?, ?)",
                [self._row(number, key, value) for key, value in changes.written],
            )

    @staticmethod
    def _row(number: int, key: bytes, value: bytes) -> tuple[int, bytes, bytes]:
        return number, key, _SUM.pack(_checksum(number, key, value)) + value

    def checked(self, number: int, key: bytes, stored: bytes) -> bytes:
        """Return a stored value without its checksum; StateDamaged if that is wrong."""
        value = stored[_SUM.size :]
        if stored[: _SUM.size] != _SUM.pack(_checksum(number, key, value)):
            raise self._damaged("the checksum of an entry is wrong")
        return value

    # -- reads of maps ----------------------------------------------------------------------------

    def get(self, number: int, key: bytes) -> bytes | None:
        """Return the stored value of a key of a map."""
        with self._errors():
            row = self._connection.execute(
                "SELECT value FROM entries WHERE map = ? AND key = ?", (number, key)
            ).fetchone()
        return None if row is None else self.checked(number, key, row[0])

    def rows(
        self, number: int, low: bytes | None, high: bytes | None, *, reverse: bool = False
    ) -> list[tuple[bytes, bytes]]:
        """Return the stored entries from `low` to `high`, both inclusive."""
        query, values = _ROWS, [number, *(bound for bound in (low, high) if bound is not None)]
        query += " AND key >= ?" if low is not None else ""
        query += " AND key <= ?" if high is not None else ""
        query += f" ORDER BY key {'DESC' if reverse else 'ASC'}"
        with self._errors():
            rows = self._connection.execute(query, values).fetchall()
        return [(key, self.checked(number, key, stored)) for key, stored in rows]

    def after(self, number: int, key: bytes | None) -> Iterator[tuple[bytes, bytes]]:
        """Iterate over the stored entries after a key; None: from the first one."""
        is_after = "" if key is None else " AND key > ?"
        values = [number] if key is None else [number, key]
        with self._errors():
            cursor = self._connection.execute(f"{_ROWS}{is_after} ORDER BY key", values)
            for found, stored in cursor:
                yield found, self.checked(number, found, stored)

    def count(self, number: int) -> int:
        """Return the number of stored entries of a map."""
        with self._errors():
            row = self._connection.execute(
                "SELECT count(*) FROM entries WHERE map = ?", (number,)
            ).fetchone()
        return int(row[0])

    def close(self) -> None:
        """Close the database; writes since the last batch are lost."""
        self._connection.close()

    @contextlib.contextmanager
    def _errors(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.Error as error:
            self._fail(error)

    def _damaged(self, reason: str) -> StateDamaged:
        self.damage = f"{self._path}: {reason}"
        return StateDamaged(self.damage)

    def _fail(self, error: sqlite3.Error) -> NoReturn:
        extended = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_OK)
        if extended & _PRIMARY_CODE in _DAMAGED or extended == sqlite3.SQLITE_IOERR_SHORT_READ:
            raise self._damaged(str(error)) from error
        raise StreamsError(
            f"the state in {self._path!r} cannot be read or written: {error}. Check the free space "
            "and the permissions of state_dir, then start the application again"
        ) from error


def _checksum(number: int, key: bytes, value: bytes) -> int:
    # The length: a byte that moves from the key to the value is damage, too.
    return zlib.crc32(value, zlib.crc32(key, (number << 16 ^ len(key)) & 0xFFFFFFFF))


def saved_positions(folder: str) -> dict[str, int]:
    """Return the positions of a database that another thread may use, without checking its entries.

    Empty if it does not exist, or cannot be read.
    """
    path = os.path.join(folder, FILE_NAME)
    if not os.path.exists(path):
        return {}
    try:
        connection = sqlite3.connect(path)
        try:
            row = connection.execute("SELECT value FROM meta WHERE id = 0").fetchone()
        finally:
            connection.close()
    except sqlite3.Error:
        return {}
    if row is None or row[0][: _SUM.size] != _SUM.pack(_checksum(0, b"", row[0][_SUM.size :])):
        return {}
    meta = row[0][_SUM.size :]
    if meta[:1] != _FORMAT:
        return {}
    positions: dict[str, int] = unpack(meta[1:])["saved"]["positions"]
    return positions
