"""Rules, channels, silences, incidents and deliveries in the console's SQLite file.

The secrets of channels are readable by the owner of the file only, and are never returned to a
page or to the API.
"""

import dataclasses
import json
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from sqlite3 import Row
from typing import Any

from ottla.base.errors import ConfigError, OttlaError
from ottla.console.accounts.database import Database
from ottla.console.alerts.channels import Channel, ChannelKind, MailSettings, Security
from ottla.console.alerts.evaluation import Incident, Key, Silence
from ottla.console.alerts.rules import Rule, RuleKind, Severity

RULES_MAX = 200
CHANNELS_MAX = 50
SILENCES_MAX = 200
INCIDENTS_MAX = 10_000
_DELIVERIES_MAX = 10_000
_TABLES = """
CREATE TABLE IF NOT EXISTS alert_rules (
    id INTEGER PRIMARY KEY AUTOINCREMENT, name TEXT NOT NULL UNIQUE, settings TEXT NOT NULL
);
CREATE TABLE IF NOT EXISTS alert_channels (
    id INTEGER PRIMARY KEY AUTOINCREMENT, name TEXT NOT NULL UNIQUE, settings TEXT NOT NULL
);
CREATE TABLE IF NOT EXISTS alert_silences (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    rule INTEGER, cluster TEXT NOT NULL, until_ms INTEGER NOT NULL,
    user TEXT NOT NULL, comment TEXT NOT NULL
);
CREATE TABLE IF NOT EXISTS alert_incidents (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    rule INTEGER NOT NULL, rule_name TEXT NOT NULL, severity TEXT NOT NULL,
    cluster TEXT NOT NULL, subject TEXT NOT NULL,
    since_ms INTEGER NOT NULL, until_ms INTEGER,
    value REAL NOT NULL, detail TEXT NOT NULL, notified_ms INTEGER, tried_ms INTEGER
);
CREATE TABLE IF NOT EXISTS alert_deliveries (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    at_ms INTEGER NOT NULL, channel TEXT NOT NULL, title TEXT NOT NULL, result TEXT NOT NULL
);
"""
# The result of a delivery that a channel has accepted.
SENT = "ok"
_REVISION = "revision"
_OPEN = "rule = ? AND cluster = ? AND subject = ? AND until_ms IS NULL"


class Outdated(OttlaError):
    """Another user has changed the same rule or channel since it was read."""


@dataclass(frozen=True, slots=True)
class StoredRule:
    """A rule with its number; `revision` counts its changes."""

    id: int
    rule: Rule
    revision: int


@dataclass(frozen=True, slots=True)
class ChannelRow:
    """The public part of a channel: never its URL, secret or password.

    `revision` counts its changes.
    """

    id: int
    name: str
    kind: ChannelKind
    destination: str
    is_signed: bool
    revision: int


@dataclass(frozen=True, slots=True)
class StoredSilence:
    """A silence with its number; `rule` None is all rules."""

    id: int
    rule: int | None
    cluster: str
    until_ms: int
    user: str
    comment: str


@dataclass(frozen=True, slots=True)
class IncidentRow:
    """An incident in the history; `until_ms` is None while it lasts.

    `notified_ms` is the last notification that a channel has accepted, or None.
    """

    id: int
    rule: str
    severity: str
    cluster: str
    subject: str
    since_ms: int
    until_ms: int | None
    value: float
    detail: str
    notified_ms: int | None


@dataclass(frozen=True, slots=True)
class Delivery:
    """An attempt to send a notification; `result` is `ok` or the reason of the failure."""

    at_ms: int
    channel: str
    title: str
    result: str


