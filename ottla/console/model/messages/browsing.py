"""Browse and search records: by newest, oldest, offset or time; bounded memory, progress, cancel.

A search reads windows of offsets: upwards from the first position, or downwards from the end for
the newest records. Only the matches of one window are in memory, and at most `limit` of each
partition.

If the HTTP ports of the leaders are known and enabled, the brokers search upwards themselves,
partition by partition (`remote.py`); the console continues where they refuse.
"""

import base64
import heapq
import sys
import time
from collections import deque
from collections.abc import Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from ottla.base.errors import ApiError, ConfigError, ErrorCode
from ottla.client.admin.offsets import EARLIEST, LATEST
from ottla.console.model.messages.decoding import Format
from ottla.console.model.messages.masking import MaskingRule
from ottla.console.model.messages.remote import Passed, RemoteSearch, remote_search
from ottla.console.model.messages.rows import RowBuilder
from ottla.console.model.messages.scanning import Scan, Scanned, Span, select_partitions
from ottla.console.model.messages.tailing import tail as tail
from ottla.console.model.messages.values import DEFAULT_FORMATS, Cancelled, ShownFormats, never
from ottla.console.model.messages.values import BrowseRequest as BrowseRequest
from ottla.console.model.messages.values import BrowseResult as BrowseResult
from ottla.console.model.messages.values import MessageRow as MessageRow
from ottla.console.model.messages.values import Progress as Progress
from ottla.console.model.messages.values import SearchEvent as SearchEvent
from ottla.console.model.messages.values import Seek as Seek
from ottla.operations.search.remote import Match
from ottla.operations.survey.connections import ClusterConnection
from ottla.operations.survey.http import HttpError
from ottla.operations.survey.metadata import leaders_of, read_topic
from ottla.operations.survey.offsets import find_offsets
from ottla.operations.survey.records import FetchLimits

LIMIT_MAX = 10_000

_PROGRESS_S = 0.25
# Offsets in the first window without conditions, of all partitions together.
_WINDOW_MAX = 20_000
# With conditions, windows grow up to so many offsets of all partitions together.
_SEARCH_WINDOW_MAX = 400_000
_GROWTH = 4
_PAGE_PARTITION_BYTES = 256 << 10


def browse(
    connection: ClusterConnection, request: BrowseRequest, *, cancelled: Cancelled = never
) -> BrowseResult:
    """Return records; ApiError UNKNOWN_TOPIC_OR_PARTITION, ConfigError for an invalid condition."""
    rows: list[MessageRow] = []
    for event in search(connection, request, cancelled=cancelled):
        rows += event.rows
        if event.result is not None:
            result = event.result
    return replace(result, rows=tuple(rows))


def search(
    connection: ClusterConnection, request: BrowseRequest, *, cancelled: Cancelled = never
) -> Iterator[SearchEvent]:
    """Yield matching records as they are found, and progress about four times a second.

    Memory is bounded, however many records are scanned; `cancelled` is polled after each response.
    The last event has `result`. Invalid requests raise before the first event is requested.
    """
    return _Search(connection, request, cancelled).run()


def read_message(
    connection: ClusterConnection,
    topic: str,
    partition: int,
    offset: int,
    *,
    masking: Sequence[MaskingRule] = (),
    text_limit: int = 1_000_000,
    shown: ShownFormats = DEFAULT_FORMATS,
) -> MessageRow:
    """Return one record; ConfigError if this offset has no record."""
    request = BrowseRequest(
        topic=topic,
        partitions=(partition,),
        seek=Seek.OFFSET,
        offset=offset,
        limit=1,
        scan_limit=1,
        text_limit=text_limit,
        key_format=shown.key,
        value_format=shown.value,
        decodes_schemas=shown.decodes_schemas,
        # The caller has chosen the record, whatever became of its transaction.
        is_read_committed=False,
        masking=tuple(masking),
    )
    rows = browse(connection, request).rows
    if not rows or rows[0].offset != offset:
        raise ConfigError(
            f"{topic}-{partition} has no record at offset {offset}: it was deleted or compacted, it "
            "is a transaction marker, or it does not exist yet"
        )
    return rows[0]


def read_value(
    connection: ClusterConnection,
    topic: str,
    partition: int,
    offset: int,
    *,
    masking: Sequence[MaskingRule] = (),
) -> bytes:
    """Return the whole value of a record as bytes, empty for a tombstone; errors as above."""
    row = read_message(
        connection,
        topic,
        partition,
        offset,
        masking=masking,
        text_limit=sys.maxsize,
        shown=ShownFormats(value=Format.BASE64, decodes_schemas=False),
    )
    return b"" if row.value is None else base64.b64decode(row.value.text)


