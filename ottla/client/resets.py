"""The plan of a reset. It is pure, so that the dry run and the execution cannot differ."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum

Partition = tuple[str, int]


class Target(Enum):
    """The kind of position that a reset moves a group to."""

    EARLIEST = "to-earliest"
    LATEST = "to-latest"
    OFFSET = "to-offset"
    TIME = "to-datetime"
    # A number of records before the end, and after the beginning.
    TAIL = "tail"
    HEAD = "head"
    SHIFT = "shift-by"
    FILE = "from-file"


@dataclass(frozen=True, slots=True)
class Bounds:
    """The log start offset and the high watermark of a partition."""

    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Move:
    """The change of one partition; `current` is None if no offset is committed."""

    topic: str
    partition: int
    current: int | None
    target: int
    requested: int | None = field(default=None, compare=False)
    """The requested offset, which may be outside the partition's bounds."""


def plan_moves(
    target: Target,
    amount: int,
    *,
    bounds: Mapping[Partition, Bounds],
    current: Mapping[Partition, int],
    at_time: Mapping[Partition, int],
) -> list[Move]:
    """Return the move of each partition in `bounds`; the target is always within its bounds.

    `amount` is the offset, the count or the shift. `at_time` holds the offsets of the requested
    time, or those of a file. ValueError if a partition without a committed offset is to be shifted.
    """
    if target is Target.SHIFT and (lost := sorted(set(bounds) - set(current))):
        topic, partition = lost[0]
        raise ValueError(
            f"{topic}-{partition} has no committed offset to shift: choose another target"
        )
    moves = []
    for key in sorted(bounds):
        bound = bounds[key]
        requested = {
            Target.EARLIEST: bound.start,
            Target.LATEST: bound.end,
            Target.OFFSET: amount,
            Target.TAIL: bound.end - amount,
            Target.HEAD: bound.start + amount,
            Target.TIME: at_time.get(key, bound.end),
            Target.FILE: at_time.get(key, bound.end),
            Target.SHIFT: current.get(key, 0) + amount,
        }[target]
        bounded = min(max(requested, bound.start), bound.end)
        moves.append(Move(*key, current.get(key), bounded, requested))
    return moves
