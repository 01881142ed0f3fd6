"""Plans the micro-batches of a stream: the offsets that exist, and how many of them a batch takes.

Lives as long as the query, in Spark's planner process, and keeps its connections.

A topic that is deleted and created again has another id than the one beside the offsets, also if
the query was stopped then. One batch ends at the beginning of the new topic, which is a loss of
data, and the next one begins there.

Not done: in a checkpoint of a version that stored no topic ids, a topic that was created again
while the query was stopped is noticed only while it has fewer records than were read.
"""

import math
import time
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import NamedTuple, Protocol

from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxBytes,
    ReadMaxRows,
)

from ottla.client.admin.offsets import TopicPartition
from ottla.streams.spark.connector.options import SparkOptions
from ottla.streams.spark.connector.positions import Positions
from ottla.streams.spark.connector.ranges import (
    JsonOffsets,
    OffsetRange,
    Offsets,
    StoredOffsets,
    TopicIds,
    created_again,
    from_json,
    least,
    limit_offsets,
    to_json,
    topic_ids_in,
)
from ottla.streams.spark.connector.shadow_group import ShadowGroup

# The pauses before `latest` asks the brokers, by the number of polls without new records: Spark
# calls it again at once, about 60 times a second.
_TRIGGER_DELAY_MS = 900_000
_IDLE_PAUSES_S = (0.0, 0.01, 0.02, 0.05, 0.1)


class BatchPolicy(Protocol):
    """The decisions about micro-batches that depend on the query."""

    @property
    def progress_mark(self) -> str:
        """The metadata of the offsets that show the progress."""
        ...

    @property
    def own_topic(self) -> str | None:
        """The topic that exists on no broker and has one partition; None if no such topic exists."""
        ...

    def own_end(self) -> int:
        """Return the current end offset of `own_topic`."""
        ...

    def limit(self, begin: Offsets, end: Offsets, max_rows: int, positions: Positions) -> Offsets:
        """Return the end of a batch of at most about `max_rows` rows."""
        ...


class TopicBatches:
    """The policy of a query that reads topics and nothing else."""

    progress_mark = ""
    own_topic: str | None = None

    def own_end(self) -> int:
        """Return the end offset of the own topic, which does not exist."""
        raise AssertionError("there is no topic of its own")

    def limit(self, begin: Offsets, end: Offsets, max_rows: int, positions: Positions) -> Offsets:
        """Return ends that take from each partition in proportion to its new records."""
        return limit_offsets(begin, end, max_rows)


class BatchRanges(NamedTuple):
    """The ranges of one micro-batch, and the number of partitions of each topic."""

    ranges: list[OffsetRange]
    partition_counts: Mapping[str, int]


