"""Lookups: repeated while a leader takes over, and final for errors that do not pass."""

from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException

from ottla.base.errors import ApiError, ErrorCode
from ottla.client.consumer.lookups import Lookups
from ottla.client.transport import Waits


class Answers:
    """A consumer of librdkafka that returns or raises what it is given."""

    def __init__(self, *answers: Any) -> None:
        self.answers = list(answers)

    def get_watermark_offsets(self, row: Any, timeout: float) -> Any:
        """Return or raise the next answer."""
        response = self.answers.pop(0)
        if isinstance(response, int):
            raise KafkaException(KafkaError(response))
        return response


@pytest.mark.parametrize("code", [ErrorCode.OFFSET_NOT_AVAILABLE, ErrorCode.LEADER_NOT_AVAILABLE])
def test_lookup_is_repeated_while_a_leader_takes_over(code: ErrorCode) -> None:
    """A new leader knows its high watermark only after its followers have fetched."""
    consumer = Answers(int(code), int(code), (0, 5))
    assert Lookups(consumer, 10.0, Waits()).ends([("t", 0)]) == {("t", 0): (0, 5)}
    assert consumer.answers == []


def test_lookup_ends_with_the_time() -> None:
    """After default.api.timeout.ms the error is raised."""
    with pytest.raises(ApiError) as caught:
        Lookups(Answers(*[int(ErrorCode.OFFSET_NOT_AVAILABLE)] * 100), 0.05, Waits()).ends(
            [("t", 0)]
        )
    assert caught.value.code is ErrorCode.OFFSET_NOT_AVAILABLE


def test_final_error_is_raised_at_once() -> None:
    """A topic that does not exist is not looked up again."""
    consumer = Answers(int(ErrorCode.TOPIC_AUTHORIZATION_FAILED), (0, 5))
    with pytest.raises(ApiError):
        Lookups(consumer, 10.0, Waits()).ends([("t", 0)])
    assert consumer.answers == [(0, 5)]
