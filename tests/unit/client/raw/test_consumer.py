"""A RecordConsumer returns values, and raises our errors."""

from unittest.mock import Mock

import pytest

from ottla.base.errors import ConfigError
from ottla.client import Consumer
from ottla.client.bootstrap import Address
from ottla.client.raw.consumer import ConsumedRecord, EndOfPartition, RecordConsumer
from ottla.client.raw.producer import RecordProducer
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
