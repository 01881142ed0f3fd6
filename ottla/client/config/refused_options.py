"""The errors for options that librdkafka refuses, with Kafka's names of these options."""

import re
from collections.abc import Mapping
from typing import Any

from ottla.base.errors import ConfigError
from ottla.client.config.native_text import is_native_text
from ottla.client.errors import ClientError

# librdkafka's names of options: Kafka's, and their values.
_WORDED = {
    "compression.codec": ("compression.type", ": use none, gzip, snappy, lz4 or zstd"),
    "queue.buffering.max.ms": ("linger.ms", ": use a number of ms"),
    "auto.offset.reset": ("auto.offset.reset", ": use earliest, latest or none"),
    "isolation.level": ("isolation.level", ": use read_uncommitted or read_committed"),
}
_UNKNOWN_OPTION = re.compile('No such configuration property: "(.+)"')


class UnknownOption(ClientError):
    """librdkafka has no option of this `name`."""

    def __init__(self, text: str, name: str) -> None:
        super().__init__(text)
        self.name = name


def check_text(name: str, value: str) -> None:
    """Raise ConfigError for the value of an option with which the binding ends the process."""
    if not is_native_text(value):
        raise ConfigError(f"{name}={value!r} has a NUL character or a lone surrogate")


def refused_option(text: str, properties: Mapping[str, Any]) -> ClientError:
    """Return the error for librdkafka's `text` about one of these properties."""
    unknown = _UNKNOWN_OPTION.search(text)
    for native, (kafkas, values) in _WORDED.items():
        text = text.replace(f'property "{native}"', f'property "{kafkas}"{values}')
    text = f"librdkafka refuses its settings: {text}"
    if unknown and unknown[1] in properties:
        return UnknownOption(text, unknown[1])
    return ClientError(text)
