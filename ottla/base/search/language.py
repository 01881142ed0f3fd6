"""The language of filters: `key starts-with "eu-" and $.total >= 100`. Pure.

`/search`, `ottla topic search --where`, the console's pages and its REST API parse the same text.
`TABLE` describes it for docs/search.md.

Not done: `or` and parentheses.
"""

import json
import re
from collections.abc import Iterable
from dataclasses import replace
from typing import Any, NamedTuple

from ottla.base.errors import ConfigError
from ottla.base.search.conditions import Condition, Field, JsonComparison, Operator
from ottla.base.text.json_paths import JsonPath

TABLE: tuple[tuple[str, str], ...] = (
    ("`key`, `value`", "the key or the value as bytes; alone: it is not null"),
    ("`header.NAME`, `header[\"any name\"]`", "the headers of this name; alone: there is one, which may be null"),
    ("`header`, `any`", "each header; key, value and each header"),
    ("`$.total`, `$.items[*].id`", "the values that a path selects in a value that is JSON; alone: there is one"),
    ("`key $.id`, `header.NAME $.id`", "the same in a key or a header"),
    ("`== LITERAL`, `!= LITERAL`", "equal, or not. A whole number also equals the big-endian key or value of 4 or 8 bytes; a number in JSON also equals the text of its characters. Other types are never equal: `true` is not 1"),
    ("`< LITERAL`, `<=`, `>`, `>=`", "the order of numbers, or of texts, in JSON"),
    ("`contains TEXT`, `starts-with TEXT`", "a part, or the beginning"),
    ("`=~ TEXT`", "a match of the regular expression (RE2) anywhere: `key =~ \"^eu-[0-9]+$\"`"),
    ("`is null`", "null: a tombstone is `value is null`"),
    ("`… ignore-case`", "after a comparison: texts and expressions match regardless of case"),
    ("`not …`", "before a condition: its opposite, also for a part that does not exist"),
    ("`… and …`", "all conditions must match; there are up to 20"),
)  # fmt: skip
"""The forms of the language, and their meanings."""

_FORM = (
    "write it as $.name, key, value, any, header or header.NAME, alone or with ==, !=, <, <=, >, >=, =~, "
    "contains or starts-with and a JSON literal, or with is null"
)
_SUBJECT = re.compile(r"(not\s+)?(?:(key|value|any|header)(?![\w-]))?")
_HEADER = re.compile(r'\.([^\s=!<>~"\[\]]+)|(?=\[\s*")')
_COMPARISON = re.compile(
    r"\s*(==|!=|<=|>=|=~|<|>|contains(?=[\s\"])|starts-with(?=[\s\"])|is\s+null\b)"
)
_IGNORE_CASE = re.compile(r"\s+ignore-case(?![\w-])")
_AND = re.compile(r"\s+and\s+")
_PLAIN_NAME = re.compile(r'[^\s=!<>~"\[\]]+')
_BLANKS = re.compile(r"\s*")
_DECODER = json.JSONDecoder()
_RAW = {
    "==": Operator.EQUALS,
    "!=": Operator.EQUALS,
    "contains": Operator.CONTAINS,
    "starts-with": Operator.STARTS_WITH,
    "=~": Operator.REGEX,
}
_SIGNS = {operator: sign for sign, operator in _RAW.items() if sign != "!="}
_TEXT_SIGNS = ("contains", "starts-with", "=~")


class Literal(NamedTuple):
    """A JSON value, and the characters that it was written with."""

    value: Any
    source: str

    @property
    def text(self) -> str:
        """The text that is compared with bytes: a string's own, or the characters of a number."""
        return self.value if isinstance(self.value, str) else self.source


def parse_filter(text: str, *, ignore_case: bool = False) -> tuple[Condition, ...]:
    """Return the conditions of a filter; none for an empty text. The ConfigError quotes the text."""
    if not text.strip():
        return ()
    parser = _Parser(text.strip())
    conditions = [parser.condition()]
    while not parser.is_at_end:
        parser.expect(_AND)
        conditions.append(parser.condition())
    if ignore_case:
        return tuple(replace(condition, ignores_case=True) for condition in conditions)
    return tuple(conditions)


def filter_text(conditions: Iterable[Condition]) -> str:
    """Return a text that is parsed to conditions with the same meaning."""
    return " and ".join(map(_text, conditions))


