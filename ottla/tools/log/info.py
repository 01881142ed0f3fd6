"""`ottla log info`: the cluster and the broker that log directories belong to."""

from typing import Any

import click

from ottla.base.loading import deferred
from ottla.tools.log.broker_options import of_broker
from ottla.tools.output import Output

_show = deferred("ottla.tools.log.formatting", "show")


@click.command("info")
@of_broker
def command(output: Output, **option_values: Any) -> int:
    """Show the cluster and the broker that log directories belong to.

    The exit code is 1 if a directory is missing, has not been formatted or belongs to another
    cluster or broker than the first.

    \b
    ottla log info --config server.properties
    """
    return int(_show(output, **option_values))
