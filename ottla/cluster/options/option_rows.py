"""Helpers for the option tables: short rows, and rows with a check of their own.

The modules `*_options` contain only rows; `option_tables` combines them.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypedDict, Unpack

from ottla.base.options import Option, OptionType, Scope

INT_MAX = 2**31 - 1
LONG_MAX = 2**63 - 1

INERT = "Accepted and shown, but Ottla does not act on it"

_THROTTLED = re.compile(r"\d+:\d+")
# As in Kafka's Utils.validHostPattern.
_HOST = re.compile(r"[0-9a-zA-Z\-%._:]+")


class RowProperties(TypedDict, total=False):
    """The optional properties of a row, besides name, type, default and description."""

    minimum: float
    maximum: float
    choices: tuple[str, ...]
    dynamic: bool
    sensitive: bool
    fallback: str


Check = Callable[[Any], str | None]


@dataclass(frozen=True, kw_only=True)
class CheckedOption(Option):
    """A row with a rule for its values that a range or a choice cannot express."""

    check: Check

    def parse(self, text: str) -> Any:
        """Return the value; raise ConfigError also if `check` returns a reason."""
        value = Option.parse(self, text)
        reason = self.check(value)
        if reason is not None:
            raise self.refusal(text, reason)
        return value


class Rows:
    """Creates the rows of one scope; `limits` are the defaults of their optional properties."""

    def __init__(self, scope: Scope, **limits: Unpack[RowProperties]) -> None:
        self._scope = scope
        self._limits = limits

    def row(
        self,
        name: str,
        kind: OptionType,
        default: Any,
        doc: str,
        check: Check | None = None,
        **limits: Unpack[RowProperties],
    ) -> Option:
        """Return one row of a table."""
        merged: RowProperties = {**self._limits, **limits}
        if check is None:
            return Option(
                name=name, type=kind, default=default, doc=doc, scope=self._scope, **merged
            )
        return CheckedOption(
            name=name, type=kind, default=default, doc=doc, scope=self._scope, check=check, **merged
        )


def inert(reason: str = "") -> str:
    """Return the description of an option that is accepted only for Kafka's configuration files."""
    return f"{INERT}: {reason}." if reason else f"{INERT}."


def gzip_level(value: int) -> str | None:
    """Check a gzip level: 1 to 9, or -1 for the library's own default."""
    return None if value == -1 or 1 <= value <= 9 else "it must be between 1 and 9, or -1"


def no_duplicates(value: Sequence[str]) -> str | None:
    """Check that a list contains no item twice."""
    return None if len(set(value)) == len(value) else "it contains an item twice"


def not_empty(value: Sequence[str]) -> str | None:
    """Check that a list is not empty and contains no item twice."""
    return no_duplicates(value) if value else "it must not be empty"


def limits_by_host(text: str) -> dict[str, int]:
    """Return the numbers of `host:number` pairs; raise ValueError, with the reason, for others."""
    limits = {}
    for pair in filter(None, map(str.strip, text.split(","))):
        host, _, number = (part.strip() for part in pair.rpartition(":"))
        if not (_HOST.fullmatch(host) and number.isascii() and number.isdecimal()):
            raise ValueError(f"{pair!r} is not a pair of host and number, like 127.0.0.1:100")
        limits[host] = int(number)
    return limits


def host_limits(text: str) -> str | None:
    """Check `host:number` pairs."""
    try:
        limits_by_host(text)
    except ValueError as error:
        return str(error)
    return None


def throttled_replicas(value: Sequence[str]) -> str | None:
    """Check `partition:broker` pairs, or the one item `*` for all of them."""
    if list(value) == ["*"] or all(_THROTTLED.fullmatch(pair) for pair in value):
        return None
    return "it must be '*' or a list of partition:broker pairs"
