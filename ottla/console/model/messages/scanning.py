"""Scans ranges of offsets of one topic: bounded memory, one response from each leader at a time.

The scanner follows leaders that move. A batch that cannot be decoded is counted and skipped.
"""

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import NamedTuple

from ottla.base.errors import ApiError, ErrorCode
from ottla.client.admin.offsets import EARLIEST
from ottla.client.admin.topics import Topic
from ottla.client.brokers import Brokers
from ottla.operations.survey.connections import ClusterConnection
from ottla.operations.survey.metadata import leaders_of, read_topic
from ottla.operations.survey.nodes import ask_nodes
from ottla.operations.survey.offsets import find_offsets
from ottla.operations.survey.records import Fetched, FetchLimits, fetch
from ottla.wire.records.batch import BatchHeader
from ottla.wire.records.control import ControlType, control_type
from ottla.wire.records.records import Record, decode_batch, iterate_batch, whole_batches

# A batch that decompresses to more is skipped: it could be a bomb.
BATCH_BYTES_MAX = 64 << 20
_PARTITIONS_PER_REQUEST = 16
# Rounds without a leader or progress before the scan gives up.
_PATIENCE = 60
_WAIT_MS = 100


class Span(NamedTuple):
    """Offsets from `start` up to, but not including, `end`."""

    start: int
    end: int


class Scanned(NamedTuple):
    """A decoded batch: its records inside the span, in order."""

    partition: int
    header: BatchHeader
    records: list[Record]


def select_partitions(topic: Topic, selected: Sequence[int]) -> list[int]:
    """Return the numbers of the selected partitions; ApiError if one does not exist. Pure."""
    known = {row.partition for row in topic.partitions}
    if missing := sorted(set(selected) - known):
        raise ApiError(
            ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
            f"Topic {topic.name!r} has no partition {missing[0]}.",
        )
    return sorted(set(selected) or known)


