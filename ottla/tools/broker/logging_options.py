"""The options --log-level and --log-format of the commands that run brokers."""

from collections.abc import Callable
from typing import Any

import click

from ottla.base import logs

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


def logging_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add --log-level and --log-format to a command."""
    for option in reversed(_OPTIONS):
        function = option(function)
    return function
