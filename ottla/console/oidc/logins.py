"""Logins that have begun, and the users of identity providers, in the console's file.

A user of a provider is a user of the console with a role and without a password. The name of a
user with a password, or of another subject, is never taken over.
"""

import base64
import hashlib
import secrets
from typing import NamedTuple

from ottla.base.clock import Clock
from ottla.console.accounts.database import Database
from ottla.console.accounts.roles import Role
from ottla.console.accounts.sessions import Sessions
from ottla.console.accounts.users import AccountError, User, Users
from ottla.console.oidc.provider import PendingLogin, ProviderUser

_LIFE_MS = 10 * 60 * 1000
_PENDING_MAX = 1000
_TABLES = """
CREATE TABLE IF NOT EXISTS oidc_logins (
    state TEXT PRIMARY KEY,
    browser TEXT NOT NULL,
    nonce TEXT NOT NULL,
    verifier TEXT NOT NULL,
    next TEXT NOT NULL,
    at_ms INTEGER NOT NULL
);
CREATE TABLE IF NOT EXISTS oidc_users (
    name TEXT PRIMARY KEY REFERENCES users(name) ON DELETE CASCADE,
    issuer TEXT NOT NULL,
    subject TEXT NOT NULL,
    UNIQUE (issuer, subject)
)
"""


class BegunLogin(NamedTuple):
    """A login that has begun: the state in the address, and the secret of the browser's cookie."""

    state: str
    browser: str
    pending: PendingLogin
    next: str

    @property
    def challenge(self) -> str:
        """The hash of the verifier, which the provider compares later (RFC 7636, S256)."""
        digest = hashlib.sha256(self.pending.verifier.encode()).digest()
        return base64.urlsafe_b64encode(digest).decode().rstrip("=")


class OidcLogins:
    """The tables; any thread may use them."""

    def __init__(self, database: Database, users: Users, sessions: Sessions, clock: Clock) -> None:
        self._database = database
        self._users = users
        self._sessions = sessions
        self._clock = clock
        database.create(_TABLES)

    def begin(self, target: str) -> BegunLogin:
        """Begin a login that leads to a page of the console."""
        now = self._clock.time_ms()
        state, browser, nonce, verifier = (secrets.token_urlsafe(32) for _ in range(4))
        with self._database.transaction():
            self._database.change("DELETE FROM oidc_logins WHERE at_ms < ?", (now - _LIFE_MS,))
            self._database.change(
                "INSERT INTO oidc_logins VALUES (?, ?, ?, ?, ?, ?)",
                (_hash(state), _hash(browser), nonce, verifier, target, now),
            )
            self._database.change(
                "DELETE FROM oidc_logins WHERE state NOT IN"
                " (SELECT state FROM oidc_logins ORDER BY at_ms DESC, rowid DESC LIMIT ?)",
                (_PENDING_MAX,),
            )
        return BegunLogin(state, browser, PendingLogin(nonce, verifier), target)

    def take(self, state: str, browser: str) -> BegunLogin | None:
        """Return a login that this browser has begun, once; None for any other."""
        with self._database.transaction():
            row = self._database.row(
                "SELECT * FROM oidc_logins WHERE state = ? AND at_ms >= ?",
                (_hash(state), self._clock.time_ms() - _LIFE_MS),
            )
            self._database.change("DELETE FROM oidc_logins WHERE state = ?", (_hash(state),))
        if row is None or not secrets.compare_digest(row["browser"], _hash(browser)):
            return None
        pending = PendingLogin(row["nonce"], row["verifier"])
        return BegunLogin(state, browser, pending, row["next"])

    def log_in(self, identity: ProviderUser, name: str, role: Role) -> User:
        """Return the user of an identity, with the role that its groups have now.

        AccountError if another user has the name. Sessions with another role end.
        """
        row = self._database.row(
            "SELECT name FROM oidc_users WHERE issuer = ? AND subject = ?",
            (identity.issuer, identity.subject),
        )
        known = None if row is None else self._users.find(row["name"])
        if known is None:
            self._users.create_external(name, role)
            self._database.change(
                "INSERT INTO oidc_users VALUES (?, ?, ?)",
                (name, identity.issuer, identity.subject),
            )
        elif known.role is not role:
            self._users.set_role(known.name, role)
            self._sessions.close_all(known.name)
        user = self._users.note_login(name if known is None else known.name)
        if user is None:
            raise AccountError(f"there is no user {name!r}")
        return user


def _hash(secret: str) -> str:
    return hashlib.sha256(secret.encode()).hexdigest()
