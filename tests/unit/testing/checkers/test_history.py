"""The history checker: constructed histories, and the faults that it has to find in each."""

import time
from collections.abc import Callable

import pytest

from ottla.testing.checkers.history import AllowedViolations, Fault, History, ReadRecord, check

PARTITION = ("t", 0)


def log(*values: object, start: int = 0, epoch: int = 0) -> list[ReadRecord]:
    """Return records with consecutive offsets."""
    return [ReadRecord(offset, value, epoch) for offset, value in enumerate(values, start)]


def acknowledged(history: History, values: str, offset: int, producer: str = "p") -> None:
    """Send one value for each letter, and acknowledge it."""
    history.sent(producer, PARTITION, values).acknowledged(offset)


def in_order(history: History) -> list[ReadRecord]:
    acknowledged(history, "ab", 0)
    acknowledged(history, "c", 2)
    history.read("r", PARTITION, log("a", "b"))
    history.read("r", PARTITION, log("c", start=2))
    return log("a", "b", "c")


def in_doubt_and_there(history: History) -> list[ReadRecord]:
    history.sent("p", PARTITION, "a")
    return log("a")


def in_doubt_and_absent(history: History) -> list[ReadRecord]:
    history.sent("p", PARTITION, "a")
    acknowledged(history, "b", 0)
    return log("b")


def refused_and_absent(history: History) -> list[ReadRecord]:
    history.sent("p", PARTITION, "a").refused()
    return []


def producers_interleaved(history: History) -> list[ReadRecord]:
    acknowledged(history, "a", 0, "p")
    acknowledged(history, "x", 1, "q")
    acknowledged(history, "b", 2, "p")
    return log("a", "x", "b")


def old_records_deleted(history: History) -> list[ReadRecord]:
    acknowledged(history, "abc", 0)
    history.read("r", PARTITION, log("a", "b"))
    return log("c", start=2)


def gaps_in_offsets(history: History) -> list[ReadRecord]:
    acknowledged(history, "a", 0)
    acknowledged(history, "b", 5)
    return [*log("a"), *log("b", start=5)]


def acknowledged_without_offset(history: History) -> list[ReadRecord]:
    acknowledged(history, "a", -1)
    return log("a")


GOOD = [
    in_order,
    in_doubt_and_there,
    in_doubt_and_absent,
    refused_and_absent,
    producers_interleaved,
    old_records_deleted,
    gaps_in_offsets,
    acknowledged_without_offset,
]


@pytest.mark.parametrize("history_of", GOOD)
def test_good_histories_pass(history_of: Callable[[History], list[ReadRecord]]) -> None:
    """A history that a correct log allows is no violation."""
    history = History()
    assert check(history, {PARTITION: history_of(history)}) == []


def last_lost(history: History) -> list[ReadRecord]:
    acknowledged(history, "ab", 0)
    return log("a")


def middle_lost(history: History) -> list[ReadRecord]:
    acknowledged(history, "abc", 0)
    return [*log("a"), *log("c", start=2)]


def all_lost(history: History) -> list[ReadRecord]:
    acknowledged(history, "a", 0)
    return []


def written_twice(history: History) -> list[ReadRecord]:
    acknowledged(history, "a", 0)
    return log("a", "a")


def in_doubt_written_twice(history: History) -> list[ReadRecord]:
    history.sent("p", PARTITION, "a")
    return log("a", "a")


def turned_around(history: History) -> list[ReadRecord]:
    history.sent("p", PARTITION, "a")
    history.sent("p", PARTITION, "b")
    return log("b", "a")


def turned_around_within_a_batch(history: History) -> list[ReadRecord]:
    history.sent("p", PARTITION, "ab")
    return log("b", "a")


def at_another_offset(history: History) -> list[ReadRecord]:
    acknowledged(history, "a", 4)
    history.sent("q", PARTITION, "x")
    return log("a", "x")


def reader_goes_back(history: History) -> list[ReadRecord]:
    acknowledged(history, "ab", 0)
    history.read("r", PARTITION, log("a", "b"))
    history.read("r", PARTITION, log("b", start=1))
    return log("a", "b")


def reader_sees_two_values(history: History) -> list[ReadRecord]:
    history.sent("p", PARTITION, "a")
    history.sent("q", PARTITION, "b")
    history.read("r", PARTITION, log("a"))
    history.read("s", PARTITION, log("b"))
    return log("b", "a")


