"""The scan of one chunk of a log: whole batches in, rows out, in steps of limited time. Pure.

A step runs in a thread. It shares the interpreter with the event loop, so it ends after a few
milliseconds; the loop decides when the next one begins.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from ottla.base.errors import ApiError
from ottla.base.search.matching import Matcher
from ottla.server.search import rows
from ottla.wire.records import batch
from ottla.wire.records.batch import BatchHeader
from ottla.wire.records.records import iterate_batch

# Bytes of a decompressed batch.
BODY_BYTES_MAX = 64 << 20
# The clock is read once in this many records.
_RECORDS_AT_ONCE = 32

Aborted = Sequence[tuple[int, int, int]]
"""Producer id, first and last offset of aborted transactions."""


@dataclass(slots=True)
class Totals:
    """The amounts that a search has read so far."""

    records: int = 0
    bytes: int = 0
    skipped_bytes: int = 0
    matches: int = 0


@dataclass(slots=True, kw_only=True)
class PartitionScan:
    """One partition of a search. `next_offset` and `totals` advance; the range excludes
    `end_offset`.

    `readable_end` is the end of what may be read, which is not before `end_offset`: a batch is read
    whole.
    """

    topic: str
    partition: int
    next_offset: int
    end_offset: int
    readable_end: int
    matcher: Matcher
    from_ms: int = -1
    until_ms: int | None = None
    # 0: no limit.
    limit: int = 0
    value_limit: int = 0
    totals: Totals = field(default_factory=Totals)

    @property
    def has_enough(self) -> bool:
        """True if the limit of matches is reached."""
        return 0 < self.limit <= self.totals.matches


class Step:
    """The scan of a chunk that can be continued; one caller at a time."""

    def __init__(
        self, scan: PartitionScan, data: memoryview, aborted: Aborted, now: Callable[[], float]
    ) -> None:
        self._events = _scan(scan, data, aborted)
        self._now = now
        self.is_done = False

    def run(self, seconds: float) -> list[bytes]:
        """Scan for about this long; return the rows that were found."""
        ends = self._now() + seconds
        lines: list[bytes] = []
        for row in self._events:
            if row:
                lines.append(row)
            if self._now() >= ends:
                return lines
        self.is_done = True
        return lines


def _scan(scan: PartitionScan, data: memoryview, aborted: Aborted) -> Iterator[bytes]:
    """Yield rows, and empty bytes where the scan may pause."""
    position = 0
    while position + batch.HEADER_SIZE <= len(data) and not scan.has_enough:
        header = batch.parse_header(data, position)
        if header.size_bytes < batch.HEADER_SIZE or position + header.size_bytes > len(data):
            break
        scan.totals.bytes += header.size_bytes
        if header.base_offset >= scan.end_offset:
            scan.next_offset = scan.end_offset
            return
        if 0 <= header.max_timestamp < scan.from_ms:
            scan.totals.skipped_bytes += header.size_bytes
        elif not (header.is_control or _is_aborted(header, aborted)):
            try:
                yield from _scan_batch(scan, data, position, header)
            except ApiError as error:
                yield _problem(scan, header, error)
        if scan.has_enough:
            return
        scan.next_offset = max(scan.next_offset, header.last_offset + 1)
        position += header.size_bytes
        yield b""


def _scan_batch(
    scan: PartitionScan, data: memoryview, position: int, header: BatchHeader
) -> Iterator[bytes]:
    batch.check_crc(data, position, header)
    kind = "logappend" if header.has_log_append_time else "create"
    candidates = iterate_batch(
        data, position, header, max_bytes=BODY_BYTES_MAX, is_wanted=scan.matcher.can_match
    )
    count = 0
    for record in candidates:
        if not scan.next_offset <= record.offset < scan.end_offset:
            continue
        count += 1
        scan.totals.records += 1
        if _is_in_time(scan, record.timestamp) and scan.matcher.matches(
            record.key, record.value, record.headers
        ):
            scan.totals.matches += 1
            scan.next_offset = record.offset + 1
            yield rows.match(scan.topic, scan.partition, record, kind, scan.value_limit)
            if scan.has_enough:
                return
        elif not count % _RECORDS_AT_ONCE:
            yield b""


def _is_in_time(scan: PartitionScan, timestamp: int) -> bool:
    """Return True if a record may match by its own time; records without a time may."""
    is_early = scan.until_ms is None or timestamp < scan.until_ms
    return is_early and (timestamp < 0 or timestamp >= scan.from_ms)


def _problem(scan: PartitionScan, header: BatchHeader, error: ApiError) -> bytes:
    return rows.line(
        "problem",
        partition=scan.partition,
        offset=header.base_offset,
        error=error.code.name,
        message=str(error),
    )


def _is_aborted(header: BatchHeader, aborted: Aborted) -> bool:
    return header.is_transactional and any(
        producer_id == header.producer_id and first <= header.base_offset <= last
        for producer_id, first, last in aborted
    )
