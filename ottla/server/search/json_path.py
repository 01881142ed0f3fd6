"""Conditions on a JSON value: `$.customer.id`, `$.total >= 100`, `$.items[0]['a b'] =~ "^x"`. Pure.

If a path selects several values, it is enough that one of them compares as demanded.
"""

import json
import operator
import re
from collections.abc import Callable
from typing import Any, NamedTuple

from ottla.base.errors import ConfigError
from ottla.base.text.json_paths import JsonPath
from ottla.coordinators.consumer.regex.patterns import BytesPattern

_OPERATOR = re.compile(r"(==|!=|<=|>=|=~|<|>)\s*(.+)", re.DOTALL)
_ORDERS: dict[str, Callable[[Any, Any], bool]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
_FORM = "write it as $.name, $.name[0] or $.name == LITERAL, with ==, !=, <, <=, >, >= or =~"


class Condition(NamedTuple):
    """A path, and the comparison of its value; without a comparison, it is enough that the path
    exists.
    """

    path: JsonPath
    compare: Callable[[Any], bool] | None

    def holds(self, document: Any) -> bool:
        """Return True if the document has the path, and its value compares as demanded."""
        values = self.path.select(document)
        return any(self.compare is None or self.compare(value) for value in values)


def parse_condition(text: str, *, ignore_case: bool = False) -> Condition:
    """Parse a condition; the ConfigError says which forms there are."""
    cleaned = text.strip()
    if not cleaned.startswith("$"):
        raise ConfigError(f"json {text!r} does not begin with $: {_FORM}")
    path, rest = JsonPath.at_start(cleaned)
    comparison = rest.strip()
    if not comparison:
        return Condition(path, None)
    compared = _OPERATOR.fullmatch(comparison)
    if compared is None:
        raise ConfigError(f"json {text!r} cannot be read from {comparison!r} on: {_FORM}")
    try:
        literal = json.loads(compared.group(2))
    except ValueError:
        raise ConfigError(
            f"json {text!r}: {compared.group(2)!r} is not a JSON literal: write texts in double quotes"
        ) from None
    return Condition(path, _comparison(text, compared.group(1), literal, ignore_case))


def _comparison(text: str, sign: str, literal: Any, ignore_case: bool) -> Callable[[Any], bool]:
    if sign == "=~":
        if not isinstance(literal, str):
            raise ConfigError(f"json {text!r}: =~ needs a regular expression in double quotes")
        pattern = BytesPattern(literal, ignore_case=ignore_case)
        return lambda value: isinstance(value, str) and pattern.is_in(value.encode())
    kind = _kind(literal)
    if sign == "==":
        return lambda value: _kind(value) == kind and value == literal
    if sign == "!=":
        return lambda value: _kind(value) != kind or value != literal
    order = _ORDERS[sign]
    if kind not in ("number", "text"):
        raise ConfigError(f"json {text!r}: only numbers and texts have an order")
    return lambda value: _kind(value) == kind and order(value, literal)


def _kind(value: Any) -> str:
    """Return the JSON type of a value; in Python, true would be equal to 1."""
    if isinstance(value, bool):
        return "flag"
    if isinstance(value, int | float):
        return "number"
    return "text" if isinstance(value, str) else type(value).__name__


def parse_document(data: bytes) -> tuple[Any, bool]:
    """Return a JSON value, and whether the bytes are one."""
    try:
        return json.loads(data), True
    except (ValueError, RecursionError):
        return None, False
