"""The audit log."""

import unicodedata

from hypothesis import given
from hypothesis import strategies as st

from ottla.console.accounts.audit import Actor, AuditLog
from ottla.console.accounts.database import Database
from ottla.console.spreadsheets import csv_line
from tests.unit.console.clocks import SetClock

ANN = Actor("ann", "10.0.0.1")


def test_entries_are_returned_newest_first_and_by_text() -> None:
    """The text is searched in user, action, target, details and result; % and _ are plain."""
    clock = SetClock()
    log = AuditLog(Database(":memory:"), clock)
    log.write(ANN, "topic.create", cluster="local", target="orders", details={"partitions": "3"})
    clock.advance(1)
    log.write(ANN, "topic.delete", cluster="local", target="a_b", result="denied")
    assert [entry.action for entry in log.entries()] == ["topic.delete", "topic.create"]
    assert [entry.target for entry in log.entries(text="partitions")] == ["orders"]
    assert [entry.target for entry in log.entries(text="a_b")] == ["a_b"]
    assert log.entries(text="a%b") == []
    assert [entry.target for entry in log.entries(before_ms=clock.time_ms())] == ["orders"]


@given(st.text(alphabet=st.characters(), max_size=100))
def test_no_text_of_a_user_forges_a_row(text: str) -> None:
    """Neither in the table nor in the lines of the download, whatever characters it has."""
    log = AuditLog(Database(":memory:"), SetClock())
    actor = Actor(text, text)
    log.write(actor, text, cluster=text, target=text, details={text: text}, result=text)
    (entry,) = log.entries()
    texts = [*entry[1:6], *entry.details, *entry.details.values(), entry.result]
    for written in texts:
        assert written.splitlines() in ([], [written])
        assert not any(
            unicodedata.category(letter) in ("Cc", "Cs", "Zl", "Zp") for letter in written
        )
    assert len(csv_line([*entry[1:6], entry.result]).decode().splitlines()) == 1


def test_hostile_name_of_a_failed_login_is_one_line() -> None:
    """A name that looks like a row of the download, and turns the text around."""
    log = AuditLog(Database(":memory:"), SetClock())
    name = "eve\n2026-01-01 00:00:00.000Z,admin,10.0.0.1,,login,,{},ok\u202e\ud800"
    log.write(Actor(name, "10.0.0.66"), "login", result="failed")
    (entry,) = log.entries(text="eve")
    assert entry.user.startswith("eve\\u000a2026-01-01")
    assert entry.user.endswith("ok\\u202e\\ud800")


def test_long_values_are_cut() -> None:
    """A row stays small, whatever a user typed."""
    log = AuditLog(Database(":memory:"), SetClock())
    long = "x" * 10_000
    log.write(ANN, "config.set", target=long, details={"value": long}, result=long)
    entry = log.entries()[0]
    lengths = (len(entry.target), len(entry.details["value"]), len(entry.result))
    assert lengths == (500, 500, 500)