@dataclass(slots=True)
class _Matches:
    """The matches of one partition in a window: the first or the last `limit` of them."""

    limit: int
    is_backward: bool
    rows: deque[MessageRow] = field(default_factory=deque)
    dropped: bool = False

    def add(self, row: MessageRow) -> None:
        if len(self.rows) < self.limit:
            self.rows.append(row)
        elif self.is_backward:
            self.rows.popleft()
            self.rows.append(row)
            self.dropped = True
        else:
            self.dropped = True

    @property
    def is_full(self) -> bool:
        """True if later records of the window cannot be returned."""
        return not self.is_backward and len(self.rows) >= self.limit


class _Search:
    """One search; `run` is a generator that may be abandoned at any time."""

    def __init__(
        self, connection: ClusterConnection, request: BrowseRequest, cancelled: Cancelled
    ) -> None:
        if not 1 <= request.limit <= LIMIT_MAX:
            raise ConfigError(f"{request.limit} is not a limit: use 1 to {LIMIT_MAX} records")
        self._connection = connection
        self._request = request
        self._cancelled = cancelled
        self._is_backward = request.seek is Seek.NEWEST
        self._builder = RowBuilder(request, connection.schemas)
        bounds = search_bounds(connection, request)
        self._lows, self._highs, self._unread = bounds.lows, bounds.highs, bounds.unread
        conditions = self._builder.conditions
        self._remote = remote_search(connection, request, conditions, bounds.leaders)
        # The next offset to read, upwards; or the end of what is left, downwards.
        self._cursors = dict(self._highs if self._is_backward else self._lows)
        self._needed = request.limit
        self._matched = 0
        self._scanned = 0
        self._scanned_bytes = 0
        self._damaged: set[tuple[int, int]] = set()
        self._started = time.monotonic()
        self._reported = self._started

    def run(self) -> Iterator[SearchEvent]:
        """Yield the events of the search."""
        window = self._first_window()
        ended_by = "end"
        if self._remote is not None:
            try:
                ended_by = yield from self._run_remote(self._remote)
            except HttpError:
                # The brokers refuse or stop: the records from the cursors on are read here.
                ended_by = "end"
        while ended_by == "end" and self._needed and not self._is_exhausted():
            if self._cancelled():
                ended_by = "cancelled"
                break
            matches, scan, interrupted = yield from self._read_window(window)
            rows = self._merge(matches, scan)
            self._matched += len(rows)
            self._needed -= len(rows)
            if rows:
                yield SearchEvent(tuple(rows), self._progress(scan))
            self._scanned += scan.scanned
            self._scanned_bytes += scan.scanned_bytes
            self._damaged |= scan.damaged
            if interrupted:
                ended_by = interrupted
                break
            window = min(window * _GROWTH, max(window, self._window_max()))
        if ended_by in ("end", "limit"):
            is_over = self._needed or self._is_exhausted()
            ended_by = "end" if is_over else "limit"
        progress = self._progress(None)
        positions = () if self._is_exhausted() else tuple(sorted(self._cursors.items()))
        result = BrowseResult((), progress, ended_by, positions, self._unread, len(self._damaged))
        yield SearchEvent((), progress, result)

    def _run_remote(self, remote: RemoteSearch) -> Generator[SearchEvent, None, str]:
        """Let the brokers search one partition after the other; return the reason of an early end."""
        for number in sorted(self._cursors):
            span = Span(self._cursors[number], self._highs[number])
            if span.start >= span.end:
                continue
            before = self._scanned_bytes
            # Abandoning the iterator closes the connection, which ends the search in the broker.
            for event in remote.run(number, span):
                rows: tuple[MessageRow, ...] = ()
                if isinstance(event, Passed):
                    self._move(number, event.next_offset)
                    self._scanned_bytes = before + event.scanned_bytes
                else:
                    self._move(number, event.record.offset + 1)
                    rows = self._remote_rows(number, event)
                yield SearchEvent(rows, self._progress(None))
                if reason := self._remote_end():
                    return reason
        return "end"

    def _move(self, number: int, offset: int) -> None:
        self._scanned += offset - self._cursors[number]
        self._cursors[number] = offset

    def _remote_rows(self, number: int, match: Match) -> tuple[MessageRow, ...]:
        row = self._builder.build(number, match.record, is_log_append_time=match.is_log_append_time)
        if row is None:
            return ()
        self._matched += 1
        self._needed -= 1
        return (row,)

    def _remote_end(self) -> str:
        if not self._needed:
            return "limit"
        if self._is_exhausted():
            return ""
        if self._cancelled():
            return "cancelled"
        if time.monotonic() - self._started > self._request.timeout_s:
            return "timeout"
        limit = self._request.scan_limit
        return "scan-limit" if limit is not None and self._scanned >= limit else ""

    def _first_window(self) -> int:
        count = max(1, len(self._cursors))
        if self._builder.conditions:
            return max(1000, min(self._request.limit, _WINDOW_MAX // count))
        return max(1, min(self._request.limit, _WINDOW_MAX // count))

    def _window_max(self) -> int:
        return max(1, _SEARCH_WINDOW_MAX // max(1, len(self._cursors)))

    def _is_exhausted(self) -> bool:
        if self._is_backward:
            return all(self._cursors[n] <= low for n, low in self._lows.items())
        return all(self._cursors[n] >= high for n, high in self._highs.items())

    def _spans(self, window: int) -> dict[int, Span]:
        limit = self._request.scan_limit
        if limit is not None:
            window = min(window, max(1, (limit - self._scanned) // len(self._cursors)))
        if self._is_backward:
            spans = {
                n: Span(max(self._lows[n], cursor - window), cursor)
                for n, cursor in self._cursors.items()
            }
        else:
            spans = {
                n: Span(cursor, min(self._highs[n], cursor + window))
                for n, cursor in self._cursors.items()
            }
        return {n: span for n, span in spans.items() if span.start < span.end}

    def _read_window(
        self, window: int
    ) -> Generator[SearchEvent, None, tuple[dict[int, _Matches], Scan, str]]:
        """Yield progress; return the matches, the scan, and the reason if it was interrupted."""
        request = self._request
        limits = FetchLimits(is_committed=request.is_read_committed)
        if not self._builder.conditions:
            limits = FetchLimits(
                partition_bytes=_PAGE_PARTITION_BYTES, is_committed=request.is_read_committed
            )
        is_wanted = self._builder.can_match
        scan = Scan(self._connection, request.topic, self._spans(window), limits, is_wanted)
        matches = {n: _Matches(self._needed, self._is_backward) for n in scan.spans}
        while not scan.is_done:
            for part in scan.step():
                self._collect(part, matches[part.partition], scan)
            if interrupted := self._interruption(scan):
                return matches, scan, interrupted
            if time.monotonic() - self._reported >= _PROGRESS_S:
                self._reported = time.monotonic()
                yield SearchEvent((), self._progress(scan))
        return matches, scan, ""

    def _collect(self, part: Scanned, matches: _Matches, scan: Scan) -> None:
        """Add the matches of a batch, as many as are needed."""
        is_append_time = part.header.has_log_append_time
        for record in part.records:
            row = self._builder.build(part.partition, record, is_log_append_time=is_append_time)
            if row is not None:
                matches.add(row)
                if matches.is_full:
                    self._cut(scan, part.partition, row.offset + 1)
                    return

    def _cut(self, scan: Scan, partition: int, position: int) -> None:
        """Leave out the rest of a partition from `position` on: it has enough matches."""
        scan.positions[partition] = position
        scan.skip(partition)

    def _interruption(self, scan: Scan) -> str:
        request = self._request
        if scan.is_done and self._is_last(scan):
            return ""
        if self._cancelled():
            return "cancelled"
        if time.monotonic() - self._started > request.timeout_s:
            return "timeout"
        if request.scan_limit is not None and self._scanned + scan.scanned >= request.scan_limit:
            return "scan-limit"
        return ""

    def _is_last(self, scan: Scan) -> bool:
        """Return True if the window of a finished scan was the last one."""
        if self._is_backward:
            return all(span.start <= self._lows[n] for n, span in scan.spans.items())
        return all(span.end >= self._highs[n] for n, span in scan.spans.items())

    def _merge(self, matches: Mapping[int, _Matches], scan: Scan) -> list[MessageRow]:
        """Return up to the needed number of rows by timestamp, and move the cursors behind them."""
        if self._is_backward:
            for number, span in scan.spans.items():
                if scan.positions[number] < span.end:
                    # Newer records of the window have not been read: it is read again.
                    matches[number].rows.clear()
        rows: list[MessageRow] = []
        sign = -1 if self._is_backward else 1
        heads = [
            (sign * self._head(of_partition).timestamp_ms, number)
            for number, of_partition in matches.items()
            if of_partition.rows
        ]
        heapq.heapify(heads)
        while heads and len(rows) < self._needed:
            _, number = heapq.heappop(heads)
            of_partition = matches[number]
            rows.append(
                of_partition.rows.pop() if self._is_backward else of_partition.rows.popleft()
            )
            if of_partition.rows:
                heapq.heappush(heads, (sign * self._head(of_partition).timestamp_ms, number))
        lowest = _lowest_offsets(rows)
        for number, of_partition in matches.items():
            self._cursors[number] = self._cursor(number, of_partition, scan, lowest)
        return rows

    def _head(self, matches: _Matches) -> MessageRow:
        return matches.rows[-1] if self._is_backward else matches.rows[0]

    def _cursor(self, number: int, matches: _Matches, scan: Scan, lowest: Mapping[int, int]) -> int:
        """Return the cursor of a partition: before its first match that has not been returned."""
        if not self._is_backward:
            return matches.rows[0].offset if matches.rows else scan.positions[number]
        span = scan.spans[number]
        if scan.positions[number] < span.end:
            return span.end
        if matches.rows:
            return matches.rows[-1].offset + 1
        return lowest[number] if matches.dropped else span.start

    def _progress(self, scan: Scan | None) -> Progress:
        return Progress(
            scanned=self._scanned + (scan.scanned if scan else 0),
            matched=self._matched,
            total=sum(max(0, high - self._lows[n]) for n, high in self._highs.items()),
            scanned_bytes=self._scanned_bytes + (scan.scanned_bytes if scan else 0),
            elapsed_s=time.monotonic() - self._started,
        )


def _lowest_offsets(rows: Sequence[MessageRow]) -> dict[int, int]:
    lowest: dict[int, int] = {}
    for row in rows:
        lowest[row.partition] = min(row.offset, lowest.get(row.partition, row.offset))
    return lowest


class SearchBounds(NamedTuple):
    """The first offset, the end and the leader of each partition of a search, and the partitions
    without a running leader.
    """

    lows: dict[int, int]
    highs: dict[int, int]
    leaders: dict[int, int]
    unread: tuple[int, ...]


def search_bounds(connection: ClusterConnection, request: BrowseRequest) -> SearchBounds:
    """Return the bounds of a search; ApiError LEADER_NOT_AVAILABLE if no partition can be read."""
    topic = read_topic(connection, request.topic)
    numbers = select_partitions(topic, request.partitions)
    leaders = {key: node for key, node in leaders_of(topic).items() if key[1] in numbers}
    starts = find_offsets(connection, leaders, EARLIEST)
    ends = find_offsets(connection, leaders, LATEST, is_committed=request.is_read_committed)
    lows = {key[1]: row.offset for key, row in starts.items() if key in ends}
    highs = {key[1]: row.offset for key, row in ends.items() if key in starts}
    if not lows:
        raise ApiError(
            ErrorCode.LEADER_NOT_AVAILABLE,
            f"No selected partition of {request.topic!r} has a running leader: start its brokers.",
        )
    # `until_ms` is no end: after the first record at that time there may be older ones.
    nodes = {key[1]: node for key, node in leaders.items() if key[1] in lows}
    positions = dict(request.positions)
    unread = tuple(n for n in numbers if n not in lows and (not positions or n in positions))
    if positions:
        return SearchBounds(*_continued(request, lows, highs), nodes, unread)
    if request.seek is Seek.OFFSET:
        lows = {n: max(low, min(request.offset, highs[n])) for n, low in lows.items()}
    elif request.seek is Seek.TIMESTAMP:
        later_rows = find_offsets(connection, leaders, max(0, request.timestamp_ms))
        for key, row in later_rows.items():
            if key[1] in lows:
                later = row.offset if row.offset >= 0 else highs[key[1]]
                lows[key[1]] = max(lows[key[1]], min(later, highs[key[1]]))
    highs = {n: max(high, lows[n]) for n, high in highs.items()}
    return SearchBounds(lows, highs, nodes, unread)


def _continued(
    request: BrowseRequest, lows: dict[int, int], highs: dict[int, int]
) -> tuple[dict[int, int], dict[int, int]]:
    positions = dict(request.positions)
    known = [n for n in lows if n in positions]
    if request.seek is Seek.NEWEST:
        highs = {n: max(lows[n], min(highs[n], positions[n])) for n in known}
        return {n: lows[n] for n in known}, highs
    lows = {n: max(lows[n], min(highs[n], positions[n])) for n in known}
    return lows, {n: max(lows[n], highs[n]) for n in known}