class AlertStore:
    """The tables; any thread may use them."""

    def __init__(self, database: Database, first_rules: Sequence[Rule] = ()) -> None:
        """Create the tables; a file that never had a rule gets `first_rules`."""
        self._database = database
        database.create(_TABLES)
        with database.transaction():
            columns = [row["name"] for row in database.rows("PRAGMA table_info(alert_incidents)")]
            if "tried_ms" not in columns:
                # The file of an earlier version.
                database.change("ALTER TABLE alert_incidents ADD COLUMN tried_ms INTEGER")
                database.change("UPDATE alert_incidents SET tried_ms = notified_ms")
            # SQLite keeps the largest number of each table with AUTOINCREMENT.
            statement = "SELECT 1 FROM sqlite_sequence WHERE name = 'alert_rules'"
            if first_rules and database.row(statement) is None:
                for rule in first_rules:
                    self._insert("alert_rules", rule.name, _settings(rule), RULES_MAX)

    def rules(self) -> list[StoredRule]:
        """Return all rules by name."""
        rows = self._database.rows("SELECT * FROM alert_rules ORDER BY name")
        return [StoredRule(row["id"], _rule(row), _revision(row)) for row in rows]

    def rule(self, number: int) -> Rule:
        """Return a rule; ConfigError if it does not exist."""
        row = self._database.row("SELECT * FROM alert_rules WHERE id = ?", (number,))
        if row is None:
            raise ConfigError(f"there is no alert rule {number}")
        return _rule(row)

    def add_rule(self, rule: Rule) -> int:
        """Store a rule and return its number; ConfigError if it is malformed or its name taken."""
        with self._database.transaction():
            self._check_rule(rule)
            return self._insert("alert_rules", rule.name, _settings(rule), RULES_MAX)

    def change_rule(self, number: int, rule: Rule, revision: int | None = None) -> Rule:
        """Replace a rule and return the one before.

        ConfigError if the rule is malformed or its name taken, Outdated if it has another
        `revision` than the caller has read.
        """
        with self._database.transaction():
            before = self.rule(number)
            self._check_rule(rule)
            self._update("alert_rules", number, rule, revision)
            return before

    def delete_rule(self, number: int) -> Rule:
        """Delete a rule and return it; ConfigError if it does not exist."""
        rule = self.rule(number)
        self._database.change("DELETE FROM alert_rules WHERE id = ?", (number,))
        self._database.change("DELETE FROM alert_silences WHERE rule = ?", (number,))
        return rule

    def channels(self) -> list[ChannelRow]:
        """Return what may be shown of all channels, by name."""
        rows = self._database.rows("SELECT * FROM alert_channels ORDER BY name")
        channels = [(row["id"], _channel(row), _revision(row)) for row in rows]
        return [
            ChannelRow(number, row.name, row.kind, row.destination, bool(row.secret), revision)
            for number, row, revision in channels
        ]

    def channel(self, number: int) -> Channel:
        """Return a channel with its secrets, to send; ConfigError if it does not exist."""
        row = self._database.row("SELECT * FROM alert_channels WHERE id = ?", (number,))
        if row is None:
            raise ConfigError(f"there is no alert channel {number}")
        return _channel(row)

    def add_channel(self, channel: Channel) -> int:
        """Store a channel and return its number; ConfigError if it is malformed or its name taken."""
        channel.check()
        with self._database.transaction():
            return self._insert("alert_channels", channel.name, _settings(channel), CHANNELS_MAX)

    def change_channel(
        self, number: int, channel: Channel, revision: int | None = None
    ) -> tuple[Channel, Channel]:
        """Replace a channel, and return the one before and the one after.

        An empty URL, secret or password stays as it was; see `Channel.completed`. ConfigError if
        the channel is malformed or its name taken, Outdated if it has another `revision`.
        """
        with self._database.transaction():
            before = self.channel(number)
            after = channel.completed(before)
            after.check()
            self._update("alert_channels", number, after, revision)
            return before, after

    def delete_channel(self, number: int) -> ChannelKind:
        """Delete a channel; ConfigError if it does not exist or a rule uses it."""
        kind = self.channel(number).kind
        users = [row.rule.name for row in self.rules() if number in row.rule.channels]
        if users:
            raise ConfigError(
                f"rule {users[0]!r} uses the channel: delete or change the rule first"
            )
        self._database.change("DELETE FROM alert_channels WHERE id = ?", (number,))
        return kind

    def silences(self, now_ms: int) -> list[StoredSilence]:
        """Return the silences that are not over, and forget the others."""
        self._database.change("DELETE FROM alert_silences WHERE until_ms <= ?", (now_ms,))
        rows = self._database.rows("SELECT * FROM alert_silences ORDER BY until_ms")
        return [StoredSilence(*tuple(row)) for row in rows]

    def add_silence(self, silence: Silence, user: str, comment: str) -> None:
        """Store a silence; ConfigError if its rule does not exist or there are too many."""
        if silence.rule is not None:
            self.rule(silence.rule)
        self._check_room("alert_silences", SILENCES_MAX)
        self._database.change(
            "INSERT INTO alert_silences VALUES (NULL, ?, ?, ?, ?, ?)",
            (silence.rule, silence.cluster, silence.until_ms, user, comment[:500]),
        )

    def delete_silence(self, number: int) -> None:
        """End a silence; ConfigError if it does not exist."""
        if not self._database.change("DELETE FROM alert_silences WHERE id = ?", (number,)):
            raise ConfigError(f"there is no silence {number}")

    def open_incident(self, incident: Incident, rule: Rule) -> None:
        """Store a new incident; the oldest are deleted beyond the limit."""
        self._database.change(
            "INSERT INTO alert_incidents VALUES (NULL, ?, ?, ?, ?, ?, ?, NULL, ?, ?, NULL, ?)",
            (
                incident.key.rule,
                rule.name,
                rule.severity.value,
                incident.key.cluster,
                incident.key.subject,
                incident.since_ms,
                incident.value,
                incident.detail,
                incident.notified_ms,
            ),
        )
        self._trim("alert_incidents", INCIDENTS_MAX)

    def update_incident(self, incident: Incident) -> None:
        """Store the value of an open incident, and when it was last handed to channels."""
        self._database.change(
            f"UPDATE alert_incidents SET value = ?, detail = ?, tried_ms = ? WHERE {_OPEN}",  # noqa: S608
            (incident.value, incident.detail, incident.notified_ms, *incident.key),
        )

    def close_incident(self, incident: Incident, now_ms: int) -> None:
        """Store the end of an incident."""
        self._database.change(
            f"UPDATE alert_incidents SET until_ms = ? WHERE {_OPEN}",  # noqa: S608
            (now_ms, *incident.key),
        )

    def open_incidents(self) -> list[Incident]:
        """Return the incidents that are open, as the machine needs them."""
        rows = self._database.rows("SELECT * FROM alert_incidents WHERE until_ms IS NULL")
        return [
            Incident(
                Key(row["rule"], row["cluster"], row["subject"]),
                row["since_ms"],
                row["value"],
                row["detail"],
                row["tried_ms"],
            )
            for row in rows
        ]

    def incidents(self, *, is_open: bool | None = None, limit: int = 200) -> list[IncidentRow]:
        """Return incidents, newest first; with `is_open` only open ones, or only ended ones."""
        rows = self._database.rows(
            "SELECT * FROM alert_incidents WHERE ? IS NULL OR (until_ms IS NULL) = ?"
            " ORDER BY id DESC LIMIT ?",
            (is_open, is_open, limit),
        )
        return [
            IncidentRow(
                row["id"],
                row["rule_name"],
                row["severity"],
                row["cluster"],
                row["subject"],
                row["since_ms"],
                row["until_ms"],
                row["value"],
                row["detail"],
                row["notified_ms"],
            )
            for row in rows
        ]

    def add_delivery(self, delivery: Delivery, incident: Incident | None = None) -> None:
        """Store an attempt to send; the oldest are deleted beyond the limit.

        After a success, the incident that it is about is notified, also if it has ended.
        """
        self._database.change(
            "INSERT INTO alert_deliveries VALUES (NULL, ?, ?, ?, ?)",
            (delivery.at_ms, delivery.channel, delivery.title, delivery.result),
        )
        self._trim("alert_deliveries", _DELIVERIES_MAX)
        if incident is not None and delivery.result == SENT:
            self._database.change(
                "UPDATE alert_incidents SET notified_ms = ? WHERE id = (SELECT max(id) FROM"
                " alert_incidents WHERE rule = ? AND cluster = ? AND subject = ? AND since_ms = ?)",
                (delivery.at_ms, *incident.key, incident.since_ms),
            )

    def deliveries(self, limit: int = 50) -> list[Delivery]:
        """Return attempts to send, newest first."""
        rows = self._database.rows(
            "SELECT at_ms, channel, title, result FROM alert_deliveries ORDER BY id DESC LIMIT ?",
            (limit,),
        )
        return [Delivery(*tuple(row)) for row in rows]

    def _insert(self, table: str, name: str, settings: str, most: int) -> int:
        self._check_room(table, most)
        if self._database.row(f"SELECT 1 FROM {table} WHERE name = ?", (name,)):  # noqa: S608
            raise ConfigError(f"the name {name!r} is in use: choose another one")
        self._database.change(f"INSERT INTO {table} VALUES (NULL, ?, ?)", (name, settings))  # noqa: S608
        row = self._database.row(f"SELECT id FROM {table} WHERE name = ?", (name,))  # noqa: S608
        assert row is not None, "the row has been inserted"
        number: int = row["id"]
        return number

    def _update(self, table: str, number: int, value: Rule | Channel, revision: int | None) -> None:
        row = self._database.row(f"SELECT * FROM {table} WHERE id = ?", (number,))  # noqa: S608
        assert row is not None, "the caller has read the row in this transaction"
        if revision not in (None, _revision(row)):
            raise Outdated(
                f"{row['name']!r} was changed by another user since you read it: load the page"
                " again and repeat the change"
            )
        taken = f"SELECT 1 FROM {table} WHERE name = ? AND id <> ?"  # noqa: S608
        if self._database.row(taken, (value.name, number)):
            raise ConfigError(f"the name {value.name!r} is in use: choose another one")
        self._database.change(
            f"UPDATE {table} SET name = ?, settings = ? WHERE id = ?",  # noqa: S608
            (value.name, _settings(value, _revision(row) + 1), number),
        )

    def _check_rule(self, rule: Rule) -> None:
        rule.check()
        known = {row["id"] for row in self._database.rows("SELECT id FROM alert_channels")}
        if unknown := set(rule.channels) - known:
            raise ConfigError(f"there is no alert channel {min(unknown)}")

    def _check_room(self, table: str, most: int) -> None:
        row = self._database.row(f"SELECT count(*) AS n FROM {table}")  # noqa: S608
        if row is not None and row["n"] >= most:
            raise ConfigError(f"there are {most} already: delete some first")

    def _trim(self, table: str, most: int) -> None:
        self._database.change(
            f"DELETE FROM {table} WHERE id <= (SELECT max(id) FROM {table}) - ?",  # noqa: S608
            (most,),
        )


def _settings(value: Rule | Channel, revision: int = 0) -> str:
    fields = {**dataclasses.asdict(value), _REVISION: revision}
    return json.dumps(fields, default=_plain, ensure_ascii=False)


def _revision(row: Row) -> int:
    # The rows of earlier versions have no revision.
    return int(json.loads(row["settings"]).get(_REVISION, 0))


def _plain(value: Any) -> Any:
    assert isinstance(value, Enum), "settings have texts, numbers, tuples and enumerations"
    return value.value


def _rule(row: Row) -> Rule:
    fields = json.loads(row["settings"])
    fields.pop(_REVISION, None)
    return Rule(
        **{
            **fields,
            "kind": RuleKind(fields["kind"]),
            "severity": Severity(fields["severity"]),
            "channels": tuple(fields["channels"]),
        }
    )


def _channel(row: Row) -> Channel:
    fields = json.loads(row["settings"])
    fields.pop(_REVISION, None)
    mail = fields.pop("mail")
    settings = None
    if mail is not None:
        security, recipients = Security(mail["security"]), tuple(mail["recipients"])
        settings = MailSettings(**{**mail, "security": security, "recipients": recipients})
    return Channel(**{**fields, "kind": ChannelKind(fields["kind"]), "mail": settings})
