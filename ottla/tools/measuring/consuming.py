"""Read records and measure the rate, as ConsumerPerformance of Apache Kafka does."""

import time
from collections.abc import Callable
from itertools import pairwise
from typing import NamedTuple

from ottla.client.raw.consumer import ConsumedRecord, EndOfPartition, RecordConsumer
from ottla.client.transport import TopicPartition
from ottla.tools.measuring.live import LiveLine
from ottla.tools.measuring.plot import Curve

_MB = 1024 * 1024
_AT_ONCE = 500
_WINDOW_S = 0.1
"""The shortest time whose rate is a point of the plot."""


class Amount(NamedTuple):
    """Records and bytes that were read until `at`, in seconds since 1970."""

    at: float
    records: int
    size_bytes: int


class ConsumerRun:
    """The progress of one run.

    It ends after `records` (or more, if a poll returns more and the run is not `exact`), or, if
    that is None, when the partitions of `ends` have been read up to these offsets; or after
    `timeout_s` without a record. `on_interval` is called every `interval_s` with the amounts before
    and after.
    """

    def __init__(
        self,
        records: int | None,
        timeout_s: float,
        interval_s: float = 5.0,
        on_interval: Callable[[Amount, Amount], None] = lambda before, after: None,
        *,
        exact: bool = False,
    ) -> None:
        self._wanted = records
        self._exact = exact
        self._timeout_s, self._interval_s = timeout_s, interval_s
        self._on_interval = on_interval
        self.start = self.joined = self.end = time.time()
        self.count = self.bytes = 0
        self.ends: dict[TopicPartition, int] = {}
        self._progress = [(0.0, 0)]
        """Seconds since the start, and the records until then."""
        self._live = LiveLine()

    @property
    def is_complete(self) -> bool:
        """True if all records have been read."""
        return not self.ends if self._wanted is None else self.count >= self._wanted

    def on_assignment(self, partitions: set[TopicPartition]) -> None:
        """Note the end of the first rebalance, for `RecordConsumer.subscribe`."""
        if self.joined == self.start:
            self.joined = time.time()

    def run(self, consumer: RecordConsumer) -> None:
        """Read until the end of the run."""
        last = reported = time.time()
        before = Amount(last, 0, 0)
        while not self.is_complete and time.time() - last <= self._timeout_s:
            events = consumer.poll(0, limit=self._room()) or consumer.poll(0.1)
            records = [event for event in events if isinstance(event, ConsumedRecord)]
            now = time.time()
            if records:
                last = now
            self.count += len(records)
            self.bytes += sum(len(r.key or b"") + len(r.value or b"") for r in records)
            if self.ends:
                self._note_ends(events)
            self._live.show(self.count)
            if now - self.start - self._progress[-1][0] >= _WINDOW_S:
                self._progress.append((now - self.start, self.count))
            if now - reported >= self._interval_s:
                after = Amount(now, self.count, self.bytes)
                self._live.clear()
                self._on_interval(before._replace(at=reported), after)
                reported, before = now, after
        self.end = time.time()
        self._live.clear()
        # The rate of a very short time would be noise.
        elapsed_s = self.end - self.start
        if len(self._progress) > 1 and elapsed_s - self._progress[-1][0] < _WINDOW_S / 2:
            self._progress.pop()
        self._progress.append((elapsed_s, self.count))

    def _room(self) -> int:
        if self._wanted is None or not self._exact:
            return _AT_ONCE
        return min(_AT_ONCE, self._wanted - self.count)

    def _note_ends(self, events: list[ConsumedRecord | EndOfPartition]) -> None:
        for event in events:
            key = (event.topic, event.partition)
            reached = event.offset + isinstance(event, ConsumedRecord)
            if reached >= self.ends.get(key, reached + 1):
                del self.ends[key]

    def facts(self) -> dict[str, float]:
        """Return the totals."""
        total = Amount(self.end, self.count, self.bytes)
        return rates(Amount(self.start, 0, 0), total, self.joined - self.start)

    def curve(self) -> Curve:
        """Return the rate over the time, for `--plot`."""
        points = [
            (end, (after - before) / max(end - start, 1e-3))
            for (start, before), (end, after) in pairwise(self._progress)
        ]
        title = f"Rate of {self.count} records"
        return Curve(title, "seconds", "records/s", points)


def rates(before: Amount, after: Amount, join_s: float) -> dict[str, float]:
    """Return amounts and rates of an interval, of which the group's rebalance took `join_s`."""
    elapsed_s = max(after.at - before.at, 1e-3)
    fetch_s = max(elapsed_s - join_s, 1e-3)
    count, size_mb = after.records - before.records, (after.size_bytes - before.size_bytes) / _MB
    return {
        "mb": after.size_bytes / _MB,
        "mb_per_second": size_mb / elapsed_s,
        "records": after.records,
        "records_per_second": count / elapsed_s,
        "rebalance_ms": int(join_s * 1000),
        "fetch_ms": int(fetch_s * 1000),
        "fetch_mb_per_second": size_mb / fetch_s,
        "fetch_records_per_second": count / fetch_s,
    }
