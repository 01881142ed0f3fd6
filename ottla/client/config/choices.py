"""Options whose value is one of a few words, checked here because librdkafka accepts others.

For acks it takes any number up to 1 000, and means "all" by each above 1.
"""

from typing import Any

from ottla.base.errors import ConfigError

_CHOICES = {
    "acks": ("all", "-1", "0", "1"),
    "compression.type": ("none", "gzip", "snappy", "lz4", "zstd"),
    "isolation.level": ("read_committed", "read_uncommitted"),
}


def check_choice(name: str, value: Any) -> None:
    """Raise ConfigError, in the words of Kafka's ConfigDef, for a value that the option lacks."""
    choices = _CHOICES.get(name)
    if choices is not None and str(value) not in choices:
        raise ConfigError(
            f"Invalid value {value} for configuration {name}: String must be one of: "
            f"{', '.join(choices)}"
        )
