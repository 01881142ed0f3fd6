"""`ottla quota list`: the quotas of the cluster."""

from typing import Any

import click

from ottla.client.admin import quotas
from ottla.client.brokers import Brokers
from ottla.tools import options
from ottla.tools.output import Output
from ottla.tools.quota.entity import entity_of, name_of, named


@click.command("list")
@named
@options.connected
def command(brokers: Brokers, output: Output, **option_values: Any) -> None:
    """List quotas: all of them, or an entity's quotas."""
    described = quotas.describe_client_quotas(brokers, entity_of(option_values))
    rows = [
        {
            "entity": row.entity if output.is_json else name_of(row.entity),
            "quota": key,
            "value": value,
        }
        for row in described
        for key, value in sorted(row.values.items())
    ]
    output.rows(
        rows,
        ("entity", "quota", "value"),
        empty="No quotas. `ottla quota set --client-id NAME --set producer_byte_rate=1048576` sets one.",
    )
