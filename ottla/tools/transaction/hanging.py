"""`ottla transaction hanging`: open transactions that no coordinator will end."""

import time

import click

from ottla.client.admin import topics, transactions
from ottla.client.brokers import Brokers
from ottla.operations.offsets.moments import render_moment
from ottla.operations.transactions import partitions_on
from ottla.tools import options
from ottla.tools.broker_ids import running_brokers
from ottla.tools.output import Output, note
from ottla.tools.topic_partitions import parse_topic_partitions

_COLUMNS = ("topic", "partition", "producer_id", "producer_epoch", "coordinator_epoch",
            "start_offset", "last_timestamp", "duration_ms")  # fmt: skip


@click.command("hanging")
@click.argument("topic_partitions", nargs=-1, metavar="[TOPIC[:0,1]]...", shell_complete=options.complete_topic)  # fmt: skip
@click.option("--broker", "broker_id", type=click.IntRange(min=0), metavar="ID", help="Only replicas on this broker.  [default: the leaders]")  # fmt: skip
@click.option("--older-than", "max_timeout_ms", callback=options.parse_milliseconds, default="15m", show_default=True, metavar="DURATION",
              help="At least transaction.max.timeout.ms: younger transactions may still end.")  # fmt: skip
@options.connected
def command(
    brokers: Brokers,
    output: Output,
    topic_partitions: tuple[str, ...],
    broker_id: int | None,
    max_timeout_ms: int,
) -> None:
    """Find open transactions that their coordinators do not know: consumers of committed records
    wait for them.

    \b
    ottla transaction hanging orders
    ottla transaction abort --partition orders:0 --start-offset 42
    """
    if broker_id is not None:
        running_brokers(brokers, [broker_id])
    keys = partitions_on(topics.list_topics(brokers), broker_id)
    if topic_partitions:
        named = parse_topic_partitions(brokers, topic_partitions)
        keys = [key for key in keys if key in named]
    now_ms = time.time_ns() // 1_000_000
    hanging = transactions.find_hanging_transactions(
        brokers, keys, now_ms=now_ms, max_timeout_ms=max_timeout_ms, node_id=broker_id
    )
    rows = [
        {
            "topic": topic,
            "partition": partition,
            "producer_id": producer.producer_id,
            "producer_epoch": producer.producer_epoch,
            "coordinator_epoch": producer.coordinator_epoch,
            "start_offset": producer.transaction_start_offset,
            "last_timestamp": render_moment(producer.last_timestamp),
            "duration_ms": now_ms - producer.last_timestamp,
        }
        for topic, partition, producer in hanging
    ]
    output.rows(rows, _COLUMNS, empty="No transaction hangs.")
    if rows:
        note("`ottla transaction abort --partition TOPIC:N --start-offset OFFSET` aborts one.")
