"""Time stamps in the patterns of java.text.SimpleDateFormat, in English.

Not done: eras and numbers of weeks (`G`, `w`, `W`, `F`, `Y`, `L`), whose values depend on a locale.
"""

import re
from collections.abc import Callable, Mapping
from datetime import datetime

from ottla_scripts.exits import UsageError

_DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
_MONTHS = (
    "January", "February", "March", "April", "May", "June", "July", "August", "September",
    "October", "November", "December",
)  # fmt: skip
# A text in quotes, a run of one letter, a lone quote, or any other character.
_PART = re.compile(r"'((?:[^']|'')*)'|(([A-Za-z])\3*)|(')|(.)", re.DOTALL)
_LATER = "GwWFYL"
Show = Callable[[datetime, int], str]


def _number(value: Callable[[datetime], int]) -> Show:
    return lambda time, width: str(value(time)).rjust(width, "0")


def _name(names: tuple[str, ...], index: Callable[[datetime], int]) -> Show:
    return lambda time, width: names[index(time)][: None if width > 3 else 3]


def _month(time: datetime, width: int) -> str:
    if width > 2:
        return _name(_MONTHS, lambda moment: moment.month - 1)(time, width)
    return str(time.month).rjust(width, "0")


def _year(time: datetime, width: int) -> str:
    return f"{time.year % 100:02}" if width == 2 else str(time.year).rjust(width, "0")


def _iso_zone(time: datetime, width: int) -> str:
    text = time.strftime("%z")
    if text == "+0000":
        return "Z"
    return {1: text[:3], 2: text}.get(width, f"{text[:3]}:{text[3:]}")


_LETTERS: Mapping[str, Show] = {
    "y": _year,
    "M": _month,
    "d": _number(lambda time: time.day),
    "D": _number(lambda time: time.timetuple().tm_yday),
    "E": _name(_DAYS, lambda time: time.weekday()),
    "u": _number(lambda time: time.isoweekday()),
    "a": lambda time, _: "AM" if time.hour < 12 else "PM",
    "H": _number(lambda time: time.hour),
    "k": _number(lambda time: time.hour or 24),
    "K": _number(lambda time: time.hour % 12),
    "h": _number(lambda time: time.hour % 12 or 12),
    "m": _number(lambda time: time.minute),
    "s": _number(lambda time: time.second),
    "S": _number(lambda time: time.microsecond // 1000),
    "z": lambda time, _: time.strftime("%Z"),
    "Z": lambda time, _: time.strftime("%z"),
    "X": _iso_zone,
}


class DateFormat:
    """A pattern; UsageError if it is wrong, with Java's sentences."""

    def __init__(self, pattern: str) -> None:
        self._parts: list[str | tuple[Show, int]] = []
        for quoted, run, letter, lone, other in _PART.findall(pattern):
            if lone:
                raise UsageError("Unterminated quote")
            if letter:
                self._parts.append((_show(letter), len(run)))
            elif other:
                self._parts.append(other)
            else:
                # Two quotes are one, inside of a text and outside.
                self._parts.append(quoted.replace("''", "'") or "'")

    def format(self, time: datetime) -> str:
        """Return the text of a time, which has a time zone."""
        return "".join(
            part if isinstance(part, str) else part[0](time, part[1]) for part in self._parts
        )


def _show(letter: str) -> Show:
    if letter in _LATER:
        raise UsageError(
            f"Pattern character '{letter}' is not supported: use {', '.join(_LETTERS)}"
        )
    if letter not in _LETTERS:
        raise UsageError(f"Illegal pattern character '{letter}'")
    return _LETTERS[letter]
