"""The checker of transactions: each anomaly in a handmade history, and none in a good one."""

import pytest

from ottla.testing.checkers.kafka import Status
from ottla.testing.checkers.transactions import HistoryOperation, Send, check, edn_lines
from tests.unit.testing.checkers.planted import FINAL, PLANTED, P, Planted, good, poll


def test_a_good_history_has_no_anomaly() -> None:
    """Values of transactions alternate, one is aborted, and one is in doubt and visible."""
    assert check(good(), FINAL) == []


@pytest.mark.parametrize("planted", PLANTED, ids=lambda item: item.jepsen)
def test_a_planted_anomaly_is_found(planted: Planted) -> None:
    """The checker names the anomaly of each history."""
    found = check(planted.history(), FINAL)
    assert planted.anomaly in {item.anomaly for item in found}
    assert all(str(item) for item in found)


def test_the_cycle_is_found_below_a_transaction_that_reads_it() -> None:
    """The search continues through transactions that are in no cycle."""
    history = next(item.history() for item in PLANTED if item.jepsen == "G1c")
    history.insert(0, HistoryOperation(5, 0, 1, steps=[poll(P, (0, 1))], status=Status.OK))
    assert [item.anomaly.value for item in check(history, FINAL)] == ["G1c"]


def test_a_history_has_two_lines_for_each_operation() -> None:
    """Each line is a map in EDN: an invocation without results, and its completion."""
    operation = HistoryOperation(
        3, 10, 20, steps=[Send(P, 1, 4), poll(P, (2, 7))], status=Status.OK
    )
    assigned = HistoryOperation(3, 5, 6, assigned=[P], status=Status.OK)
    unplaced = HistoryOperation(4, 30, 40, steps=[Send(("t", 1), 2)], status=Status.UNKNOWN)
    assert list(edn_lines([assigned, operation, unplaced])) == [
        "{:index 0, :type :invoke, :process 3, :f :assign, :value [0], :time 5}",
        "{:index 1, :type :ok, :process 3, :f :assign, :value [0], :time 6}",
        "{:index 2, :type :invoke, :process 3, :f :txn, :value [[:send 0 1] [:poll]], :time 10}",
        "{:index 3, :type :ok, :process 3, :f :txn, "
        ":value [[:send 0 [4 1]] [:poll {0 [[2 7]]}]], :time 20}",
        "{:index 4, :type :invoke, :process 4, :f :txn, :value [[:send 1 2]], :time 30}",
        "{:index 5, :type :info, :process 4, :f :txn, :value [[:send 1 [nil 2]]], :time 40}",
    ]
