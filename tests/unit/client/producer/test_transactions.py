"""Transactions of one producer, with librdkafka's producer in the hands of the test."""

from typing import Any

from ottla.client import transport
from ottla.client.producer.options import ProducerErrors
from ottla.client.producer.transactions import Transactions


class Producer:
    """Notes the calls; the first abort times out."""

    def __init__(self) -> None:
        self.calls: list[str] = []

    def init_transactions(self, _: float) -> None:
        self.calls.append("init")

    def begin_transaction(self) -> None:
        self.calls.append("begin")

    def abort_transaction(self, _: float) -> None:
        self.calls.append("abort")
        if self.calls.count("abort") == 1:
            raise transport.LibrdkafkaError(_TimedOut())


class _TimedOut:
    def str(self) -> str:
        return "timed out"

    def fatal(self) -> bool:
        return False


def test_an_abandoned_abort_is_completed_before_the_next_transaction() -> None:
    """librdkafka refuses to begin while an abort is under way."""
    producer: Any = Producer()
    transactions = Transactions(producer, 10, transport.Waits(), ProducerErrors())
    transactions.begin()
    transactions.abandon()
    assert not transactions.is_open
    transactions.begin()
    assert transactions.is_open
    assert producer.calls == ["init", "begin", "abort", "abort", "begin"]