def read_and_gone(history: History) -> list[ReadRecord]:
    history.sent("p", PARTITION, "a")
    history.read("r", PARTITION, log("a"))
    return []


def never_sent(history: History) -> list[ReadRecord]:
    acknowledged(history, "a", 0)
    return log("a", "?")


def refused_but_there(history: History) -> list[ReadRecord]:
    history.sent("p", PARTITION, "a").refused()
    return log("a")


BAD = [
    (last_lost, [Fault.LOST]),
    (middle_lost, [Fault.LOST]),
    (all_lost, [Fault.LOST]),
    (written_twice, [Fault.DUPLICATE]),
    (in_doubt_written_twice, [Fault.DUPLICATE]),
    (turned_around, [Fault.REORDERED]),
    (turned_around_within_a_batch, [Fault.REORDERED]),
    (at_another_offset, [Fault.MOVED]),
    (reader_goes_back, [Fault.WENT_BACK]),
    (reader_sees_two_values, [Fault.TWO_VALUES]),
    (read_and_gone, [Fault.VANISHED]),
    (never_sent, [Fault.UNSENT]),
    (refused_but_there, [Fault.REFUSED_BUT_THERE]),
]


@pytest.mark.parametrize(("history_of", "faults"), BAD)
def test_planted_faults_are_found(
    history_of: Callable[[History], list[ReadRecord]], faults: list[Fault]
) -> None:
    """Each fault is found by its name, and no other one is reported."""
    history = History()
    violations = check(history, {PARTITION: history_of(history)})
    assert [violation.fault for violation in violations] == faults
    assert str(violations[0]).startswith("t-0: ")


def test_power_loss_may_lose_the_tail_without_flush_on_ack() -> None:
    """The last records before the power loss may be lost; their offsets are used again in a later
    epoch.
    """
    history = History()
    acknowledged(history, "abc", 0)
    history.read("r", PARTITION, log("a", "b", "c"))
    history.power_lost()
    history.read("s", PARTITION, log("a"))
    acknowledged(history, "x", 1)
    final = [*log("a"), *log("x", start=1, epoch=1)]
    assert check(history, {PARTITION: final}, AllowedViolations(may_lose_tail=True)) == []
    strict = check(history, {PARTITION: final})
    assert {item.fault for item in strict} == {Fault.LOST, Fault.VANISHED}


@pytest.mark.parametrize(
    ("final", "fault"),
    [
        ([*log("a"), *log("c", start=2)], Fault.LOST_BEFORE_KEPT),
        ([], Fault.LOST_AFTER_RECOVERY),
        ([*log("a"), *log("x", start=1)], Fault.TWO_VALUES),
        (log("a", "b", "c", "y"), Fault.LOST),
    ],
)
def test_other_faults_are_reported_after_a_power_loss(
    final: list[ReadRecord], fault: Fault
) -> None:
    """A hole, a later loss of recovered records, a repeated offset, and a loss without power loss
    are faults.
    """
    history = History()
    acknowledged(history, "abc", 0)
    history.read("r", PARTITION, log("a", "b"))
    history.power_lost()
    history.read("s", PARTITION, log("a"))
    if fault is Fault.TWO_VALUES:
        history.sent("q", PARTITION, "x")
    if fault is Fault.LOST:
        history.sent("q", PARTITION, "y")
        acknowledged(history, "z", 4)
    violations = check(history, {PARTITION: final}, AllowedViolations(may_lose_tail=True))
    assert fault in {violation.fault for violation in violations}


def test_producers_that_are_not_idempotent_may_duplicate() -> None:
    """A retry after a timeout may write the record twice."""
    history = History()
    history.sent("p", PARTITION, "a")
    assert check(history, {PARTITION: log("a", "a")}, AllowedViolations(may_duplicate=True)) == []


def test_value_sent_twice_is_an_error() -> None:
    """Without unique values no fault could be detected."""
    history = History()
    history.sent("p", PARTITION, "a")
    history.sent("p", PARTITION, "a")
    with pytest.raises(AssertionError, match="sent twice"):
        check(history, {})


def test_hundred_thousand_records_are_checked_in_seconds() -> None:
    """The checker is fast enough for a chaos run."""
    history = History()
    for start in range(0, 100_000, 100):
        values = range(start, start + 100)
        history.sent("p", PARTITION, values).acknowledged(start)
        history.read("r", PARTITION, log(*values, start=start))
    began = time.thread_time()
    assert check(history, {PARTITION: log(*range(100_000))}) == []
    assert time.thread_time() - began < 10
