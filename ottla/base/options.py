"""Options as rows of a table: name, type, default, range, scope, dynamic or not, a description.

The rows are the source of parsing and validation, DescribeConfigs, docs/options.md and --help. A
`Snapshot` is the typed, read-only view that the running code uses; a change creates a new one.
Follows Kafka's ConfigDef; like INVALID_CONFIG, errors name the key and the reason.
"""

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from enum import Enum
from types import MappingProxyType
from typing import Any

from ottla.base.errors import ConfigError


class OptionType(Enum):
    """Types of DescribeConfigs v3 (KIP-569), by their codes on the wire."""

    UNKNOWN = 0
    BOOLEAN = 1
    STRING = 2
    INT = 3
    SHORT = 4
    LONG = 5
    DOUBLE = 6
    LIST = 7
    CLASS = 8
    PASSWORD = 9


class Scope(Enum):
    """The resource that an option belongs to."""

    BROKER = "broker"
    TOPIC = "topic"
    CLIENT_METRICS = "client metrics"
    GROUP = "group"


_DIGITS = re.compile(r"[0-9]+")
_LIMITS = {OptionType.SHORT: 2**15, OptionType.INT: 2**31, OptionType.LONG: 2**63}


def is_digits(text: str, digits_max: int) -> bool:
    """Return True if a text is a number of at most so many of the digits 0 to 9.

    Unlike `isdecimal`, without the digits of other scripts. Python refuses to convert thousands of
    digits.
    """
    return len(text) <= digits_max and _DIGITS.fullmatch(text) is not None


def is_port(text: str) -> bool:
    """Return True if a text is the number of a port, or 0, which selects a free one."""
    return is_digits(text, 5) and int(text) < 65536


@dataclass(frozen=True, slots=True, kw_only=True)
class Option:
    """One row. `minimum` and `maximum` limit numbers, `choices` limits strings and list items.

    `fallback` names the broker option that sets the value of a topic option that is not set itself.
    """

    name: str
    type: OptionType
    default: Any
    doc: str
    scope: Scope
    minimum: float | None = None
    maximum: float | None = None
    choices: tuple[str, ...] = ()
    dynamic: bool = True
    sensitive: bool = False
    fallback: str | None = None

    def parse(self, text: str) -> Any:
        """Return the value of a setting; ConfigError names the option and the reason."""
        try:
            value = _PARSERS[self.type](text.strip())
        except ValueError as error:
            raise self.refusal(text, self._expectation) from error
        self._check(value, text)
        return value

    @property
    def _expectation(self) -> str:
        """The reason for a value of another type, in the words of Kafka's ConfigDef."""
        if self.type is OptionType.BOOLEAN:
            return "Expected value to be either true or false"
        return f"Not a number of type {self.type.name}"

    def _check(self, value: Any, text: str) -> None:
        if isinstance(value, (int, float)) and not isinstance(value, bool):
            limit = _LIMITS.get(self.type)
            if limit is not None and not -limit <= value < limit:
                raise self.refusal(text, self._expectation)
            if self.minimum is not None and value < self.minimum:
                raise self.refusal(text, f"Value must be at least {self.minimum:.15g}")
            if self.maximum is not None and value > self.maximum:
                raise self.refusal(text, f"Value must be no more than {self.maximum:.15g}")
        if self.choices:
            for item in value if isinstance(value, list) else [value]:
                if item not in self.choices:
                    raise self.refusal(text, f"String must be one of: {', '.join(self.choices)}")

    def refusal(self, text: str, reason: str) -> ConfigError:
        """Return the error for an invalid value."""
        return ConfigError(f"Invalid value {text} for configuration {self.name}: {reason}")

    def render(self, value: Any) -> str | None:
        """Return the value in the format of DescribeConfigs and the tools; None if there is no
        value.
        """
        if value is None:
            return None
        if isinstance(value, bool):
            return "true" if value else "false"
        if isinstance(value, list):
            return ",".join(value)
        return str(value)


def _parse_integer(text: str) -> int:
    if "_" in text:
        # Java does not accept underscores in numbers.
        raise ValueError(text)
    return int(text)


def _parse_double(text: str) -> float:
    if "_" in text:
        raise ValueError(text)
    return float(text)


def _parse_boolean(text: str) -> bool:
    if text.lower() not in ("true", "false"):
        raise ValueError(text)
    return text.lower() == "true"


_PARSERS: Mapping[OptionType, Callable[[str], Any]] = {
    OptionType.UNKNOWN: str,
    OptionType.BOOLEAN: _parse_boolean,
    OptionType.STRING: str,
    OptionType.INT: _parse_integer,
    OptionType.SHORT: _parse_integer,
    OptionType.LONG: _parse_integer,
    OptionType.DOUBLE: _parse_double,
    OptionType.LIST: lambda text: [item.strip() for item in text.split(",") if item.strip()],
    OptionType.CLASS: str,
    OptionType.PASSWORD: str,
}


class Snapshot:
    """A read-only view of every option of one table; options that are not set have their default."""

    __slots__ = ("_values", "explicit")

    def __init__(self, table: "Table", explicit: Mapping[str, Any]) -> None:
        self.explicit = MappingProxyType(dict(explicit))
        self._values = {name: row.default for name, row in table.rows.items()}
        self._values.update(explicit)

    def __getitem__(self, name: str) -> Any:
        return self._values[name]

    def integer(self, name: str) -> int:
        """Return the value of an integer option."""
        return int(self._values[name])

    def number(self, name: str) -> float:
        """Return the value of a numeric option."""
        return float(self._values[name])

    def boolean(self, name: str) -> bool:
        """Return the value of a boolean option."""
        return bool(self._values[name])

    def text(self, name: str) -> str:
        """Return the value of a string option; empty if it is not set."""
        return self._values[name] or ""

    def strings(self, name: str) -> list[str]:
        """Return the value of a list option."""
        return list(self._values[name] or ())


class Table:
    """The rows of one scope, by name."""

    def __init__(self, rows: Iterable[Option]) -> None:
        self.rows: dict[str, Option] = {}
        for row in rows:
            assert row.name not in self.rows, f"option {row.name} is declared twice"
            self.rows[row.name] = row

    def row(self, name: str) -> Option:
        """Return an option; ConfigError names an unknown one."""
        option = self.rows.get(name)
        if option is None:
            raise ConfigError(f"Unknown configuration {name}")
        return option

    def parse(self, settings: Mapping[str, str]) -> Snapshot:
        """Check settings and return a snapshot of them."""
        return Snapshot(self, {name: self.row(name).parse(text) for name, text in settings.items()})
