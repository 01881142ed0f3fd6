"""The stored history on virtual time: 8 days in some seconds."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from ottla.console.accounts.database import Database
from ottla.console.history import store
from ottla.console.history.points import Kind, Period, Point, Subject
from ottla.console.history.store import History

BILLING = Subject(Kind.GROUP, "billing")
# Not a multiple of any step.
START_S = 1_700_000_003
DAY_S = 86_400


@pytest.fixture
def database() -> Iterator[Database]:
    """Return an empty file in memory."""
    opened = Database(":memory:")
    yield opened
    opened.close()


def fill(history: History, start_s: int, end_s: int, step_s: int = 10) -> None:
    """Store a lag that is the number of the sample, and positions that grow by 2/s."""
    for at_s in range(start_s, end_s, step_s):
        lag = (at_s - START_S) // step_s
        point = Point(at_s, 2 * (at_s - START_S), None, lag, lag / 10)
        history.add("live", [(BILLING, point)])


def test_a_day_has_an_hour_by_ten_seconds_and_the_rest_by_minutes(database: Database) -> None:
    """Each period has its resolution; a point of a minute has the largest values of the minute."""
    history = History(database)
    end_s = START_S + 2 * 3600
    fill(history, START_S, end_s)
    hour = history.read("live", BILLING, Period.HOUR, end_s)
    assert [point.at_s for point in hour] == list(range(end_s - 3590, end_s, 10))
    day = history.read("live", BILLING, Period.DAY, end_s)
    assert {point.at_s % 60 for point in day} == {0}
    assert len(day) == 120
    second = day[1]
    last = (second.at_s + 59 - START_S) // 10
    assert (second.lag, second.lag_s, second.records) == (last, last / 10, 20 * last)
    assert {point.at_s % 600 for point in history.read("live", BILLING, Period.WEEK, end_s)} == {0}


def test_rates_are_the_same_at_each_resolution(database: Database) -> None:
    """A group that commits 2/s and falls behind by 0.1/s has these rates in each chart."""
    history = History(database)
    end_s = START_S + 2 * 3600
    fill(history, START_S, end_s)
    for period in Period:
        for point in history.rates("live", BILLING, period, end_s)[2:]:
            assert point.records_per_s == pytest.approx(2.0)
            assert point.arrivals_per_s == pytest.approx(2.1)


def test_the_file_does_not_grow_after_seven_days(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Old points are overwritten: after 8 days there are 7, and no more points than the rings
    have.
    """
    history = History(database)
    end_s = START_S + 8 * DAY_S
    fill(history, START_S, end_s, step_s=60)
    week = history.read("live", BILLING, Period.WEEK, end_s)
    assert 1000 <= len(week) <= 1008
    assert end_s - week[0].at_s <= 7 * DAY_S
    (count,) = database.row("SELECT count(*) FROM history_points") or (0,)
    assert count <= 360 + 1440 + 1008


def test_a_group_that_is_gone_for_a_week_is_deleted(database: Database) -> None:
    """Its points are deleted with it, and the others stay."""
    history = History(database)
    history.add("live", [(BILLING, Point(START_S, 1, None, 1)), (topic("a"), Point(START_S, 1))])
    later_s = START_S + 8 * DAY_S
    for at_s in (START_S + 700, later_s):
        history.add("live", [(topic("a"), Point(at_s, 2))])
    names = [row["name"] for row in database.rows("SELECT name FROM history_series")]
    assert names == ["a"]
    orphans = "SELECT 1 FROM history_points WHERE series NOT IN (SELECT id FROM history_series)"
    assert database.row(orphans) is None


def test_the_number_of_series_is_bounded(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Topics beyond the limit are left out, and the pages can say so; clusters are independent."""
    monkeypatch.setattr(store, "SERIES_MAX", 3)
    history = History(database)
    history.add("live", [(topic(f"t{n}"), Point(START_S, n)) for n in range(5)])
    assert history.is_full("live")
    assert not history.is_full("other")
    assert history.read("live", topic("t2"), Period.HOUR, START_S)
    assert history.read("live", topic("t4"), Period.HOUR, START_S) == []


def test_a_restart_continues_the_series(tmp_path: Path) -> None:
    """The rest of a minute that began before the restart is in the point of the minute."""
    path = tmp_path / "console.sqlite3"
    for start_s in (START_S, START_S + 3600):
        database = Database(path)
        history = History(database)
        fill(history, start_s, start_s + 3600)
        database.close()
    database = Database(path)
    assert len(History(database).read("live", BILLING, Period.DAY, START_S + 7200)) == 120
    database.close()


def test_an_error_leaves_nothing_behind(database: Database) -> None:
    """A sample is stored as a whole or not at all, and the next one is stored again."""
    history = History(database)

    def broken() -> Iterator[tuple[Subject, Point]]:
        yield BILLING, Point(START_S, 1)
        raise OSError("disk")

    with pytest.raises(OSError, match="disk"):
        history.add("live", broken())
    assert database.rows("SELECT * FROM history_series") == []
    history.add("live", [(BILLING, Point(START_S, 1))])
    assert len(history.read("live", BILLING, Period.HOUR, START_S)) == 1


def topic(name: str) -> Subject:
    """Return the subject of a topic."""
    return Subject(Kind.TOPIC, name)


def test_two_consoles_of_one_file_share_a_series(tmp_path: Path) -> None:
    """The second has read the file before the first inserts the series, and finds it."""
    first, second = (History(Database(tmp_path / "console.sqlite3")) for _ in range(2))
    assert not second.is_full("live")
    fill(first, START_S, START_S + 10)
    fill(second, START_S + 10, START_S + 20)
    assert len(first.read("live", BILLING, Period.HOUR, START_S + 20)) == 2
