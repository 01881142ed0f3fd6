"""Filters of records by partition, time, key, value, headers. No scripts: tables of conditions
only.

Regular expressions are RE2's, whose time is linear in the input.
"""

import json
import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from ottla.base.errors import ConfigError
from ottla.base.text.json_paths import JsonPath
from ottla.console.model.messages.patterns import Pattern
from ottla.operations.numbers import whole_number


class Field(StrEnum):
    """The part of a record that a condition compares."""

    KEY = "key"
    VALUE = "value"
    HEADER = "header"
    ANY = "any"


class Operator(StrEnum):
    """The comparison; JSON_PATH compares the values that a path selects (`$.order.items[*].id`)."""

    CONTAINS = "contains"
    EQUALS = "equals"
    STARTS_WITH = "starts-with"
    REGEX = "regex"
    JSON_PATH = "json-path"
    IS_NULL = "is-null"
    EXISTS = "exists"


class JsonComparison(StrEnum):
    """The comparison of a value that a JSON path selects."""

    EXISTS = "exists"
    EQUALS = "="
    NOT_EQUALS = "!="
    LESS = "<"
    LESS_OR_EQUAL = "<="
    GREATER = ">"
    GREATER_OR_EQUAL = ">="
    CONTAINS = "contains"


@dataclass(frozen=True, slots=True)
class Condition:
    """One condition.

    `header` names the header if `field` is HEADER (empty: any). `path` and `comparison` are for
    JSON_PATH, where `text` is a JSON value or plain text. `negated` inverts the result.
    """

    field: Field
    operator: Operator
    text: str = ""
    header: str = ""
    path: str = ""
    comparison: JsonComparison = JsonComparison.EXISTS
    ignores_case: bool = False
    negated: bool = False


Headers = Sequence[tuple[str, bytes | None]]
Predicate = Callable[[bytes | None, bytes | None, Headers], bool]
"""A compiled filter: key, value and headers of a record."""
_Test = Callable[[bytes | None], bool]

CONDITIONS_MAX = 20


def compile_conditions(conditions: tuple[Condition, ...]) -> Predicate:
    """Return a predicate that is true if all conditions are; ConfigError names an invalid one.
    Pure.
    """
    if len(conditions) > CONDITIONS_MAX:
        raise ConfigError(f"{len(conditions)} conditions are too many: use up to {CONDITIONS_MAX}")
    predicates = [_compile(condition) for condition in conditions]
    return lambda key, value, headers: all(check(key, value, headers) for check in predicates)


def needle_of(conditions: tuple[Condition, ...]) -> bytes | None:
    """Return bytes that every matching record contains, to skip batches before decoding; or None.

    Pure.
    """
    needles = [
        condition.text.encode()
        for condition in conditions
        if condition.operator in (Operator.CONTAINS, Operator.EQUALS, Operator.STARTS_WITH)
        and not condition.negated
        and not condition.ignores_case
        # EQUALS may mean the empty text, and the text of an integer is not in its bytes.
        and len(condition.text) > 1
        and not condition.text.lstrip("-").isdecimal()
    ]
    return max(needles, key=len, default=None)


def _compile(condition: Condition) -> Predicate:
    test = _compile_test(condition)
    expected = not condition.negated
    match condition.field:
        case Field.KEY:
            return lambda key, value, headers: test(key) == expected
        case Field.VALUE:
            return lambda key, value, headers: test(value) == expected
        case Field.HEADER:
            return lambda key, value, headers: _any_header(condition, test, headers) == expected
        case Field.ANY:
            return lambda key, value, headers: (
                (test(key) or test(value) or _any_header(condition, test, headers)) == expected
            )


def _any_header(condition: Condition, test: _Test, headers: Headers) -> bool:
    return any(
        test(value) for name, value in headers if not condition.header or name == condition.header
    )


