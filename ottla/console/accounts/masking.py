"""Masking rules: parts of records that only admins may read. `model.messages.masking` applies them."""

import re
from dataclasses import replace
from typing import NamedTuple

from ottla.base.errors import ConfigError
from ottla.console.accounts.database import Database
from ottla.console.model.messages.masking import Masking as CompiledRules
from ottla.console.model.messages.masking import MaskingRule, applies

TARGETS = ("value", "key", "header")
_TABLE = """
CREATE TABLE IF NOT EXISTS masking (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    topics TEXT NOT NULL,
    target TEXT NOT NULL,
    path TEXT NOT NULL,
    pattern TEXT NOT NULL
)
"""


class StoredRule(NamedTuple):
    """A rule with its number."""

    id: int
    rule: MaskingRule


class Masking:
    """The table of rules; each call reads it, as another console may have changed it."""

    def __init__(self, database: Database) -> None:
        self._database = database
        database.create(_TABLE)

    def all(self) -> list[StoredRule]:
        """Return all rules with their numbers."""
        rows = self._database.rows("SELECT * FROM masking ORDER BY id")
        return [
            StoredRule(
                row["id"], MaskingRule(row["topics"], row["target"], row["path"], row["pattern"])
            )
            for row in rows
        ]

    def rules(self) -> tuple[MaskingRule, ...]:
        """Return all rules."""
        return tuple(stored.rule for stored in self.all())

    def add(self, rule: MaskingRule) -> None:
        """Add a rule; ConfigError if it is malformed."""
        if not rule.topics:
            raise ConfigError(
                "a masking rule needs a pattern of topic names: use .* for all topics"
            )
        if rule.target not in TARGETS:
            raise ConfigError(f"unknown target {rule.target!r}: use {', '.join(TARGETS)}")
        if rule.target == "header" and not rule.path:
            raise ConfigError("a masking rule for a header needs the name of the header as path")
        # Compiling reports malformed patterns and paths.
        CompiledRules([rule], "")
        self._database.change(
            "INSERT INTO masking VALUES (NULL, ?, ?, ?, ?)",
            (rule.topics, rule.target, rule.path, rule.pattern),
        )

    def follow(self, source: str, target: str) -> int:
        """Add the rules of a topic for the topic that gets its records; return how many.

        A rule that applies to the target already is not added again.
        """
        followed = [
            replace(rule, topics=re.escape(target))
            for rule in self.rules()
            if applies(rule, source) and not applies(rule, target)
        ]
        for rule in followed:
            self.add(rule)
        return len(followed)

    def delete(self, number: int) -> None:
        """Delete a rule; ConfigError if it does not exist."""
        if not self._database.change("DELETE FROM masking WHERE id = ?", (number,)):
            raise ConfigError(f"there is no masking rule {number}")
