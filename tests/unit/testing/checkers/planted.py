"""Handmade histories of transactions, each with one anomaly, for our checker and for Jepsen's."""

from collections.abc import Callable
from typing import NamedTuple

from ottla.testing.checkers.kafka import Anomaly, Partition, Status
from ottla.testing.checkers.transactions import HistoryOperation, Poll, PolledRecord, Send

P, Q = ("t", 0), ("t", 1)
# The process that reads everything at the end.
FINAL = 9


class Script:
    """A history that is written operation by operation."""

    def __init__(self) -> None:
        self.operations: list[HistoryOperation] = []
        self._now = 0
        self.assign(1, P, Q)

    def _add(self, operation: HistoryOperation) -> None:
        self._now += 2
        operation.invoked, operation.completed = self._now, self._now + 1
        self.operations.append(operation)

    def assign(self, process: int, *partitions: Partition) -> None:
        """Assign partitions to a process."""
        self._add(HistoryOperation(process, 0, assigned=partitions, status=Status.OK))

    def transaction(self, process: int, *steps: Send | Poll, status: Status = Status.OK) -> None:
        """Add a transaction."""
        self._add(HistoryOperation(process, 0, steps=list(steps), status=status))

    def end(self, **logs: list[tuple[int, int]]) -> list[HistoryOperation]:
        """Read the partitions `p` and `q` at the end, and return the history."""
        self.assign(FINAL, P, Q)
        self.transaction(FINAL, *(poll(P, *logs.get("p", ())), poll(Q, *logs.get("q", ()))))
        return self.operations


def poll(partition: Partition, *records: tuple[int, int]) -> Poll:
    """Return a poll with records of one partition, each an offset and a value."""
    return {partition: [PolledRecord(*record) for record in records]} if records else {}


def good() -> list[HistoryOperation]:
    """Return a history of writes that alternate, an aborted one, one in doubt, and reads."""
    script = Script()
    script.transaction(0, Send(P, 1, 0), Send(Q, 2, 0))
    script.transaction(0, Send(P, 3, 2), status=Status.FAILED)
    script.transaction(2, Send(P, 4, 4), Send(Q, 5), status=Status.UNKNOWN)
    script.transaction(0, Send(P, 6, 5))
    script.transaction(1, poll(P, (0, 1)), Send(Q, 7, 4), poll(Q, (0, 2)))
    # The second read of an aborted transaction is repeated by the next one.
    script.transaction(1, poll(P, (4, 4)), status=Status.FAILED)
    script.transaction(1, poll(P, (4, 4), (5, 6)))
    return script.end(p=[(0, 1), (4, 4), (5, 6)], q=[(0, 2), (2, 5), (4, 7)])


def lost_write() -> list[HistoryOperation]:
    """Return a history in which an acknowledged value is not in the log, but a later one is."""
    script = Script()
    script.transaction(0, Send(P, 1, 0), Send(P, 2, 1))
    script.transaction(0, Send(P, 3, 3))
    return script.end(p=[(0, 1), (3, 3)])


def unseen() -> list[HistoryOperation]:
    """Return a history in which the last acknowledged value is not in the log."""
    script = Script()
    script.transaction(0, Send(P, 1, 0))
    script.transaction(0, Send(P, 2, 2))
    return script.end(p=[(0, 1)])


def duplicate() -> list[HistoryOperation]:
    """Return a history in which a value is in the log twice."""
    script = Script()
    script.transaction(0, Send(P, 1, 0))
    return script.end(p=[(0, 1), (2, 1)])


def inconsistent_offsets() -> list[HistoryOperation]:
    """Return a history in which an offset has two values."""
    script = Script()
    script.transaction(0, Send(P, 1, 0))
    script.transaction(2, Send(P, 2, 0))
    script.transaction(1, poll(P, (0, 2)))
    return script.end(p=[(0, 1)])


def aborted_read() -> list[HistoryOperation]:
    """Return a history in which a value of an aborted transaction is read (G1a)."""
    script = Script()
    script.transaction(0, Send(P, 1, 0), status=Status.FAILED)
    script.transaction(0, Send(P, 2, 2))
    return script.end(p=[(0, 1), (2, 2)])


