"""`ottla transaction describe ID…`: the transactions of transactional ids."""

import time

import click

from ottla.client.admin import transactions
from ottla.client.brokers import Brokers
from ottla.operations.offsets.moments import render_moment
from ottla.tools import options
from ottla.tools.output import Output

_COLUMNS = ("transactional_id", "coordinator", "producer_id", "producer_epoch", "state",
            "timeout_ms", "start", "duration_ms", "partitions")  # fmt: skip


@click.command("describe")
@click.argument("transactional_ids", nargs=-1, required=True, metavar="TRANSACTIONAL_ID...", shell_complete=options.complete_transactional_id)  # fmt: skip
@options.connected
def command(brokers: Brokers, output: Output, transactional_ids: tuple[str, ...]) -> None:
    """Show the state, the producer and the partitions of transactions.

    \b
    ottla transaction describe payments
    """
    rows = []
    for name in transactional_ids:
        row = transactions.describe_transaction(brokers, name)
        is_open = row.start_ms >= 0
        rows.append(
            {
                "transactional_id": name,
                "coordinator": row.coordinator,
                "producer_id": row.producer_id,
                "producer_epoch": row.producer_epoch,
                "state": row.state,
                "timeout_ms": row.timeout_ms,
                "start": render_moment(row.start_ms),
                "duration_ms": time.time_ns() // 1_000_000 - row.start_ms if is_open else None,
                "partitions": [f"{topic}-{partition}" for topic, partition in row.partitions],
            }
        )
    output.rows(rows, _COLUMNS)
