"""The demo's check finds every kind of wrong row, and compares only the last of several changes."""

import msgspec
import pandas as pd
import pytest

from demo import results
from demo.topology import ALERTS, MAKERS, SKIES, Alert, Delays


def _right() -> pd.DataFrame:
    """Return two correct rows, as the files give them."""
    rows = {"origin": ["EWR", "JFK"], "weather": ["fog", "fair"]}
    return pd.DataFrame(rows | {"flights": [3, 2], "departed": [2, 0], "delay": [9, 0]})


def test_right_rows_agree() -> None:
    """Without differences there is no message; the order of rows does not matter."""
    assert results.differences(SKIES, _right()[::-1], _right()) == []


@pytest.mark.parametrize(("column", "wrong"), [("flights", 4), ("departed", 1), ("delay", 10)])
def test_wrong_totals_are_reported(column: str, wrong: int) -> None:
    """The message names the row and the expected value."""
    came, right = _right(), _right()
    came.loc[0, column] = wrong
    should = right.loc[0, column]
    sentence = f"weather-delays: EWR, fog: {column} should be {should}, not {wrong}"
    assert results.differences(SKIES, came, right) == [sentence]


def test_missing_duplicate_and_extra_rows_are_reported() -> None:
    """Each row has to occur exactly once."""
    right = _right()
    (missing,) = results.differences(SKIES, right[1:], right)
    assert missing == "weather-delays: EWR, fog is missing"
    (doubled,) = results.differences(SKIES, pd.concat([right, right[:1]]), right)
    assert doubled.endswith("EWR, fog came more than once")
    (invented,) = results.differences(SKIES, right, right[:1])
    assert invented.endswith("JFK, fair is not in the file")
    assert results.differences(SKIES, right[:0], right) == ["weather-delays: nothing came"]


def test_last_of_several_changes_and_every_fact_counts() -> None:
    """A table's topic has updates; a second alert is a second row."""
    changes = [(b"BOEING", msgspec.json.encode(Delays(number))) for number in (1, 2, 3)]
    (row,) = results.found(MAKERS, changes).to_dict("records")
    assert row == {"maker": "BOEING", "flights": 3, "departed": 0, "delay": 0}
    alert = msgspec.json.encode(Alert("UA1", "EWR", "Boston", 0, 150))
    assert len(results.found(ALERTS, [(b"N1", alert), (b"N1", alert)])) == 2


def test_long_lists_of_messages_are_truncated() -> None:
    """The number of further messages is appended."""
    lines = results.summary([str(number) for number in range(1_025)]).splitlines()
    assert lines[0] == "0"
    assert lines[-1] == "… and 1,005 more"
