"""What a reset does to each partition: pure, so that the dry run and the real one cannot differ."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum

Partition = tuple[str, int]


class Target(Enum):
    """Where a reset moves a group to."""

    EARLIEST = "to-earliest"
    LATEST = "to-latest"
    OFFSET = "to-offset"
    TIME = "to-datetime"
    SHIFT = "shift-by"
    FILE = "from-file"


@dataclass(frozen=True, slots=True)
class Bounds:
    """What a partition holds now: its start and its high watermark."""

    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Move:
    """One partition's change; `current` is None where nothing is committed."""

    topic: str
    partition: int
    current: int | None
    target: int
    asked: int | None = field(default=None, compare=False)
    """What was asked for, which the partition may not hold."""


def plan_moves(
    target: Target,
    amount: int,
    *,
    bounds: Mapping[Partition, Bounds],
    current: Mapping[Partition, int],
    at_time: Mapping[Partition, int],
) -> list[Move]:
    """Return the move of each partition in `bounds`, never outside what it holds.

    `amount` is the offset or the shift; `at_time` holds the offsets of the moment asked for, or those of a file.
    ValueError if a partition without a committed offset is to be shifted.
    """
    if target is Target.SHIFT and (lost := sorted(set(bounds) - set(current))):
        topic, partition = lost[0]
        raise ValueError(
            f"{topic}-{partition} has no committed offset to shift: name another target"
        )
    moves = []
    for key in sorted(bounds):
        kept = bounds[key]
        wanted = {
            Target.EARLIEST: kept.start,
            Target.LATEST: kept.end,
            Target.OFFSET: amount,
            Target.TIME: at_time.get(key, kept.end),
            Target.FILE: at_time.get(key, kept.end),
            Target.SHIFT: current.get(key, 0) + amount,
        }[target]
        held = min(max(wanted, kept.start), kept.end)
        moves.append(Move(*key, current.get(key), held, wanted))
    return moves
