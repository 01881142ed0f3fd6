"""Offset expressions of every command: `start`, `end`, `stored`, `42`, `-10`, `+5`, `@2026-02-14`,
`@-1h`.

Parsing is pure; `resolve` looks up the offset of a position in each partition. kcat's `s@…` and
`e@…` are accepted, too.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum

from ottla.client.admin import offsets
from ottla.client.brokers import Brokers
from ottla.tools.moments import parse_moment
from ottla.tools.text_files import is_number


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
    if re.fullmatch(r"[+-]?[0-9]+", text) and not is_number(text.lstrip("+-"), 64):
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


Partition = tuple[str, int]


def resolve(
    brokers: Brokers, partitions: Sequence[Partition], position: Position
) -> dict[Partition, int]:
    """Return the offset of a position in each partition, limited to the offsets that exist."""
    earliest = offsets.list_offsets(brokers, dict.fromkeys(partitions, offsets.EARLIEST))
    latest = offsets.list_offsets(brokers, dict.fromkeys(partitions, offsets.LATEST))
    match position.anchor:
        case Anchor.BEGINNING | Anchor.STORED:
            targets: Mapping[Partition, int] = {key: row.offset for key, row in earliest.items()}
        case Anchor.END:
            targets = {key: row.offset for key, row in latest.items()}
        case Anchor.OFFSET:
            targets = dict.fromkeys(partitions, position.value)
        case Anchor.TAIL:
            targets = {key: row.offset - position.value for key, row in latest.items()}
        case Anchor.HEAD:
            targets = {key: row.offset + position.value for key, row in earliest.items()}
        case Anchor.TIME:
            targets = offsets.offsets_at(brokers, partitions, position.value)
    return {
        key: min(max(targets[key], earliest[key].offset), latest[key].offset) for key in partitions
    }
