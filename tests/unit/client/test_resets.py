"""The plan of an offset reset, for each partition."""

import pytest

from ottla.client.resets import Bounds, Move, Target, plan_moves

BOUNDS = {("t", 1): Bounds(0, 100), ("t", 0): Bounds(10, 20)}


def _targets(target: Target, amount: int = 0, **offsets: dict[tuple[str, int], int]) -> list[int]:
    moves = plan_moves(
        target,
        amount,
        bounds=BOUNDS,
        current=offsets.get("current", {}),
        at_time=offsets.get("at_time", {}),
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
        (Target.TAIL, 5, [15, 95]),
        (Target.TAIL, 50, [10, 50]),
        (Target.HEAD, 5, [15, 5]),
        (Target.HEAD, 50, [20, 50]),
    ],
)
def test_target_stays_within_the_log(target: Target, amount: int, targets: list[int]) -> None:
    """Outside of the log, the next consumer would start at its auto.offset.reset."""
    assert _targets(target, amount) == targets


def test_shift_counts_from_the_committed_offset() -> None:
    """A shift moves forward or backward, within the log."""
    current = {("t", 0): 15, ("t", 1): 50}
    assert _targets(Target.SHIFT, 3, current=current) == [18, 53]
    assert _targets(Target.SHIFT, -30, current=current) == [10, 20]


def test_partition_without_a_committed_offset_cannot_be_shifted() -> None:
    """The error names the partition without a committed offset."""
    with pytest.raises(ValueError, match="t-1 has no committed offset"):
        _targets(Target.SHIFT, 1, current={("t", 0): 15})


def test_time_is_converted_to_an_offset() -> None:
    """If no record is late enough, the offset is the log end."""
    assert _targets(Target.TIME, 1, at_time={("t", 0): 12}) == [12, 100]


def test_moves_are_sorted_and_have_the_previous_offset() -> None:
    """A partition without a committed offset has no offset in the output."""
    moves = plan_moves(Target.EARLIEST, 0, bounds=BOUNDS, current={("t", 0): 15}, at_time={})
    assert moves == [Move("t", 0, 15, 10), Move("t", 1, None, 0)]
