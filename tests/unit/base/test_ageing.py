"""The age of things on a wall clock that jumps."""

import pytest

from ottla.base.ageing import AgeingClock

START_MS = 1_700_000_000_000
HOUR_MS = 3_600_000
DAY_MS = 24 * HOUR_MS


@pytest.mark.parametrize(
    ("leaps", "expected"),
    [
        # (seconds later, jump of the wall clock in ms), and the accepted time afterwards.
        ([(10, 0)], 10_000),
        ([(10, 2 * DAY_MS)], 10_000),
        ([(10, 2 * DAY_MS), (3599, 0)], 3_609_000),
        ([(10, 2 * DAY_MS), (3601, 0)], 3_611_000 + 2 * DAY_MS),
        ([(10, 2 * DAY_MS), (60, -2 * DAY_MS)], 70_000),
        ([(10, 2 * DAY_MS), (60, HOUR_MS)], 70_000),
        ([(10, -2 * DAY_MS)], 10_000 - 2 * DAY_MS),
        ([(10, -2 * DAY_MS), (60, 2 * DAY_MS)], 70_000),
        # A clock that is slewed, or runs half as fast again, does not jump.
        ([(10, 5000), (10, 5000)], 30_000),
    ],
)
def test_jump_forward_is_accepted_if_it_lasts(
    leaps: list[tuple[float, int]], expected: int
) -> None:
    """A jump forward is accepted after an hour, one backward at once."""
    wall_ms, now = START_MS, 5.0
    clock = AgeingClock(wall_ms, now)
    believed = wall_ms
    for seconds, leap_ms in leaps:
        now += seconds
        wall_ms += round(seconds * 1000) + leap_ms
        believed = clock.observe(wall_ms, now)
    assert believed - START_MS == expected
