"""The producer of a worker."""

from collections.abc import Mapping
from typing import Any

import pytest
from confluent_kafka import KafkaError

from ottla.client.errors import TimedOut
from ottla.streams.local.ports import RealPorts
from ottla.streams.local.sending.output import TaskOutput
from ottla.streams.model.errors import TaskMigrated
from ottla.streams.model.raw import ProducedRecord

# librdkafka's own code for a message that was not delivered in time.
_TIMED_OUT = -192


class _Undelivered:
    def topic(self) -> str:
        return "out"


class _FailedProducer:
    """Its records are not written."""

    error = KafkaError.INVALID_PRODUCER_EPOCH

    def __init__(self, settings: Mapping[str, Any]) -> None:
        self._report = settings["on_delivery"]
        self._unsent = 0

    def init_transactions(self, timeout_s: float) -> None:
        """Register the id."""

    def begin_transaction(self) -> None:
        """Begin a transaction."""

    def produce(self, topic: str, value: Any, key: Any, **options: Any) -> None:
        """Queue a record."""
        self._unsent += 1

    def poll(self, timeout_s: float) -> int:
        """Report that the records were not written."""
        count, self._unsent = self._unsent, 0
        for _ in range(count):
            self._report(KafkaError(self.error), _Undelivered())
        return count


class _LateProducer(_FailedProducer):
    error = _TIMED_OUT


class _FailedPorts(RealPorts):
    def __init__(self, producer: type[_FailedProducer]) -> None:
        self._producer = producer

    def open_producer(self, settings: Mapping[str, Any]) -> Any:
        return self._producer(settings)


@pytest.mark.parametrize(
    ("producer", "reason"),
    [(_FailedProducer, "newer client"), (_LateProducer, "were not written: .*timed out")],
)
def test_a_producer_that_fails_between_two_commits_loses_its_tasks(
    producer: type[_FailedProducer], reason: str
) -> None:
    """A worker that was paused for longer than its transaction is replaced; it does not fail."""
    output = TaskOutput(_FailedPorts(producer), {}, "app-1")
    output.write(ProducedRecord("out", b"k", b"v", 0, (), 0))
    with pytest.raises(TaskMigrated, match=reason):
        output.serve()


def test_records_without_a_transaction_that_are_late_are_an_error() -> None:
    """The client has retried for delivery.timeout.ms."""
    output = TaskOutput(_FailedPorts(_LateProducer), {}, None)
    output.write(ProducedRecord("out", b"k", b"v", 0, (), 0))
    with pytest.raises(TimedOut):
        output.serve()
