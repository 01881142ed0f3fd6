"""The metrics of a group that has no commit in some of its partitions."""

import time

import pytest
from confluent_kafka import Consumer, TopicPartition

from ottla.testing import Cluster
from tests.integration.server.monitoring.test_cluster_metrics import (
    OPTIONS,
    PATIENCE_SECONDS,
    produce,
    scrape,
)


def test_lag_of_partitions_without_a_commit_counts_from_their_beginning() -> None:
    """A member has read one of three partitions; the others have the committed offset -1."""
    with Cluster(
        brokers=2, options={**OPTIONS, "offsets.topic.replication.factor": "1"}
    ) as cluster:
        cluster.create_topic("unread", partitions=3)
        produce(cluster, "unread", 6, age_seconds=100)
        consumer = Consumer({"bootstrap.servers": cluster.bootstrap, "group.id": "reader"})
        try:
            consumer.subscribe(["unread"])
            deadline = time.monotonic() + PATIENCE_SECONDS
            while len(consumer.assignment()) < 3:
                assert time.monotonic() < deadline
                consumer.poll(0.05)
            consumer.commit(offsets=[TopicPartition("unread", 1, 1)], asynchronous=False)
            samples = scrape(cluster)
        finally:
            consumer.close()
    labels = {"consumergroup": "reader", "topic": "unread"}
    current = "kafka_consumergroup_current_offset"
    for number, offset, lag in ((0, -1, 2), (1, 1, 1), (2, -1, 2)):
        assert samples.all(current, **labels, partition=number) == [offset]
        assert samples.all("kafka_consumergroup_lag", **labels, partition=number) == [lag]
    assert samples.all("kafka_consumergroup_lag_sum", **labels) == [5]
    assert samples.all("kafka_consumergroup_group_sum_lag", group="reader") == [5]
    assert samples.all("kafka_consumergroup_group_offset", group="reader") == [1]
    ages = samples.all("kafka_consumergroup_group_lag_seconds", group="reader")
    assert ages == pytest.approx([100] * 3, abs=60)
