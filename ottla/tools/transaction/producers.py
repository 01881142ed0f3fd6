"""`ottla transaction producers TOPIC…`: the producers that the replicas of partitions remember."""

import click

from ottla.client.admin import transactions
from ottla.client.brokers import Brokers
from ottla.operations.offsets.moments import render_moment
from ottla.tools import options
from ottla.tools.broker_ids import running_brokers
from ottla.tools.output import Output
from ottla.tools.topic_partitions import parse_topic_partitions

_COLUMNS = ("topic", "partition", "producer_id", "producer_epoch", "coordinator_epoch",
            "last_sequence", "last_timestamp", "transaction_start_offset")  # fmt: skip


@click.command("producers")
@click.argument("topic_partitions", nargs=-1, required=True, metavar="TOPIC[:0,1]...", shell_complete=options.complete_topic)  # fmt: skip
@click.option("--broker", "broker_id", type=click.IntRange(min=0), metavar="ID",
              help="Ask this broker's replicas.  [default: the leaders]")  # fmt: skip
@options.connected
def command(
    brokers: Brokers, output: Output, topic_partitions: tuple[str, ...], broker_id: int | None
) -> None:
    """Show the idempotent and transactional producers of partitions.

    \b
    ottla transaction producers orders:0
    """
    if broker_id is not None:
        running_brokers(brokers, [broker_id])
    rows = [
        {
            "topic": topic,
            "partition": partition,
            "producer_id": row.producer_id,
            "producer_epoch": row.producer_epoch,
            "coordinator_epoch": row.coordinator_epoch,
            "last_sequence": row.last_sequence,
            "last_timestamp": render_moment(row.last_timestamp),
            "transaction_start_offset": (
                None if row.transaction_start_offset < 0 else row.transaction_start_offset
            ),
        }
        for topic, partition in parse_topic_partitions(brokers, topic_partitions)
        for row in transactions.describe_producers(brokers, topic, partition, node_id=broker_id)
    ]
    output.rows(rows, _COLUMNS, empty="These partitions have no idempotent producers.")
