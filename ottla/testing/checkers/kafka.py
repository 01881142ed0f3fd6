"""Judges a history of a replicated log by the anomalies of Jepsen's workload for Kafka.

A history is what clients know: values they sent with their outcome, records they polled, offsets
they committed. Every value is sent once, so that it identifies its write. The checker derives, per
partition, which values each offset had, and reports each contradiction to the guarantees. It is a
pure function, independent of brokers and time. After Jepsen's `jepsen.tests.kafka`, which describes
the anomalies; `FRACTURED_TRANSACTION`, `UNSENT_READ` and `LOST_COMMIT` are additions. The anomalies
`PRECOMMITTED_READ` and `CYCLE` are those of `ottla.testing.checkers.transactions`.

Not done: cycles between transactions with anti-dependencies (G2).
"""

from collections import defaultdict
from collections.abc import Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import NamedTuple

Partition = tuple[str, int]
Value = Hashable


class Status(Enum):
    """The producer's knowledge of a write: acknowledged, certainly not done, or unknown."""

    OK = "ok"
    FAILED = "failed"
    UNKNOWN = "unknown"


class Anomaly(Enum):
    """The kinds of contradiction."""

    LOST_WRITE = "lost write"
    UNSEEN = "unseen"
    DUPLICATE = "duplicate"
    INCONSISTENT_OFFSETS = "inconsistent offsets"
    ABORTED_READ = "aborted read"
    UNSENT_READ = "unsent read"
    POLL_SKIP = "poll skip"
    NONMONOTONIC_POLL = "nonmonotonic poll"
    NONMONOTONIC_SEND = "nonmonotonic send"
    FRACTURED_TRANSACTION = "fractured transaction"
    LOST_COMMIT = "lost commit"
    PRECOMMITTED_READ = "precommitted read"
    CYCLE = "G1c"


class Contradiction(NamedTuple):
    """One anomaly, with the partition and the facts that contradict each other."""

    anomaly: Anomaly
    partition: Partition
    detail: str

    def __str__(self) -> str:
        """Return the contradiction as one line."""
        topic, number = self.partition
        return f"{self.anomaly.value}: {topic}-{number} {self.detail}"


@dataclass(eq=False)
class Write:
    """One value that a producer sent; `offset` is -1 unless the response contained it.

    `transaction` identifies the transaction of which it is a part. A `is_weak` write was sent with
    acks=1: its acknowledgement promises nothing once the leader fails.
    """

    producer: Hashable
    partition: Partition
    value: Value
    transaction: Hashable | None = None
    is_weak: bool = False
    status: Status = Status.UNKNOWN
    offset: int = -1


class Polled(NamedTuple):
    """One record that a consumer received.

    Between two records of one `session` the consumer neither was assigned its partitions again nor
    moved its position. `is_committed`: it reads with isolation level read_committed.
    """

    consumer: Hashable
    session: int
    partition: Partition
    offset: int
    value: Value
    is_committed: bool


class OffsetCommit(NamedTuple):
    """An offset that a group committed (acknowledged), or fetched if `is_fetched`; in order."""

    group: str
    partition: Partition
    offset: int
    is_fetched: bool


@dataclass
class ClusterHistory:
    """All facts in the order in which clients learned them.

    `final` is read at the end, from the start of every partition: with isolation level
    read_committed if `is_committed`, else read_uncommitted. A transaction without an entry in
    `outcomes` may have been committed or aborted.
    """

    writes: list[Write] = field(default_factory=list)
    polls: list[Polled] = field(default_factory=list)
    commits: list[OffsetCommit] = field(default_factory=list)
    outcomes: dict[Hashable, Status] = field(default_factory=dict)
    final: list[Polled] = field(default_factory=list)

    def send(
        self,
        producer: Hashable,
        partition: Partition,
        values: Sequence[Value],
        *,
        transaction: Hashable | None = None,
        is_weak: bool = False,
    ) -> list[Write]:
        """Record that a producer sends values; its outcome is unknown until the caller sets it."""
        writes = [Write(producer, partition, value, transaction, is_weak) for value in values]
        self.writes += writes
        return writes


def acknowledge(writes: Iterable[Write], base_offset: int) -> None:
    """Record that a request was acknowledged; `base_offset` is -1 if it is unknown."""
    for index, write in enumerate(writes):
        write.status = Status.OK
        write.offset = base_offset + index if base_offset >= 0 else -1


