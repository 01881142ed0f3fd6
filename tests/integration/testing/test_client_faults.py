"""Faults that clients see: errors, latency, cut connections, a full disk, and moved leaders."""

import time
from collections.abc import Iterator

import aiokafka
import kafka
import pytest
from confluent_kafka import Consumer, KafkaError, Producer

from ottla.base.errors import OttlaError
from ottla.client.admin import topics
from ottla.testing import Cluster


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    """A cluster that the tests share; each has topics of its own."""
    with Cluster(brokers=2, options={"num.partitions": "1"}) as running:
        yield running


def producer(cluster: Cluster, **settings: object) -> Producer:
    """Return a producer of librdkafka."""
    names = {name.replace("_", "."): value for name, value in settings.items()}
    return Producer(
        {"bootstrap.servers": cluster.bootstrap, "partitioner": "murmur2_random", **names}
    )


def consumed(cluster: Cluster, topic: str, count: int) -> list[bytes | None]:
    """Return the values of a topic, as librdkafka reads them."""
    settings = {"group.id": f"readers of {topic}", "auto.offset.reset": "earliest"}
    consumer = Consumer({"bootstrap.servers": cluster.bootstrap, **settings})
    consumer.subscribe([topic])
    records = consumer.consume(count, timeout=20)
    consumer.close()
    return [record.value() for record in records]


def test_confluent_kafka_repeats_a_retriable_error(cluster: Cluster) -> None:
    """The next two requests fail without effect, and the record is sent once."""
    cluster.create_topic("retried")
    sender = producer(cluster, retry_backoff_ms=10)
    with cluster.faults.errors("Produce", "NOT_LEADER_OR_FOLLOWER", count=2) as fault:
        sender.produce("retried", b"1")
        assert sender.flush(20) == 0
    assert fault.hits == 2
    assert consumed(cluster, "retried", 1) == [b"1"]


def test_confluent_kafka_reports_a_fatal_error_of_one_topic(cluster: Cluster) -> None:
    """A fault of one topic leaves the others alone."""
    cluster.create_topic("failing")
    cluster.create_topic("working")
    sender = producer(cluster)
    results: dict[str, KafkaError | None] = {}
    with cluster.faults.errors("Produce", "TOPIC_AUTHORIZATION_FAILED", topic="failing"):
        for topic in ("failing", "working"):
            sender.produce(
                topic,
                b"1",
                on_delivery=lambda error, record: results.update({record.topic(): error}),
            )
        assert sender.flush(20) == 0
    assert results["failing"] is not None
    assert results["failing"].code() == KafkaError.TOPIC_AUTHORIZATION_FAILED
    assert results["working"] is None


def test_confluent_kafka_reads_after_errors_of_fetches(cluster: Cluster) -> None:
    """The consumer repeats fetches that fail with a retriable error."""
    cluster.create_topic("fetched")
    sender = producer(cluster)
    sender.produce("fetched", b"1")
    assert sender.flush(20) == 0
    with cluster.faults.errors("Fetch", "KAFKA_STORAGE_ERROR", count=2, topic="fetched") as fault:
        assert consumed(cluster, "fetched", 1) == [b"1"]
    assert fault.hits == 2


@pytest.mark.parametrize("api", ["Metadata", "FindCoordinator", "JoinGroup", "OffsetFetch"])
def test_a_group_starts_after_an_error_of_any_step(cluster: Cluster, api: str) -> None:
    """Each step of a group is repeated."""
    topic = f"group-{api}"
    cluster.create_topic(topic)
    sender = producer(cluster)
    sender.produce(topic, b"1")
    assert sender.flush(20) == 0
    code = "LEADER_NOT_AVAILABLE" if api == "Metadata" else "COORDINATOR_LOAD_IN_PROGRESS"
    with cluster.faults.errors(api, code, count=1) as fault:
        assert consumed(cluster, topic, 1) == [b"1"]
    assert fault.hits == 1


def test_kafka_python_loses_no_record_if_the_connection_is_cut(cluster: Cluster) -> None:
    """The request has taken effect: an idempotent producer repeats it without a duplicate."""
    cluster.create_topic("cut")
    sender = kafka.KafkaProducer(
        bootstrap_servers=cluster.bootstrap, enable_idempotence=True, client_id="python"
    )
    with cluster.faults.cut_connections(
        api="Produce", count=1, is_handled=True, client_id="python"
    ) as fault:
        sender.send("cut", b"1").get(timeout=20)
        sender.send("cut", b"2").get(timeout=20)
    sender.close(timeout=5)
    assert fault.hits == 1
    assert consumed(cluster, "cut", 2) == [b"1", b"2"]


