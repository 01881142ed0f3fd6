"""Records through librdkafka, with Ottla's values and errors."""

from unittest.mock import MagicMock, Mock

import confluent_kafka
import pytest
from confluent_kafka import KafkaError

from ottla.base.errors import ApiError, ConfigError, ErrorCode, OttlaError
from ottla.client import Consumer, transport
from ottla.client.bootstrap import Address
from ottla.client.errors import ClientError, Fenced, NotReachable, TimedOut
from ottla.client.transport import ConsumedRecord, EndOfPartition, RecordConsumer, RecordProducer
from ottla.testing import Cluster


def _read_to_the_end(consumer: RecordConsumer) -> list[ConsumedRecord]:
    result: list[ConsumedRecord] = []
    while True:
        for event in consumer.poll(10.0):
            if isinstance(event, EndOfPartition):
                return result
            result.append(event)


def test_records_are_values(ottla_cluster: Cluster) -> None:
    """Every record is returned with its partition, offset and timestamp, nulls included."""
    with RecordProducer(ottla_cluster.bootstrap) as producer:
        producer.send("t", b"one", key=b"k", headers=[("a", b"1"), ("b", None)])
        producer.send("t", None, partition=0)
    assert producer.delivered == 2
    with RecordConsumer(ottla_cluster.bootstrap) as consumer:
        consumer.assign({("t", 0): 0})
        first, second = _read_to_the_end(consumer)
    assert first[:3] == ("t", 0, 0)
    assert first[4:] == ("create", b"k", b"one", [("a", b"1"), ("b", None)])
    assert first.timestamp > 1_700_000_000_000
    assert (second.offset, second.key, second.value, second.headers) == (1, None, None, ())


def test_interrupt_that_the_binding_loses_is_raised() -> None:
    """While it reports that a broker is down, `consume` raises SystemError instead of Ctrl-C."""
    lost = SystemError("<method 'consume'> returned NULL without setting an exception")
    opened = Mock(consume=Mock(side_effect=lost))
    consumer = RecordConsumer("127.0.0.1:1", opened=lambda _: opened)
    with pytest.raises(KeyboardInterrupt) as caught:
        consumer.poll(1.0)
    assert caught.value.__cause__ is lost


def test_another_system_error_is_not_an_interrupt() -> None:
    """Python's own errors stay visible."""
    opened = Mock(consume=Mock(side_effect=SystemError("bad argument to internal function")))
    consumer = RecordConsumer("127.0.0.1:1", opened=lambda _: opened)
    with pytest.raises(SystemError, match="bad argument"):
        consumer.poll(1.0)


def test_fatal_error_while_a_producer_closes_is_ours() -> None:
    """A producer that was fenced while it had records to send raises Fenced, not librdkafka's."""
    fatal = confluent_kafka.KafkaException(KafkaError(KafkaError._FENCED, fatal=True))
    producer = MagicMock(close=Mock(side_effect=fatal))
    with pytest.raises(Fenced):
        transport.close_producer(producer)


def test_group_resumes_after_the_stored_offsets(ottla_cluster: Cluster) -> None:
    """Only offsets that the reader has stored are committed."""
    with RecordProducer(ottla_cluster.bootstrap) as producer:
        for number in range(4):
            producer.send("t", b"%d" % number)
    changes: list[set[tuple[str, int]]] = []
    settings = {"auto.offset.reset": "earliest"}
    for expected, done in ((4, 3), (1, 4)):
        with RecordConsumer(ottla_cluster.bootstrap, group_id="g", settings=settings) as consumer:
            consumer.subscribe(["t"], changes.append)
            assert len(_read_to_the_end(consumer)) == expected
            consumer.store({("t", 0): done})
    assert {("t", 0)} in changes


def test_error_of_a_broker_is_an_api_error(ottla_cluster: Cluster) -> None:
    """The next call raises it, and unsent records are dropped."""
    ottla_cluster.create_topic("small", config={"max.message.bytes": "200"})
    with (
        pytest.raises(ApiError, match=r"max\.message\.bytes") as caught,
        RecordProducer(ottla_cluster.bootstrap) as producer,
    ):
        producer.send("small", b"x" * 1000)
        producer.flush()
    assert caught.value.code is ErrorCode.MESSAGE_TOO_LARGE


def test_librdkafka_checks_its_settings() -> None:
    """The error for an unknown name has librdkafka's own message."""
    with pytest.raises(ClientError, match=r"no\.such"):
        RecordProducer("127.0.0.1:1", {"no.such": "x"})


@pytest.mark.parametrize("group", ["", " ", "\t\n"])
def test_group_without_a_name_is_refused(group: str) -> None:
    """The binding of librdkafka would abort the process, without an exception."""
    with pytest.raises(ConfigError, match="is blank: name a group"):
        RecordConsumer("127.0.0.1:1", group_id=group)
    with pytest.raises(ConfigError, match="is blank: name a group"):
        Consumer(bootstrap_servers="127.0.0.1:1", group_id=group)


def test_unreachable_cluster_is_detected(free_port: Address) -> None:
    """Reads keep retrying, and the caller can check whether a broker is reachable."""
    with RecordConsumer(str(free_port)) as consumer:
        consumer.assign({("t", 0): 0})
        for _ in range(100):
            assert consumer.poll(0.1) == []
            if consumer.is_down:
                break
        assert consumer.is_down


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        (KafkaError.TOPIC_AUTHORIZATION_FAILED, ApiError),
        (KafkaError._ALL_BROKERS_DOWN, NotReachable),
        (KafkaError._RESOLVE, NotReachable),
        (KafkaError._MSG_TIMED_OUT, TimedOut),
        (KafkaError._INVALID_ARG, ClientError),
    ],
)
def test_each_librdkafka_error_is_converted(code: int, kind: type[OttlaError]) -> None:
    """No exception of confluent_kafka leaves the module."""
    translated = transport._translate(confluent_kafka.KafkaError(code))
    assert type(translated) is kind


@pytest.mark.parametrize("code", [KafkaError._UNKNOWN_TOPIC, KafkaError.UNKNOWN_TOPIC_OR_PART])
def test_record_for_a_missing_topic_names_it(code: int) -> None:
    """librdkafka gives up after half a minute with the broker's code, and later with its own."""
    error = transport.unsent_error(KafkaError(code), "t", -1)
    assert str(error) == "There is no topic 't', and the cluster does not create it."
    assert isinstance(error, ApiError)
    assert error.code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