@dataclass(slots=True)
class Scan:
    """A scan in progress; `positions` are the next offsets, and `step` advances them.

    `damaged` has the partition and the base offset of each batch that cannot be decoded.
    Batches for whose encoded records `is_wanted` returns False are not decoded.
    """

    connection: ClusterConnection
    topic: str
    spans: Mapping[int, Span]
    limits: FetchLimits = field(default_factory=FetchLimits)
    is_wanted: Callable[[bytes], bool] = bool
    positions: dict[int, int] = field(init=False)
    scanned_bytes: int = 0
    damaged: set[tuple[int, int]] = field(default_factory=set)
    _order: list[int] = field(init=False)
    _leaders: dict[int, int] = field(init=False, default_factory=dict)
    _patience: int = field(init=False, default=_PATIENCE)

    def __post_init__(self) -> None:
        self.positions = {number: span.start for number, span in self.spans.items()}
        self._order = sorted(self.spans)

    @property
    def is_done(self) -> bool:
        """True if every span has been read."""
        return all(self.positions[number] >= span.end for number, span in self.spans.items())

    @property
    def scanned(self) -> int:
        """The number of offsets that have been passed."""
        return sum(self.positions[number] - span.start for number, span in self.spans.items())

    def skip(self, partition: int) -> None:
        """Leave out the rest of a partition; `positions` stays at the offset reached."""
        self.spans = {
            number: Span(span.start, self.positions[number]) if number == partition else span
            for number, span in self.spans.items()
        }

    def step(self) -> Iterator[Scanned]:
        """Send one request to each leader and yield the decoded batches.

        Raises ApiError LEADER_NOT_AVAILABLE if partitions have no leader for several seconds.
        """
        pending = [n for n in self._order if self.positions[n] < self.spans[n].end]
        # Each partition is once the first of a request, which always receives a batch (KIP-74).
        self._order = self._order[1:] + self._order[:1]
        requests = self._by_leader(pending)
        results = ask_nodes(self.connection, requests, partial(self._fetch, requests))
        before = sum(self.positions.values())
        for node, response in results.items():
            for index, number in enumerate(requests[node]):
                data = response.get((self.topic, number))
                if data is not None:
                    yield from self._receive(number, data, is_first=index == 0)
        if sum(self.positions.values()) > before:
            self._patience = _PATIENCE
        else:
            self._wait(pending)

    def _by_leader(self, pending: list[int]) -> dict[int, list[int]]:
        if not self._leaders:
            topic = read_topic(self.connection, self.topic)
            self._leaders = {number: node for (_, number), node in leaders_of(topic).items()}
        requests: dict[int, list[int]] = defaultdict(list)
        for number in pending:
            node = self._leaders.get(number, -1)
            if node >= 0 and len(requests[node]) < _PARTITIONS_PER_REQUEST:
                requests[node].append(number)
        return requests

    def _fetch(
        self, requests: Mapping[int, list[int]], brokers: Brokers, node: int
    ) -> dict[tuple[str, int], Fetched]:
        offsets = {(self.topic, number): self.positions[number] for number in requests[node]}
        return fetch(brokers, node, offsets, self.limits)

    def _wait(self, pending: list[int]) -> None:
        """Look up leaders again after a round without progress; give up after some seconds."""
        self._leaders = {}
        self._patience -= 1
        if self._patience <= 0:
            raise ApiError(
                ErrorCode.LEADER_NOT_AVAILABLE,
                f"{self.topic}-{pending[0]} cannot be read: it has no running leader. Try again when "
                "it has one, or leave the partition out.",
            )
        self.connection.pause(_WAIT_MS / 1000)

    def _receive(self, number: int, data: Fetched, *, is_first: bool) -> Iterator[Scanned]:
        span = self.spans[number]
        if data.error_code == ErrorCode.OFFSET_OUT_OF_RANGE:
            # Retention has deleted the beginning, or a truncation the end.
            start = self._first_offset(number, data.log_start_offset)
            if start >= 0:
                self.positions[number] = start if start > self.positions[number] else span.end
            return
        if data.error_code:
            return
        self.scanned_bytes += len(data.records)
        before = self.positions[number]
        for position, header in self._committed_batches(data):
            # The caller may have left out the rest of the partition since the last batch.
            span = self.spans[number]
            if self.positions[number] >= span.end:
                break
            if header.last_offset < self.positions[number]:
                continue
            records = self._decode(number, data, position, header)
            in_span = [row for row in records if self.positions[number] <= row.offset < span.end]
            self.positions[number] = min(header.last_offset + 1, span.end)
            if in_span:
                yield Scanned(number, header, in_span)
        if self.positions[number] == before and is_first:
            # The rest of the span contains no record: compaction has removed it.
            self.positions[number] = span.end

    def _first_offset(self, number: int, known: int) -> int:
        """Return the first offset of a partition; Kafka's brokers leave it out of errors."""
        if known >= 0:
            return known
        key = (self.topic, number)
        rows = find_offsets(self.connection, {key: self._leaders.get(number, -1)}, EARLIEST)
        return rows[key].offset if key in rows else -1

    def _committed_batches(self, data: Fetched) -> Iterator[tuple[int, BatchHeader]]:
        """Yield all batches, or only the committed ones; control batches become empty."""
        coming = sorted(data.aborted, key=lambda row: row[1])
        aborted: set[int] = set()
        for position, header in whole_batches(data.records):
            while coming and coming[0][1] <= header.last_offset:
                aborted.add(coming.pop(0)[0])
            if header.is_control and self._is_abort(data, position, header):
                aborted.discard(header.producer_id)
            is_hidden = self.limits.is_committed and header.is_transactional
            if is_hidden and not header.is_control and header.producer_id in aborted:
                # Passed over, but its offsets count.
                yield -1, header
                continue
            yield position, header

    def _is_abort(self, data: Fetched, position: int, header: BatchHeader) -> bool:
        (marker,) = decode_batch(data.records, position, header=header)[:1] or (None,)
        return marker is not None and control_type(marker.key) is ControlType.ABORT

    def _decode(
        self, number: int, data: Fetched, position: int, header: BatchHeader
    ) -> list[Record]:
        if header.is_control or position < 0:
            return []
        try:
            return list(
                iterate_batch(
                    data.records,
                    position,
                    header,
                    max_bytes=BATCH_BYTES_MAX,
                    is_wanted=self.is_wanted,
                )
            )
        except ApiError:
            self.damaged.add((number, header.base_offset))
            return []
