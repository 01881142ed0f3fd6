"""The decision which open transactions hang."""

from ottla.client.admin.transactions import (
    ActiveProducer,
    HangingTransaction,
    long_open,
    without_known,
)


def _producer(producer_id: int, *, at_ms: int, start: int = 5) -> ActiveProducer:
    return ActiveProducer(producer_id, 0, 0, at_ms, start)


def test_only_transactions_that_are_open_for_longer_are_suspects() -> None:
    """Younger ones may still be completed; a producer without a transaction is no suspect."""
    old, young = _producer(1, at_ms=100), _producer(2, at_ms=900)
    idle = _producer(3, at_ms=100, start=-1)
    producers = {("t", 0): [old, young], ("t", 1): [idle]}
    expected = [HangingTransaction("t", 0, old)]
    assert long_open(producers, now_ms=1000, max_timeout_ms=500) == expected
    assert long_open(producers, now_ms=1000, max_timeout_ms=900) == []


def test_a_transaction_hangs_unless_a_coordinator_has_its_partition() -> None:
    """A transaction of the same producer in another partition is another one."""
    producer = _producer(1, at_ms=100)
    here, there = HangingTransaction("t", 0, producer), HangingTransaction("t", 1, producer)
    assert without_known([here, there], {(1, "t", 1), (2, "t", 0)}) == [here]
    assert without_known([here, there], set()) == [here, there]
