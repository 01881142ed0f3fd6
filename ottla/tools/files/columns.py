"""Columns of `--schema`: a value's text is checked against its type, and keeps its digits.

Not done: nested types, binary and variant, which `--engine spark` reads.
"""

import re
from collections.abc import Callable, Mapping
from datetime import date
from decimal import Decimal
from typing import Any

import msgspec

from ottla.base.errors import ConfigError
from ottla.streams.pipelines.data_types import columns_of
from ottla.tools.files.rows import RefusedRow, parse_aware, parse_time

_BITS = {
    **dict.fromkeys(("byte", "tinyint"), 8),
    **dict.fromkeys(("short", "smallint"), 16),
    **dict.fromkeys(("int", "integer"), 32),
    **dict.fromkeys(("long", "bigint"), 64),
}
_TIMES = frozenset({"timestamp", "timestamp_ltz", "timestamp_ntz"})
_FLOATS = frozenset({"float", "real", "double"})
_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?")
_INTEGER = re.compile(r"[+-]?[0-9]+")
_DECIMAL = re.compile(r"(?:decimal|dec|numeric)(?:\s*\(\s*(\d+)\s*(?:,\s*(\d+)\s*)?\))?")
_TEXT = re.compile(r"string|(?:varchar|char)\s*\(\s*(\d+)\s*\)")
_QUOTE = ord('"')

Check = Callable[[str], str]
"""Returns the JSON text of a value's text; raises ValueError with the reason."""


class SchemaColumn:
    """A column of a schema: its type, and the check of its values."""

    def __init__(self, name: str, kind: str) -> None:
        self.name = name
        self.kind = kind.strip().lower()
        self.is_text = bool(_TEXT.fullmatch(self.kind)) or self.kind in (*_TIMES, "date")
        self.is_time = self.kind in _TIMES
        digits = _DECIMAL.fullmatch(self.kind)
        self.decimal = digits and (int(digits[1] or 10), int(digits[2] or 0))
        self._check = _check_of(name, self.kind)

    def of_text(self, text: str) -> msgspec.Raw:
        """Return the JSON of a value's text; RefusedRow if it does not fit the type."""
        try:
            return msgspec.Raw(self._check(text).encode())
        except ValueError as error:
            raise RefusedRow(str(error), self.name) from None

    def of_json(self, raw: Any) -> msgspec.Raw:
        """Return the JSON of a value of an object; RefusedRow if it does not fit the type."""
        data = bytes(raw)
        if data[:1] == b'"':
            text = msgspec.json.decode(data)
            if self.is_text:
                return self.of_text(text)
        elif not self.is_text:
            return self.of_text(data.decode())
        shown = data.decode(errors="replace")
        raise RefusedRow(f"{_short(shown)} is not of type {self.kind}", self.name)

    def arrow_value(self, raw: msgspec.Raw) -> Any:
        """Return the value of checked JSON for an Arrow array of the type."""
        value = msgspec.json.decode(raw)
        if self.is_time:
            return parse_aware(value)
        if self.kind == "date":
            return date.fromisoformat(value)
        if self.kind in _FLOATS:
            return float(value)
        if self.decimal is not None:
            return Decimal(bytes(raw).decode())
        return value


def parse_schema(text: str) -> dict[str, SchemaColumn]:
    """Return the columns of `--schema` by name; ConfigError has the reason if it is invalid."""
    try:
        kinds: Mapping[str, str] = columns_of(text)
    except ValueError as error:
        raise ConfigError(
            f"--schema {text!r}: {error} Write columns with their types, as in 'origin string, delay "
            "int'."
        ) from None
    return {name: SchemaColumn(name, kind) for name, kind in kinds.items()}


def _check_of(name: str, kind: str) -> Check:
    text = _TEXT.fullmatch(kind)
    decimal = _DECIMAL.fullmatch(kind)
    if text is not None:
        return _text_check(int(text[1]) if text[1] else None)
    if decimal is not None:
        return _decimal_check(kind, int(decimal[1] or 10), int(decimal[2] or 0))
    if kind in _BITS:
        return _integer_check(kind, _BITS[kind])
    simple: dict[str, Check] = {"boolean": _boolean, "date": _date}
    simple |= dict.fromkeys(_TIMES, _time) | dict.fromkeys(_FLOATS, _float)
    if kind not in simple:
        raise ConfigError(
            f"--schema: column {name} is {kind}, which only Spark reads: add --engine spark"
        )
    return simple[kind]


def _short(text: str) -> str:
    return text if len(text) <= 60 else f"{text[:57]}…"


def _quoted(text: str) -> str:
    return msgspec.json.encode(text).decode()


def _text_check(length: int | None) -> Check:
    def check(text: str) -> str:
        if length is not None and len(text) > length:
            raise ValueError(f"{_short(text)!r} has {len(text)} characters, more than {length}")
        return _quoted(text)

    return check


def _integer_check(kind: str, bits: int) -> Check:
    bound = 1 << (bits - 1)

    def check(text: str) -> str:
        if not _INTEGER.fullmatch(text):
            raise ValueError(f"{_short(text)!r} is not of type {kind}")
        number = int(text) if len(text) < 30 else bound
        if not -bound <= number < bound:
            raise ValueError(f"{_short(text)} is outside of {kind} ({-bound} to {bound - 1})")
        return str(number)

    return check


def _decimal_check(kind: str, precision: int, scale: int) -> Check:
    def check(text: str) -> str:
        if not _NUMBER.fullmatch(text) or "e" in text.lower():
            raise ValueError(f"{_short(text)!r} is not of type {kind}")
        whole, _, fraction = text.lstrip("-").partition(".")
        if len(whole.lstrip("0")) > precision - scale or len(fraction.rstrip("0")) > scale:
            raise ValueError(f"{_short(text)} is outside of {kind}")
        return text

    return check


def _float(text: str) -> str:
    if not _NUMBER.fullmatch(text):
        raise ValueError(f"{_short(text)!r} is not a JSON number")
    return text


def _boolean(text: str) -> str:
    if text.lower() not in ("true", "false"):
        raise ValueError(f"{_short(text)!r} is neither true nor false")
    return text.lower()


def _date(text: str) -> str:
    try:
        return _quoted(date.fromisoformat(text).isoformat())
    except ValueError:
        raise ValueError(f"{_short(text)!r} is not a date such as 2026-02-14") from None


def _time(text: str) -> str:
    parse_time(text)
    return _quoted(text)
