"""Paths into JSON: `$`, `$.order.items[*].id`, `$['a b']`, `$.items[-1]`, `$..id`. Pure.

The part of RFC 9535 that needs no evaluation: names, indexes, wildcards and descendants. The time
is linear in the document, for each step.

Not done: slices, unions and filter expressions (`[?…]`), which conditions replace.
"""

import re
from collections.abc import Iterator
from typing import Any

from ottla.base.errors import ConfigError

_STEP = re.compile(
    r"""(?P<deep>\.\.)?(?:
        \.?(?P<name>[^.\[\]*'"\s=!<>~]+)
      | \.?(?P<star>\*)
      | \[(?P<index>-?[0-9]{1,9})\]
      | \[(?P<any>\*)\]
      | \[(?:'(?P<single>[^']*)'|"(?P<double>[^"]*)")\]
    )""",
    re.VERBOSE,
)
ANY: Any = object()
"""The step of a wildcard."""
_STEPS_MAX = 32
_LENGTH_MAX = 500

_Step = tuple[bool, Any]


class Selectable:
    """A value of a document in another form than Python's, as `json_text.JsonNode`."""

    __slots__ = ()

    def children(self, step: Any) -> Iterator[tuple[Any, Any]]:
        """Yield key and child for one step: a name, an index, or ANY."""
        return iter(())


class JsonPath:
    """A compiled path."""

    def __init__(self, text: str) -> None:
        """Compile; raises ConfigError if the path is malformed or longer than 500 characters."""
        self.text = text
        self._steps, end = _parse(text)
        if end < len(text):
            raise malformed(text)

    @property
    def is_root(self) -> bool:
        """True for `$`, which selects the whole document."""
        return not self._steps

    @classmethod
    def at_start(cls, text: str) -> tuple["JsonPath", str]:
        """Return the path at the start of a text, and the rest; ConfigError without a path."""
        _, end = _parse(text)
        return cls(text[:end]), text[end:]

    def select(self, document: Any) -> list[Any]:
        """Return the selected values in the document's order."""
        values = [document]
        for is_deep, step in self._steps:
            parents = _descendants(values) if is_deep else iter(values)
            values = [child for parent in parents for _, child in _children(parent, step)]
        return values


def _parse(text: str) -> tuple[list[_Step], int]:
    """Return the steps of the path at the start of a text, and the position behind it."""
    if not text.startswith("$"):
        raise malformed(text)
    position, steps = 1, []
    while position < len(text):
        match = _STEP.match(text, position)
        # A name needs its dot: `$name` is malformed.
        if match is None or (match["name"] and text[position] != "."):
            break
        steps.append((match["deep"] is not None, _step(match)))
        position = match.end()
    if len(steps) > _STEPS_MAX or position > _LENGTH_MAX:
        raise malformed(text)
    return steps, position


def _step(match: re.Match[str]) -> Any:
    if match["index"] is not None:
        return int(match["index"])
    for group in ("name", "single", "double"):
        if match[group] is not None:
            return match[group]
    return ANY


def _children(value: Any, step: Any) -> Iterator[tuple[Any, Any]]:
    """Yield key and child of a value for one step; nothing if the value has no such child."""
    if isinstance(value, dict):
        if step is ANY:
            yield from list(value.items())
        elif isinstance(step, str) and step in value:
            yield step, value[step]
    elif isinstance(value, Selectable):
        yield from value.children(step)
    elif isinstance(value, list):
        if step is ANY:
            yield from enumerate(list(value))
        elif isinstance(step, int) and -len(value) <= step < len(value):
            yield step, value[step]


def _descendants(values: list[Any]) -> Iterator[Any]:
    """Yield the values and everything inside of them, each once, without recursion."""
    pending = list(reversed(values))
    # Values of which one contains another.
    seen: set[int] = set()
    while pending:
        value = pending.pop()
        if isinstance(value, dict | list):
            if id(value) in seen:
                continue
            seen.add(id(value))
        yield value
        pending.extend(child for _, child in reversed(list(_children(value, ANY))))


def malformed(text: str) -> ConfigError:
    """Return the error of a text that is not a path."""
    return ConfigError(
        f"{text[:80]!r} is not a JSON path: write it as in $.order.items[0].id, $.items[*].id or $..id"
    )
