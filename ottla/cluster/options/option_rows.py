"""The shape in which the option tables are written: short rows, and rows with a check of their own.

The modules `*_options` hold nothing but rows; `options` puts them together.
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


class Limits(TypedDict, total=False):
    """What a row may say beside name, type, default and meaning."""

    minimum: float
    maximum: float
    choices: tuple[str, ...]
    dynamic: bool
    sensitive: bool
    fallback: str


Check = Callable[[Any], str | None]


@dataclass(frozen=True, kw_only=True)
class CheckedOption(Option):
    """A row whose values meet a rule that a range or a choice cannot say."""

    check: Check

    def parse(self, text: str) -> Any:
        """Return the value; ConfigError also where `check` returns a reason."""
        value = Option.parse(self, text)
        reason = self.check(value)
        if reason is not None:
            raise self.refusal(text, reason)
        return value


class Rows:
    """Makes the rows of one scope; what a row does not say is what `limits` says."""

    def __init__(self, scope: Scope, **limits: Unpack[Limits]) -> None:
        self._scope = scope
        self._limits = limits

    def row(
        self,
        name: str,
        kind: OptionType,
        default: Any,
        doc: str,
        check: Check | None = None,
        **limits: Unpack[Limits],
    ) -> Option:
        """Return one row of a table."""
        merged: Limits = {**self._limits, **limits}
        if check is None:
            return Option(
                name=name, type=kind, default=default, doc=doc, scope=self._scope, **merged
            )
        return CheckedOption(
            name=name, type=kind, default=default, doc=doc, scope=self._scope, check=check, **merged
        )


def inert(reason: str = "") -> str:
    """Return the sentence for an option that only keeps Kafka's configuration files usable."""
    return f"{INERT}: {reason}." if reason else f"{INERT}."


def gzip_level(value: int) -> str | None:
    """Check a gzip level: 1 to 9, or -1 for the library's own default."""
    return None if value == -1 or 1 <= value <= 9 else "it must be between 1 and 9, or -1"


def no_duplicates(value: Sequence[str]) -> str | None:
    """Check that a list names nothing twice."""
    return None if len(set(value)) == len(value) else "it names an item twice"


def not_empty(value: Sequence[str]) -> str | None:
    """Check that a list has items and names none twice."""
    return no_duplicates(value) if value else "it must not be empty"


def throttled_replicas(value: Sequence[str]) -> str | None:
    """Check `partition:broker` pairs, or the one item `*` for all of them."""
    if list(value) == ["*"] or all(_THROTTLED.fullmatch(item) for item in value):
        return None
    return "it must be '*' or a list of partition:broker pairs"
