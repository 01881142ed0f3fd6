"""Transactions with librdkafka and the Java client, and Ottla's log with Apache Kafka's tools."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition

from ottla.cluster.options.authorization_options import AUTHORIZER
from ottla.testing.cluster import Cluster
from tests.compat import java
from tests.compat.reading import everything

pytestmark = [pytest.mark.compat, pytest.mark.slow]

PATIENCE_S = 30.0


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    """Return a cluster with topics `in` and `out`."""
    with Cluster(options={"transaction.state.log.num.partitions": "3"}) as running:
        running.create_topic("in")
        running.create_topic("out", partitions=3)
        yield running


def transactional(cluster: Cluster, transactional_id: str = "tx", **settings: object) -> Producer:
    """Return a producer that has initialized its transactions."""
    producer = Producer(
        {
            "bootstrap.servers": cluster.bootstrap,
            "transactional.id": transactional_id,
            "log_level": 0,
            # librdkafka 2.16 loses a coordinator when it bootstraps again, and waits for it
            # forever.
            "metadata.recovery.strategy": "none",
            **{name.replace("_", "."): value for name, value in settings.items()},
        }
    )
    producer.init_transactions(PATIENCE_S)
    return producer


def test_committed_records_are_read_and_aborted_ones_are_not(cluster: Cluster) -> None:
    """`read_committed` reads committed records only; `read_uncommitted` reads all."""
    producer = transactional(cluster)
    for name, is_commit in (("one", True), ("two", False), ("three", True)):
        producer.begin_transaction()
        for number in range(6):
            producer.produce("out", f"{name} {number}", partition=number % 3)
        assert producer.flush(PATIENCE_S) == 0
        end = producer.commit_transaction if is_commit else producer.abort_transaction
        end(PATIENCE_S)
    seen = everything(cluster, "out")
    expected = [f"{name} {number}" for name in ("one", "three") for number in range(6)]
    assert sorted(seen) == sorted(expected)
    assert len(everything(cluster, "out", "read_uncommitted")) == 18


def test_readers_wait_for_open_transaction(cluster: Cluster) -> None:
    """Records after an open transaction are not read either, although they are not transactional."""
    producer = transactional(cluster)
    producer.begin_transaction()
    producer.produce("in", "inside")
    assert producer.flush(PATIENCE_S) == 0
    plain = Producer({"bootstrap.servers": cluster.bootstrap})
    plain.produce("in", "outside")
    assert plain.flush(PATIENCE_S) == 0
    assert everything(cluster, "in") == []
    producer.commit_transaction(PATIENCE_S)
    assert everything(cluster, "in") == ["inside", "outside"]


def test_newer_producer_fences_the_older_one(cluster: Cluster) -> None:
    """No record of the older producer's open transaction is ever read, and it can do nothing more
    (scenario 18).
    """
    zombie = transactional(cluster)
    zombie.begin_transaction()
    zombie.produce("out", "zombie")
    assert zombie.flush(PATIENCE_S) == 0
    successor = transactional(cluster)
    with pytest.raises(KafkaException) as refused:
        zombie.commit_transaction(PATIENCE_S)
    assert refused.value.args[0].code() == KafkaError._FENCED
    successor.begin_transaction()
    successor.produce("out", "successor")
    successor.commit_transaction(PATIENCE_S)
    assert everything(cluster, "out") == ["successor"]


def test_committed_offset_does_not_decrease(cluster: Cluster) -> None:
    """Two open transactions commit offsets 100 and 200; the one with 200 ends first, and 200 stays."""
    consumer = Consumer(
        {"bootstrap.servers": cluster.bootstrap, "group.id": "process", "log_level": 0}
    )
    early, late = transactional(cluster, "early"), transactional(cluster, "late")
    for producer, offset in ((early, 100), (late, 200)):
        producer.begin_transaction()
        topic_partition = TopicPartition("in", 0, offset)
        # The group has no member: the consumer has not polled, so neither producer is fenced by its
        # generation.
        metadata = consumer.consumer_group_metadata()
        producer.send_offsets_to_transaction([topic_partition], metadata, PATIENCE_S)
    late.commit_transaction(PATIENCE_S)
    early.commit_transaction(PATIENCE_S)
    assert committed(consumer) == 200
    cluster.restart()
    assert committed(consumer) == 200
    consumer.close()


@pytest.mark.slow
def test_read_process_write_is_exactly_once(cluster: Cluster) -> None:
    """Each input has one output, although every third batch is aborted and the broker restarts."""
    plain = Producer({"bootstrap.servers": cluster.bootstrap})
    for number in range(60):
        plain.produce("in", str(number))
    assert plain.flush(PATIENCE_S) == 0
    producer, consumer = transactional(cluster), processor(cluster)
    batches = 0
    while (messages := consumer.consume(6, 0.5)) or committed(consumer) < 60:
        if not messages:
            continue
        batches += 1
        producer.begin_transaction()
        for message in messages:
            producer.produce("out", b"did " + (message.value() or b""))
        if batches == 4:
            assert producer.flush(PATIENCE_S) == 0
            cluster.restart()
        topic_partition = TopicPartition("in", 0, (messages[-1].offset() or 0) + 1)
        metadata = consumer.consumer_group_metadata()
        producer.send_offsets_to_transaction([topic_partition], metadata, PATIENCE_S)
        if batches % 3:
            producer.commit_transaction(PATIENCE_S)
        else:
            assert producer.flush(PATIENCE_S) == 0
            producer.abort_transaction(PATIENCE_S)
            consumer.seek(TopicPartition("in", 0, messages[0].offset() or 0))
    consumer.close()
    expected = sorted(f"did {number}" for number in range(60))
    assert sorted(everything(cluster, "out")) == expected
    assert len(everything(cluster, "out", "read_uncommitted")) > 60


def processor(cluster: Cluster) -> Consumer:
    """Return the member that reads `in`."""
    consumer = Consumer(
        {
            "bootstrap.servers": cluster.bootstrap,
            "group.id": "process",
            "isolation.level": "read_committed",
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
            "log_level": 0,
        }
    )
    consumer.subscribe(["in"])
    return consumer


def committed(consumer: Consumer) -> int:
    """Return the group's offset of `in`."""
    return int(consumer.committed([TopicPartition("in", 0)], PATIENCE_S)[0].offset)


