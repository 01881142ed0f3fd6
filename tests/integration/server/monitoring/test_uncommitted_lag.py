"""The metrics of a group that has no commit in some of its partitions."""

import json
import time
from typing import Any

import pytest
from confluent_kafka import Consumer, TopicPartition

from ottla.testing import Cluster
from tests.integration.server.monitoring.test_cluster_metrics import (
    OPTIONS,
    PATIENCE_SECONDS,
    produce,
    read,
    scrape,
)


def test_lag_of_partitions_without_a_commit_counts_from_their_beginning() -> None:
    """A member has read one of three partitions; the others have the committed offset -1, or null."""
    with Cluster(
        brokers=2, options={**OPTIONS, "offsets.topic.replication.factor": "1"}
    ) as cluster:
        cluster.create_topic("unread", partitions=3)
        produce(cluster, "unread", 6, age_seconds=100)
        path = "/lag?group=reader"
        consumer = Consumer({"bootstrap.servers": cluster.bootstrap, "group.id": "reader"})
        try:
            consumer.subscribe(["unread"])
            deadline = time.monotonic() + PATIENCE_SECONDS
            while len(consumer.assignment()) < 3:
                assert time.monotonic() < deadline
                consumer.poll(0.05)
            consumer.commit(offsets=[TopicPartition("unread", 1, 1)], asynchronous=False)
            samples = scrape(cluster)
            rows = {
                broker: [json.loads(line) for line in read(cluster, broker, path).splitlines()]
                for broker in cluster.live_brokers
            }
            leaders = {number: cluster.leader("unread", number) for number in range(3)}
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
    check_rows(rows, leaders)


def check_rows(rows: dict[int, list[dict[str, Any]]], leaders: dict[int, int]) -> None:
    """The coordinator's rows of /lag have no committed offset, and the lag where it is leader."""
    (coordinator,) = (broker for broker, lines in rows.items() if lines[0]["type"] == "lag")
    found = {row["partition"]: row for row in rows[coordinator] if row["type"] == "lag"}
    assert [found[number]["committed_offset"] for number in range(3)] == [None, 1, None]
    for number, row in found.items():
        if leaders[number] == coordinator:
            assert row["lag"] == (1 if number == 1 else 2)
            assert row["seconds"] == pytest.approx(100, abs=60)
        else:
            assert row["leader"] == leaders[number]
