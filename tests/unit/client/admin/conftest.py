"""A scripted broker that is the whole cluster: leader, controller and coordinator of everything."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from ottla.client.brokers import Brokers
from ottla.wire.messages.find_coordinator import FindCoordinatorResponse
from ottla.wire.messages.metadata import (
    MetadataResponse,
    MetadataResponsePartition,
    MetadataResponseTopic,
)


@pytest.fixture
def cluster(broker: Any) -> Any:
    """Return a broker with topic "t" of two partitions; a test adds the responses it needs."""

    broker.answers["Metadata"] = lambda request: _metadata(broker, request)
    broker.answers["FindCoordinator"] = lambda request: FindCoordinatorResponse(
        node_id=broker.node_id, host=broker.address.host, port=broker.address.port
    )
    return broker


def _metadata(broker: Any, request: Any) -> MetadataResponse:
    response = broker.metadata(request)
    response.topics = [
        MetadataResponseTopic(
            name=name,
            topic_id=bytes(15) + b"\2",
            is_internal=name.startswith("__"),
            partitions=[
                MetadataResponsePartition(
                    partition_index=index,
                    leader_id=broker.node_id,
                    leader_epoch=5,
                    replica_nodes=[0],
                    isr_nodes=[0],
                )
                for index in (1, 0)
            ],
        )
        for name in ("t", "__x")
        if request.topics is None or name in [topic.name for topic in request.topics]
    ]
    return response


@pytest.fixture
def brokers(cluster: Any) -> Iterator[Brokers]:
    """Yield a client of the scripted cluster."""
    with Brokers(cluster.bootstrap) as opened:
        yield opened


@pytest.fixture
def asked(cluster: Any) -> Callable[[str], Any]:
    """Return a function that returns the last request of an API."""
    return lambda name: [request for api, _, request in cluster.requests if api == name][-1]
