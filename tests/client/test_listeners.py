"""Listeners of rebalances: what they may ask and do, and what happens if they raise."""

import sqlite3
from collections.abc import Callable, Iterable, Mapping
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


class Offsets:
    """An offset store with the same offset for every partition."""

    def __init__(self, offset: int, failures: int = 0) -> None:
        self._offset = offset
        self._failures = failures

    def load(self, partitions: Iterable[TopicPartition]) -> Mapping[TopicPartition, int]:
        """Return the offset, or fail as a database does."""
        if self._failures:
            self._failures -= 1
            raise sqlite3.OperationalError("database is locked")
        return dict.fromkeys(partitions, self._offset)


@pytest.mark.parametrize("strategy", ASSIGNORS)
def test_partitions_that_the_listener_pauses_start_at_their_offsets(
    cluster: Cluster, topic: str, strategy: str
) -> None:
    """After `resume` they begin where the offset store or the listener said."""
    fill(cluster, topic, [b"%d" % number for number in range(12)])
    settings = {"partition_assignment_strategy": strategy, "offset_store": Offsets(2)}

    def pause(partitions: list[TopicPartition]) -> None:
        consumer.seek(partitions[2], 3)
        consumer.pause(partitions)
        consumer.resume(partitions[:1])

    with consumer_of(cluster, group_id=topic, **settings) as consumer:
        consumer.subscribe(topic, listener=OnAssigned(pause))
        assert values_of(read(consumer, 2)) == [b"6", b"9"]
        assert consumer.poll(0.3) == []
        consumer.resume()
        assert values_of(read(consumer, 3)) == [b"10", b"11", b"7"]
