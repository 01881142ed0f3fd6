"""The options that name a broker by its configuration file or its log directory."""

from collections.abc import Callable
from typing import Any

import click

from ottla.tools import options
from ottla.tools.broker.defaults import DEFAULT_DATA


def of_broker(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add --config, --data and --output to a command."""
    for option in (
        options.formatted,
        click.option(
            "--data",
            metavar="FOLDER",
            type=click.Path(file_okay=False),
            help=f"The log directory of the broker.  [default: {DEFAULT_DATA}]",
        ),
        click.option(
            "--config",
            type=click.Path(exists=True, dir_okay=False),
            help="The configuration file of the broker, like Kafka's server.properties.",
        ),
    ):
        function = option(function)
    return function
