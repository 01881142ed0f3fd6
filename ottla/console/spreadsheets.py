"""Lines of CSV that a spreadsheet may open."""

import csv
import io
from collections.abc import Iterable
from typing import Any

_FORMULA = ("=", "+", "-", "@", "\t", "\r")


def csv_line(values: Iterable[Any]) -> bytes:
    """Return a line; a text that a spreadsheet would run as a formula gets an apostrophe in front."""
    line = io.StringIO()
    csv.writer(line, lineterminator="\n").writerow([_harmless(value) for value in values])
    return line.getvalue().encode()


def _harmless(value: Any) -> Any:
    is_formula = isinstance(value, str) and value.startswith(_FORMULA)
    return "'" + value if is_formula else value
