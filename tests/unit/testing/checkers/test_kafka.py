"""The checker of cluster histories: each anomaly in a handmade history, and none in a good one."""

from collections.abc import Sequence

import pytest

from ottla.testing.checkers.kafka import (
    Anomaly,
    ClusterHistory,
    OffsetCommit,
    Polled,
    Status,
    acknowledge,
    check,
)

P = ("t", 0)
Q = ("t", 1)


def log(
    history: ClusterHistory, *values: str | None, partition: tuple[str, int] = P, start: int = 0
) -> None:
    """Set the final content of a partition; None is an offset without a record (a marker)."""
    for is_committed in (False, True):
        history.final += [
            Polled("final", 0, partition, start + index, value, is_committed)
            for index, value in enumerate(values)
            if value is not None
        ]


def write(
    history: ClusterHistory, *values: str, base_offset: int = -1, producer: str = "p"
) -> None:
    """Record acknowledged writes of one producer."""
    acknowledge(history.send(producer, P, values), base_offset)


def poll(history: ClusterHistory, records: Sequence[tuple[int, str]], *, session: int = 1) -> None:
    """Record the records that one consumer received, in order."""
    history.polls += [Polled("c", session, P, offset, value, True) for offset, value in records]


def anomalies(history: ClusterHistory) -> list[Anomaly]:
    """Return the kinds of anomalies that the checker reports."""
    return [item.anomaly for item in check(history)]


def test_a_good_history_has_no_anomaly() -> None:
    """Acknowledged records are in the log once, in order, and consumers read them all."""
    history = ClusterHistory()
    write(history, "a", "b", base_offset=0)
    write(history, "c", base_offset=2)
    history.send("p", P, ["in doubt"])
    poll(history, [(0, "a"), (1, "b"), (2, "c")])
    log(history, "a", "b", "c")
    assert check(history) == []


def test_an_acknowledged_record_below_the_end_is_a_lost_write() -> None:
    """A later record took the place of the lost one, or follows it."""
    history = ClusterHistory()
    write(history, "a", "b", "c", base_offset=0)
    log(history, "a", None, "c")
    assert anomalies(history) == [Anomaly.LOST_WRITE]
    assert "'b' was acknowledged at offset 1" in str(check(history)[0])


def test_an_acknowledged_record_above_the_end_is_unseen() -> None:
    """The end of the log is missing."""
    history = ClusterHistory()
    write(history, "a", "b", base_offset=0)
    log(history, "a")
    assert anomalies(history) == [Anomaly.UNSEEN]


def test_a_record_that_was_polled_must_not_vanish() -> None:
    """Consumers act on what they read, whether or not its producer has an acknowledgement."""
    history = ClusterHistory()
    history.send("p", P, ["a"])
    poll(history, [(0, "a")])
    log(history)
    assert anomalies(history) == [Anomaly.LOST_WRITE]


def test_a_value_at_two_offsets_is_a_duplicate() -> None:
    """A retry was appended although the first attempt had been."""
    history = ClusterHistory()
    write(history, "a", base_offset=0)
    log(history, "a", "a")
    assert Anomaly.DUPLICATE in anomalies(history)


def test_an_offset_with_two_values_is_inconsistent() -> None:
    """A consumer read a record that another one replaced."""
    history = ClusterHistory()
    write(history, "a", base_offset=0)
    history.send("q", P, ["b"])
    poll(history, [(0, "b")])
    log(history, "a")
    assert Anomaly.INCONSISTENT_OFFSETS in anomalies(history)


def test_an_acknowledgement_with_the_offset_of_another_record_is_inconsistent() -> None:
    """Both producers were promised the same offset."""
    history = ClusterHistory()
    write(history, "a", base_offset=0)
    write(history, "b", base_offset=0, producer="q")
    log(history, "a", "b")
    assert Anomaly.INCONSISTENT_OFFSETS in anomalies(history)


def test_a_rejected_record_must_not_be_read() -> None:
    """The producer was promised that nothing had been written."""
    history = ClusterHistory()
    history.send("p", P, ["a"])[0].status = Status.FAILED
    log(history, "a")
    assert anomalies(history) == [Anomaly.ABORTED_READ]


