"""`ottla cluster info`: id, controller, brokers, and the number of topics and partitions.

Not done: a broker cannot be unregistered as with kafka-cluster: registrations end with the session
of a broker, except in clusters with KRaft.
"""

import click

from ottla.client.admin import cluster, topics
from ottla.client.brokers import Brokers
from ottla.tools import options
from ottla.tools.output import JSON, Output, count_text, note

_COLUMNS = ("broker", "address", "rack", "controller", "leaders", "replicas")


@click.command("info")
@options.connected
def command(brokers: Brokers, output: Output) -> None:
    """Show the cluster and its brokers."""
    described = cluster.describe_cluster(brokers)
    partitions = [row for topic in topics.list_topics(brokers) for row in topic.partitions]
    rows = [
        {
            "broker": item.node_id,
            "address": f"{item.host}:{item.port}",
            "rack": item.rack,
            "controller": item.node_id == described.controller_id,
            "leaders": sum(row.leader == item.node_id for row in partitions),
            "replicas": sum(item.node_id in row.replicas for row in partitions),
        }
        for item in described.brokers
    ]
    topics_count = len(topics.list_topics(brokers))
    facts = {
        "cluster_id": described.cluster_id,
        "controller": described.controller_id,
        "topics": topics_count,
        "partitions": len(partitions),
    }
    if output.is_json:
        Output(JSON).done("", **facts, brokers=rows)
        return
    output.rows(rows, _COLUMNS)
    topics_text = count_text(topics_count, "topic")
    partitions_text = count_text(len(partitions), "partition")
    note(f"Cluster {described.cluster_id}: {topics_text} with {partitions_text}.")