def _compile_test(condition: Condition) -> _Test:
    match condition.operator:
        case Operator.IS_NULL:
            return lambda raw: raw is None
        case Operator.EXISTS:
            return lambda raw: True if condition.field is Field.HEADER else raw is not None
        case Operator.JSON_PATH:
            return _json_test(condition)
        case Operator.REGEX:
            pattern = Pattern(condition.text, ignores_case=condition.ignores_case)
            return lambda raw: raw is not None and pattern.finds(_text(raw))
    if not condition.text and condition.operator is not Operator.EQUALS:
        raise ConfigError(
            f"the condition {condition.operator!s} on the {condition.field!s} needs a text"
        )
    return _text_test(condition)


def _text_test(condition: Condition) -> _Test:
    if condition.ignores_case:
        folded = condition.text.casefold()
        compare = _TEXT_COMPARISONS[condition.operator]
        return lambda raw: raw is not None and compare(_text(raw).casefold(), folded)
    expected = condition.text.encode()
    compare_bytes = _BYTE_COMPARISONS[condition.operator]
    numbers = _packed(condition.text) if condition.operator is Operator.EQUALS else ()
    return lambda raw: raw is not None and (compare_bytes(raw, expected) or raw in numbers)


def _packed(text: str) -> tuple[bytes, ...]:
    """Return the serialized forms of an integer, as the page shows them; () for other texts."""
    number = whole_number(text)
    if number is None:
        return ()
    return tuple(
        number.to_bytes(size, "big", signed=True)
        for size in (4, 8)
        if -(1 << 8 * size - 1) <= number < 1 << 8 * size - 1
    )


def _json_test(condition: Condition) -> _Test:
    path = JsonPath(condition.path)
    compare = _json_comparison(condition)

    def test(raw: bytes | None) -> bool:
        if raw is None:
            return False
        try:
            document = json.loads(raw)
        except (ValueError, RecursionError):
            return False
        return any(compare(value) for value in path.select(document))

    return test


def _json_comparison(condition: Condition) -> Callable[[Any], bool]:
    comparison = condition.comparison
    if comparison is JsonComparison.EXISTS:
        return lambda value: True
    try:
        operand = json.loads(condition.text)
    except (ValueError, RecursionError):
        operand = condition.text
    if comparison is JsonComparison.CONTAINS:
        return lambda value: isinstance(value, str) and condition.text in value
    if comparison is JsonComparison.EQUALS:
        return lambda value: _is_equal(value, operand, condition.text)
    if comparison is JsonComparison.NOT_EQUALS:
        return lambda value: not _is_equal(value, operand, condition.text)
    ordered = _ORDERS[comparison]
    return lambda value: _are_comparable(value, operand) and bool(ordered(value, operand))


def _is_equal(value: Any, operand: Any, text: str) -> bool:
    # `true` is not 1, and a number typed by the user equals the string of its digits, too.
    if isinstance(value, bool) or isinstance(operand, bool):
        return value is operand
    return bool(value == operand) or (isinstance(value, str) and value == text)


def _are_comparable(value: Any, operand: Any) -> bool:
    numbers = int | float
    if isinstance(value, bool) or isinstance(operand, bool):
        return False
    return (isinstance(value, numbers) and isinstance(operand, numbers)) or (
        isinstance(value, str) and isinstance(operand, str)
    )


def _text(raw: bytes) -> str:
    try:
        return raw.decode()
    except UnicodeDecodeError:
        return raw.decode("latin-1")


_TEXT_COMPARISONS: Mapping[Operator, Callable[[str, str], bool]] = {
    Operator.CONTAINS: lambda text, wanted: wanted in text,
    Operator.EQUALS: operator.eq,
    Operator.STARTS_WITH: str.startswith,
}
_BYTE_COMPARISONS: Mapping[Operator, Callable[[bytes, bytes], bool]] = {
    Operator.CONTAINS: lambda raw, wanted: wanted in raw,
    Operator.EQUALS: operator.eq,
    Operator.STARTS_WITH: bytes.startswith,
}
_ORDERS: Mapping[JsonComparison, Callable[[Any, Any], Any]] = {
    JsonComparison.LESS: operator.lt,
    JsonComparison.LESS_OR_EQUAL: operator.le,
    JsonComparison.GREATER: operator.gt,
    JsonComparison.GREATER_OR_EQUAL: operator.ge,
}