def test_a_record_of_an_aborted_transaction_is_hidden_from_committed_readers() -> None:
    """Readers of uncommitted records may see it."""
    history = ClusterHistory()
    acknowledge(history.send("p", P, ["a"], transaction="x"), 0)
    history.outcomes["x"] = Status.FAILED
    history.final.append(Polled("final", 0, P, 0, "a", is_committed=False))
    assert check(history) == []
    poll(history, [(0, "a")])
    assert Anomaly.ABORTED_READ in anomalies(history)


def test_a_value_that_was_never_sent_is_an_unsent_read() -> None:
    """The bytes come from elsewhere: another topic, or a damaged file."""
    history = ClusterHistory()
    log(history, "a")
    assert anomalies(history) == [Anomaly.UNSENT_READ]


def test_records_between_two_polls_are_a_poll_skip() -> None:
    """The consumer never received the record in between."""
    history = ClusterHistory()
    write(history, "a", "b", "c", base_offset=0)
    poll(history, [(0, "a"), (2, "c")])
    log(history, "a", "b", "c")
    assert anomalies(history) == [Anomaly.POLL_SKIP]


def test_offsets_without_records_are_no_poll_skip() -> None:
    """Markers and aborted records have offsets, too."""
    history = ClusterHistory()
    write(history, "a", base_offset=0)
    write(history, "b", base_offset=2)
    poll(history, [(0, "a"), (2, "b")])
    log(history, "a", None, "b")
    assert check(history) == []


def test_an_offset_that_is_not_above_the_last_one_is_a_nonmonotonic_poll() -> None:
    """Within one session, a consumer only moves forward."""
    history = ClusterHistory()
    write(history, "a", "b", base_offset=0)
    log(history, "a", "b")
    poll(history, [(0, "a"), (1, "b")])
    poll(history, [(0, "a"), (1, "b")], session=2)
    assert check(history) == []
    poll(history, [(0, "a")], session=2)
    assert anomalies(history) == [Anomaly.NONMONOTONIC_POLL]


def test_records_of_a_producer_out_of_order_are_a_nonmonotonic_send() -> None:
    """An earlier record was written after a later one."""
    history = ClusterHistory()
    write(history, "a", base_offset=1)
    write(history, "b", base_offset=0)
    log(history, "b", "a")
    assert anomalies(history) == [Anomaly.NONMONOTONIC_SEND]


@pytest.mark.parametrize("outcome", [Status.OK, None])
def test_a_transaction_of_which_a_part_is_visible_is_fractured(outcome: Status | None) -> None:
    """Committed or in doubt, a transaction is visible as a whole or not at all."""
    history = ClusterHistory()
    acknowledge(history.send("p", P, ["a"], transaction="x"), 0)
    acknowledge(history.send("p", Q, ["b"], transaction="x"), 0)
    if outcome is not None:
        history.outcomes["x"] = outcome
    log(history, "a")
    assert Anomaly.FRACTURED_TRANSACTION in anomalies(history)
    log(history, "b", partition=Q)
    assert check(history) == []


def test_a_transaction_in_doubt_may_be_invisible() -> None:
    """No response to the commit: the coordinator may have aborted it."""
    history = ClusterHistory()
    acknowledge(history.send("p", P, ["a"], transaction="x"), 0)
    assert check(history) == []


def test_an_offset_below_a_committed_one_is_a_lost_commit() -> None:
    """The group would process records again."""
    history = ClusterHistory()
    history.commits = [
        OffsetCommit("g", P, 5, is_fetched=False),
        OffsetCommit("g", P, 5, is_fetched=True),
    ]
    assert check(history) == []
    history.commits.append(OffsetCommit("g", P, 4, is_fetched=True))
    assert anomalies(history) == [Anomaly.LOST_COMMIT]


def test_a_weak_write_may_be_lost_and_replaced() -> None:
    """With acks=1 an acknowledgement ends with its leader, unless a consumer has read the record."""
    history = ClusterHistory()
    acknowledge(history.send("w", P, ["a"], is_weak=True), 0)
    write(history, "b", base_offset=0)
    log(history, "b")
    assert check(history) == []
    poll(history, [(0, "a")])
    assert set(anomalies(history)) == {Anomaly.INCONSISTENT_OFFSETS, Anomaly.LOST_WRITE}


def test_a_value_is_sent_once() -> None:
    """Values identify writes, so that the history itself would be wrong."""
    history = ClusterHistory()
    history.send("p", P, ["a"])
    history.send("q", P, ["a"])
    with pytest.raises(AssertionError, match="'a' is sent twice"):
        check(history)
