"""The history of a log as its clients saw it, and a check of every guarantee.

Clients record the values they send, the outcome of each request (acknowledged, rejected or in
doubt) and the records they read. At the end of a test each partition is read from its start. Values
must be unique. The checks are the same as in Jepsen's Kafka tests: lost and duplicated records,
reordering, offsets that go backwards or hold two values, reads of records that later vanish or were
never written. A *life* is the time between two power losses.
"""

from collections import defaultdict
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import NamedTuple

Partition = tuple[str, int]
Value = Hashable


class Outcome(Enum):
    """The producer's knowledge of one request: acknowledged, rejected or in doubt."""

    IN_DOUBT = "in doubt"
    ACKNOWLEDGED = "acknowledged"
    REFUSED = "refused"


class Fault(Enum):
    """The kinds of violated guarantees."""

    LOST = "acknowledged, but not in the log"
    LOST_BEFORE_KEPT = "acknowledged but lost, although a later one of the same life was kept"
    LOST_AFTER_RECOVERY = "read after a power loss, and lost later"
    DUPLICATE = "in the log twice"
    REORDERED = "before what the same producer had sent earlier"
    MOVED = "in the log at another offset than was acknowledged"
    WENT_BACK = "read at an offset that is not above the reader's last one"
    TWO_VALUES = "one offset of one leader epoch had two values"
    VANISHED = "read, but not in the log at the end"
    UNSENT = "in the log, but never sent"
    REFUSED_BUT_THERE = "rejected, but in the log"


class Violation(NamedTuple):
    """One violated guarantee, with the records it concerns."""

    fault: Fault
    partition: Partition
    value: Value
    detail: str

    def __str__(self) -> str:
        """Return the violation as one line."""
        topic, number = self.partition
        return f"{topic}-{number}: {self.value!r} {self.fault.value} ({self.detail})"


@dataclass(eq=False)
class Attempt:
    """The values of one request, in order; in doubt until the producer records an outcome."""

    producer: Hashable
    partition: Partition
    values: tuple[Value, ...]
    life: int
    sequence: int
    outcome: Outcome = Outcome.IN_DOUBT
    base_offset: int = -1

    def acknowledged(self, base_offset: int, life: int | None = None) -> None:
        """Record that the request was acknowledged.

        `base_offset` is -1 if the response contained no offset (a duplicate whose offset is
        unknown). `life` is the life in which the broker responded; it defaults to the life in which
        the request was first sent.
        """
        assert self.outcome is Outcome.IN_DOUBT, "a request has one response"
        self.outcome = Outcome.ACKNOWLEDGED
        self.base_offset = base_offset
        self.life = self.life if life is None else life

    def refused(self) -> None:
        """Record a response that guarantees that nothing was written."""
        assert self.outcome is Outcome.IN_DOUBT, "a request has one response"
        self.outcome = Outcome.REFUSED


class ReadRecord(NamedTuple):
    """One record as a reader received it."""

    offset: int
    value: Value
    leader_epoch: int = -1


@dataclass
class _Read:
    reader: Hashable
    partition: Partition
    record: ReadRecord
    life: int


@dataclass
class History:
    """All requests and reads, in the order of the calls that record them."""

    life: int = 0
    attempts: list[Attempt] = field(default_factory=list)
    reads: list[_Read] = field(default_factory=list)

    def sent(self, producer: Hashable, partition: Partition, values: Sequence[Value]) -> Attempt:
        """Record a request and return its attempt, on which the caller records the outcome.

        A producer that retries a request because no response arrived keeps the same attempt.
        """
        attempt = Attempt(producer, partition, tuple(values), self.life, len(self.attempts))
        self.attempts.append(attempt)
        return attempt

    def read(
        self,
        reader: Hashable,
        partition: Partition,
        records: Iterable[ReadRecord],
        life: int | None = None,
    ) -> None:
        """Record the result of one fetch and the life of the broker that responded (None: the
        current one).

        A reader only moves forward: after a seek, use a new reader.
        """
        life = self.life if life is None else life
        self.reads += [_Read(reader, partition, record, life) for record in records]

    def power_lost(self) -> None:
        """Record a power loss, which begins a new life."""
        self.life += 1


class AllowedViolations(NamedTuple):
    """The violations that the configuration of a test allows.

    `may_lose_tail`: a power loss may lose the end of the records acknowledged in that life, as
    without `flush.on.ack`. `may_duplicate`: producers retry and are not idempotent.
    """

    may_lose_tail: bool = False
    may_duplicate: bool = False


STRICT = AllowedViolations()


class _Log:
    """The final content of one partition, and the offsets of each value in it."""

    def __init__(self, records: Sequence[ReadRecord]) -> None:
        self.records = records
        self.start = records[0].offset if records else 0
        self.offsets: dict[Value, list[int]] = defaultdict(list)
        for record in records:
            self.offsets[record.value].append(record.offset)


