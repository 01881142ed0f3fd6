"""The request and the result of a search, independent of the program that runs it."""

from collections.abc import Callable
from dataclasses import dataclass

from ottla.base.search.conditions import Condition
from ottla.client.raw.consumer import ConsumedRecord

# Called with each matching record.
OnMatch = Callable[[ConsumedRecord], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Search:
    """A search in ranges of offsets, by partition; the ends are exclusive.

    Records older than `from_ms` (-1: all ages), or not older than `until_ms`, do not match.
    A `limit` of 0 means none.
    """

    topic: str
    ranges: dict[int, tuple[int, int]]
    conditions: tuple[Condition, ...] = ()
    from_ms: int = -1
    until_ms: int | None = None
    read_committed: bool = True
    limit: int = 0


@dataclass(slots=True)
class Result:
    """The numbers of a finished search; `problems` are sentences."""

    matches: int
    records: int
    seconds: float
    problems: list[str]