class MicroBatches:
    """The planning of one stream's micro-batches; offsets are in Spark's JSON form."""

    def __init__(self, options: SparkOptions, policy: BatchPolicy) -> None:
        self._options = options
        self._policy = policy
        self._positions: Positions | None = None
        self._latest: Offsets = {}
        self._topic_ids: dict[str, bytes] = {}
        self._target: Offsets | None = None
        self._idle_polls = 0
        # As in Spark's connector, the first batch does not wait for more records.
        self._triggered_at = -math.inf
        self._shadow: ShadowGroup | None = None

    def initial(self) -> JsonOffsets:
        """Return the starting offsets that the options specify."""
        positions = self._connected()
        starts = positions.starting(positions.partitions())
        return to_json(starts | self._own_offsets(-1), positions.topic_ids)

    def default_limit(self) -> ReadLimit:
        """Return the limit of maxOffsetsPerTrigger and maxBytesPerTrigger."""
        rows = self._options.get("maxOffsetsPerTrigger")
        max_bytes = self._options.get("maxBytesPerTrigger")
        if rows is not None:
            return ReadMaxRows(rows)
        return ReadAllAvailable() if max_bytes is None else ReadMaxBytes(max_bytes)

    def latest(self, start: StoredOffsets, limit: ReadLimit) -> JsonOffsets:
        """Return the end of the next batch; `start` itself if there are no new records."""
        begin = from_json(start)
        end, again = self._available(begin, topic_ids_in(start))
        # Spark plans the next batch, so the last one is complete.
        self._show(begin)
        known = self._beginning(begin, end)
        if self._is_delayed(known, end):
            return _unchanged(start)
        rows = self._allowed(known, end, limit)
        if rows is not None:
            whole = {key: offset for key, offset in end.items() if key[0] in again}
            end = self._policy.limit(known, end, rows, self._connected()) | whole
        # Spark starts a batch if the JSON differs, if only by the ids.
        if end == begin and not again:
            return _unchanged(start)
        return to_json(end, self._topic_ids)

    def _allowed(self, begin: Offsets, end: Offsets, limit: ReadLimit) -> int | None:
        """Return the maximum number of rows of a batch; None if there is no limit."""
        if isinstance(limit, ReadAllAvailable):
            return None
        rows = limit.max_rows if isinstance(limit, ReadMaxRows) else None
        max_bytes = self._options.get("maxBytesPerTrigger")
        if max_bytes is None:
            return rows
        positions = self._connected()
        new = {key: end[key] - begin[key] for key in end if key in positions.known}
        return least(rows, positions.rows_of(max_bytes, new))

    def _is_delayed(self, begin: Offsets, end: Offsets) -> bool:
        """Return True if there are too few rows to start; always False once the query has a target
        to end at.
        """
        rows_min = self._options.get("minOffsetsPerTrigger")
        if rows_min is None or self._target is not None:
            return False
        now = time.monotonic()
        known_partitions = self._connected().known
        new = sum(end[key] - begin[key] for key in end if key in known_partitions)
        delay_s = self._options.get("maxTriggerDelay", _TRIGGER_DELAY_MS) / 1000
        if 0 < new < rows_min and now < self._triggered_at + delay_s:
            return True
        if new:
            self._triggered_at = now
        return False

    def last_polled(self) -> JsonOffsets | None:
        """Return the offsets of the last poll; None before the first one."""
        return to_json(self._latest, self._topic_ids) if self._latest else None

    def stop_at_present(self) -> None:
        """Store the current end offsets, at which the query stops."""
        self._target, _ = self._ask_latest({})

    def ranges(self, start: StoredOffsets, end: StoredOffsets) -> BatchRanges:
        """Return the offset ranges of one micro-batch.

        Raises ApiError OFFSET_OUT_OF_RANGE if records are lost, unless failOnDataLoss is false.
        """
        own = self._own_range(start, end)
        ends = self._of_brokers(from_json(end))
        starts = self._of_brokers(from_json(start))
        missing = sorted(set(starts) - set(ends))
        if missing:
            self._connected().report_data_loss(f"{missing[0][0]}-{missing[0][1]} no longer exists.")
        starts = self._of_present_topics(self._beginning(starts, ends), ends, start, end)
        starts = self._held(starts, ends)
        ranges = [OffsetRange(*key, starts[key], ends[key]) for key in sorted(ends)]
        for offset_range in ranges:
            if offset_range.size < 0:
                self._connected().report_data_loss(
                    f"{offset_range.topic}-{offset_range.partition} ends at {offset_range.end}, but it was read up to "
                    f"{offset_range.start}: the topic was deleted and created again, or has lost records."
                )
        return BatchRanges(ranges + own, Counter(topic for topic, _ in ends))

    def _of_present_topics(
        self, starts: Offsets, ends: Offsets, start: StoredOffsets, end: StoredOffsets
    ) -> Offsets:
        """Return the starts, moved to the ends in topics that were created again since then."""
        ids, positions = topic_ids_in(end), self._connected()
        if ids and not positions.topic_ids:
            # The first batch after a start was planned by an earlier run of the query.
            positions.partitions()
        again = created_again(topic_ids_in(start), ids) | created_again(ids, positions.topic_ids)
        moved = {key: offset for key, offset in ends.items() if key[0] in again}
        for key in sorted(moved):
            if starts[key]:
                positions.report_data_loss(
                    f"{key[0]}-{key[1]} is a partition of another topic than before, but it was "
                    f"read up to {starts[key]}: the topic was deleted and created again."
                )
        return starts | moved

    def _own_range(self, start: StoredOffsets, end: StoredOffsets) -> list[OffsetRange]:
        topic = self._policy.own_topic
        if topic is None or topic not in end:
            return []
        last = end[topic]["0"]
        first = start.get(topic, {}).get("0", last - 1)
        return [OffsetRange(topic, 0, first, last)] if first < last else []

    def _own_offsets(self, shift: int = 0) -> Offsets:
        topic = self._policy.own_topic
        return {} if topic is None else {(topic, 0): self._policy.own_end() + shift}

    def _of_brokers(self, offsets: Offsets) -> Offsets:
        own = self._policy.own_topic
        return {key: offset for key, offset in offsets.items() if key[0] != own}

    def show(self, end: StoredOffsets) -> None:
        """Show the progress at once if a group is named; the checkpoint holds the progress itself."""
        self._show(from_json(end), at_once=True)

    def _show(self, offsets: Offsets, *, at_once: bool = False) -> None:
        if self._options.group_id is None:
            return
        if self._shadow is None:
            options = self._options
            self._shadow = ShadowGroup(
                options.access, options.group_id, options.client_id, self._policy.progress_mark
            )
        known_partitions = self._connected().known
        real = {key: offset for key, offset in offsets.items() if key in known_partitions}
        self._shadow.follow(real, at_once=at_once)

    def stop(self) -> None:
        """Close the connections."""
        if self._shadow is not None:
            self._shadow.close()
            self._shadow = None
        if self._positions is not None:
            self._positions.close()
            self._positions = None

    def _connected(self) -> Positions:
        if self._positions is None:
            self._positions = Positions(self._options)
        return self._positions

    def _held(self, starts: Offsets, ends: Offsets) -> Offsets:
        """Return the starts, moved forward if the partitions no longer have them."""
        moving = [key for key in ends if starts[key] < ends[key]]
        for key, earliest in self._connected().earliest(moving).items():
            if starts[key] < earliest:
                self._connected().report_data_loss(
                    f"{key[0]}-{key[1]} begins at {earliest}: offsets {starts[key]} to "
                    f"{min(earliest, ends[key]) - 1} were deleted (by retention.ms, retention.bytes, or a "
                    "tool) before they were read."
                )
                starts = starts | {key: min(earliest, ends[key])}
        return starts

    def _beginning(self, begin: Offsets, end: Offsets) -> Offsets:
        """Return the start of every partition in `end`: new ones are read from their beginning."""
        own = self._policy.own_topic
        begin = {key: offset - 1 for key, offset in end.items() if key[0] == own} | begin
        new = [key for key in end if key not in begin]
        return begin | self._connected().earliest(new) if new else begin

    def _available(self, begin: Offsets, ids: TopicIds) -> tuple[Offsets, frozenset[str]]:
        """Return the ends, and the topics that have other ids than those of the last batch."""
        if self._target is not None:
            again = created_again(ids, self._topic_ids)
            # AvailableNow: ignore records since then, but never end before the checkpoint's
            # offsets, unless the partition has lost them.
            ahead = [key for key, offset in self._target.items() if begin.get(key, 0) > offset]
            ends = self._connected().latest(ahead) if ahead else {}
            lost = {key: end for key, end in ends.items() if end < begin[key]}
            target = {key: max(end, begin.get(key, 0)) for key, end in self._target.items()}
            return target | lost | self._beginnings_of(again, target), again
        time.sleep(_IDLE_PAUSES_S[min(self._idle_polls, len(_IDLE_PAUSES_S) - 1)])
        end, again = self._ask_latest(ids)
        self._idle_polls = self._idle_polls + 1 if end == begin else 0
        return end, again

    def _ask_latest(self, ids: TopicIds) -> tuple[Offsets, frozenset[str]]:
        """Return the end offsets, and the topics that have other ids than `ids` or, without one,
        than at the last poll.
        """
        positions = self._connected()
        partitions = positions.partitions()
        again = created_again({**self._topic_ids, **ids}, positions.topic_ids)
        self._topic_ids = dict(positions.topic_ids)
        ends = positions.latest(partitions) | self._beginnings_of(again, partitions)
        self._latest = ends | self._own_offsets()
        return self._latest, again

    def _beginnings_of(self, topics: frozenset[str], keys: Iterable[TopicPartition]) -> Offsets:
        """Return the first offsets of the partitions of some topics."""
        chosen = [key for key in keys if key[0] in topics]
        return self._connected().earliest(chosen) if chosen else {}


def _unchanged(start: StoredOffsets) -> JsonOffsets:
    return {topic: dict(offsets) for topic, offsets in start.items()}
