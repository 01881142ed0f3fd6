"""Whole numbers as users type them: ASCII digits, as large as the protocol's numbers are. Pure."""

import re

INT_MAX = 2**31 - 1
"""The largest partition, broker or count of the protocol."""
LONG_MAX = 2**63 - 1
"""The largest offset or time of the protocol, and the largest number of SQLite."""
# Also numbers with leading zeros: the names of segments have 20 digits.
_WHOLE = re.compile(r"[+-]?0{0,20}[0-9]{1,19}")


def whole_number(text: str, most: int = LONG_MAX) -> int | None:
    """Return the number of a text; None if it is none, or beyond `most` or its negative."""
    number = int(text) if _WHOLE.fullmatch(text) else None
    return number if number is not None and abs(number) <= most else None


def natural_number(text: str, most: int = LONG_MAX) -> int | None:
    """Return a number from 0 on, written with digits only; None for any other text."""
    return whole_number(text, most) if text.isdigit() else None
