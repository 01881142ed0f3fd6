"""The limit of failed logins."""

from ottla.console.accounts import attempts
from ottla.console.accounts.attempts import LoginAttempts


def fail(table: LoginAttempts, count: int, now: float, *, user: str = "ann") -> None:
    for _ in range(count):
        table.failed("10.0.0.1", user, now)


def test_the_sixth_attempt_waits_and_each_further_failure_doubles_the_wait() -> None:
    """Five failures are free; then the wait is 5, 10, 20 … seconds, up to 15 minutes."""
    table = LoginAttempts()
    fail(table, 4, 0.0)
    assert table.wait_s("10.0.0.1", "ann", 0.0) == 0.0
    waits = []
    for _ in range(12):
        fail(table, 1, 0.0)
        waits.append(table.wait_s("10.0.0.1", "ann", 0.0))
    assert waits[:4] == [5.0, 10.0, 20.0, 40.0]
    assert waits[-1] == attempts.LONGEST_WAIT_S


def test_waiting_allows_another_attempt() -> None:
    """The wait counts from the last failure."""
    table = LoginAttempts()
    fail(table, 5, 100.0)
    assert table.wait_s("10.0.0.1", "ann", 102.0) == 3.0
    assert table.wait_s("10.0.0.1", "ann", 105.0) == 0.0


def test_one_address_cannot_try_many_names() -> None:
    """An address that tries many names waits as a whole, for half a minute at most."""
    table = LoginAttempts()
    for number in range(24):
        table.failed("10.0.0.1", f"user{number}", 0.0)
    assert table.wait_s("10.0.0.1", "new", 0.0) == 0.0
    for number in range(200):
        table.failed("10.0.0.1", f"other{number}", 0.0)
    assert table.wait_s("10.0.0.1", "new", 0.0) == attempts.ADDRESS_LONGEST_WAIT_S
    assert table.wait_s("10.0.9.9", "new", 0.0) == 0.0


def test_user_cannot_be_locked_out_from_other_addresses() -> None:
    """Failures for a name count at the address that made them only."""
    table = LoginAttempts()
    for number in range(1000):
        table.failed(f"10.0.1.{number}", "admin", 0.0)
        for _ in range(20):
            table.failed("10.0.0.66", "admin", 0.0)
    assert table.wait_s("10.0.0.66", "admin", 0.0) == attempts.LONGEST_WAIT_S
    assert table.wait_s("10.0.9.9", "admin", 0.0) == 0.0


def test_success_does_not_clear_the_failures_of_other_names() -> None:
    """A user with an account cannot try the names of others without end."""
    table = LoginAttempts()
    for number in range(40):
        table.failed("10.0.0.1", f"user{number}", 0.0)
        table.failed("10.0.0.1", "eve", 0.0)
        table.succeeded("10.0.0.1", "eve")
    assert table.wait_s("10.0.0.1", "user0", 0.0) > 0


def test_a_success_and_an_hour_clear_the_count() -> None:
    """A user who remembers the password is not punished later."""
    table = LoginAttempts()
    fail(table, 6, 0.0)
    assert table.wait_s("10.0.0.1", "ann", attempts.FORGET_S + 1) == 0.0
    table.succeeded("10.0.0.1", "ann")
    assert table.wait_s("10.0.0.1", "ann", 0.0) == 0.0


def test_memory_is_bounded_under_a_flood_of_names() -> None:
    """The oldest entries are forgotten."""
    table = LoginAttempts()
    for number in range(12_000):
        table.failed("10.0.0.1", f"user{number}", 0.0)
    assert table.entries_count <= 10_001
    assert table.wait_s("10.0.0.1", "x", 0.0) > 0
