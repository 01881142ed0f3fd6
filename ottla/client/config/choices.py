"""Values that are checked before librdkafka or this client reads them.

Options with a few words, because librdkafka accepts others: for acks it takes any number up to
1 000, and means "all" by each above 1. And the numbers that this client calculates with.
"""

import re
from collections.abc import Iterable
from typing import Any

from ottla.base.errors import ConfigError
from ottla.client.config.refused_options import check_text

_CHOICES = {
    "acks": ("all", "-1", "0", "1"),
    "compression.type": ("none", "gzip", "snappy", "lz4", "zstd"),
    "isolation.level": ("read_committed", "read_uncommitted"),
}
_NUMBERS = {
    "buffer.memory": "LONG",
    "delivery.timeout.ms": "INT",
    "heartbeat.interval.ms": "INT",
    "max.in.flight.requests.per.connection": "INT",
    "max.poll.interval.ms": "INT",
    "metadata.max.age.ms": "LONG",
    "session.timeout.ms": "INT",
    "transaction.timeout.ms": "INT",
}
_NUMBER = re.compile(r"\s*[+-]?[0-9]{1,19}\s*")
_NUMBER_MAX = {"INT": 2**31 - 1, "LONG": 2**63 - 1}
_LISTS = frozenset({"partition.assignment.strategy"})
_NAMES = frozenset(
    {"client.id", "client.rack", "group.id", "group.instance.id", "transactional.id"}
)

_RESETS = ("earliest", "latest", "none")
_BY_AGE = "by_duration:"
# java.time.Duration.parse, whose letters may be small.
_DURATION = re.compile(
    r"P(?=[\dT])(?:(\d+)D)?(?:T(?=\d)(?:(\d+)H)?(?:(\d+)M)?(?:(\d+(?:[.,]\d{0,9})?)S)?)?",
    re.IGNORECASE,
)
_UNITS_MS = (86_400_000, 3_600_000, 60_000, 1_000)


def reset_age_ms(value: Any) -> int | None:
    """Return the age of `auto.offset.reset=by_duration:…` in ms (KIP-1106); None for other words.

    ConfigError for another value, and for a duration that is not of the form PnDTnHnMn.nS.
    """
    text = str(value)
    if text in _RESETS:
        return None
    matched = _DURATION.fullmatch(text.removeprefix(_BY_AGE)) if text.startswith(_BY_AGE) else None
    if matched is None:
        raise ConfigError(
            f"Invalid value {text} for configuration auto.offset.reset: Invalid value `{text}` for "
            "configuration auto.offset.reset. The value must be either 'earliest', 'latest', "
            "'none' or of the format 'by_duration:<PnDTnHnMn.nS.>'."
        )
    parts = zip(matched.groups(), _UNITS_MS, strict=True)
    return sum(round(float(part.replace(",", ".")) * unit_ms) for part, unit_ms in parts if part)


def has_librdkafka(assignors: Iterable[object]) -> bool:
    """Return True if librdkafka can join a group with these assignors.

    It has no `sticky`, and cannot be a member that rebalances eagerly and also offers
    `cooperative-sticky`, as Kafka's default `range,cooperative-sticky` requires.
    """
    names = set(assignors)
    return names == {"cooperative-sticky"} or names <= {"range", "roundrobin"}


def _is_number(text: str, kind: str) -> bool:
    return _NUMBER.fullmatch(text) is not None and abs(int(text)) <= _NUMBER_MAX[kind]


def check_value(name: str, value: Any) -> None:
    """Raise ConfigError, in the words of Kafka's ConfigDef, for a value that the option lacks."""
    if isinstance(value, str):
        check_text(name, value)
    elif name in _NAMES:
        # The text of another value is hardly the name that is meant.
        kind = type(value).__name__
        raise ConfigError(
            f"Invalid value {value!r} for configuration {name}: Expected value to be a string, but "
            f"it was a {kind}"
        )
    elif name not in _LISTS and isinstance(value, bytes | list | dict | set | type | None):
        raise ConfigError(
            f"Invalid value {value!r} for configuration {name}: write a text or a number"
        )
    if name in _NUMBERS and not _is_number(str(value), _NUMBERS[name]):
        raise ConfigError(
            f"Invalid value {value} for configuration {name}: Not a number of type {_NUMBERS[name]}"
        )
    if name == "auto.offset.reset":
        reset_age_ms(value)
    choices = _CHOICES.get(name)
    if choices is not None and str(value) not in choices:
        raise ConfigError(
            f"Invalid value {value} for configuration {name}: String must be one of: "
            f"{', '.join(choices)}"
        )
