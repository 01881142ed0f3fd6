"""Transactions of kafka-python in a cluster of three brokers.

kafka-python 3.0.12 does not survive the death of a transaction's coordinator: if it cannot connect
(`await_ready` raises), `Sender._maybe_send_pending_request` drops the request that it was about to
send, because it repeats it only if no node was found. `commit_transaction` then waits for ever,
although the new coordinator has been found. librdkafka and the Java client continue
(tests/process/test_coordinators.py).
"""

from collections.abc import Iterator
from pathlib import Path

import pytest
from kafka import KafkaConsumer, KafkaProducer

from ottla.coordinators.naming import partition_of
from ottla.testing.cluster import Cluster

pytestmark = [pytest.mark.compat, pytest.mark.slow]

PARTITIONS = 6
PRODUCERS = 6
TURNS = 3


@pytest.fixture
def three(tmp_path: Path) -> Iterator[Cluster]:
    """Return three brokers and a replicated topic."""
    options = {"transaction.state.log.num.partitions": "3"}
    with Cluster(brokers=3, data=tmp_path / "data", options=options) as running:
        config = {"min.insync.replicas": "2"}
        running.create_topic("t", partitions=PARTITIONS, replication_factor=3, config=config)
        yield running


def write(producer: KafkaProducer, number: int) -> None:
    """Write a number to every partition."""
    for partition in range(PARTITIONS):
        producer.send("t", b"%d" % number, partition=partition)


def test_kafka_python_commits_and_aborts_on_several_brokers(three: Cluster) -> None:
    """Coordinators and leaders are on all brokers; each committed record is read once."""
    producers = [
        KafkaProducer(bootstrap_servers=three.bootstrap, transactional_id=f"tx-{number}")
        for number in range(PRODUCERS)
    ]
    expected: list[int] = []
    for turn in range(TURNS):
        for index, producer in enumerate(producers):
            if turn == 0:
                producer.init_transactions()
            number = turn * PRODUCERS + index
            producer.begin_transaction()
            write(producer, number)
            if number % 4 == 3:
                producer.flush()
                producer.abort_transaction()
            else:
                producer.commit_transaction()
                expected += [number] * PARTITIONS
    for producer in producers:
        producer.close(timeout=10)
    assert {partition_of(f"tx-{number}", 3) for number in range(PRODUCERS)} == {0, 1, 2}
    consumer = KafkaConsumer(
        "t",
        bootstrap_servers=three.bootstrap,
        auto_offset_reset="earliest",
        isolation_level="read_committed",
        consumer_timeout_ms=5000,
    )
    read = [int(next(consumer).value) for _ in expected]
    consumer.close()
    assert sorted(read) == sorted(expected)
