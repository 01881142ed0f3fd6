"""Points in time as users type them: `1700000000000`, `2026-02-14T12:00:00Z`, `-1h`.

Used by `ottla consume -o @…` and `ottla group reset`. A time without a zone is UTC, so that a
command gives the same result on every machine.
"""

import datetime
import re

from ottla.base.loading import deferred
from ottla.operations.numbers import natural_number

_parse_duration = deferred("ottla.client.config.durations", "parse_duration")
# The largest number of milliseconds that a request can contain.
_MAX_MS = 2**63 - 1
_YEAR_10000_MS = 253_402_300_800_000


def parse_moment(text: str, now_ms: int) -> int:
    """Return milliseconds since the epoch; `-1h` is one hour before `now_ms`, `now` is `now_ms`.

    ValueError for another form, for a time before 1970, and for more than 2^63 - 1 ms.
    """
    cleaned = text.strip()
    if cleaned == "now":
        return now_ms
    if re.fullmatch(r"[0-9]{9,}", cleaned):
        if natural_number(cleaned) is None:
            raise ValueError(f"{text!r} is too late for a point in time: use at most {_MAX_MS}")
        return int(cleaned)
    if cleaned.startswith("-"):
        return _since_1970(text, now_ms - int(_parse_duration(cleaned[1:])))
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
    epoch = datetime.datetime.fromtimestamp(0, datetime.UTC)
    return _since_1970(text, (moment - epoch) // datetime.timedelta(milliseconds=1))


def _since_1970(text: str, time_ms: int) -> int:
    # For brokers, -1 is the end and -2 the beginning.
    if time_ms < 0:
        raise ValueError(f"{text!r} is before 1970, which no request can contain: use a later time")
    return time_ms


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
