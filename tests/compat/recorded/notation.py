"""The notation of values in a transcript: JSON without quotes around names, and with words.

    {error_code: UNKNOWN_MEMBER_ID, topics: [{name: "t", topic_id: $topic_id:1}], key: x"00ff"}

A value is a dict, a list, a string, bytes, a number, true, false, null, or a `Word`: the name of an
error, or a symbol (`$topic_id:1`), which represents a value that differs in every run.
"""

import json
import re
from collections.abc import Callable
from typing import Any

_TOKEN = re.compile(
    r"""\s*(?:
        (?P<bytes>x"[0-9a-f\s]*")
      | (?P<string>"(?:[^"\\]|\\.)*")
      | (?P<number>-?\d+(?:\.\d+)?)
      | (?P<symbol>\$[a-z_]+(?::\w+)?)
      | (?P<word>[A-Za-z_][A-Za-z0-9_.]*)
      | (?P<mark>[{}\[\]:,])
    )""",
    re.VERBOSE,
)
_CONSTANTS: dict[str, Any] = {"true": True, "false": False, "null": None}


class Word(str):
    """A bare name: an error's, or a symbol's with its dollar sign."""

    __slots__ = ()

    @property
    def is_symbol(self) -> bool:
        """Return True if it represents a value of the run."""
        return self.startswith("$")


class NotationError(ValueError):
    """The text is not a value; the message names the position."""


def parse(text: str) -> Any:
    """Return the value of a text."""
    tokens = _Tokens(text)
    value = tokens.value()
    tokens.expect_end()
    return value


def render(value: Any) -> str:
    """Write a value on one line; `parse` reads it back."""
    match value:
        case dict():
            return "{" + ", ".join(f"{key}: {render(item)}" for key, item in value.items()) + "}"
        case list():
            return "[" + ", ".join(render(item) for item in value) + "]"
        case Word():
            return str(value)
        case bytes():
            return f'x"{value.hex()}"'
        case None | bool() | str():
            return json.dumps(value, ensure_ascii=False)
        case int() | float():
            return repr(value)
    raise AssertionError(f"there is no notation for {value!r}")


class _Tokens:
    """A reader over the tokens of one text."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._position = 0

    def value(self) -> Any:
        kind, token = self._next()
        if kind == "mark":
            if token == "{":
                return dict(self._until("}", self._pair))
            if token == "[":
                return self._until("]", self.value)
            raise self._error(f"a value cannot begin with {token!r}")
        match kind:
            case "string":
                return json.loads(token)
            case "bytes":
                return bytes.fromhex(token[2:-1])
            case "number":
                return float(token) if "." in token else int(token)
            case "word" if token in _CONSTANTS:
                return _CONSTANTS[token]
        return Word(token)

    def expect_end(self) -> None:
        if self._text[self._position :].strip():
            raise self._error("something follows the value")

    def _pair(self) -> tuple[str, Any]:
        kind, name = self._next()
        if kind != "word" or self._next() != ("mark", ":"):
            raise self._error("a name and a colon are missing")
        return name, self.value()

    def _until(self, close: str, item: Callable[[], Any]) -> list[Any]:
        items: list[Any] = []
        if self._peek() == ("mark", close):
            self._next()
            return items
        while True:
            items.append(item())
            mark = self._next()
            if mark == ("mark", close):
                return items
            if mark != ("mark", ","):
                raise self._error(f"a comma or {close!r} is missing")

    def _peek(self) -> tuple[str, str]:
        position = self._position
        token = self._next()
        self._position = position
        return token

    def _next(self) -> tuple[str, str]:
        match = _TOKEN.match(self._text, self._position)
        if match is None:
            raise self._error("a value ends too early")
        self._position = match.end()
        kind = match.lastgroup
        assert kind is not None
        return kind, match[kind]

    def _error(self, reason: str) -> NotationError:
        return NotationError(f"{reason} at: …{self._text[max(self._position - 20, 0) :][:60]}")
