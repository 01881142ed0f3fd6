"""`ottla log format`: give a new cluster of one broker a chosen id, before its first start.

Not done: levels of features cannot be chosen; kafka-storage sets them.
"""

from typing import Any

import click

from ottla.base.loading import deferred
from ottla.tools.log.broker_options import of_broker
from ottla.tools.output import Output

_format = deferred("ottla.tools.log.formatting", "format_log")


@click.command("format")
@of_broker
@click.option("--cluster-id", metavar="ID", help="The id of the cluster.  [default: a new one]")
@click.option("--ignore-formatted", "ignores_formatted", is_flag=True,
              help="Skip the directories that belong to the cluster already.")  # fmt: skip
def command(output: Output, **option_values: Any) -> None:
    """Format the log directories of a broker, so that its cluster has a chosen id.

    Not necessary: a broker formats its directories itself, and generates the id. Directories that
    have been formatted are not changed.

    \b
    ottla log format --config server.properties --cluster-id MkU3OEVBNTcwNTJENDM2Qk
    """
    _format(output, **option_values)
