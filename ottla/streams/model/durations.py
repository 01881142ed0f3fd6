"""Durations (`"5 min"`, `timedelta(minutes=5)`, or milliseconds as an int) and points in time."""

import re
from datetime import UTC, datetime, timedelta
from typing import Any

Duration = str | int | timedelta

Instant = int | datetime
"""A point in time: milliseconds since 1970, or a datetime with its zone."""

DAY_MS = 86_400_000

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_LAST_MS = (datetime.max.replace(tzinfo=UTC) - _EPOCH) // timedelta(milliseconds=1)

_UNITS = {
    "ms": 1,
    "s": 1_000,
    "sec": 1_000,
    "second": 1_000,
    "m": 60_000,
    "min": 60_000,
    "minute": 60_000,
    "h": 3_600_000,
    "hour": 3_600_000,
    "d": DAY_MS,
    "day": DAY_MS,
}
_PATTERN = re.compile(r"\s*(-?\d+)\s*([a-z]+)\s*")


def milliseconds(duration: Duration) -> int:
    """Return a duration in milliseconds. Raises ValueError or TypeError if it is invalid or
    negative.
    """
    result = signed_milliseconds(duration)
    if result < 0:
        raise ValueError(f"a duration of '{result}' ms is negative: use 0 or more")
    return result


def signed_milliseconds(duration: Duration) -> int:
    """Return a duration, which may be negative, in milliseconds. Raises ValueError or TypeError."""
    if isinstance(duration, timedelta):
        return round(duration / timedelta(milliseconds=1))
    if isinstance(duration, str):
        return _parse(duration)
    if isinstance(duration, int):
        return duration
    raise TypeError(
        f"a duration is a text like '5 min', a timedelta or milliseconds as an int, not {duration!r}"
    )


def check_whole(subject: str, value: Any, advice: str = "") -> None:
    """Raise TypeError for a value that is not an int; `advice` is added to the message."""
    if not isinstance(value, int) or isinstance(value, bool):
        raise TypeError(f"{subject} must be a whole number, not {value!r}{advice}")


def instant_ms(instant: Instant) -> int:
    """Return a point in time in ms since 1970.

    Raises ValueError for a datetime without a time zone, and TypeError for other values.
    """
    if isinstance(instant, int):
        return instant
    if not isinstance(instant, datetime):
        raise TypeError(
            f"a point in time is milliseconds since 1970 as an int, or a datetime, not {instant!r}"
        )
    if instant.tzinfo is None:
        raise ValueError(f"a datetime needs a time zone, like datetime(…, tzinfo=UTC): {instant!r}")
    return (instant - _EPOCH) // timedelta(milliseconds=1)


def instant_of(timestamp_ms: int) -> datetime:
    """Return the datetime, in UTC, of milliseconds since 1970; at most the latest datetime."""
    if timestamp_ms > _LAST_MS:
        return datetime.max.replace(tzinfo=UTC)
    return _EPOCH + timedelta(milliseconds=timestamp_ms)


def _parse(text: str) -> int:
    match = _PATTERN.fullmatch(text)
    if match is None:
        raise ValueError(f"not a duration: {text!r}; write a number and a unit, like '5 min'")
    count, unit = match.groups()
    scale = _UNITS.get(unit) or _UNITS.get(unit.removesuffix("s"))
    if scale is None:
        raise ValueError(f"unknown unit in {text!r}; units are ms, s, min, h and d")
    return int(count) * scale
