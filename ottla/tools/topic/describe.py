"""`ottla topic describe NAME`: partitions with leader, replicas, ISR and offsets."""

from typing import Any

import click

from ottla.base.uuids import uuid_text
from ottla.client.admin import offsets, topics
from ottla.client.brokers import Brokers
from ottla.tools import options
from ottla.tools.output import Output

_COLUMNS = (
    "topic",
    "partition",
    "leader",
    "replicas",
    "isr",
    "log_start_offset",
    "high_watermark",
    "records",
)


@click.command("describe")
@click.argument("names", nargs=-1, required=True, shell_complete=options.complete_topic)
@options.connected
def command(brokers: Brokers, output: Output, names: tuple[str, ...]) -> None:
    """Show the partitions of topics: leaders, replicas, offsets."""
    output.rows([row for name in names for row in _rows(brokers, name)], _COLUMNS)


def _rows(brokers: Brokers, name: str) -> list[dict[str, Any]]:
    topic = topics.describe_topic(brokers, name)
    led = [(name, row.partition) for row in topic.partitions if row.leader >= 0]
    starts = offsets.list_offsets(brokers, dict.fromkeys(led, offsets.EARLIEST))
    ends = offsets.list_offsets(brokers, dict.fromkeys(led, offsets.LATEST), omits_unknown=True)
    rows = []
    for partition in topic.partitions:
        key = (name, partition.partition)
        start = starts[key].offset if key in starts else None
        end = ends[key].offset if key in ends else None
        rows.append(
            {
                "topic": name,
                "topic_id": uuid_text(topic.topic_id),
                "partition": partition.partition,
                "leader": partition.leader,
                "leader_epoch": partition.leader_epoch,
                "replicas": list(partition.replicas),
                "isr": list(partition.isr),
                "offline": list(partition.offline),
                "log_start_offset": start,
                "high_watermark": end,
                # An upper bound: compaction and transaction markers leave offsets without records.
                "records": None if start is None or end is None else end - start,
            }
        )
    return rows
