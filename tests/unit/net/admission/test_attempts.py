"""Delays of logins after failures, on virtual time."""

from itertools import pairwise

import pytest

from ottla.net.admission import attempts
from ottla.net.admission.attempts import AttemptLimits, Attempts


def guesses(attempts_: Attempts, hosts: list[str], users: list[str], seconds: float) -> int:
    """Return how many passwords a crowd can try: everyone asks a hundred times a second."""
    due: list[float] = []
    for step in range(int(100 * seconds)):
        now = step / 100
        for host in hosts:
            for user in users:
                wait = attempts_.ask(host, user, now)
                if wait is not None and now + wait < seconds:
                    due.append(now + wait)
    return len(due)


def test_few_failures_are_free() -> None:
    """A user may mistype the password."""
    book = Attempts(AttemptLimits(free_count=5))
    assert [book.ask("10.0.0.1", "ann", now) for now in range(6)] == [0.0] * 6
    assert (book.delayed_count, book.refused_count) == (0, 0)


def test_turns_of_a_user_from_an_address_become_rarer() -> None:
    """Each further failure doubles the time to the next attempt, up to the maximum."""
    book = Attempts(AttemptLimits(first_seconds=0.1, seconds_max=10.0, free_count=2))
    now, waits = 0.0, []
    for _ in range(12):
        wait = book.ask("10.0.0.1", "ann", now)
        assert wait is not None
        waits.append(wait)
        now += wait
    assert waits[:3] == [0.0] * 3
    assert all(later >= earlier for earlier, later in pairwise(waits))
    assert waits[-1] == pytest.approx(10.0)


def test_parallel_connections_are_no_faster_than_one() -> None:
    """Attempts that come at once get turns one after the other, or are refused unseen."""
    book = Attempts(AttemptLimits(free_count=5))
    waits = [book.ask("10.0.0.1", "ann", 0.0) for _ in range(500)]
    served = [wait for wait in waits if wait is not None]
    assert len(served) < 20
    assert len(set(served)) >= len(served) - 5
    assert book.refused_count == 500 - len(served)


@pytest.mark.parametrize(
    ("hosts", "users", "most"),
    [(1, 1, 25), (1, 200, 150), (200, 1, 200 * 25), (1, 1000, 150)],
)
def test_guesses_in_a_minute_are_few(hosts: int, users: int, most: int) -> None:
    """One address tries few passwords, for one user or for a thousand."""
    book = Attempts(AttemptLimits())
    count = guesses(
        book,
        [f"10.0.{number >> 8}.{number & 255}" for number in range(hosts)],
        [f"user-{number}" for number in range(users)],
        6 if hosts * users >= 200 else 60,
    )
    assert count <= most


def test_wrong_password_of_one_client_does_not_delay_others_behind_its_address() -> None:
    """A client that retries for ever slows down only its own user there."""
    book = Attempts(AttemptLimits())
    for now in range(600):
        book.ask("10.0.0.1", "wrong", float(now))
    assert book.ask("10.0.0.1", "ann", 600.0) == 0.0
    assert book.ask("10.0.0.2", "wrong", 600.0) == 0.0


def test_failures_from_many_addresses_delay_a_user_by_a_second_at_most() -> None:
    """Strangers cannot lock a user out."""
    book = Attempts(AttemptLimits())
    for number in range(5000):
        book.ask(f"10.0.{number >> 8}.{number & 255}", "ann", 0.0)
    wait = book.ask("192.168.0.1", "ann", 0.0)
    assert wait is not None
    assert 0 < wait <= 1.0


def test_success_ends_the_delay() -> None:
    """The right password after some wrong ones makes the user trusted again."""
    book = Attempts(AttemptLimits(free_count=2))
    for _ in range(4):
        book.ask("10.0.0.1", "ann", 0.0)
    book.succeeded("10.0.0.1", "ann", 0.0)
    assert book.ask("10.0.0.1", "ann", 0.0) == 0.0


def test_many_successes_are_never_delayed() -> None:
    """An address with thousands of clients that log in is not suspicious."""
    book = Attempts(AttemptLimits())
    for number in range(5000):
        user = f"user-{number % 50}"
        assert book.ask("10.0.0.1", user, number / 1000) == 0.0
        book.succeeded("10.0.0.1", user, number / 1000)


def test_failures_are_forgotten() -> None:
    """Some minutes after an attack the address and the user are trusted again."""
    book = Attempts(AttemptLimits())
    for step in range(6000):
        book.ask("10.0.0.1", f"user-{step % 100}", step / 100)
    assert book.ask("10.0.0.1", "user-1", 60.0) != 0.0
    assert book.ask("10.0.0.1", "user-1", 60.0 + 300) == 0.0


def test_memory_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """Strangers choose users and may have many addresses: the oldest are forgotten."""
    monkeypatch.setattr(attempts, "ENTRIES_MAX", 100)
    book = Attempts(AttemptLimits())
    for number in range(1000):
        book.ask(f"10.0.0.{number}", f"user-{number}", float(number))
    assert book.entries_count == 300


def test_delay_of_nothing_disables_the_delays() -> None:
    """With connection.failed.authentication.delay.ms=0 no client waits, as in Kafka."""
    book = Attempts(AttemptLimits(first_seconds=0.0))
    assert [book.ask("10.0.0.1", "ann", 0.0) for _ in range(100)] == [0.0] * 100
