"""The producer of a worker."""

from collections.abc import Mapping
from typing import Any

import pytest
from confluent_kafka import KafkaError

from ottla.streams.local.ports import RealPorts
from ottla.streams.local.sending.output import TaskOutput
from ottla.streams.model.errors import TaskMigrated
from ottla.streams.model.raw import ProducedRecord


class _Undelivered:
    def topic(self) -> str:
        return "out"


class _FencedProducer:
    """Its records are refused: the coordinator has ended its transaction."""

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
        """Report that the records were refused."""
        count, self._unsent = self._unsent, 0
        for _ in range(count):
            self._report(KafkaError(KafkaError.INVALID_PRODUCER_EPOCH), _Undelivered())
        return count


class _FencedPorts(RealPorts):
    def open_producer(self, settings: Mapping[str, Any]) -> Any:
        return _FencedProducer(settings)


def test_a_producer_that_is_fenced_between_two_commits_loses_its_tasks() -> None:
    """A worker that was paused for longer than its transaction is replaced; it does not fail."""
    output = TaskOutput(_FencedPorts(), {}, "app-1")
    output.write(ProducedRecord("out", b"k", b"v", 0, (), 0))
    with pytest.raises(TaskMigrated, match="newer client"):
        output.serve()
