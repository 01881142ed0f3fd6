"""`ottla streams list`: list the cluster's applications with their state and lag."""

from typing import Any

import click

from ottla.client.admin.groups import Group
from ottla.client.brokers import Brokers
from ottla.streams.application.listing import NOT_RUNNING, RUNNING, application_ids, instances_of
from ottla.tools import options
from ottla.tools.group.describe import offset_rows
from ottla.tools.output import Output

_COLUMNS = ("application_id", "state", "instances", "lag")


@click.command("list")
@options.connected
def command(brokers: Brokers, output: Output) -> None:
    """List the applications."""
    rows = [_row(brokers, name) for name in application_ids(brokers)]
    output.rows(rows, _COLUMNS, empty="No applications. Start one with `ottla streams run`.")


def _row(brokers: Brokers, name: str) -> dict[str, Any]:
    instances = instances_of(brokers, name)
    partitions = offset_rows(brokers, Group(name, "", "", "", ()))
    return {
        "application_id": name,
        "state": RUNNING if instances else NOT_RUNNING,
        "instances": len(instances),
        "lag": sum(row["lag"] or 0 for row in partitions) if partitions else None,
    }