def poll_skip() -> list[HistoryOperation]:
    """Return a history in which a process skips a value between two of its transactions."""
    script = Script()
    script.transaction(0, Send(P, 1, 0), Send(P, 2, 1), Send(P, 3, 2))
    script.transaction(1, poll(P, (0, 1)))
    script.transaction(1, poll(P, (2, 3)))
    return script.end(p=[(0, 1), (1, 2), (2, 3)])


def nonmonotonic_poll() -> list[HistoryOperation]:
    """Return a history in which a process reads a value again."""
    script = Script()
    script.transaction(0, Send(P, 1, 0), Send(P, 2, 1))
    script.transaction(1, poll(P, (0, 1), (1, 2)))
    script.transaction(1, poll(P, (0, 1)))
    return script.end(p=[(0, 1), (1, 2)])


def internal_poll_skip() -> list[HistoryOperation]:
    """Return a history in which one transaction skips a value."""
    script = Script()
    script.transaction(0, Send(P, 1, 0), Send(P, 2, 1), Send(P, 3, 2))
    script.transaction(1, poll(P, (0, 1), (2, 3)))
    return script.end(p=[(0, 1), (1, 2), (2, 3)])


def nonmonotonic_send() -> list[HistoryOperation]:
    """Return a history in which the values of one process are in the log in another order."""
    script = Script()
    script.transaction(0, Send(P, 1, 2))
    script.transaction(0, Send(P, 2, 0))
    return script.end(p=[(0, 2), (2, 1)])


def internal_nonmonotonic_send() -> list[HistoryOperation]:
    """Return a history in which one transaction's values are in the log in another order."""
    script = Script()
    script.transaction(0, Send(P, 1, 1), Send(P, 2, 0))
    return script.end(p=[(0, 2), (1, 1)])


def precommitted_read() -> list[HistoryOperation]:
    """Return a history in which a transaction reads its own value."""
    script = Script()
    script.transaction(1, Send(P, 1, 0), poll(P, (0, 1)))
    return script.end(p=[(0, 1)])


def cycle() -> list[HistoryOperation]:
    """Return a history in which two transactions read each other's values (G1c)."""
    script = Script()
    script.assign(2, P, Q)
    script.transaction(1, Send(P, 1, 0), poll(Q, (0, 2)))
    script.transaction(2, Send(Q, 2, 0), poll(P, (0, 1)))
    first, second = script.operations[-2:]
    # Both ran at the same time.
    first.completed, second.completed = second.completed, second.completed + 1
    return script.end(p=[(0, 1)], q=[(0, 2)])


class Planted(NamedTuple):
    """A history, and the names of its anomaly."""

    history: Callable[[], list[HistoryOperation]]
    anomaly: Anomaly
    jepsen: str


PLANTED = (
    Planted(lost_write, Anomaly.LOST_WRITE, "lost-write"),
    Planted(unseen, Anomaly.UNSEEN, "unseen"),
    Planted(duplicate, Anomaly.DUPLICATE, "duplicate"),
    Planted(inconsistent_offsets, Anomaly.INCONSISTENT_OFFSETS, "inconsistent-offsets"),
    Planted(aborted_read, Anomaly.ABORTED_READ, "G1a"),
    Planted(poll_skip, Anomaly.POLL_SKIP, "poll-skip"),
    Planted(nonmonotonic_poll, Anomaly.NONMONOTONIC_POLL, "nonmonotonic-poll"),
    Planted(internal_poll_skip, Anomaly.POLL_SKIP, "int-poll-skip"),
    Planted(nonmonotonic_send, Anomaly.NONMONOTONIC_SEND, "nonmonotonic-send"),
    Planted(internal_nonmonotonic_send, Anomaly.NONMONOTONIC_SEND, "int-nonmonotonic-send"),
    Planted(precommitted_read, Anomaly.PRECOMMITTED_READ, "precommitted-read"),
    Planted(cycle, Anomaly.CYCLE, "G1c"),
)