async def test_aiokafka_waits_for_a_slow_partition(cluster: Cluster) -> None:
    """Only the slow partition has the latency."""
    cluster.create_topic("slow", partitions=2)
    async with aiokafka.AIOKafkaProducer(bootstrap_servers=cluster.bootstrap) as sender:
        await sender.send_and_wait("slow", b"0", partition=0)
        with cluster.faults.latency(0.5, api="Produce", topic="slow", partition=1) as fault:
            await sender.send_and_wait("slow", b"1", partition=0)
            assert fault.hits == 0
            begin = time.monotonic()
            await sender.send_and_wait("slow", b"2", partition=1)
            assert time.monotonic() - begin >= 0.5
    assert fault.hits == 1


async def test_aiokafka_repeats_an_error_of_its_client_id(cluster: Cluster) -> None:
    """Requests of another client id succeed."""
    cluster.create_topic("mine")
    settings = {"bootstrap_servers": cluster.bootstrap, "retry_backoff_ms": 10}
    with cluster.faults.errors("Produce", 6, count=1, client_id="other") as fault:
        async with aiokafka.AIOKafkaProducer(client_id="mine", **settings) as sender:
            await sender.send_and_wait("mine", b"1")
        assert fault.hits == 0
        async with aiokafka.AIOKafkaProducer(client_id="other", **settings) as sender:
            await sender.send_and_wait("mine", b"2")
        assert fault.hits == 1
    assert consumed(cluster, "mine", 2) == [b"1", b"2"]


def test_fault_outlives_a_restart_of_the_broker(cluster: Cluster) -> None:
    """The brokers that start while a fault is in effect have it as well."""
    cluster.create_topic("restarted")
    leader = cluster.leader("restarted")
    with cluster.faults.errors("Produce", "NOT_ENOUGH_REPLICAS", topic="restarted"):
        cluster.restart(leader)
        cluster.wait_in_sync("restarted")
        sender = producer(cluster, message_timeout_ms=2000, retry_backoff_ms=10)
        sender.produce("restarted", b"1")
        sender.flush(20)
    sender = producer(cluster)
    sender.produce("restarted", b"2")
    assert sender.flush(20) == 0
    assert consumed(cluster, "restarted", 1) == [b"2"]


def test_handlers_are_not_wrapped_without_a_fault(cluster: Cluster) -> None:
    """The fast path of produce is used again after the block."""
    cluster.create_topic("fast")
    sender = producer(cluster)

    def is_fast() -> bool:
        sender.produce("fast", b"1")
        assert sender.flush(20) == 0
        dispatcher = cluster.node(cluster.leader("fast")).sources.dispatcher
        assert dispatcher is not None
        return any(
            route.shortcut is not None and not route.is_async
            for route in dispatcher.routes()
            if route.row.handler.API == 0 and route.requests_count
        )

    with cluster.faults.latency(0.0):
        assert not is_fast()
    assert is_fast()


def test_a_leader_moves_and_comes_back(cluster: Cluster) -> None:
    """The producer finds the new leader."""
    cluster.create_topic("moved", replication_factor=2)
    cluster.wait_in_sync("moved")
    leader = cluster.leader("moved")
    sender = producer(cluster)
    with cluster.faults.leader_moved("moved") as other:
        assert cluster.leader("moved") == other != leader
        sender.produce("moved", b"1")
        assert sender.flush(20) == 0
    assert cluster.leader("moved") == leader
    cluster.create_topic("alone")
    with pytest.raises(OttlaError, match="no other replica"), cluster.faults.leader_moved("alone"):
        pass


def test_a_full_disk_ends_with_the_block() -> None:
    """The log directory goes offline, and the broker starts again with its records."""
    with Cluster() as cluster:
        cluster.create_topic("t")
        sender = producer(cluster)
        sender.produce("t", b"1")
        assert sender.flush(20) == 0
        with cluster.faults.full_disk(1):
            failing = producer(cluster, message_timeout_ms=1500)
            errors: list[KafkaError | None] = []
            failing.produce("t", b"2", on_delivery=lambda error, _: errors.append(error))
            failing.flush(20)
            assert errors[0] is not None
        sender.produce("t", b"3")
        assert sender.flush(20) == 0
        assert consumed(cluster, "t", 2) == [b"1", b"3"]


def test_unknown_names_are_rejected(cluster: Cluster) -> None:
    """The error says which names there are."""
    with pytest.raises(ValueError, match="no API 'Send'"):
        cluster.faults.errors("Send", "NONE")
    with pytest.raises(ValueError, match="no error 'BAD'"):
        cluster.faults.errors("Produce", "BAD")
    with pytest.raises(ValueError, match="have no error code: use cut_connections"):
        cluster.faults.errors("DescribeConfigs", "UNKNOWN_SERVER_ERROR")


def test_admin_sees_errors_of_topics_that_it_creates(cluster: Cluster) -> None:
    """Errors that the admin client does not repeat are raised."""
    with (
        cluster.faults.errors("CreateTopics", "POLICY_VIOLATION", topic="refused"),
        cluster.admin() as brokers,
    ):
        topics.create_topic(brokers, "allowed")
        with pytest.raises(OttlaError):
            topics.create_topic(brokers, "refused")
