"""`--log-level` and `--log-format`: the log of the commands that run brokers."""

import logging
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import click

from ottla.base import logs
from ottla.base.errors import ConfigError

# The names of Python, and of Kafka's log4j.
LEVELS = {
    "trace": logs.TRACE,
    "debug": logging.DEBUG,
    "info": logging.INFO,
    "warn": logging.WARNING,
    "warning": logging.WARNING,
    "error": logging.ERROR,
    "fatal": logging.CRITICAL,
}
DEFAULT = "warning"
_OPTIONS = (
    click.option(
        "--log-level",
        "log_levels",
        multiple=True,
        metavar="[LOGGER=]LEVEL",
        help="Log level on standard error: trace, debug, info, warning, error or fatal; may be "
        "repeated with levels of single loggers, like ottla.controller=debug.  [default: warning]",
    ),
    click.option(
        "--log-format",
        type=click.Choice([logs.TEXT, logs.JSON]),
        default=logs.TEXT,
        show_default=True,
        help="The log format: text lines, or one JSON object per line.",
    ),
)


class Levels(NamedTuple):
    """The default level of all loggers, and the levels of single ones by name."""

    level: int
    single: dict[str, int]


def logging_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add --log-level and --log-format to a command."""
    for option in reversed(_OPTIONS):
        function = option(function)
    return function


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
