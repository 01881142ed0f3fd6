"""Lookups: repeated while a leader takes over, and final for errors that do not pass."""

from datetime import UTC, datetime
from types import SimpleNamespace as Namespace
from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException

from ottla.base.errors import ApiError, ErrorCode
from ottla.client.consumer.lookups import Lookups
from ottla.client.transport import Waits


class Answers:
    """A consumer of librdkafka that returns or raises its results, one for each call."""

    def __init__(self, *answers: Any) -> None:
        self.answers = list(answers)
        self.metadata: list[Any] = []
        self.refreshed: list[str] = []
        self.timeouts: list[float] = []

    def list_topics(self, topic: str, timeout: float) -> Any:
        """Return the next result, the metadata of a topic, in a request for one topic."""
        self.refreshed.append(topic)
        return self.metadata.pop(0) if self.metadata else None

    def offsets_for_times(self, rows: Any, timeout: float) -> Any:
        """Return the next result, which has the offset or the error of each row."""
        answers = self.answers.pop(0)
        return [
            Namespace(topic=row.topic, partition=row.partition, offset=answer, error=_error(answer))
            for row, answer in zip(rows, answers, strict=True)
        ]

    def get_watermark_offsets(self, row: Any, timeout: float) -> Any:
        """Return or raise the next result."""
        self.timeouts.append(timeout)
        response = self.answers.pop(0)
        if isinstance(response, int):
            raise KafkaException(KafkaError(response))
        return response


@pytest.mark.parametrize(
    "code",
    [
        ErrorCode.OFFSET_NOT_AVAILABLE,
        ErrorCode.LEADER_NOT_AVAILABLE,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.KAFKA_STORAGE_ERROR,
        KafkaError._DESTROY_BROKER,
        KafkaError._TIMED_OUT,
    ],
)
def test_lookup_is_repeated_while_a_leader_takes_over(code: int) -> None:
    """A new leader knows its high watermark only after its followers have fetched."""
    consumer = Answers(int(code), int(code), (0, 5))
    assert Lookups(consumer, 10.0, Waits()).ends([("t", 0)]) == {("t", 0): (0, 5)}
    assert consumer.answers == []
    assert consumer.refreshed == ["t", "t"]


def test_attempts_of_a_lookup_take_longer_each_time() -> None:
    """A response of a dead leader is not awaited for the whole time, and a slow leader's is."""
    consumer = Answers(*[KafkaError._TIMED_OUT] * 3, (0, 5))
    Lookups(consumer, 5.0, Waits()).ends([("t", 0)])
    assert consumer.timeouts[:3] == [1, 2, 4]
    assert consumer.timeouts[3] < 5


def test_error_of_one_partition_is_repeated() -> None:
    """librdkafka reports errors of single partitions in their rows."""
    consumer = Answers([ErrorCode.NOT_LEADER_OR_FOLLOWER], [7])
    assert Lookups(consumer, 10.0, Waits()).offsets_for_times({("t", 0): 1}) == {("t", 0): 7}


def test_error_names_the_partition_that_is_missing() -> None:
    """Of several partitions, the message has the one that does not exist."""
    consumer = Answers(*[[7, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION]] * 100)
    with pytest.raises(ApiError, match="There is no partition t-9"):
        Lookups(consumer, 0.05, Waits()).offsets_for_times({("t", 0): 1, ("t", 9): 1})


def test_a_time_that_is_not_a_number_is_explained() -> None:
    """The sentence says how many milliseconds a datetime is."""
    moment = datetime(2026, 11, 26, tzinfo=UTC)
    with pytest.raises(TypeError, match=r"milliseconds since 1970, not datetime.*timestamp\(\)"):
        Lookups(Answers(), 10.0, Waits()).offsets_for_times({("t", 0): moment})  # type: ignore[dict-item]


def test_partitions_of_a_topic_without_leaders_are_looked_up_again() -> None:
    """A broker that creates a topic on the first request reports that it has no leader yet."""
    consumer = Answers()
    consumer.metadata = [
        _metadata(KafkaError(int(ErrorCode.LEADER_NOT_AVAILABLE)), {}),
        _metadata(None, {0: None}),
    ]
    assert Lookups(consumer, 10.0, Waits()).partitions_for("t") == [0]


def _error(answer: int) -> KafkaError | None:
    return KafkaError(int(answer)) if isinstance(answer, ErrorCode) else None


def _metadata(error: KafkaError | None, partitions: dict[int, None]) -> Namespace:
    return Namespace(topics={"t": Namespace(error=error, partitions=partitions)})


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
