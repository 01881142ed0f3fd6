"""Numbers, sizes and times as a reader wants them. Unknown values (None) are a dash."""

import json
import re
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from datetime import UTC, datetime
from typing import Any

from ottla.base.text.json_text import laid_out
from ottla.console.model.messages.decoding import CONTROLS, Decoded, Format

UNKNOWN = "–"
_UNITS = ("B", "KiB", "MiB", "GiB", "TiB", "PiB")
_MINUTE_S, _HOUR_S, _DAY_S = 60, 3600, 86_400


def size(count: float | None) -> str:
    """Return bytes with a binary unit and three digits: `1.25 MiB`."""
    if count is None:
        return UNKNOWN
    value, unit = float(count), 0
    while abs(value) >= 1024 and unit < len(_UNITS) - 1:
        value, unit = value / 1024, unit + 1
    if unit == 0:
        return f"{value:.0f} B"
    digits = 0 if value >= 100 else 1 if value >= 10 else 2
    return f"{value:.{digits}f} {_UNITS[unit]}"


def number(value: float | None) -> str:
    """Return a number with thin spaces between thousands; a fraction has two digits at most."""
    if value is None:
        return UNKNOWN
    text = f"{value:,}" if isinstance(value, int) else f"{value:,.2f}".rstrip("0").rstrip(".")
    return text.replace(",", "\u202f")


def percent(value: float | None) -> str:
    """Return a percentage with at most one digit after the point."""
    if value is None:
        return UNKNOWN
    return f"{value:.1f}".removesuffix(".0") + "\u202f%"


def duration(seconds: float | None) -> str:
    """Return a duration with its two largest units: `3 h 12 min`."""
    if seconds is None:
        return UNKNOWN
    if seconds < 1:
        return f"{seconds * 1000:.0f} ms"
    if seconds < _MINUTE_S:
        return f"{seconds:.1f}".removesuffix(".0") + " s"
    total_s = int(seconds)
    for unit, text, smaller, smaller_text in (
        (_DAY_S, "d", _HOUR_S, "h"),
        (_HOUR_S, "h", _MINUTE_S, "min"),
        (_MINUTE_S, "min", 1, "s"),
    ):
        if total_s >= unit:
            smaller_count = total_s % unit // smaller
            return (
                f"{total_s // unit} {text} {smaller_count} {smaller_text}"
                if smaller_count
                else f"{total_s // unit} {text}"
            )
    return f"{total_s} s"


def moment(time_ms: int | None) -> str:
    """Return a time in UTC, in ISO 8601 with milliseconds; the browser shows its own time zone."""
    if time_ms is None or time_ms < 0:
        return UNKNOWN
    try:
        at = datetime.fromtimestamp(time_ms / 1000, UTC)
    except (OverflowError, ValueError, OSError):
        return str(time_ms)
    return at.isoformat(sep=" ", timespec="milliseconds").replace("+00:00", "Z")


def share(part: float | None, total: float | None) -> int:
    """Return a part in percent of a whole, between 0 and 100, for bars."""
    if not part or not total or part < 0 or total < 0:
        return 0
    return min(100, max(1, round(100 * part / total)))


def as_json(value: Any) -> str:
    """Return JSON; values by their fields, the keys of mappings as text, bytes never."""
    return json.dumps(_plain(value), ensure_ascii=False)


def _plain(value: Any) -> Any:
    if isinstance(value, str | int | float | bool) or value is None:
        return value
    if is_dataclass(value) and not isinstance(value, type):
        return {field.name: _plain(getattr(value, field.name)) for field in fields(value)}
    if isinstance(value, Mapping):
        return {_key(key): _plain(item) for key, item in value.items()}
    if hasattr(value, "_asdict"):
        return _plain(value._asdict())
    return [_plain(item) for item in value]


def _key(key: Any) -> str:
    return "-".join(map(str, key)) if isinstance(key, tuple) else str(key)


def pretty(decoded: Decoded) -> str:
    """Return a key or value for a reader: JSON is indented, everything else is as it is."""
    if decoded.format is not Format.JSON or decoded.is_truncated:
        return visible(decoded.text)
    return visible(laid_out(decoded.text))


def visible(text: str) -> str:
    r"""Return a text with its control characters and direction marks as codes: `\x1b`, `\u202e`."""
    return CONTROLS.sub(_code, text)


def _code(match: re.Match[str]) -> str:
    number = ord(match[0])
    return f"\\x{number:02x}" if number < 256 else f"\\u{number:04x}"
