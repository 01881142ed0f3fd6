"""Conditions on a record, as values: what `language` parses, and what the REST API takes as JSON.
Pure.
"""

from dataclasses import dataclass
from enum import StrEnum


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
    STARTS_WITH = "starts-with"
    REGEX = "=~"


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
