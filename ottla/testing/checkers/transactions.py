"""Judges a history of transactions, and writes it in the notation of Jepsen's workload for Kafka.

A process runs one operation at a time: it assigns itself partitions, or runs a transaction that
sends values and polls records. `check` derives the facts of `ottla.testing.checkers.kafka` from the
operations, and adds the anomalies that need them: a poll of the transaction's own values, and
transactions that read each other's values (G1c). Transactions of Kafka do not isolate writes, so
that values of two transactions may alternate in a partition (G0 is not an anomaly).
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from ottla.testing.checkers import kafka
from ottla.testing.checkers.kafka import (
    Anomaly,
    ClusterHistory,
    Contradiction,
    Partition,
    Polled,
    Status,
)

_EDN_TYPES = {Status.OK: ":ok", Status.FAILED: ":fail", Status.UNKNOWN: ":info"}


class Send(NamedTuple):
    """One value that a transaction sent; the offset is -1 unless the response contained it."""

    partition: Partition
    value: int
    offset: int = -1


class PolledRecord(NamedTuple):
    """One record that a transaction polled."""

    offset: int
    value: int


Poll = Mapping[Partition, Sequence[PolledRecord]]


@dataclass(eq=False)
class HistoryOperation:
    """An assignment if `assigned` is set, else a transaction; times are in nanoseconds.

    The status of a transaction is UNKNOWN if neither its commit nor its abort was acknowledged.
    The process of such an operation runs no other one.
    """

    process: int
    invoked: int
    completed: int = 0
    assigned: Sequence[Partition] | None = None
    steps: list[Send | Poll] = field(default_factory=list)
    status: Status = Status.UNKNOWN

    def sends(self) -> Iterator[Send]:
        """Return the values that the transaction sent, in order."""
        return (step for step in self.steps if isinstance(step, Send))

    def polls(self) -> Iterator[Poll]:
        """Return the results of its polls, in order."""
        return (step for step in self.steps if not isinstance(step, Send))

    def records(self) -> Iterator[tuple[Partition, PolledRecord]]:
        """Return all records of its polls, in order."""
        for poll in self.polls():
            for partition, records in poll.items():
                yield from ((partition, record) for record in records)


def check(operations: Sequence[HistoryOperation], final: int) -> list[Contradiction]:
    """Return every contradiction; the process `final` has read all partitions at the end."""
    return [
        *kafka.check(_facts(operations, final)),
        *_check_own_values(operations),
        *_check_cycles(operations),
    ]


def _facts(operations: Sequence[HistoryOperation], final: int) -> ClusterHistory:
    """Return the writes and polls of a history; times are no part of it."""
    history = ClusterHistory()
    sessions = _Sessions()
    for index, operation in enumerate(operations):
        if operation.assigned is not None:
            sessions.assign(operation.process, operation.assigned)
            continue
        history.outcomes[index] = operation.status
        for send in operation.sends():
            (write,) = history.send(
                operation.process, send.partition, [send.value], transaction=index
            )
            write.offset = send.offset
            write.status = Status.OK if operation.status is Status.OK else Status.UNKNOWN
        # Positions return to those before the transaction, unless it was committed.
        is_kept = operation.status is Status.OK
        for partition, record in operation.records():
            session = sessions.of(operation.process, partition) if is_kept else -1 - index
            polled = Polled(operation.process, session, partition, *record, is_committed=True)
            history.polls.append(polled)
            if operation.process == final:
                history.final += [polled, polled._replace(is_committed=False)]
    return history


class _Sessions:
    """The number of times that a process was assigned a partition after it had lost it."""

    def __init__(self) -> None:
        self._counts: dict[tuple[int, Partition], int] = defaultdict(int)
        self._assigned: dict[int, frozenset[Partition]] = {}

    def assign(self, process: int, partitions: Iterable[Partition]) -> None:
        before = self._assigned.get(process, frozenset())
        self._assigned[process] = frozenset(partitions)
        for partition in self._assigned[process] - before:
            self._counts[process, partition] += 1

    def of(self, process: int, partition: Partition) -> int:
        return self._counts[process, partition]


def _check_own_values(operations: Iterable[HistoryOperation]) -> Iterator[Contradiction]:
    """Check that no transaction polls a value that it has sent: it is not committed yet."""
    for operation in operations:
        own = {(send.partition, send.value) for send in operation.sends()}
        for partition, record in operation.records():
            if (partition, record.value) in own:
                detail = f"process {operation.process}: {record.value!r} at {record.offset}"
                yield Contradiction(Anomaly.PRECOMMITTED_READ, partition, detail)


def _check_cycles(operations: Sequence[HistoryOperation]) -> Iterator[Contradiction]:
    """Check that no two transactions have read, directly or not, a value of the other (G1c)."""
    writer = {
        (send.partition, send.value): index
        for index, operation in enumerate(operations)
        for send in operation.sends()
    }
    # From a reader to the transactions whose values it has read.
    edges: dict[int, dict[int, Partition]] = {}
    for index, operation in enumerate(operations):
        sources: dict[int, Partition] = {}
        for partition, record in operation.records():
            source = writer.get((partition, record.value), index)
            if source != index:
                sources[source] = partition
        edges[index] = sources
    for component in _components(edges):
        first = component[0]
        partition = next(edges[first][item] for item in component if item in edges[first])
        detail = f"transactions {sorted(component)[:8]} have read each other's values"
        yield Contradiction(Anomaly.CYCLE, partition, detail)


def _components(edges: Mapping[int, Mapping[int, object]]) -> Iterator[list[int]]:
    """Return the strongly connected components of more than one node (Tarjan, without recursion)."""
    number: dict[int, int] = {}
    lowest: dict[int, int] = {}
    stack: list[int] = []
    on_stack: set[int] = set()
    for root in edges:
        if root in number:
            continue
        path = [(root, iter(edges[root]))]
        number[root] = lowest[root] = len(number)
        stack.append(root)
        on_stack.add(root)
        while path:
            node, targets = path[-1]
            target = next(targets, None)
            if target is None:
                path.pop()
                if path:
                    parent = path[-1][0]
                    lowest[parent] = min(lowest[parent], lowest[node])
                if lowest[node] == number[node]:
                    component = _popped(stack, node)
                    on_stack.difference_update(component)
                    yield from [component] if len(component) > 1 else ()
            elif target not in number:
                number[target] = lowest[target] = len(number)
                stack.append(target)
                on_stack.add(target)
                path.append((target, iter(edges[target])))
            elif target in on_stack:
                lowest[node] = min(lowest[node], number[target])


def _popped(stack: list[int], last: int) -> list[int]:
    """Remove the end of a stack from `last` on, and return it."""
    result: list[int] = []
    while not result or result[-1] != last:
        result.append(stack.pop())
    return result


def edn_lines(operations: Iterable[HistoryOperation]) -> Iterator[str]:
    """Return the invocations and completions in the order of their times, one map for each line.

    A partition is an integer there, and the values of an invocation have no offsets.
    """
    keys: dict[Partition, int] = {}
    events = []
    for number, operation in enumerate(operations):
        events.append((operation.invoked, number, False, operation))
        events.append((operation.completed, number, True, operation))
    events.sort(key=lambda event: event[:3])
    for index, (time_ns, _, is_completed, operation) in enumerate(events):
        kind = ":txn" if operation.assigned is None else ":assign"
        state = _EDN_TYPES[operation.status] if is_completed else ":invoke"
        value = _edn_value(operation, keys, is_completed=is_completed)
        yield (
            f"{{:index {index}, :type {state}, :process {operation.process}, :f {kind}, "
            f":value [{value}], :time {time_ns}}}"
        )


def _edn_value(
    operation: HistoryOperation, keys: dict[Partition, int], *, is_completed: bool
) -> str:
    def key(partition: Partition) -> int:
        return keys.setdefault(partition, len(keys))

    if operation.assigned is not None:
        return " ".join(str(key(partition)) for partition in operation.assigned)
    words = []
    for step in operation.steps:
        if isinstance(step, Send):
            offset = "nil" if step.offset < 0 else str(step.offset)
            value = f"[{offset} {step.value}]" if is_completed else str(step.value)
            words.append(f"[:send {key(step.partition)} {value}]")
        elif is_completed:
            rows = (
                f"{key(partition)} [{' '.join(f'[{at} {value}]' for at, value in records)}]"
                for partition, records in step.items()
            )
            words.append(f"[:poll {{{', '.join(rows)}}}]")
        else:
            words.append("[:poll]")
    return " ".join(words)
