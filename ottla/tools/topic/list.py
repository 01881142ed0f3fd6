"""`ottla topic list`: the topics of the cluster, by name."""

import click

from ottla.base.uuids import uuid_text
from ottla.client.admin import topics
from ottla.client.brokers import Brokers
from ottla.tools import options
from ottla.tools.output import Output


@click.command("list")
@click.option("--internal", is_flag=True, help="Also list internal topics.")
@options.connected
def command(brokers: Brokers, output: Output, internal: bool) -> None:
    """List the topics."""
    listed = topics.list_topics(brokers)
    rows = [
        {
            "name": topic.name,
            "partitions": len(topic.partitions),
            "replication_factor": topic.replication_factor,
            "topic_id": uuid_text(topic.topic_id),
            "internal": topic.is_internal,
        }
        for topic in listed
        if internal or not topic.is_internal
    ]
    output.rows(
        rows,
        ("name", "partitions", "replication_factor"),
        empty="No topics yet. Create one with `ottla topic create NAME`, or produce to it.",
    )
