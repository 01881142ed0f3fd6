"""JSON as it is written: its digits, names and escapes stay when it is laid out or changed. Pure.

A parser of values loses `100.00`, numbers beyond a double, and equal names. These functions work on
the tokens of a text that is known to be JSON, of any depth.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from ottla.base.text.json_paths import ANY, JsonPath, Selectable

_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|[{}\[\]:,]|[^\s{}\[\]:,"]+', re.DOTALL)
_OPENING, _CLOSING = "{[", "}]"
# Deeper levels are not indented further: the text would grow with the square of the depth.
_DEPTH_MAX = 50


def laid_out(text: str, indent: int = 2) -> str:
    """Return a JSON text with one member per line; only white space differs."""
    parts: list[str] = []
    depth, previous = 0, ""
    for match in _TOKEN.finditer(text):
        part = match[0]
        if part in _CLOSING:
            depth -= 1
            if previous not in _OPENING or not previous:
                parts.append(_line(depth, indent))
        elif previous and previous in _OPENING:
            parts.append(_line(depth, indent))
        parts.append(part)
        if part in _OPENING:
            depth += 1
        elif part == ",":
            parts.append(_line(depth, indent))
        elif part == ":":
            parts.append(" ")
        previous = part
    return "".join(parts)


def _line(depth: int, indent: int) -> str:
    return "\n" + " " * (indent * min(depth, _DEPTH_MAX))


@dataclass(slots=True)
class JsonNode(Selectable):
    """A value in a JSON text, from `start` up to `end`; `members` have the names of an object.

    An object may have several members of one name.
    """

    start: int
    end: int = 0
    opening: str = ""
    members: list[tuple[str | None, "JsonNode"]] = field(default_factory=list)

    def children(self, step: Any) -> Iterator[tuple[Any, "JsonNode"]]:
        """Yield the members that a step of a path selects."""
        if step is ANY:
            yield from self.members
        elif isinstance(step, str) and self.opening == "{":
            yield from (member for member in self.members if member[0] == step)
        elif isinstance(step, int) and -len(self.members) <= step < len(self.members):
            yield from self.members[step:][:1] if self.opening == "[" else ()


def parse_nodes(text: str, unquote: Callable[[str], str]) -> JsonNode:
    """Return the root of a text that is JSON; `unquote` returns the text of a quoted name."""
    root = JsonNode(0)
    stack = [root]
    name: str | None = None
    pending = ""
    for match in _TOKEN.finditer(text):
        part = match[0]
        parent = stack[-1]
        if part in _CLOSING:
            stack.pop().end = match.end()
        elif part == ":":
            name = unquote(pending)
            parent.members.pop()
        elif part != ",":
            node = JsonNode(match.start(), match.end(), part if part in _OPENING else "")
            parent.members.append((name, node))
            name, pending = None, part
            if node.opening:
                stack.append(node)
    return root.members[0][1]


def replaced(text: str, root: JsonNode, path: JsonPath, change: Callable[[str], str]) -> str:
    """Return a text in which `change` has replaced the tokens of the values that a path selects.

    A value inside of another selected value is replaced with it.
    """
    nodes: Sequence[JsonNode] = path.select(root)
    parts: list[str] = []
    position = 0
    for node in sorted(nodes, key=lambda node: (node.start, -node.end)):
        if node.start >= position:
            parts += [text[position : node.start], change(text[node.start : node.end])]
            position = node.end
    return "".join([*parts, text[position:]])
