"""Descriptions of topologies that users have uploaded, in the console's file."""

from typing import NamedTuple

from ottla.base.clock import Clock
from ottla.base.errors import ConfigError
from ottla.console.accounts.database import Database
from ottla.console.streams.describe_text import parse_topology

APPLICATIONS_MAX = 500
_NAME_MAX = 249
_TABLE = """
CREATE TABLE IF NOT EXISTS topologies (
    cluster TEXT NOT NULL,
    application TEXT NOT NULL,
    text TEXT NOT NULL,
    uploaded_ms INTEGER NOT NULL,
    PRIMARY KEY (cluster, application)
)
"""


class Upload(NamedTuple):
    """An uploaded description."""

    application: str
    text: str
    uploaded_ms: int


class TopologyUploads:
    """The descriptions by cluster and application; any thread may use it."""

    def __init__(self, database: Database, clock: Clock) -> None:
        self._database = database
        self._clock = clock
        database.create(_TABLE)

    def save(self, cluster: str, application: str, text: str) -> None:
        """Store a description, or replace it; ConfigError if it cannot be read."""
        if not 0 < len(application) <= _NAME_MAX:
            raise ConfigError(f"the id of an application has 1 to {_NAME_MAX} characters")
        parse_topology(text)
        is_new = self.find(cluster, application) is None
        if is_new and len(self.applications(cluster)) >= APPLICATIONS_MAX:
            raise ConfigError(
                f"there are {APPLICATIONS_MAX} topologies already: delete one of them"
            )
        self._database.change(
            "INSERT OR REPLACE INTO topologies VALUES (?, ?, ?, ?)",
            (cluster, application, text, self._clock.time_ms()),
        )

    def delete(self, cluster: str, application: str) -> None:
        """Delete a description; ConfigError if it does not exist."""
        statement = "DELETE FROM topologies WHERE cluster = ? AND application = ?"
        if not self._database.change(statement, (cluster, application)):
            raise ConfigError(f"no topology of {application!r} has been uploaded")

    def find(self, cluster: str, application: str) -> Upload | None:
        """Return a description, or None."""
        row = self._database.row(
            "SELECT * FROM topologies WHERE cluster = ? AND application = ?", (cluster, application)
        )
        return None if row is None else Upload(row["application"], row["text"], row["uploaded_ms"])

    def applications(self, cluster: str) -> list[str]:
        """Return the applications of a cluster that have a description."""
        rows = self._database.rows(
            "SELECT application FROM topologies WHERE cluster = ? ORDER BY application", (cluster,)
        )
        return [row["application"] for row in rows]
