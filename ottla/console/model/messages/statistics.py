"""Statistics of a topic's newest records: rates, sizes, keys, codecs."""

import hashlib
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from ottla.client.admin.offsets import EARLIEST, LATEST
from ottla.console.model.messages.rows import size_of
from ottla.console.model.messages.scanning import Scan, Scanned, Span
from ottla.console.model.messages.values import Cancelled, never
from ottla.operations.survey.connections import ClusterConnection
from ottla.operations.survey.metadata import leaders_of, read_topic
from ottla.operations.survey.offsets import find_offsets
from ottla.operations.survey.records import FetchLimits

KEYS_LIMIT = 200_000
CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
"""The names of the codecs by their number in a batch."""

_PERCENTILES = (50, 90, 99, 100)


@dataclass(frozen=True, slots=True)
class TopicStatistics:
    """Statistics of the newest `scanned` of `total` offsets; rates are per second of their time
    span.

    `distinct_keys` and `superseded` (records with a newer record of the same key, which compaction
    removes) are exact up to `keys_limit` keys, and `distinct_keys` is None above.
    `size_percentiles_bytes` maps 50, 90, 99 and 100 to the size of key, value and headers. `codecs`
    counts batches. Records of `unread_partitions`, which have no running leader, and of
    `damaged_batches`, which cannot be decoded, do not count.
    """

    topic: str
    scanned: int
    total: int
    first_timestamp_ms: int | None
    last_timestamp_ms: int | None
    records_per_s: float | None
    bytes_per_s: float | None
    null_keys: int
    tombstones: int
    distinct_keys: int | None
    keys_limit: int
    superseded: int
    size_percentiles_bytes: Mapping[int, int]
    codecs: Mapping[str, int]
    records_by_partition: tuple[int, ...]
    unread_partitions: tuple[int, ...] = ()
    damaged_batches: int = 0


def read_statistics(
    connection: ClusterConnection,
    name: str,
    *,
    scan_limit: int = 100_000,
    is_read_committed: bool = True,
    cancelled: Cancelled = never,
) -> TopicStatistics:
    """Scan the newest records of a topic; memory is bounded by the number of distinct keys.
    Records of open and aborted transactions are left out unless `is_read_committed` is False.

    A cancelled scan returns the statistics of the records that it has read.
    """
    topic = read_topic(connection, name)
    leaders = leaders_of(topic)
    starts = find_offsets(connection, leaders, EARLIEST)
    ends = find_offsets(connection, leaders, LATEST, is_committed=is_read_committed)
    share = max(1, scan_limit // max(1, len(leaders)))
    spans = {
        key[1]: Span(max(starts[key].offset, row.offset - share), row.offset)
        for key, row in ends.items()
        if key in starts
    }
    total = sum(row.offset - starts[key].offset for key, row in ends.items() if key in starts)
    spans = {n: span for n, span in spans.items() if span.start < span.end}
    scan = Scan(connection, name, spans, FetchLimits(is_committed=is_read_committed))
    counts = _Counts()
    while not scan.is_done and not cancelled():
        for part in scan.step():
            counts.add(part)
    known = starts.keys() & ends.keys()
    numbers = (row.partition for row in topic.partitions)
    unread = tuple(number for number in numbers if (name, number) not in known)
    result = counts.result(name, total, len(topic.partitions))
    return replace(result, unread_partitions=unread, damaged_batches=len(scan.damaged))


@dataclass(slots=True)
class _Counts:
    """Counters of a scan; sizes are counted by value, keys by a hash of 8 bytes."""

    records: int = 0
    size_bytes: int = 0
    first_ms: int | None = None
    last_ms: int | None = None
    null_keys: int = 0
    tombstones: int = 0
    superseded: int = 0
    keys: set[bytes] = field(default_factory=set)
    sizes: Counter[int] = field(default_factory=Counter)
    codecs: Counter[str] = field(default_factory=Counter)
    partitions: Counter[int] = field(default_factory=Counter)

    def add(self, part: Scanned) -> None:
        """Count the records of a batch."""
        self.records += len(part.records)
        self.partitions[part.partition] += len(part.records)
        codec = part.header.compression
        self.codecs[CODECS[codec] if codec < len(CODECS) else str(codec)] += 1
        for record in part.records:
            size = size_of(record)
            self.size_bytes += size
            self.sizes[size] += 1
            self._add_key(part.partition, record.key)
            self.tombstones += record.value is None
            if record.timestamp >= 0:
                first_ms, last_ms = self.first_ms, self.last_ms
                at_ms = record.timestamp
                self.first_ms = at_ms if first_ms is None else min(at_ms, first_ms)
                self.last_ms = at_ms if last_ms is None else max(at_ms, last_ms)

    def _add_key(self, partition: int, key: bytes | None) -> None:
        if key is None:
            self.null_keys += 1
            return
        # Compaction compares keys inside a partition.
        digest = hashlib.blake2b(key, digest_size=8, salt=str(partition).encode()[:16]).digest()
        if digest in self.keys:
            self.superseded += 1
        elif len(self.keys) < KEYS_LIMIT:
            self.keys.add(digest)

    def result(self, topic: str, total: int, partitions: int) -> TopicStatistics:
        """Return the statistics."""
        span_s = 0.0
        if self.first_ms is not None and self.last_ms is not None:
            span_s = (self.last_ms - self.first_ms) / 1000
        return TopicStatistics(
            topic=topic,
            scanned=self.records,
            total=total,
            first_timestamp_ms=self.first_ms,
            last_timestamp_ms=self.last_ms,
            records_per_s=self.records / span_s if span_s else None,
            bytes_per_s=self.size_bytes / span_s if span_s else None,
            null_keys=self.null_keys,
            tombstones=self.tombstones,
            distinct_keys=len(self.keys) if len(self.keys) < KEYS_LIMIT else None,
            keys_limit=KEYS_LIMIT,
            superseded=self.superseded,
            size_percentiles_bytes=_percentiles(self.sizes, self.records),
            codecs=dict(self.codecs),
            records_by_partition=tuple(self.partitions[n] for n in range(partitions)),
        )


def _percentiles(sizes: Mapping[int, int], count: int) -> dict[int, int]:
    """Return the nearest-rank percentiles of counted sizes."""
    sizes_by_percentile: dict[int, int] = {}
    passed = 0
    remaining = list(_PERCENTILES)
    for size in sorted(sizes):
        passed += sizes[size]
        while remaining and passed * 100 >= remaining[0] * count:
            sizes_by_percentile[remaining.pop(0)] = size
    return sizes_by_percentile
