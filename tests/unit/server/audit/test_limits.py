"""Bounds of the lines that clients can provoke."""

from ottla.server.audit.limits import (
    ADDRESS_BURST,
    REPEAT_SECONDS,
    TOTAL_BURST,
    Limiter,
)
from ottla.server.audit.record import AuditEvent, Origin

ANN = Origin("User:ann", "10.0.0.1")
DENIAL = AuditEvent.DENIAL


def test_question_is_not_repeated_for_a_minute() -> None:
    """A question of another client, or another question, is written at once."""
    limiter = Limiter()
    assert limiter.admits(DENIAL, ANN, "q", 0.0)
    assert not limiter.admits(DENIAL, ANN, "q", REPEAT_SECONDS - 1)
    assert limiter.admits(DENIAL, ANN, "r", 1.0)
    assert limiter.admits(DENIAL, ANN._replace(principal="User:ben"), "q", 1.0)
    assert limiter.admits(DENIAL, ANN, "q", REPEAT_SECONDS)
    assert [(row.origin, row.lines_count) for row in limiter.report()] == [(ANN, 1)]
    assert not limiter.has_suppressed


def test_one_address_cannot_use_the_lines_of_others() -> None:
    """After its burst an address has a line per second; another one has its own."""
    limiter = Limiter()
    admitted = sum(limiter.admits(DENIAL, ANN, number, 0.0) for number in range(1000))
    assert admitted == ADDRESS_BURST
    assert limiter.admits(DENIAL, ANN._replace(address="10.0.0.2"), 0, 0.0)
    assert limiter.admits(DENIAL, ANN, "later", 1.0)
    assert not limiter.admits(DENIAL, ANN, "and again", 1.0)


def test_all_addresses_together_are_bounded_in_lines_and_memory() -> None:
    """The suppressed lines of clients that are too many are counted together."""
    limiter = Limiter()
    origins = [Origin(f"User:{number}", f"10.0.{number // 256}.{number % 256}") for number in range(20_000)]  # fmt: skip
    admitted = sum(limiter.admits(DENIAL, origin, "q", 0.0) for origin in origins)
    assert admitted == TOTAL_BURST
    report = limiter.report()
    assert len(report) < 600
    assert sum(row.lines_count for row in report) == 20_000 - TOTAL_BURST
    assert limiter.entries_count < 20_001
