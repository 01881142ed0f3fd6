"""A task waits for the transaction of its last owner; the other tasks of the worker do not."""

from confluent_kafka import Consumer, Producer, TopicPartition

from ottla.client.group.identities import Identity, encode_metadata
from ottla.streams import KafkaStreams, Serdes, State, StreamsBuilder
from ottla.testing import Cluster

_WAIT_S = 30.0


def _open_transaction(bootstrap: str) -> Producer:
    """Return a producer that has sent the position in partition 0, and has not ended yet."""
    owner = Producer(
        {
            "bootstrap.servers": bootstrap,
            "transactional.id": "last-owner",
            "partitioner": "murmur2_random",
        }
    )
    owner.init_transactions(_WAIT_S)
    owner.begin_transaction()
    metadata = encode_metadata("app", Identity())
    owner.send_offsets_to_transaction([TopicPartition("words", 0, 1)], metadata, _WAIT_S)
    return owner


def _values(consumer: Consumer, count: int) -> set[tuple[bytes | None, int | None]]:
    messages = consumer.consume(count, _WAIT_S)
    return {(message.value(), message.partition()) for message in messages}


def test_a_task_is_opened_when_its_position_is_stable(ottla_cluster: Cluster) -> None:
    """After the end of the transaction the task begins at the position that was committed."""
    for topic in ("words", "out"):
        ottla_cluster.create_topic(topic, partitions=2)
    bootstrap = ottla_cluster.bootstrap
    producer = Producer({"bootstrap.servers": bootstrap, "partitioner": "murmur2_random"})
    for partition in (0, 1):
        for value in (b"first", b"second"):
            producer.produce("words", value, b"k", partition)
    assert producer.flush(_WAIT_S) == 0
    owner = _open_transaction(bootstrap)
    builder = StreamsBuilder()
    builder.stream("words").to("out", partitioner=lambda topic, key, value, count: 1)
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": "judge",
            "auto.offset.reset": "earliest",
            "isolation.level": "read_committed",
        }
    )
    consumer.subscribe(["out"])
    with KafkaStreams(
        builder.build(),
        application_id="app",
        bootstrap_servers=bootstrap,
        engine="local",
        processing_guarantee="exactly_once_v2",
        default_key_serde=Serdes.string(),
        default_value_serde=Serdes.string(),
    ) as app:
        assert _values(consumer, 2) == {(b"first", 1), (b"second", 1)}
        assert app.state is State.REBALANCING
        owner.commit_transaction(_WAIT_S)
        app.await_running(_WAIT_S)
        assert _values(consumer, 1) == {(b"second", 1)}
    consumer.close()
