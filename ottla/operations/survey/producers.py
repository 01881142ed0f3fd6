"""The producers that leaders remember for many partitions (DescribeProducers, KIP-664)."""

from collections import defaultdict
from collections.abc import Mapping

from ottla.client.admin.transactions import ActiveProducer, active_producer
from ottla.client.brokers import Brokers
from ottla.operations.survey.connections import ClusterConnection
from ottla.operations.survey.metadata import Key
from ottla.operations.survey.nodes import ask_nodes
from ottla.wire.messages.describe_producers import (
    DescribeProducersRequest,
    DescribeProducersResponse,
    TopicRequest,
)


def read_producers(
    connection: ClusterConnection, leaders: Mapping[Key, int]
) -> dict[Key, list[ActiveProducer]]:
    """Return the producers by partition, given the leaders; partitions that fail are absent."""
    by_leader: dict[int, dict[str, list[int]]] = defaultdict(lambda: defaultdict(list))
    for (topic, number), node in leaders.items():
        by_leader[node][topic].append(number)

    def ask(brokers: Brokers, node: int) -> DescribeProducersResponse:
        rows = [
            TopicRequest(name=name, partition_indexes=numbers)
            for name, numbers in by_leader[node].items()
        ]
        request = DescribeProducersRequest(topics=rows)
        return brokers.ask_node(node, request, DescribeProducersResponse)

    return {
        (topic.name, row.partition_index): [active_producer(item) for item in row.active_producers]
        for response in ask_nodes(connection, by_leader, ask).values()
        for topic in response.topics
        for row in topic.partitions
        if not row.error_code
    }
