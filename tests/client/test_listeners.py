"""Listeners of rebalances: what they may ask and do, and what happens if they raise."""

from collections.abc import Callable
from typing import Any

import pytest

from ottla.client import Consumer, OffsetAndMetadata, RebalanceListener, TopicPartition
from ottla.testing import Cluster
from tests.client.test_consumer import consumer_of, fill, poll_until, read, values_of

ASSIGNORS = ["range", "cooperative-sticky", "sticky"]
API_TIMEOUT_MS = 3_000


class OnAssigned(RebalanceListener):
    """Calls a function when partitions are assigned."""

    def __init__(self, call: Callable[[list[TopicPartition]], Any]) -> None:
        self._call = call

    def on_partitions_assigned(self, partitions: list[TopicPartition]) -> None:
        """Call it."""
        self._call(partitions)


@pytest.mark.parametrize("strategy", ASSIGNORS)
def test_listener_looks_up_offsets(cluster: Cluster, topic: str, strategy: str) -> None:
    """librdkafka serves no other thread during a rebalance, but answers the listener's."""
    fill(cluster, topic, [b"%d" % number for number in range(9)])
    settings = {"partition_assignment_strategy": strategy}
    with consumer_of(
        cluster, group_id=topic, default_api_timeout_ms=API_TIMEOUT_MS, **settings
    ) as consumer:
        consumer.subscribe(topic)
        poll_until(consumer, lambda: len(consumer.assignment) == 3)
        consumer.commit({(topic, 0): 2})
    answers: list[Any] = []

    def look_up(partitions: list[TopicPartition]) -> None:
        first = partitions[0]
        answers.append(consumer.committed([first]))
        answers.append(consumer.end_offsets([first]))
        answers.append(consumer.offsets_for_times({first: 1004}))
        answers.append(consumer.partitions_for(topic))
        consumer.seek_to_time(1006, partitions)

    with consumer_of(
        cluster, group_id=topic, default_api_timeout_ms=API_TIMEOUT_MS, **settings
    ) as consumer:
        consumer.subscribe(topic, listener=OnAssigned(look_up))
        assert values_of(read(consumer, 3)) == [b"6", b"7", b"8"]
    key = TopicPartition(topic, 0)
    assert answers == [{key: OffsetAndMetadata(2)}, {key: 3}, {key: 2}, [0, 1, 2]]