def check(
    history: History,
    final: Mapping[Partition, Sequence[ReadRecord]],
    rules: AllowedViolations = STRICT,
) -> list[Violation]:
    """Return every violation; `final` contains each partition, read from its log start to its end."""
    logs = {partition: _Log(records) for partition, records in final.items()}
    for attempt in history.attempts:
        logs.setdefault(attempt.partition, _Log(()))
    violations: list[Violation] = []
    sent = _sent_values(history)
    for partition, log in logs.items():
        attempts = [attempt for attempt in history.attempts if attempt.partition == partition]
        reads = [read for read in history.reads if read.partition == partition]
        violations += _check_content(partition, log, sent, rules)
        excused_before = history.life if rules.may_lose_tail else 0
        violations += _check_losses(partition, log, attempts, reads, excused_before)
        violations += _check_order(partition, log, attempts)
        violations += _check_reads(partition, log, reads, excused_before)
        violations += _check_epochs(partition, log, reads)
    return violations


def _sent_values(history: History) -> dict[tuple[Partition, Value], Attempt]:
    sent: dict[tuple[Partition, Value], Attempt] = {}
    for attempt in history.attempts:
        for value in attempt.values:
            assert (attempt.partition, value) not in sent, f"{value!r} is sent twice"
            sent[attempt.partition, value] = attempt
    return sent


def _check_content(
    partition: Partition,
    log: _Log,
    sent: Mapping[tuple[Partition, Value], Attempt],
    rules: AllowedViolations,
) -> Iterable[Violation]:
    """Check that every value in the log was sent to it, was not rejected, and occurs once."""
    for value, offsets in log.offsets.items():
        attempt = sent.get((partition, value))
        detail = f"at {', '.join(map(str, offsets))}"
        if attempt is None:
            yield Violation(Fault.UNSENT, partition, value, detail)
        elif attempt.outcome is Outcome.REFUSED:
            yield Violation(Fault.REFUSED_BUT_THERE, partition, value, detail)
        if len(offsets) > 1 and not rules.may_duplicate:
            yield Violation(Fault.DUPLICATE, partition, value, detail)


def _check_losses(
    partition: Partition,
    log: _Log,
    attempts: Sequence[Attempt],
    reads: Sequence[_Read],
    excused_before: int,
) -> Iterable[Violation]:
    """Check that every acknowledged value is at its offset, or was lost with the end of a life.

    Lives before `excused_before` may have lost their end.
    """
    kept_offset: dict[int, int] = {}
    lost: list[tuple[Attempt, int, Value]] = []
    last_life_read = {read.record.value: read.life for read in reads}
    for attempt in attempts:
        if attempt.outcome is not Outcome.ACKNOWLEDGED:
            continue
        for index, value in enumerate(attempt.values):
            offset = attempt.base_offset + index if attempt.base_offset >= 0 else -1
            if value not in log.offsets:
                lost.append((attempt, offset, value))
                continue
            kept_offset[attempt.life] = max(kept_offset.get(attempt.life, -1), offset)
            if offset >= 0 and offset not in log.offsets[value]:
                detail = f"acknowledged at {offset}, but is at {log.offsets[value]}"
                yield Violation(Fault.MOVED, partition, value, detail)
    for attempt, offset, value in lost:
        detail = f"offset {offset}, life {attempt.life}"
        if 0 <= offset < log.start:
            continue
        if attempt.life >= excused_before:
            yield Violation(Fault.LOST, partition, value, detail)
        elif offset < kept_offset.get(attempt.life, -1):
            yield Violation(Fault.LOST_BEFORE_KEPT, partition, value, detail)
        elif last_life_read.get(value, -1) > attempt.life:
            yield Violation(Fault.LOST_AFTER_RECOVERY, partition, value, detail)


def _check_order(
    partition: Partition, log: _Log, attempts: Sequence[Attempt]
) -> Iterable[Violation]:
    """Check that the values of one producer are in the log in the order in which it sent them."""
    last: dict[Hashable, tuple[int, Value]] = {}
    for attempt in attempts:
        for value in attempt.values:
            offsets = log.offsets.get(value)
            if not offsets:
                continue
            before = last.get(attempt.producer)
            if before is not None and offsets[0] < before[0]:
                detail = f"at {offsets[0]}, but {before[1]!r} at {before[0]}"
                yield Violation(Fault.REORDERED, partition, value, detail)
            else:
                last[attempt.producer] = offsets[0], value


def _check_reads(
    partition: Partition, log: _Log, reads: Sequence[_Read], excused_before: int
) -> Iterable[Violation]:
    """Check that readers move forward and that no record they read vanishes."""
    position: dict[Hashable, int] = {}
    for read in reads:
        record = read.record
        if record.offset <= position.get(read.reader, -1):
            detail = f"{read.reader!r} at {record.offset} after {position[read.reader]}"
            yield Violation(Fault.WENT_BACK, partition, record.value, detail)
        position[read.reader] = record.offset
        is_gone = record.value not in log.offsets and record.offset >= log.start
        if is_gone and read.life >= excused_before:
            detail = f"{read.reader!r} at {record.offset}"
            yield Violation(Fault.VANISHED, partition, record.value, detail)


def _check_epochs(partition: Partition, log: _Log, reads: Sequence[_Read]) -> Iterable[Violation]:
    """Check that an offset of one leader epoch has the same value for every reader at all times."""
    values: dict[tuple[int, int], Value] = {}
    reported: set[ReadRecord] = set()
    everything = [read.record for read in reads] + list(log.records)
    for record in everything:
        before = values.setdefault((record.offset, record.leader_epoch), record.value)
        if before != record.value and record not in reported:
            reported.add(record)
            detail = f"offset {record.offset}, epoch {record.leader_epoch}: {before!r} before"
            yield Violation(Fault.TWO_VALUES, partition, record.value, detail)
