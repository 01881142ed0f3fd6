"""`--log-level`: the log level of the broker, and of single loggers."""

import logging
from collections.abc import Sequence
from typing import NamedTuple

from ottla.base.errors import ConfigError
from ottla.base.logs import TRACE

# Python's names and those of Kafka's log4j.
LEVELS = {
    "trace": TRACE,
    "debug": logging.DEBUG,
    "info": logging.INFO,
    "warn": logging.WARNING,
    "warning": logging.WARNING,
    "error": logging.ERROR,
    "fatal": logging.CRITICAL,
}
DEFAULT = "warning"


class Levels(NamedTuple):
    """The default level of all loggers, and the levels of single ones by name."""

    level: int
    single: dict[str, int]


def parse_levels(texts: Sequence[str]) -> Levels:
    """Parse levels such as `info` and `ottla.controller=debug`; ConfigError for any other form."""
    levels = Levels(LEVELS[DEFAULT], {})
    for text in texts:
        name, equals, level = text.rpartition("=")
        number = LEVELS.get(level.lower())
        if number is None or (equals and not name):
            raise ConfigError(
                f"unknown log level {text!r}: use one of {', '.join(LEVELS)}, "
                f"or LOGGER=LEVEL like ottla.controller=debug"
            )
        if name:
            levels.single[name] = number
        else:
            levels = levels._replace(level=number)
    return levels
