"""Filters of records by partition, time, key, value, headers. No scripts: tables of conditions only.

Regular expressions are RE2's, whose time is linear in the input.
"""

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from ottla.console.model.connections import planned


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


Predicate = Callable[[bytes | None, bytes | None, Any], bool]
"""A compiled filter: key, value and headers of a record."""


def compile_conditions(conditions: tuple[Condition, ...]) -> Predicate:
    """Return a predicate that is true if all conditions are; ConfigError names an invalid one. Pure."""
    raise planned()
