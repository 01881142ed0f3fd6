"""`ottla doctor`: examine what a client or a broker needs, and report problems with remedies."""

from typing import Any

import click

from ottla.base.loading import deferred
from ottla.tools import options
from ottla.tools.broker.defaults import DEFAULT_DATA
from ottla.tools.output import Output

_examine = deferred("ottla.tools.doctor.examination", "examine")


@click.command("doctor")
@options.secured
@click.option("--data", metavar="FOLDER", help="The broker's log directory.  "
              f"[default: {DEFAULT_DATA} if it exists or no broker responds]")  # fmt: skip
@click.option(
    "--config",
    type=click.Path(exists=True, dir_okay=False),
    help="The broker's configuration file, to read log.dirs.",
)
@click.option("--write", is_flag=True,
              help="Write a record to a temporary topic, to compare clocks.")  # fmt: skip
@options.explain
@options.formatted
def command(output: Output, **option_values: Any) -> Any:
    """Find why clients cannot reach a broker, or why a broker cannot start.

    If no broker is running, check if one could start here. Exit code 1 if a check fails.

    \b
    ottla doctor
    ottla doctor --bootstrap broker.example:9092 --write
    ottla doctor --bootstrap broker.example:9093 --command-config client.properties
    """
    return _examine(output, **option_values)
