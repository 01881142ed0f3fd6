"""Errors of librdkafka are raised as ours."""

from unittest.mock import MagicMock, Mock

import confluent_kafka
import pytest
from confluent_kafka import KafkaError

from ottla.base.errors import ApiError, ErrorCode, OttlaError
from ottla.client import transport
from ottla.client.errors import ClientError, Fenced, NotReachable, TimedOut


def test_fatal_error_while_a_producer_closes_is_ours() -> None:
    """A producer that was fenced while it had records to send raises Fenced, not librdkafka's."""
    fatal = confluent_kafka.KafkaException(KafkaError(KafkaError._FENCED, fatal=True))
    producer = MagicMock(close=Mock(side_effect=fatal))
    with pytest.raises(Fenced):
        transport.close_producer(producer)


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
