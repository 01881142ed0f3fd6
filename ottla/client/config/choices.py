"""Values that are checked before librdkafka or this client reads them.

Options with a few words, because librdkafka accepts others: for acks it takes any number up to
1 000, and means "all" by each above 1. And the numbers that this client calculates with.
"""

import re
from typing import Any

from ottla.base.errors import ConfigError

_CHOICES = {
    "acks": ("all", "-1", "0", "1"),
    "compression.type": ("none", "gzip", "snappy", "lz4", "zstd"),
    "isolation.level": ("read_committed", "read_uncommitted"),
}
_NUMBERS = {
    "buffer.memory": "LONG",
    "delivery.timeout.ms": "INT",
    "heartbeat.interval.ms": "INT",
    "max.poll.interval.ms": "INT",
    "metadata.max.age.ms": "LONG",
    "session.timeout.ms": "INT",
}


def check_value(name: str, value: Any) -> None:
    """Raise ConfigError, in the words of Kafka's ConfigDef, for a value that the option lacks."""
    if name in _NUMBERS and re.fullmatch(r"\s*[+-]?\d+\s*", str(value)) is None:
        raise ConfigError(
            f"Invalid value {value} for configuration {name}: Not a number of type {_NUMBERS[name]}"
        )
    choices = _CHOICES.get(name)
    if choices is not None and str(value) not in choices:
        raise ConfigError(
            f"Invalid value {value} for configuration {name}: String must be one of: "
            f"{', '.join(choices)}"
        )
