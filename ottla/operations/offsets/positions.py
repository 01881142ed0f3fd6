"""Offset expressions of every command: `start`, `end`, `stored`, `42`, `-10`, `+5`, `@2026-02-14`,
`@-1h`.

Parsing is pure; `resolve` looks up the offset of a position in each partition. kcat's `s@…` and
`e@…` are accepted, too.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

from ottla.client.brokers import Brokers
from ottla.operations.numbers import natural_number
from ottla.operations.offsets.moments import parse_moment
from ottla.operations.offsets.plans import Key, ResetRequest, Strategy, plan_partitions


class Anchor(Enum):
    """The reference point of a position."""

    BEGINNING = "beginning"
    END = "end"
    STORED = "stored"
    OFFSET = "offset"
    # `value` records before the end.
    TAIL = "tail"
    # `value` records after the beginning.
    HEAD = "head"
    # The first record at or after `value` ms.
    TIME = "time"


@dataclass(frozen=True, slots=True)
class Position:
    """A position in every partition; `value` is an offset, a count or milliseconds."""

    anchor: Anchor
    value: int = 0


_WORDS = {
    "beginning": Anchor.BEGINNING,
    "earliest": Anchor.BEGINNING,
    "start": Anchor.BEGINNING,
    "end": Anchor.END,
    "latest": Anchor.END,
    "stored": Anchor.STORED,
}
_MAX_OFFSET = 2**63 - 1
BEGINNING = Position(Anchor.BEGINNING)


def parse_position(text: str, now_ms: int) -> Position:
    """Parse a position; the ValueError lists the allowed forms, or names the largest offset."""
    if text in _WORDS:
        return Position(_WORDS[text])
    if text.startswith("@"):
        return Position(Anchor.TIME, parse_moment(text[1:], now_ms))
    if re.fullmatch(r"[+-]?[0-9]+", text) and natural_number(text.lstrip("+-")) is None:
        raise ValueError(f"{text!r} is too large for an offset: use at most {_MAX_OFFSET}")
    if re.fullmatch(r"[0-9]+", text):
        return Position(Anchor.OFFSET, int(text))
    if re.fullmatch(r"-[0-9]+", text):
        return Position(Anchor.TAIL, -int(text))
    if re.fullmatch(r"\+[0-9]+", text):
        return Position(Anchor.HEAD, int(text))
    raise ValueError(
        f"{text!r} is not a position: use beginning, end, stored, an offset (42), "
        "the last ten records (-10), after the first five (+5), or a time (@2026-02-14T12:00:00Z, @-1h, @ms)"
    )


def parse_range(texts: Sequence[str], now_ms: int) -> tuple[Position | None, Position | None]:
    """Parse up to two -o options: the first is the start, the second the end."""
    start: Position | None = None
    end: Position | None = None
    for text in texts:
        kind, at_sign, remainder = text.partition("@")
        if at_sign and kind in ("s", "e"):
            position = parse_position("@" + remainder, now_ms)
            is_end = kind == "e"
        else:
            position = parse_position(text, now_ms)
            is_end = start is not None
        if is_end and end is None:
            end = position
        elif not is_end and start is None:
            start = position
        else:
            raise ValueError("-o may be given twice at most: for the start and the end")
    if end is not None and end.anchor in (Anchor.BEGINNING, Anchor.STORED):
        raise ValueError(f"reading cannot end at {end.anchor.value}: name an offset or a time")
    return start, end


_STRATEGIES = {
    Anchor.BEGINNING: Strategy.TO_EARLIEST,
    Anchor.END: Strategy.TO_LATEST,
    Anchor.OFFSET: Strategy.TO_OFFSET,
    Anchor.TAIL: Strategy.TAIL,
    Anchor.HEAD: Strategy.HEAD,
    Anchor.TIME: Strategy.TO_DATETIME,
}


def strategy_of(text: str, now_ms: int) -> tuple[Strategy, int]:
    """Return the strategy of an expression, with its offset, count or time; ValueError for `stored`
    and for an invalid text.
    """
    position = parse_position(text, now_ms)
    if position.anchor is Anchor.STORED:
        raise ValueError("`stored` is where the group is already: name another position")
    return _STRATEGIES[position.anchor], position.value


def resolve_end(
    brokers: Brokers, partitions: Sequence[Key], end: Position
) -> tuple[dict[Key, int], int | None]:
    """Return the offset at which reading ends in each partition, and the time (ms) from which on
    records are left out, or None.

    An end that is a time is no offset: records after the first one at that time may be older.
    """
    if end.anchor is Anchor.TIME:
        return resolve(brokers, partitions, Position(Anchor.END)), end.value
    return resolve(brokers, partitions, end), None


def resolve(brokers: Brokers, partitions: Sequence[Key], position: Position) -> dict[Key, int]:
    """Return the offset of a position in each partition, limited to the offsets that exist."""
    # Without a stored position, reading starts at the beginning.
    strategy = _STRATEGIES.get(position.anchor, Strategy.TO_EARLIEST)
    request = ResetRequest("", strategy, amount=position.value)
    rows = {row.key: row for row in plan_partitions(brokers, request, partitions, {})}
    return {key: rows[key].after or 0 for key in partitions}
