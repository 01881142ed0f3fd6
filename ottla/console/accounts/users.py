"""The users of the console, with their roles.

The first start creates `admin` with a one-time password, which must be replaced at the first login.
"""

import re
from collections.abc import Sequence
from sqlite3 import Row
from typing import NamedTuple

from ottla.base.clock import Clock
from ottla.base.errors import OttlaError
from ottla.console.accounts.database import Database
from ottla.console.accounts.passwords import (
    MAX_LENGTH,
    MIN_LENGTH,
    hash_password,
    is_password,
    one_time_password,
)
from ottla.console.accounts.roles import Role, parse_role

FIRST_USER = "admin"
_TABLE = """
CREATE TABLE IF NOT EXISTS users (
    name TEXT PRIMARY KEY,
    password TEXT NOT NULL,
    role TEXT NOT NULL,
    must_change INTEGER NOT NULL,
    created_ms INTEGER NOT NULL,
    login_ms INTEGER
)
"""
_INSERT = "INSERT INTO users VALUES (?, ?, ?, ?, ?, NULL)"
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._@-]{0,63}")
# Compared with the password of an unknown user, so that both cases take the same time.
_UNKNOWN_USER = (
    "scrypt$32768$8$3$AAAAAAAAAAAAAAAAAAAAAA==$AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA="
)


# No text has this hash; another salt than that of an unknown user.
_LINKS_ONLY = (
    "scrypt$32768$8$3$AQEBAQEBAQEBAQEBAQEBAQ==$AQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQE="
)


class AccountError(OttlaError):
    """A change of users that is not possible; the message says why."""


class User(NamedTuple):
    """A user; `login_ms` is the time of the last login, or None."""

    name: str
    role: Role
    must_change: bool
    created_ms: int
    login_ms: int | None