def check(history: ClusterHistory) -> list[Contradiction]:
    """Return every contradiction of a history, in a fixed order."""
    facts = _Facts(history)
    return [
        *_check_offsets(facts),
        *_check_losses(facts),
        *_check_reads(facts),
        *_check_sends(facts),
        *_check_polls(facts),
        *_check_transactions(facts),
        *_check_commits(history),
    ]


class _Facts:
    """The facts of a history, by partition and value."""

    def __init__(self, history: ClusterHistory) -> None:
        self.history = history
        self.write_of: dict[tuple[Partition, Value], Write] = {}
        for write in history.writes:
            key = (write.partition, write.value)
            assert key not in self.write_of, f"{write.value!r} is sent twice"
            self.write_of[key] = write
        # Dictionaries instead of sets: their order is the same in every process.
        self.values_at: dict[tuple[Partition, int], dict[Value, None]] = defaultdict(dict)
        self.offsets_of: dict[tuple[Partition, Value], dict[int, None]] = defaultdict(dict)
        for polled in (*history.polls, *history.final):
            self._add(polled.partition, polled.offset, polled.value)
        for write in history.writes:
            # Weak writes may be lost, and others take their offsets.
            if write.offset >= 0 and not write.is_weak and self.is_effective(write):
                self._add(write.partition, write.offset, write.value)
        self.final: dict[bool, dict[tuple[Partition, Value], int]] = {True: {}, False: {}}
        self.log: dict[tuple[Partition, bool], list[int]] = defaultdict(list)
        for polled in history.final:
            self.final[polled.is_committed][polled.partition, polled.value] = polled.offset
            self.log[polled.partition, polled.is_committed].append(polled.offset)

    def _add(self, partition: Partition, offset: int, value: Value) -> None:
        self.values_at[partition, offset][value] = None
        self.offsets_of[partition, value][offset] = None

    def is_effective(self, write: Write) -> bool:
        """Return True if an acknowledged write must be visible to read_committed consumers."""
        if write.status is not Status.OK:
            return False
        if write.transaction is None:
            return True
        return self.history.outcomes.get(write.transaction) is Status.OK

    def is_aborted(self, write: Write) -> bool:
        """Return True if a write must not be visible to read_committed consumers."""
        if write.transaction is not None:
            return self.history.outcomes.get(write.transaction) is Status.FAILED
        return write.status is Status.FAILED


def _check_offsets(facts: _Facts) -> Iterator[Contradiction]:
    """Check that an offset has one value, and a value one offset."""
    for (partition, offset), values in facts.values_at.items():
        if len(values) > 1:
            detail = f"offset {offset} has {_list(values)}"
            yield Contradiction(Anomaly.INCONSISTENT_OFFSETS, partition, detail)
    for (partition, value), offsets in facts.offsets_of.items():
        if len(offsets) > 1:
            detail = f"{value!r} is at {_list(offsets)}"
            yield Contradiction(Anomaly.DUPLICATE, partition, detail)


def _check_losses(facts: _Facts) -> Iterator[Contradiction]:
    """Check that acknowledged and polled values are in the log at the end.

    A lost write is below a record that was read at the end; an unseen one is above all of them.
    """
    final = facts.final[True]
    highest = {
        partition: max(offsets) for (partition, is_committed), offsets in facts.log.items()
        if is_committed and offsets
    }  # fmt: skip
    reported = set()
    for write in facts.history.writes:
        key = (write.partition, write.value)
        if write.is_weak or not facts.is_effective(write) or key in final:
            continue
        reported.add(key)
        is_lost = write.offset <= highest.get(write.partition, -1)
        anomaly = Anomaly.LOST_WRITE if is_lost else Anomaly.UNSEEN
        detail = f"{write.value!r} was acknowledged at offset {write.offset}"
        yield Contradiction(anomaly, write.partition, detail)
    for polled in facts.history.polls:
        key = (polled.partition, polled.value)
        if key not in facts.final[polled.is_committed] and key not in reported:
            reported.add(key)
            detail = f"{polled.value!r} was polled by {polled.consumer!r} at offset {polled.offset}"
            yield Contradiction(Anomaly.LOST_WRITE, polled.partition, detail)


