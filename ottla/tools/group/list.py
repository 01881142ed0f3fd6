"""`ottla group list`: the consumer groups of the cluster, by id."""

import click

from ottla.client.admin import groups
from ottla.client.brokers import Brokers
from ottla.tools import options
from ottla.tools.output import Output

_STATES = (
    "Stable", "Empty", "Dead", "PreparingRebalance", "CompletingRebalance", "Assigning",
    "Reconciling", "NotReady",
)  # fmt: skip


@click.command("list")
@click.option(
    "--state",
    "states",
    type=click.Choice(_STATES, case_sensitive=False),
    multiple=True,
    metavar="STATE",
    help="Only list groups in this state, such as Stable; may be repeated.",
)
@options.connected
def command(brokers: Brokers, output: Output, states: tuple[str, ...]) -> None:
    """List the consumer groups."""
    rows = [
        {
            "group": row.group_id,
            "state": row.state,
            "type": row.type,
            "protocol_type": row.protocol_type,
        }
        for row in groups.list_groups(brokers, states=states)
    ]
    output.rows(
        rows,
        ("group", "state", "protocol_type"),
        empty="No groups. A consumer creates one when it joins or commits, "
        "as `ottla consume TOPIC --group NAME` does.",
    )
