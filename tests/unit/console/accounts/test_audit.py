"""The audit log."""

from ottla.console.accounts.audit import Actor, AuditLog
from ottla.console.accounts.database import Database
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


def test_long_values_are_cut() -> None:
    """A row stays small, whatever a user typed."""
    log = AuditLog(Database(":memory:"), SetClock())
    log.write(ANN, "config.set", details={"value": "x" * 10_000}, result="y" * 10_000)
    entry = log.entries()[0]
    assert (len(entry.details["value"]), len(entry.result)) == (500, 500)
