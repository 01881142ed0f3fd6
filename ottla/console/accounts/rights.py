"""Rights of users in clusters and topics.

A user without entries has one role everywhere. A user with entries has the roles of these entries
only: in the clusters and topics that they name, and otherwise nothing. Admins are not restricted,
because they could change the entries.
"""

import functools
from collections.abc import Iterable
from typing import NamedTuple

from ottla.base.errors import ConfigError
from ottla.base.text.patterns import Expression
from ottla.console.accounts.database import Database
from ottla.console.accounts.roles import Role, parse_role

RIGHTS_MAX = 1000
_PATTERN_LENGTH = 500
_TABLE = """
CREATE TABLE IF NOT EXISTS rights (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    user TEXT NOT NULL REFERENCES users(name) ON DELETE CASCADE,
    cluster TEXT NOT NULL,
    topics TEXT NOT NULL,
    role TEXT NOT NULL
)
"""


class Right(NamedTuple):
    """A role in a cluster (empty: in all), for the topics whose whole names `topics` (RE2) matches.

    Without `topics`, the role is for all topics, and for everything else of the cluster: groups,
    offsets, options.
    """

    cluster: str
    topics: str
    role: Role

    def covers(self, cluster: str, topic: str | None) -> bool:
        """Return True if the right is about a topic of a cluster, or about the cluster if None."""
        if self.cluster not in ("", cluster):
            return False
        return not self.topics or (topic is not None and _pattern(self.topics).matches(topic))


class StoredRight(NamedTuple):
    """A right with its number and its user."""

    id: int
    user: str
    right: Right


class Rights:
    """The table of rights; each call reads it, as another console may have changed it."""

    def __init__(self, database: Database) -> None:
        self._database = database
        database.create(_TABLE)

    def all(self) -> list[StoredRight]:
        """Return all rights by user."""
        rows = self._database.rows("SELECT * FROM rights ORDER BY user, id")
        return [
            StoredRight(
                row["id"],
                row["user"],
                Right(row["cluster"], row["topics"], parse_role(row["role"])),
            )
            for row in rows
        ]

    def of(self, user: str) -> tuple[Right, ...]:
        """Return the rights of a user; empty for a user who is not restricted."""
        rows = self._database.rows("SELECT * FROM rights WHERE user = ? ORDER BY id", (user,))
        return tuple(Right(row["cluster"], row["topics"], parse_role(row["role"])) for row in rows)

    def add(self, user: str, right: Right) -> None:
        """Add a right; ConfigError for an unknown user, a malformed pattern, or the role admin."""
        if right.role is Role.ADMIN:
            raise ConfigError("a right has the role viewer or editor: admins are not restricted")
        if len(right.topics) > _PATTERN_LENGTH:
            raise ConfigError(f"a pattern of topics has {_PATTERN_LENGTH} characters at most")
        Expression(right.topics)
        if self._database.row("SELECT 1 FROM users WHERE name = ?", (user,)) is None:
            raise ConfigError(f"there is no user {user!r}")
        if len(self.all()) >= RIGHTS_MAX:
            raise ConfigError(f"there are {RIGHTS_MAX} rights already: delete some first")
        self._database.change(
            "INSERT INTO rights VALUES (NULL, ?, ?, ?, ?)",
            (user, right.cluster, right.topics, right.role.label),
        )

    def delete(self, number: int) -> StoredRight:
        """Delete a right and return it; ConfigError if it does not exist."""
        for stored in self.all():
            if stored.id == number:
                self._database.change("DELETE FROM rights WHERE id = ?", (number,))
                return stored
        raise ConfigError(f"there is no right {number}")


def role_in(role: Role, rights: Iterable[Right], cluster: str, topic: str | None) -> Role | None:
    """Return the role in a cluster (empty: on pages of no cluster) and for a topic of it.

    None if the user may see nothing of it. A user with rights for some topics of a cluster is a
    viewer of the rest of it, without the records of other topics. Pure.
    """
    listed = tuple(rights)
    if role is Role.ADMIN or not listed:
        return role
    if not cluster:
        return Role.VIEWER
    roles = [right.role for right in listed if right.covers(cluster, topic)]
    if topic is None and any(right.cluster in ("", cluster) for right in listed):
        roles.append(Role.VIEWER)
    return max(roles, default=None)


@functools.lru_cache(256)
def _pattern(text: str) -> Expression:
    return Expression(text)
