"""The parameters of /search and /lag. Pure; a ConfigError names the parameter that is wrong."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from urllib.parse import parse_qs

from ottla.base.errors import ConfigError
from ottla.base.search.filters import Filters

Parameters = Mapping[str, Sequence[str]]
_LIMIT = 100
_FLAGS = {"true": True, "false": False}
_ISOLATION = {"read_uncommitted": False, "read_committed": True}
_SINGLE = ("topic", "from", "to", "key", "value", "key_regex", "value_regex", "ignore_case",
           "isolation", "limit", "value_limit")  # fmt: skip
_REPEATED = ("partition", "header", "where", "json")


class Anchor(Enum):
    """The reference point of a position."""

    BEGINNING = "beginning"
    END = "end"
    OFFSET = "offset"
    # So many records before the end.
    TAIL = "tail"
    # The first record at or after a time in ms.
    TIME = "time"


# A time, a count of the last records, or an offset, by the character before the number.
_POSITION = re.compile(r"([@-]?)([0-9]{1,18})")
_ANCHORS = {"@": Anchor.TIME, "-": Anchor.TAIL, "": Anchor.OFFSET}


@dataclass(frozen=True, slots=True)
class Position:
    """A position in every partition; `value` is an offset, a count or milliseconds."""

    anchor: Anchor
    value: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchRequest:
    """A search; no partitions mean all of them, and a limit of 0 means none."""

    topic: str
    partitions: tuple[int, ...] = ()
    start: Position = Position(Anchor.BEGINNING)
    end: Position = Position(Anchor.END)
    filters: Filters = field(default_factory=Filters)
    read_committed: bool = True
    limit: int = _LIMIT
    value_limit: int = 0


def parse_search(query: str) -> SearchRequest:
    """Return the search that a query string asks for."""
    values_by_name = _parameters(query, _SINGLE, _REPEATED)
    single = {name: values[0] for name, values in values_by_name.items()}
    if not single.get("topic"):
        raise ConfigError(
            "topic is missing: name the topic, as in /search?topic=orders&value=refund"
        )
    filters = Filters(
        key=single.get("key", ""),
        value=single.get("value", ""),
        key_regex=single.get("key_regex", ""),
        value_regex=single.get("value_regex", ""),
        headers=tuple(values_by_name.get("header", ())),
        # `json` is an earlier name of `where`.
        where=(*values_by_name.get("where", ()), *values_by_name.get("json", ())),
        ignore_case=_choice("ignore_case", single.get("ignore_case", "false"), _FLAGS),
    )
    return SearchRequest(
        topic=single["topic"],
        partitions=tuple(
            _number("partition", text) for text in values_by_name.get("partition", ())
        ),
        start=_position("from", single.get("from", Anchor.BEGINNING.value)),
        end=_position("to", single.get("to", Anchor.END.value)),
        filters=filters,
        read_committed=_choice("isolation", single.get("isolation", "read_committed"), _ISOLATION),
        limit=_number("limit", single.get("limit", str(_LIMIT))),
        value_limit=_number("value_limit", single.get("value_limit", "0")),
    )


def parse_lag(query: str) -> tuple[list[str], list[tuple[str, int, int]]]:
    """Return the groups, and the positions (topic, partition, offset) that a query string names."""
    values_by_name = _parameters(query, (), ("group", "position"))
    positions = []
    for text in values_by_name.get("position", ()):
        parts = text.rsplit(":", 2)
        if len(parts) != 3 or not parts[0]:
            raise ConfigError(f"position {text!r} is not of the form TOPIC:PARTITION:OFFSET")
        positions.append((parts[0], _number("position", parts[1]), _number("position", parts[2])))
    return list(values_by_name.get("group", ())), positions


def _parameters(query: str, single: Sequence[str], repeated: Sequence[str]) -> Parameters:
    parameters = parse_qs(query, keep_blank_values=True)
    for name, values in parameters.items():
        if name not in single and name not in repeated:
            names = ", ".join((*single, *repeated))
            raise ConfigError(f"{name!r} is not a parameter; known parameters: {names}")
        if name in single and len(values) > 1:
            raise ConfigError(f"{name} is given {len(values)} times: give it once")
    return parameters


def _number(name: str, text: str) -> int:
    # More digits than a 64-bit number has are no offset of any log.
    if not re.fullmatch(r"[0-9]{1,18}", text):
        raise ConfigError(f"{name} {text!r} is not a number of 0 or more")
    return int(text)


def _choice(name: str, text: str, choices: Mapping[str, bool]) -> bool:
    if text not in choices:
        raise ConfigError(f"{name} {text!r} is not one of: {', '.join(choices)}")
    return choices[text]


def _position(name: str, text: str) -> Position:
    if text in (Anchor.BEGINNING.value, Anchor.END.value):
        return Position(Anchor(text))
    match = _POSITION.fullmatch(text)
    if match is not None:
        return Position(_ANCHORS[match[1]], int(match[2]))
    raise ConfigError(
        f"{name} {text!r} is not a position: use beginning, end, an offset (42), the last ten "
        "records (-10), or a time in milliseconds (@1767225600000)"
    )
