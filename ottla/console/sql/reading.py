"""Reads the records of a topic for a query: a range of time, the newest first to be kept, bounded."""

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from ottla.console.model.messages.browsing import search_bounds
from ottla.console.model.messages.decoding import Decoded
from ottla.console.model.messages.masking import MaskingRule
from ottla.console.model.messages.rows import RowBuilder
from ottla.console.model.messages.scanning import Scan, Span
from ottla.console.model.messages.values import BrowseRequest, MessageRow, Seek
from ottla.console.sql.pushdown import TimeRange
from ottla.console.sql.values import QueryLimits, TopicRead
from ottla.operations.survey.connections import ClusterConnection
from ottla.operations.survey.records import FetchLimits

_CHUNK = 2000


@dataclass(slots=True)
class TopicReader:
    """Reads one topic; `chunks` yields JSON, and `report` then says what was read."""

    connection: ClusterConnection
    topic: str
    time_range: TimeRange
    limits: QueryLimits
    masking: tuple[MaskingRule, ...]
    cancelled: Callable[[], bool]
    _records: int = field(init=False, default=0)
    _total: int = field(init=False, default=0)
    _bytes: int = field(init=False, default=0)
    _is_complete: bool = field(init=False, default=False)

    def chunks(self) -> Iterator[bytes]:
        """Yield arrays of records as JSON, until the range or a limit is reached."""
        request = BrowseRequest(
            self.topic,
            seek=Seek.OLDEST if self.time_range.start_ms is None else Seek.TIMESTAMP,
            timestamp_ms=self.time_range.start_ms or 0,
            until_ms=self.time_range.end_ms,
            text_limit=self.limits.text_length,
            masking=self.masking,
        )
        lows, highs, _ = search_bounds(self.connection, request)
        self._total = sum(highs[number] - low for number, low in lows.items())
        spans = newest_spans(lows, highs, self.limits.records)
        scan = Scan(self.connection, self.topic, spans, FetchLimits())
        builder = RowBuilder(request, self.connection.schemas)
        rows: list[MessageRow] = []
        while not scan.is_done and not self.cancelled():
            for part in scan.step():
                is_append_time = part.header.has_log_append_time
                for record in part.records:
                    row = builder.build(part.partition, record, is_log_append_time=is_append_time)
                    if row is not None:
                        rows.append(row)
                while len(rows) >= _CHUNK:
                    yield self._encode(rows[:_CHUNK])
                    del rows[:_CHUNK]
            if self._bytes > self.limits.read_bytes:
                break
        if rows:
            yield self._encode(rows)
        selected = sum(span.end - span.start for span in spans.values())
        self._is_complete = scan.is_done and selected == self._total

    def report(self) -> TopicRead:
        """Return what was read."""
        return TopicRead(
            self.topic,
            self._records,
            self._total,
            self._bytes,
            self.time_range.start_ms,
            self.time_range.end_ms,
            self._is_complete,
        )

    def _encode(self, rows: list[MessageRow]) -> bytes:
        data = json.dumps([_plain(row) for row in rows], ensure_ascii=False)
        encoded = data.encode("utf-8", "replace")
        self._records += len(rows)
        self._bytes += len(encoded)
        return encoded


def newest_spans(lows: dict[int, int], highs: dict[int, int], most: int) -> dict[int, Span]:
    """Return the newest offsets of each partition, as many as allowed together; each partition has
    its share. Pure.
    """
    total = sum(highs[number] - low for number, low in lows.items())
    spans = {}
    for number, low in lows.items():
        high = highs[number]
        share = high - low if total <= most else (high - low) * most // total
        if share > 0:
            spans[number] = Span(high - share, high)
    return spans


def _plain(row: MessageRow) -> dict[str, object]:
    return {
        "p": row.partition,
        "o": row.offset,
        "t": row.timestamp_ms,
        "k": _text(row.key),
        "v": _text(row.value),
        "h": json.dumps({name: _text(value) for name, value in row.headers}, ensure_ascii=False),
    }


def _text(decoded: Decoded | None) -> str | None:
    # DuckDB's texts cannot have this character in JSON.
    return None if decoded is None else decoded.text.replace("\x00", "\ufffd")
