"""The demo's judge finds every kind of wrong total, and its sums are those of the file."""

import json

import pandas as pd
import pytest

from demo import events, report


@pytest.fixture(scope="module")
def flights() -> pd.DataFrame:
    """The real file, in order."""
    return events.load_flights()


def _totals() -> pd.DataFrame:
    """Two right totals, as the file gives them."""
    starts = pd.to_datetime(["2013-01-01 10:00", "2013-01-01 11:00"], utc=True)
    rows = {"kind": "airport", "name": ["EWR", "JFK"], "start": starts}
    return pd.DataFrame(rows | {"flights": [3, 2], "departed": [2, 0], "delay": [9, 0]})


def _found() -> pd.DataFrame:
    """The same, as the pipeline gives them."""
    return _totals().assign(mean_delay=[4.5, None])


def test_right_totals_agree() -> None:
    """No sentence is no disagreement; a window without departures has no mean."""
    assert report.disagreements(_found(), _totals()) == []


@pytest.mark.parametrize(
    ("column", "value", "sentence"),
    [
        ("flights", 4, "airport EWR from 2013-01-01 10:00:00+00:00: flights should be 3, not 4"),
        ("departed", 1, "departed should be 2, not 1"),
        ("delay", 10, "delay should be 9, not 10"),
        ("mean_delay", 4.6, "the mean delay is wrong"),
        ("mean_delay", None, "the mean delay is wrong"),
    ],
)
def test_wrong_totals_are_told(column: str, value: float | None, sentence: str) -> None:
    """The sentence names the window, and what it should say."""
    found = _found()
    found.loc[0, column] = value
    (told,) = report.disagreements(found, _totals())
    assert sentence in told


def test_missing_doubled_and_invented_windows_are_told() -> None:
    """Each window comes exactly once."""
    right = _found()
    (missing,) = report.disagreements(right[1:], _totals())
    assert missing.endswith("10:00:00+00:00 is missing")
    (doubled,) = report.disagreements(pd.concat([right, right[:1]]), _totals())
    assert doubled.endswith("came more than once")
    invented = right[:1].assign(name="LGA")
    (told,) = report.disagreements(pd.concat([right, invented]), _totals())
    assert told.endswith("is not in the file")


def test_the_file_is_whole_and_in_order(flights: pd.DataFrame) -> None:
    """336,776 flights by their scheduled departure, 8,255 of them cancelled."""
    assert len(flights) == events.COUNT
    assert flights["scheduled"].is_monotonic_increasing
    assert flights["dep_delay"].isna().sum() == 8255
    assert str(flights["scheduled"].iloc[0]) == "2013-01-01 10:15:00+00:00"


def test_events_are_json_with_the_scheduled_time(flights: pd.DataFrame) -> None:
    """Key, value and timestamp of the first flight; a cancelled flight has no delay."""
    first = next(events.events(flights))
    assert first.key == "UA"
    assert first.time_ms == 1_357_035_300_000
    assert json.loads(first.value)["dep_delay"] == 2
    cancelled = flights[flights["dep_delay"].isna()].head(1)
    assert json.loads(next(events.events(cancelled)).value)["dep_delay"] is None


def test_expected_totals_add_up(flights: pd.DataFrame) -> None:
    """Both groupings hold every flight once."""
    totals = events.expected(flights, events.load_airlines())
    for _, part in totals.groupby("kind"):
        assert part["flights"].sum() == events.COUNT
        assert part["departed"].sum() == events.COUNT - 8255
    assert set(totals["kind"]) == {events.AIRPORT, events.AIRLINE}
