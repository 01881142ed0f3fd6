"""Records that brokers refuse after they were sent: the production exception handler decides."""

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

from ottla.base.errors import ApiError
from ottla.streams import (
    ExceptionHandlers,
    KafkaStreams,
    Serdes,
    State,
    StreamsBuilder,
)
from ottla.streams.settings.handlers import LogAndContinueProductionExceptionHandler
from ottla.testing import Cluster

_WAIT_S = 60.0
_GUARANTEES = ["exactly_once_v2", "at_least_once"]


def _produce(cluster: Cluster, values: list[bytes]) -> None:
    producer = Producer({"bootstrap.servers": cluster.bootstrap, "partitioner": "murmur2_random"})
    for number, value in enumerate(values):
        producer.produce("in", value, f"k{number}")
    assert producer.flush(_WAIT_S) == 0


def _app(cluster: Cluster, guarantee: str, handlers: ExceptionHandlers) -> KafkaStreams:
    """Return an application that counts the records of each key, and copies them to `small`."""
    builder = StreamsBuilder()
    stream = builder.stream("in")
    stream.group_by_key().count(materialized="counts")
    stream.to("small")
    return KafkaStreams(
        builder.build(),
        application_id="app",
        bootstrap_servers=cluster.bootstrap,
        engine="local",
        processing_guarantee=guarantee,
        default_key_serde=Serdes.string(),
        default_value_serde=Serdes.string(),
        default_dsl_store="in_memory",
        exception_handlers=handlers,
    )


def _read(cluster: Cluster, topic: str) -> list[bytes | None]:
    """Return the committed values of a topic of one partition."""
    options = {"bootstrap.servers": cluster.bootstrap, "group.id": "judge"}
    consumer = Consumer(
        {**options, "isolation.level": "read_committed", "enable.partition.eof": True}
    )
    consumer.assign([TopicPartition(topic, 0, 0)])
    values = []
    while (message := consumer.poll(_WAIT_S)) is not None and message.error() is None:
        values.append(message.value())
    consumer.close()
    return values


@pytest.mark.parametrize("guarantee", _GUARANTEES)
def test_a_record_that_is_too_large_for_its_topic_is_left_out(
    guarantee: str, ottla_cluster: Cluster, caplog: pytest.LogCaptureFixture
) -> None:
    """The handler is called once for each, the small records of its batch are written, the inputs
    count, and the dead letters are committed.
    """
    for topic, config in (("in", {}), ("small", {"max.message.bytes": "1000"}), ("dead", {})):
        ottla_cluster.create_topic(topic, config=config)
    values = [b"%d" % number for number in range(100)]
    values[30] = values[60] = b"x" * 2_000
    handlers = ExceptionHandlers(
        production=LogAndContinueProductionExceptionHandler(), dead_letter_queue_topic_name="dead"
    )
    _produce(ottla_cluster, values)
    with _app(ottla_cluster, guarantee, handlers) as app:
        app.await_idle(_WAIT_S)
        assert app.state is State.RUNNING
        assert dict(app.store("counts", is_local=True).all()) == {
            f"k{number}": 1 for number in range(100)
        }
        assert sum(app.progress().dropped.values()) == 2
    small = [value for value in values if len(value) < 2_000]
    assert sorted(_read(ottla_cluster, "small")) == sorted(small)
    if guarantee == "exactly_once_v2":
        assert _read(ottla_cluster, "small") == small
    assert _read(ottla_cluster, "dead") == [values[30], values[60]]
    assert caplog.text.count("skipping a record for small that the broker rejected") == 2


@pytest.mark.parametrize("guarantee", _GUARANTEES)
def test_the_default_handler_ends_the_application(guarantee: str, ottla_cluster: Cluster) -> None:
    """The error names the reason, and nothing of the transaction is visible."""
    for topic, config in (("in", {}), ("small", {"max.message.bytes": "1000"})):
        ottla_cluster.create_topic(topic, config=config)
    _produce(ottla_cluster, [b"x" * 2_000])
    app = _app(ottla_cluster, guarantee, ExceptionHandlers())
    with app, pytest.raises(ApiError, match=r"larger than max\.message\.bytes"):
        app.await_termination(_WAIT_S)
    assert app.state is State.ERROR
    assert _read(ottla_cluster, "small") == []
