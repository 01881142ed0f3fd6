"""Points in time and durations as users type them: `1700000000000`, `2026-02-14T12:00:00Z`, `-1h`,
`P1D`.

Used by `ottla consume -o @…` and `ottla group reset`. A time without a zone is UTC, so that a
command gives the same result on every machine.
"""

import datetime
import re

from ottla.tools.text_files import is_number

_UNITS_MS = {
    "ms": 1,
    "s": 1_000,
    "m": 60_000,
    "h": 3_600_000,
    "d": 86_400_000,
    "w": 7 * 86_400_000,
}
_SHORT = re.compile(r"(\d+(?:\.\d+)?)(ms|s|m|h|d|w)", re.IGNORECASE)
# ISO 8601 without years and months, which have no fixed length (as in java.time.Duration).
_ISO = re.compile(
    r"P(?:(?P<w>\d+)W)?(?:(?P<d>\d+)D)?"
    r"(?:T(?:(?P<h>\d+)H)?(?:(?P<m>\d+)M)?(?:(?P<s>\d+(?:\.\d+)?)S)?)?",
    re.IGNORECASE,
)
# The largest number of milliseconds that a request can contain.
_MAX_MS = 2**63 - 1
_YEAR_10000_MS = 253_402_300_800_000


def parse_duration(text: str) -> int:
    """Return the milliseconds of `90s`, `1h30m`, `P1DT2H`; the ValueError lists the allowed forms.

    ValueError for more than 2^63 - 1 ms, too.
    """
    cleaned = text.strip()
    iso = _ISO.fullmatch(cleaned)
    if iso is not None and any(iso.groupdict().values()):
        parts = [(amount, unit) for unit, amount in iso.groupdict().items() if amount]
    else:
        parts = _SHORT.findall(cleaned)
        if not parts or "".join(amount + unit for amount, unit in parts) != cleaned:
            raise ValueError(
                f"{text!r} is not a duration: use a form like 90s, 1h30m, 2d or P1DT2H"
            )
    duration = sum(float(amount) * _UNITS_MS[unit.lower()] for amount, unit in parts)
    if duration >= _MAX_MS:
        raise ValueError(f"{text!r} is too long for a duration: use at most {_MAX_MS} ms")
    return round(duration)


def parse_moment(text: str, now_ms: int) -> int:
    """Return milliseconds since the epoch; `-1h` is one hour before `now_ms`, `now` is `now_ms`.

    ValueError for another form, and for more than 2^63 - 1 ms.
    """
    cleaned = text.strip()
    if cleaned == "now":
        return now_ms
    if re.fullmatch(r"\d{9,}", cleaned):
        if not is_number(cleaned, 64):
            raise ValueError(f"{text!r} is too late for a point in time: use at most {_MAX_MS}")
        return int(cleaned)
    if cleaned.startswith("-"):
        return now_ms - parse_duration(cleaned[1:])
    try:
        moment = datetime.datetime.fromisoformat(cleaned)
    except ValueError as error:
        raise ValueError(
            f"{text!r} is not a point in time: use milliseconds since 1970, a date or time like "
            "2026-02-14 or 2026-02-14T12:00:00Z, or an age like -1h"
        ) from error
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=datetime.UTC)
    # Compute whole milliseconds in integers: a float would round the last one.
    return (moment - datetime.datetime.fromtimestamp(0, datetime.UTC)) // datetime.timedelta(
        milliseconds=1
    )


def render_moment(timestamp_ms: int) -> str:
    """Return the UTC time with milliseconds, or an empty string if the timestamp is -1.

    Times after the year 9999, which Python's calendar lacks, are milliseconds since 1970.
    """
    if timestamp_ms < 0:
        return ""
    if timestamp_ms >= _YEAR_10000_MS:
        return f"{timestamp_ms} ms"
    moment = datetime.datetime.fromtimestamp(timestamp_ms / 1000, datetime.UTC)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")
