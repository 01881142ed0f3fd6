"""The differences between indexes and their segments, for `ottla log dump` and `kafka-dump-log`."""

import itertools
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterator
from typing import Any, Protocol

from ottla.wire.records import records

# A batch in a segment, with `position`, `header` and `data`.
Batch = Any


class Batches(Protocol):
    """The batches of a segment."""

    def batches(self) -> Iterator[Batch]:
        """Return the batches in order, up to one that is incomplete."""

    def batch_at(self, position: int) -> Batch:
        """Return the batch at a position that an index contains; OttlaError if no complete batch is
        there.
        """


class Findings:
    """Differences by file, in the order of Apache Kafka's report."""

    def __init__(self) -> None:
        self.positions: defaultdict[str, dict[int, int]] = defaultdict(dict)
        """Indexed offsets, and the last offsets of the batches at their positions."""
        self.timestamps: defaultdict[str, list[tuple[int, int]]] = defaultdict(list)
        """Indexed timestamps, and the largest of their batches."""
        self.unordered: defaultdict[str, list[tuple[int, int]]] = defaultdict(list)
        """Indexed timestamps, and the preceding ones."""
        self.missing: defaultdict[str, list[tuple[int, int]]] = defaultdict(list)
        """Offsets of a time index, and the last offsets of the batches with them, or -1."""
        self.gaps: defaultdict[str, dict[int, int]] = defaultdict(dict)
        """Offsets of records, and the next ones."""

    def compare_offset(self, name: str, segment: Batches, offset: int, position: int) -> None:
        """Compare an entry of the offset index `name` with the batch at its position."""
        last_offset = segment.batch_at(position).header.last_offset
        if last_offset != offset:
            self.positions[name][offset] = last_offset


class TimeComparison:
    """Compares the entries of the time index `name`, in order, with the batches of its segment."""

    def __init__(self, name: str, segment: Batches, findings: Findings) -> None:
        self._name = name
        self._segment = segment
        self._findings = findings
        self._before = -1
        rows = [(item.header.last_offset, item.position) for item in segment.batches()]
        self._positions = rows
        # The first batch that contains an offset or a later one, also if offsets do not rise.
        self._largest = list(itertools.accumulate((last for last, _ in rows), max))

    def compare(self, time_ms: int, offset: int) -> None:
        """Compare one entry."""
        findings, before, self._before = self._findings, self._before, time_ms
        at = bisect_left(self._largest, offset)
        last_offset, position = self._positions[at] if at < len(self._positions) else (-1, 0)
        if last_offset != offset:
            findings.missing[self._name].append((offset, last_offset))
            return
        timestamp = largest_timestamp(self._segment.batch_at(position))
        if timestamp != time_ms:
            findings.timestamps[self._name].append((time_ms, timestamp))
        if before >= time_ms:
            findings.unordered[self._name].append((time_ms, before))


def largest_timestamp(item: Batch) -> int:
    """Return the largest timestamp of the records of a batch; -1 for an empty batch."""
    if item.header.has_log_append_time:
        return int(item.header.max_timestamp)
    opened = records.decode_batch(item.data, header=item.header)
    return max((record.timestamp for record in opened), default=-1)