def test_member_that_lost_its_partitions_cannot_commit(cluster: Cluster) -> None:
    """The generation is outdated (KIP-447); the transaction can only be aborted."""
    producer, first = transactional(cluster), processor(cluster)
    plain = Producer({"bootstrap.servers": cluster.bootstrap})
    plain.produce("in", "0")
    assert plain.flush(PATIENCE_S) == 0
    assert len(first.consume(1, PATIENCE_S)) == 1
    metadata = first.consumer_group_metadata()
    first.close()
    second = processor(cluster)
    assert len(second.consume(1, PATIENCE_S)) == 1
    producer.begin_transaction()
    producer.produce("out", "late")
    with pytest.raises(KafkaException) as refused:
        producer.send_offsets_to_transaction([TopicPartition("in", 0, 1)], metadata, PATIENCE_S)
    assert refused.value.args[0].txn_requires_abort()
    producer.abort_transaction(PATIENCE_S)
    second.close()
    assert everything(cluster, "out") == []


def test_abandoned_transaction_is_aborted_after_timeout(tmp_path: Path) -> None:
    """Readers wait for transaction.timeout.ms, and no longer."""
    interval = "transaction.abort.timed.out.transaction.cleanup.interval.ms"
    with Cluster(options={interval: "100"}) as cluster:
        cluster.create_topic("in")
        producer = transactional(cluster, transaction_timeout_ms=1000)
        producer.begin_transaction()
        producer.produce("in", "forgotten")
        assert producer.flush(PATIENCE_S) == 0
        consumer = Consumer(
            {
                "bootstrap.servers": cluster.bootstrap,
                "group.id": "reader",
                "isolation.level": "read_committed",
            }
        )
        consumer.assign([TopicPartition("in", 0, 0)])
        plain = Producer({"bootstrap.servers": cluster.bootstrap})
        plain.produce("in", "behind it")
        assert plain.flush(PATIENCE_S) == 0
        message = consumer.poll(PATIENCE_S)
        assert message is not None
        assert message.value() == b"behind it"
        consumer.close()


@pytest.mark.needs("java")
@pytest.mark.slow
@pytest.mark.parametrize("version", java.VERSIONS)
def test_java_producer_commits_transaction_after_transaction(
    cluster: Cluster, version: str
) -> None:
    """ProducerPerformance with a transactional id writes all records and leaves no open
    transaction.
    """
    output = java.run(
        java.client_class_path(version),
        "org.apache.kafka.tools.ProducerPerformance",
        *("--topic", "out", "--num-records", "3000", "--record-size", "100"),
        *("--throughput", "-1", "--transactional-id", "perf", "--transaction-duration-ms", "20"),
        *("--producer-props", f"bootstrap.servers={cluster.bootstrap}"),
    )
    assert "3000 records sent" in output
    assert len(everything(cluster, "out")) == 3000


@pytest.mark.needs("java")
@pytest.mark.slow
def test_kafkas_tools_see_our_transactions(tmp_path: Path) -> None:
    """`kafka-transactions` lists, describes and aborts them; DumpLogSegments reads their log."""
    options = {
        "transaction.state.log.num.partitions": "3",
        # Only an authorizer knows an administrator, who may write markers.
        "authorizer.class.name": AUTHORIZER,
        "super.users": "User:ANONYMOUS",
    }
    with Cluster(data=tmp_path / "data", options=options) as cluster:
        cluster.create_topic("in")
        producer = transactional(cluster)
        producer.begin_transaction()
        producer.produce("in", "hanging")
        assert producer.flush(PATIENCE_S) == 0

        def command(*arguments: str) -> str:
            name = "org.apache.kafka.tools.TransactionsCommand"
            server = ("--bootstrap-server", cluster.bootstrap)
            return java.run(java.kafka_class_path(), name, *server, *arguments)

        assert "Ongoing" in command("list")
        assert "in-0" in command("describe", "--transactional-id", "tx")
        assert "tx" not in command("find-hanging", "--broker-id", "1")
        row = command("describe-producers", "--topic", "in", "--partition", "0").splitlines()[-1]
        assert row.split()[-1] == "0"
        command("abort", "--topic", "in", "--partition", "0", "--start-offset", "0")
        assert everything(cluster, "in") == []
        assert everything(cluster, "in", "read_uncommitted") == ["hanging"]
        cluster.restart()
        files = tmp_path.glob("data/__transaction_state-*/*.log")
        output = java.run(
            java.kafka_class_path(),
            "kafka.tools.DumpLogSegments",
            "--transaction-log-decoder",
            *("--files", ",".join(str(path) for path in files if path.stat().st_size)),
        )
    assert "transactionalId=tx" in output or json.dumps("tx") in output
    assert "Ongoing" in output
    assert "isvalid: false" not in output
