"""Hours of virtual time: nothing is lost, everything recovers, and no table grows for ever."""

import pytest

from tests.sim.long_run import Hour, growing, run_hours

pytestmark = pytest.mark.slow


def test_a_virtual_hour() -> None:
    """An hour with transactions, groups, rolled segments, cleaning and a fault has no problem."""
    result = run_hours(1)
    assert not result.problems, result.problems
    (hour,) = result.hours
    assert hour.acknowledged > 200


@pytest.mark.nightly("tests/sim/test_long_run.py::test_a_virtual_hour")
def test_a_virtual_day() -> None:
    """After 24 hours every size is as it was after a few, when everything has begun to expire."""
    result = run_hours(24)
    assert not result.problems, result.problems
    assert sum(hour.faults for hour in result.hours) > 12


def test_a_table_that_grows_every_hour_is_reported() -> None:
    """A leak of a few entries an hour is found, and a size that varies is not."""
    hours = [
        Hour(number, tables={"leak": 100 * number, "busy": 50 + 10 * (number % 3)})
        for number in range(24)
    ]
    assert growing(hours) == ["leak grows: 900 and later 1700"]


def test_sizes_of_the_first_hours_do_not_count() -> None:
    """Tables fill until their first entries expire."""
    hours = [Hour(number, open_files=min(number, 3) * 100) for number in range(24)]
    assert not growing(hours)
