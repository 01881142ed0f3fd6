"""Lines of CSV that a spreadsheet may open."""

import re
from collections.abc import Iterable
from typing import Any

_FORMULA = ("=", "+", "-", "@", "\t", "\r")
# Python's writer leaves a carriage return unquoted, and readers take it for the end of the line.
_QUOTED = re.compile(r'[",\r\n]|^ | $')


def csv_line(values: Iterable[Any]) -> bytes:
    """Return a line; a text that a spreadsheet would run as a formula gets an apostrophe in front."""
    return (",".join(_field(harmless(value)) for value in values) + "\n").encode()


def harmless(value: Any) -> Any:
    """Return a value that no spreadsheet runs as a formula."""
    is_formula = isinstance(value, str) and value.startswith(_FORMULA)
    return "'" + value if is_formula else value


def _field(value: Any) -> str:
    text = "" if value is None else str(value)
    return '"' + text.replace('"', '""') + '"' if _QUOTED.search(text) else text
