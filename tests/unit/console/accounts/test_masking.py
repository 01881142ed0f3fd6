"""Masking rules in the console's file."""

from pathlib import Path

from ottla.console.accounts.database import Database
from ottla.console.accounts.masking import Masking
from ottla.console.model.messages.masking import MaskingRule


def test_a_rule_applies_in_every_console_of_the_file(tmp_path: Path) -> None:
    """A field that one console hides is hidden by the other, too, without a restart."""
    first, second = (Masking(Database(tmp_path / "console.sqlite3")) for _ in range(2))
    rule = MaskingRule("orders", "value", "$.card")
    first.add(rule)
    assert second.rules() == (rule,)
    (stored,) = second.all()
    second.delete(stored.id)
    assert first.rules() == ()