class _Parser:
    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0

    @property
    def is_at_end(self) -> bool:
        return self._at >= len(self._text)

    def expect(self, pattern: re.Pattern[str]) -> re.Match[str]:
        match = self._take(pattern)
        if match is None:
            raise self._error()
        return match

    def _take(self, pattern: re.Pattern[str]) -> re.Match[str] | None:
        match = pattern.match(self._text, self._at)
        if match is not None:
            self._at = match.end()
        return match

    def _error(self) -> ConfigError:
        rest = self._text[self._at :].strip()
        return ConfigError(f"filter {self._text!r} cannot be read from {rest!r} on: {_FORM}")

    def condition(self) -> Condition:
        start = self.expect(_SUBJECT)
        name = start[2]
        header = self._header() if name == Field.HEADER else ""
        before = self._at
        path = self._path()
        if name is None and path is None:
            self._at = before
            raise ConfigError(
                f"filter {self._text!r}: {self._text[before:]!r} does not begin with $, key, value, "
                f"any or header: {_FORM}"
            )
        field = Field(name or Field.VALUE)
        compared = self._take(_COMPARISON)
        sign = " ".join(compared[1].split()) if compared is not None else ""
        literal = self._literal() if sign and sign != "is null" else None
        if path is not None:
            condition = self._on_json(field, path, sign, literal)
        else:
            condition = self._on_bytes(field, sign, literal)
        return replace(
            condition,
            header=header,
            ignores_case=literal is not None and self._take(_IGNORE_CASE) is not None,
            negated=condition.negated != bool(start[1]),
        )

    def _header(self) -> str:
        match = self._take(_HEADER)
        if match is None:
            return ""
        if match[1] is not None:
            return match[1]
        self._at = self._text.index('"', self._at)
        name = self._literal().text
        if self._text[self._at : self._at + 1] != "]":
            raise self._error()
        self._at += 1
        return name

    def _path(self) -> str | None:
        rest = self._text[self._at :]
        if not rest.lstrip().startswith("$"):
            return None
        path, after = JsonPath.at_start(rest.lstrip())
        self._at = len(self._text) - len(after)
        return path.text

    def _literal(self) -> Literal:
        self._take(_BLANKS)
        try:
            value, end = _DECODER.raw_decode(self._text, self._at)
        except (ValueError, RecursionError):
            raise ConfigError(
                f"filter {self._text!r}: {self._text[self._at :]!r} is not a JSON literal: write texts in "
                "double quotes"
            ) from None
        literal = Literal(value, self._text[self._at : end])
        self._at = end
        return literal

    def _on_json(self, field: Field, path: str, sign: str, literal: Literal | None) -> Condition:
        condition = Condition(field, Operator.JSON_PATH, path=path)
        if sign == "is null":
            return replace(condition, comparison=JsonComparison.EQUALS, text="null")
        if literal is None:
            return condition
        text = self._plain(sign, literal) if sign in _TEXT_SIGNS else literal.source
        comparison = JsonComparison("=" if sign == "==" else sign)
        return replace(condition, comparison=comparison, text=text)

    def _on_bytes(self, field: Field, sign: str, literal: Literal | None) -> Condition:
        if literal is None:
            return Condition(field, Operator.IS_NULL if sign else Operator.EXISTS)
        if sign not in _RAW:
            raise ConfigError(
                f"filter {self._text!r}: {sign} compares values of JSON only: name a path, as in "
                f"{field} $.total"
            )
        text = self._plain(sign, literal) if sign in _TEXT_SIGNS else literal.text
        return Condition(field, _RAW[sign], text, negated=sign == "!=")

    def _plain(self, sign: str, literal: Literal) -> str:
        if not isinstance(literal.value, str):
            raise ConfigError(f"filter {self._text!r}: {sign} needs a text in double quotes")
        return literal.value


def _text(condition: Condition) -> str:
    words = ["not"] if condition.negated else []
    if condition.operator is not Operator.JSON_PATH or condition.field is not Field.VALUE:
        words.append(_subject(condition))
    if condition.operator is Operator.JSON_PATH:
        words += _json_words(condition)
    elif condition.operator is Operator.IS_NULL:
        words.append("is null")
    elif condition.operator is not Operator.EXISTS:
        words += [_SIGNS[condition.operator], json.dumps(condition.text)]
    if condition.ignores_case and _is_compared(condition):
        words.append("ignore-case")
    return " ".join(words)


def _is_compared(condition: Condition) -> bool:
    if condition.operator is Operator.JSON_PATH:
        return condition.comparison is not JsonComparison.EXISTS
    return condition.operator not in (Operator.EXISTS, Operator.IS_NULL)


def _subject(condition: Condition) -> str:
    name = condition.header
    if condition.field is not Field.HEADER or not name:
        return str(condition.field)
    return f"header.{name}" if _PLAIN_NAME.fullmatch(name) else f"header[{json.dumps(name)}]"


def _json_words(condition: Condition) -> list[str]:
    comparison, text = condition.comparison, condition.text
    if comparison is JsonComparison.EXISTS:
        return [condition.path]
    if comparison not in _TEXT_SIGNS:
        return [
            condition.path,
            "==" if comparison is JsonComparison.EQUALS else comparison,
            literal_of(text).source,
        ]
    return [condition.path, comparison, json.dumps(text)]


def literal_of(text: str) -> Literal:
    """Return a JSON value and its characters; a text that is not JSON is a string."""
    try:
        return Literal(json.loads(text), text.strip())
    except (ValueError, RecursionError):
        return Literal(text, json.dumps(text))