def _check_reads(facts: _Facts) -> Iterator[Contradiction]:
    """Check that polled values were sent, and were neither rejected nor aborted."""
    reported = set()
    for polled in (*facts.history.polls, *facts.history.final):
        key = (polled.partition, polled.value)
        if key in reported:
            continue
        write = facts.write_of.get(key)
        detail = f"{polled.value!r} was polled by {polled.consumer!r} at offset {polled.offset}"
        if write is None:
            reported.add(key)
            yield Contradiction(Anomaly.UNSENT_READ, polled.partition, detail)
        elif facts.is_aborted(write) and (polled.is_committed or write.transaction is None):
            reported.add(key)
            yield Contradiction(Anomaly.ABORTED_READ, polled.partition, detail)


def _check_sends(facts: _Facts) -> Iterator[Contradiction]:
    """Check that the values of one producer are in the log in the order in which it sent them."""
    last: dict[tuple[Hashable, Partition], tuple[int, Value]] = {}
    for write in facts.history.writes:
        offset = facts.final[False].get((write.partition, write.value), write.offset)
        if offset < 0 or write.is_weak:
            continue
        key = (write.producer, write.partition)
        before = last.get(key)
        if before is not None and offset <= before[0]:
            detail = f"{write.producer!r}: {write.value!r} is at {offset}, but {before[1]!r}, sent earlier, at {before[0]}"
            yield Contradiction(Anomaly.NONMONOTONIC_SEND, write.partition, detail)
        else:
            last[key] = (offset, write.value)


def _check_polls(facts: _Facts) -> Iterator[Contradiction]:
    """Check that a session moves forward, and skips no record that is there at the end."""
    last: dict[tuple[Hashable, int, Partition], int] = {}
    positions: dict[tuple[Partition, bool], dict[int, int]] = {}
    for key, offsets in facts.log.items():
        offsets.sort()
        positions[key] = {offset: index for index, offset in enumerate(offsets)}
    for polled in facts.history.polls:
        reader = (polled.consumer, polled.session, polled.partition)
        before = last.get(reader)
        last[reader] = polled.offset
        if before is None:
            continue
        name = f"{polled.consumer!r}, session {polled.session}"
        if polled.offset <= before:
            detail = f"{name}: offset {polled.offset} after {before}"
            yield Contradiction(Anomaly.NONMONOTONIC_POLL, polled.partition, detail)
            continue
        index = positions.get((polled.partition, polled.is_committed), {})
        if before in index and polled.offset in index and index[polled.offset] > index[before] + 1:
            skipped = facts.log[polled.partition, polled.is_committed][index[before] + 1]
            detail = f"{name}: from {before} to {polled.offset}, without {skipped}"
            yield Contradiction(Anomaly.POLL_SKIP, polled.partition, detail)


def _check_transactions(facts: _Facts) -> Iterator[Contradiction]:
    """Check that all values of a transaction are visible at the end, or none."""
    parts: dict[Hashable, list[Write]] = defaultdict(list)
    for write in facts.history.writes:
        if write.transaction is not None and write.status is Status.OK:
            parts[write.transaction].append(write)
    for transaction, writes in parts.items():
        visible = [write for write in writes if (write.partition, write.value) in facts.final[True]]
        if visible and len(visible) < len(writes):
            hidden = next(write for write in writes if write not in visible)
            detail = f"{transaction!r}: {visible[0].value!r} is visible, {hidden.value!r} is not"
            yield Contradiction(Anomaly.FRACTURED_TRANSACTION, hidden.partition, detail)


def _check_commits(history: ClusterHistory) -> Iterator[Contradiction]:
    """Check that a group that commits increasing offsets never finds a smaller one."""
    highest: dict[tuple[str, Partition], int] = {}
    for commit in history.commits:
        key = (commit.group, commit.partition)
        if commit.is_fetched and commit.offset < highest.get(key, -1):
            detail = f"{commit.group}: found {commit.offset} after {highest[key]}"
            yield Contradiction(Anomaly.LOST_COMMIT, commit.partition, detail)
        highest[key] = max(commit.offset, highest.get(key, -1))


def _list(items: Iterable[object]) -> str:
    return ", ".join(repr(item) for item in items)
