"""Sessions: a random token in a cookie, of which the database has only a hash.

A session ends 12 hours after its last use, 7 days after the login, at logout, and when the user is
deleted or gets another password or role. Its CSRF token is in every form.
"""

import hashlib
import hmac
import secrets
from sqlite3 import Row
from typing import NamedTuple

from ottla.base.clock import Clock
from ottla.console.accounts.database import Database
from ottla.console.accounts.users import User, Users

IDLE_MS = 12 * 3600 * 1000
LIFE_MS = 7 * 24 * 3600 * 1000
# The time of the last use is written once a minute, not for every request.
_USE_MS = 60_000
_TABLE = """
CREATE TABLE IF NOT EXISTS sessions (
    token TEXT PRIMARY KEY,
    user TEXT NOT NULL REFERENCES users(name) ON DELETE CASCADE,
    csrf TEXT NOT NULL,
    created_ms INTEGER NOT NULL,
    used_ms INTEGER NOT NULL
)
"""


class Session(NamedTuple):
    """A session of a user; `key` identifies it on the server, and is not the token."""

    key: str
    user: User
    csrf: str

    def has_csrf(self, token: str) -> bool:
        """Compare the token of a form in constant time."""
        return hmac.compare_digest(self.csrf.encode(), token.encode())


class Sessions:
    """The table of sessions."""

    def __init__(self, database: Database, users: Users, clock: Clock) -> None:
        self._database = database
        self._users = users
        self._clock = clock
        database.create(_TABLE)

    def open(self, user: str) -> str:
        """Start a session and return its token, for the cookie."""
        now = self._clock.time_ms()
        self._database.change(
            "DELETE FROM sessions WHERE used_ms < ? OR created_ms < ?",
            (now - IDLE_MS, now - LIFE_MS),
        )
        token = secrets.token_urlsafe(32)
        self._database.change(
            "INSERT INTO sessions VALUES (?, ?, ?, ?, ?)",
            (_key(token), user, secrets.token_urlsafe(32), now, now),
        )
        return token

    def user_of(self, key: str) -> User | None:
        """Return the user of a live session; None after its end."""
        row = self._live(key, self._clock.time_ms())
        return None if row is None else self._users.find(row["user"])

    def _live(self, key: str, now: int) -> Row | None:
        row = self._database.row("SELECT * FROM sessions WHERE token = ?", (key,))
        if row is None or row["used_ms"] < now - IDLE_MS or row["created_ms"] < now - LIFE_MS:
            return None
        return row

    def find(self, token: str) -> Session | None:
        """Return the live session of a token, or None."""
        now, key = self._clock.time_ms(), _key(token)
        row = self._live(key, now)
        user = None if row is None else self._users.find(row["user"])
        if row is None or user is None:
            return None
        if row["used_ms"] < now - _USE_MS:
            self._database.change("UPDATE sessions SET used_ms = ? WHERE token = ?", (now, key))
        return Session(key, user, row["csrf"])

    def close(self, key: str) -> None:
        """End a session."""
        self._database.change("DELETE FROM sessions WHERE token = ?", (key,))

    def close_all(self, user: str, *, except_key: str = "") -> None:
        """End the sessions of a user, optionally except one."""
        self._database.change(
            "DELETE FROM sessions WHERE user = ? AND token != ?", (user, except_key)
        )


def _key(token: str) -> str:
    return hashlib.sha256(token.encode()).hexdigest()