class Users:
    """The table of users."""

    def __init__(self, database: Database, clock: Clock) -> None:
        self._database = database
        self._clock = clock
        database.create(_TABLE)

    def create_first(
        self, password: str | None = None, *, has_login_link: bool = False
    ) -> str | None:
        """Create the admin if there are no users; return the password if it is a new, random one.

        Of consoles that start at the same time with one file, one creates the admin. With a login
        link and no `password`, the admin gets none; later starts without a link create one.
        """
        if self._database.row("SELECT 1 FROM users") is not None:
            return None if has_login_link and not password else self._set_missing_password(password)
        if has_login_link and not password:
            first = FIRST_USER, _LINKS_ONLY, Role.ADMIN.label, False, self._clock.time_ms()
            with self._database.transaction():
                if self._database.row("SELECT 1 FROM users") is None:
                    self._database.change(_INSERT, first)
            return None
        random = None if password else one_time_password()
        row = self._new(FIRST_USER, password or str(random), Role.ADMIN, random is not None)
        with self._database.transaction():
            if self._database.row("SELECT 1 FROM users") is not None:
                return None
            self._database.change(_INSERT, row)
        return random

    def _set_missing_password(self, password: str | None) -> str | None:
        """Set the password of an admin who has logged in by links only; return a random one."""
        if self.has_password(FIRST_USER) or self.find(FIRST_USER) is None:
            return None
        random = None if password else one_time_password()
        self.set_password(FIRST_USER, password or str(random), must_change=random is not None)
        return random

    def has_password(self, name: str) -> bool:
        """Return False for an admin who logs in by links, and for an unknown user."""
        row = self._database.row("SELECT password FROM users WHERE name = ?", (name,))
        return row is not None and row["password"] != _LINKS_ONLY

    def needs_old_password(self, user: User) -> bool:
        """Return False if the user has just typed a one-time password, or has no password."""
        return not user.must_change and self.has_password(user.name)

    def create(self, name: str, password: str, role: Role, *, must_change: bool = True) -> None:
        """Create a user; AccountError if the name is taken or a value is not allowed."""
        row = self._new(name, password, role, must_change)
        with self._database.transaction():
            if self.find(name) is not None:
                raise AccountError(f"user {name!r} already exists: choose another name")
            self._database.change(_INSERT, row)

    def create_external(self, name: str, role: Role) -> None:
        """Create a user without a password, whom an identity provider knows; AccountError if the
        name is taken or not allowed.
        """
        _check_name(name)
        row = name, _UNKNOWN_USER, role.label, False, self._clock.time_ms()
        with self._database.transaction():
            if self.find(name) is not None:
                raise AccountError(
                    f"the console has another user {name!r}: an admin can delete that one"
                )
            self._database.change(_INSERT, row)

    def note_login(self, name: str) -> User | None:
        """Store the time of a login, and return the user."""
        now = self._clock.time_ms()
        self._database.change("UPDATE users SET login_ms = ? WHERE name = ?", (now, name))
        return self.find(name)

    def find(self, name: str) -> User | None:
        """Return the user of that name, or None."""
        row = self._database.row("SELECT * FROM users WHERE name = ?", (name,))
        return None if row is None else _user(row)

    def all(self) -> list[User]:
        """Return all users by name."""
        return [_user(row) for row in self._database.rows("SELECT * FROM users ORDER BY name")]

    def login(self, name: str, password: str) -> User | None:
        """Return the user if the password is right; as slow for an unknown name."""
        row = self._database.row("SELECT * FROM users WHERE name = ?", (name,))
        is_right = is_password(password[:MAX_LENGTH], row["password"] if row else _UNKNOWN_USER)
        if row is None or not is_right:
            return None
        self._database.change(
            "UPDATE users SET login_ms = ? WHERE name = ?", (self._clock.time_ms(), name)
        )
        return _user(row)

    def is_password(self, name: str, password: str) -> bool:
        """Check the password of a user who is logged in."""
        row = self._database.row("SELECT password FROM users WHERE name = ?", (name,))
        return row is not None and is_password(password[:MAX_LENGTH], row["password"])

    def set_password(self, name: str, password: str, *, must_change: bool = False) -> None:
        """Replace a user's password; AccountError if it is too short or the old one."""
        _check_password(password)
        if self.is_password(name, password):
            raise AccountError("the new password is the old one: choose another")
        changed = self._database.change(
            "UPDATE users SET password = ?, must_change = ? WHERE name = ?",
            (hash_password(password), must_change, name),
        )
        _check_found(changed, name)

    def set_role(self, name: str, role: Role) -> None:
        """Change a user's role; AccountError for the last admin."""
        with self._database.transaction():
            if role is not Role.ADMIN:
                self._check_not_last_admin(name)
            changed = self._database.change(
                "UPDATE users SET role = ? WHERE name = ?", (role.label, name)
            )
            _check_found(changed, name)

    def delete(self, name: str) -> None:
        """Delete a user; AccountError for the last admin."""
        with self._database.transaction():
            self._check_not_last_admin(name)
            _check_found(self._database.change("DELETE FROM users WHERE name = ?", (name,)), name)

    def _new(self, name: str, password: str, role: Role, must_change: bool) -> Sequence[object]:
        """Return the values of a new user's row. The hash takes time: outside of a transaction."""
        _check_name(name)
        _check_password(password)
        return name, hash_password(password), role.label, must_change, self._clock.time_ms()

    def _check_not_last_admin(self, name: str) -> None:
        admins = [user.name for user in self.all() if user.role is Role.ADMIN]
        if admins == [name]:
            raise AccountError(f"user {name!r} is the last admin: make another user admin first")


def _user(row: Row) -> User:
    return User(
        row["name"],
        parse_role(row["role"]),
        bool(row["must_change"]),
        row["created_ms"],
        row["login_ms"],
    )


def _check_name(name: str) -> None:
    if not _NAME.fullmatch(name):
        raise AccountError(
            f"user name {name!r} is not allowed: use up to 64 letters, digits and . _ @ -"
        )


def _check_password(password: str) -> None:
    if not MIN_LENGTH <= len(password) <= MAX_LENGTH:
        raise AccountError(f"a password needs {MIN_LENGTH} to {MAX_LENGTH} characters")


def _check_found(changed: int, name: str) -> None:
    if not changed:
        raise AccountError(f"there is no user {name!r}")
