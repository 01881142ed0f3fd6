"""The plan of an offset reset, for each partition."""

import pytest

from ottla.base.errors import ConfigError
from ottla.operations.offsets.plans import Bounds, Strategy, plan_differences

BOUNDS = {("t", 1): Bounds(0, 100), ("t", 0): Bounds(10, 20)}


def _targets(
    strategy: Strategy, amount: int = 0, **offsets: dict[tuple[str, int], int]
) -> list[int | None]:
    rows = plan_differences(
        strategy,
        amount,
        bounds=BOUNDS,
        current=offsets.get("current", {}),
        offsets=offsets.get("at_time", {}),
    )
    return [row.after for row in rows]


@pytest.mark.parametrize(
    ("target", "amount", "targets"),
    [
        (Strategy.TO_EARLIEST, 0, [10, 0]),
        (Strategy.TO_LATEST, 0, [20, 100]),
        (Strategy.TO_OFFSET, 15, [15, 15]),
        (Strategy.TO_OFFSET, 5, [10, 5]),
        (Strategy.TO_OFFSET, 1000, [20, 100]),
        (Strategy.TAIL, 5, [15, 95]),
        (Strategy.TAIL, 50, [10, 50]),
        (Strategy.HEAD, 5, [15, 5]),
        (Strategy.HEAD, 50, [20, 50]),
    ],
)
def test_target_stays_within_the_log(target: Strategy, amount: int, targets: list[int]) -> None:
    """Outside of the log, the next consumer would start at its auto.offset.reset."""
    assert _targets(target, amount) == targets


def test_shift_counts_from_the_committed_offset() -> None:
    """A shift moves forward or backward, within the log."""
    current = {("t", 0): 15, ("t", 1): 50}
    assert _targets(Strategy.SHIFT_BY, 3, current=current) == [18, 53]
    assert _targets(Strategy.SHIFT_BY, -30, current=current) == [10, 20]


def test_partition_without_a_committed_offset_cannot_be_shifted() -> None:
    """The error names the partition without a committed offset."""
    with pytest.raises(ConfigError, match="t-1 has no committed offset"):
        _targets(Strategy.SHIFT_BY, 1, current={("t", 0): 15})


def test_time_is_converted_to_an_offset() -> None:
    """If no record is late enough, the offset is the log end."""
    assert _targets(Strategy.TO_DATETIME, 1, at_time={("t", 0): 12}) == [12, 100]


def test_moves_are_sorted_and_have_the_previous_offset() -> None:
    """A partition without a committed offset has none in the output."""
    rows = plan_differences(Strategy.TO_EARLIEST, bounds=BOUNDS, current={("t", 0): 15}, offsets={})
    assert [(*row.key, row.before, row.after) for row in rows] == [
        ("t", 0, 15, 10),
        ("t", 1, None, 0),
    ]


def test_lag_without_a_commit_counts_from_the_beginning() -> None:
    """A reset or an undo that deletes offsets shows the largest lag that the group may have."""
    rows = plan_differences(Strategy.DELETE, bounds=BOUNDS, current={("t", 1): 60}, offsets={})
    assert [(row.lag_before, row.lag_after) for row in rows] == [(10, 10), (40, 100)]
