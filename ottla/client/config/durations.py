"""Durations as users type them: `90s`, `1h30m`, `P1DT2H`."""

import re

_UNITS_MS = {
    "ms": 1,
    "s": 1_000,
    "m": 60_000,
    "h": 3_600_000,
    "d": 86_400_000,
    "w": 7 * 86_400_000,
}
_SHORT = re.compile(r"([0-9]{1,19}(?:\.[0-9]{1,19})?)(ms|s|m|h|d|w)", re.IGNORECASE)
# ISO 8601 without years and months, which have no fixed length (as in java.time.Duration).
_ISO = re.compile(
    r"P(?:(?P<w>[0-9]+)W)?(?:(?P<d>[0-9]+)D)?"
    r"(?:T(?=[0-9])(?:(?P<h>[0-9]+)H)?(?:(?P<m>[0-9]+)M)?(?:(?P<s>[0-9]+(?:\.[0-9]+)?)S)?)?",
    re.IGNORECASE,
)
# The largest number of milliseconds that a request can contain.
_MAX_MS = 2**63 - 1


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
