"""What a reset does to each partition."""

import pytest

from ottla.tools.group.plan import Bounds, Move, Target, plan_moves

BOUNDS = {("t", 1): Bounds(0, 100), ("t", 0): Bounds(10, 20)}


def _targets(target: Target, amount: int = 0, **words: dict[tuple[str, int], int]) -> list[int]:
    moves = plan_moves(
        target,
        amount,
        bounds=BOUNDS,
        current=words.get("current", {}),
        at_time=words.get("at_time", {}),
    )
    return [move.target for move in moves]


@pytest.mark.parametrize(
    ("target", "amount", "targets"),
    [
        (Target.EARLIEST, 0, [10, 0]),
        (Target.LATEST, 0, [20, 100]),
        (Target.OFFSET, 15, [15, 15]),
        (Target.OFFSET, 5, [10, 5]),
        (Target.OFFSET, 1000, [20, 100]),
    ],
)
def test_a_target_stays_within_what_a_partition_holds(
    target: Target, amount: int, targets: list[int]
) -> None:
    """An offset before the start or after the end would make the next consumer start anywhere."""
    assert _targets(target, amount) == targets


def test_a_shift_counts_from_what_is_committed() -> None:
    """Forward and back, within bounds."""
    current = {("t", 0): 15, ("t", 1): 50}
    assert _targets(Target.SHIFT, 3, current=current) == [18, 53]
    assert _targets(Target.SHIFT, -30, current=current) == [10, 20]


def test_what_is_not_committed_cannot_be_shifted() -> None:
    """The error names the partition."""
    with pytest.raises(ValueError, match="t-1 has no committed offset"):
        _targets(Target.SHIFT, 1, current={("t", 0): 15})


def test_a_time_is_the_offset_found_for_it() -> None:
    """Where no record is as late, the end."""
    assert _targets(Target.TIME, 1, at_time={("t", 0): 12}) == [12, 100]


def test_moves_come_in_order_with_the_offset_before() -> None:
    """A partition without a committed offset shows none."""
    moves = plan_moves(Target.EARLIEST, 0, bounds=BOUNDS, current={("t", 0): 15}, at_time={})
    assert moves == [Move("t", 0, 15, 10), Move("t", 1, None, 0)]
