"""When the console looks at a partial result."""

from ottla.console.sql.partial import LookSchedule


def test_looks_take_a_sixth_of_the_time_at_most() -> None:
    """The first after a second; the next one waits five times as long as the last one took."""
    now = [0.0]
    schedule = LookSchedule(lambda: now[0])
    assert not schedule.is_due()
    now[0] = 1.0
    assert schedule.is_due()

    def slow() -> dict[str, object]:
        now[0] += 2.0
        return {"rows": []}

    assert schedule.look(slow) == {"rows": []}
    now[0] = 12.9
    assert not schedule.is_due()
    now[0] = 13.0
    assert schedule.is_due()
