"""The first rows of a result while the records are still read: when to look, and what was seen."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from ottla.console.sql.values import Column

FIRST_S = 1.0
# A look takes a sixth of the time at most.
_PAUSES = 5.0


@dataclass(frozen=True, slots=True)
class PartialResult:
    """The first rows of the result of `records` of `total` records of the last topic that is read."""

    topic: str
    records: int
    total: int
    columns: tuple[Column, ...]
    rows: tuple[tuple[Any, ...], ...]


class LookSchedule:
    """The times of looks at a partial result. `clock` returns seconds."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._next = clock() + FIRST_S

    def is_due(self) -> bool:
        """Return True if it is time for a look."""
        return self._clock() >= self._next

    def look(self, take: Callable[[], dict[str, Any]]) -> dict[str, Any]:
        """Return what `take` returns; the next look is later the longer this one takes."""
        began = self._clock()
        rows = take()
        ended = self._clock()
        self._next = ended + max(FIRST_S, _PAUSES * (ended - began))
        return rows
