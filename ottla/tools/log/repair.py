"""`ottla log repair`: put logs back in their places that a broker has set aside."""

from typing import Any

import click

from ottla.base.loading import deferred
from ottla.tools.log.broker_options import of_broker
from ottla.tools.output import Output

_repair = deferred("ottla.tools.log.repairing", "repair")


@click.command("repair")
@click.argument("folder", required=False)
@click.option("--execute", is_flag=True, help="Restore the logs; without it they are only shown.")
@of_broker
def command(output: Output, **option_values: Any) -> None:
    """Restore logs that a stopped broker has set aside (dry run by default).

    A log whose topic id is not the id of its topic is not served, and its folder is renamed to
    orders-3.ID-stray: the topic was created again, or the file partition.metadata is damaged. After
    a crash, so is a log that ends before its log start offset: that checkpoint may be damaged. This
    command restores all such logs, or the one in FOLDER, which may also be of a replica that was
    moved away. A log that is in the place of a restored one is set aside in turn.

    \b
    ottla log repair --config server.properties
    ottla log repair --config server.properties orders-3.5d41402abc4b2a76-stray --execute
    """
    _repair(output, **option_values)
