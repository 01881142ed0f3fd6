"""Reads the records of a topic for a query: a range of time, the newest first to be kept, bounded."""

import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from ottla.base.search.conditions import Condition, Field, Operator
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

# DuckDB's limit is 128.
_DEPTH_MAX = 100
# Hexadecimal digits and JSON are shown for other bytes, too: not UTF-8, or with a schema's id.
_OTHER_BYTES = re.compile(r"(?:[0-9a-f]{2})+$|\s*[{\[]")
_BRACKETS = re.compile(r"[\[\]{}]")
_CHUNK = 2000
_CHUNK_BYTES = 1 << 20


@dataclass(frozen=True, slots=True)
class Needed:
    """The part of a topic that a statement needs: times, offsets, and the only key, if there is
    one.
    """

    times: TimeRange
    offsets: TimeRange
    key: str | None = None

    def conditions(self) -> tuple[Condition, ...]:
        """Return the conditions that records have to match, empty if the text of the key may be
        the form of other bytes.
        """
        key = self.key
        if key is None or "\ufffd" in key or _OTHER_BYTES.match(key):
            return ()
        return (Condition(Field.KEY, Operator.EQUALS, key),)

    def spans(self, lows: dict[int, int], highs: dict[int, int], most: int) -> dict[int, Span]:
        """Return the offsets to read: all of them for a key, else as many as allowed.

        They are the newest ones, or the oldest of a range of times with both ends.
        """
        if self.conditions():
            most = sum(highs.values())
        if self.times.start_ms is None or self.times.end_ms is None:
            return newest_spans(lows, highs, most)
        mirrored = newest_spans(
            {n: -high for n, high in highs.items()}, {n: -low for n, low in lows.items()}, most
        )
        return {number: Span(-span.end, -span.start) for number, span in mirrored.items()}


@dataclass(slots=True)
class TopicReader:
    """Reads one topic; `chunks` yields JSON, and `report` then says what was read."""

    connection: ClusterConnection
    topic: str
    needed: Needed
    limits: QueryLimits
    masking: tuple[MaskingRule, ...]
    cancelled: Callable[[], bool]
    is_read_committed: bool = True
    _records: int = field(init=False, default=0)
    _total: int = field(init=False, default=0)
    _bytes: int = field(init=False, default=0)
    _is_complete: bool = field(init=False, default=False)
    _cut_values: int = field(init=False, default=0)
    _replaced_values: int = field(init=False, default=0)
    _unread: tuple[int, ...] = field(init=False, default=())
    _damaged: int = field(init=False, default=0)
    _is_newest: bool = field(init=False, default=True)

    def chunks(self) -> Iterator[bytes]:
        """Yield arrays of records as JSON, until the range or a limit is reached."""
        times, offsets = self.needed.times, self.needed.offsets
        request = BrowseRequest(
            self.topic,
            # Records without a time, which is -1, are before 1970.
            seek=Seek.OLDEST if (times.start_ms or -1) < 0 else Seek.TIMESTAMP,
            timestamp_ms=times.start_ms or 0,
            until_ms=times.end_ms,
            conditions=self.needed.conditions(),
            text_limit=self.limits.text_length,
            is_read_committed=self.is_read_committed,
            masking=self.masking,
        )
        lows, highs, _, self._unread = search_bounds(self.connection, request)
        if offsets.start_ms is not None:
            lows = {n: min(max(low, offsets.start_ms), highs[n]) for n, low in lows.items()}
        if offsets.end_ms is not None:
            highs = {n: max(min(high, offsets.end_ms), lows[n]) for n, high in highs.items()}
        self._total = sum(highs[number] - low for number, low in lows.items())
        spans = self.needed.spans(lows, highs, self.limits.records)
        limits = FetchLimits(is_committed=request.is_read_committed)
        builder = RowBuilder(request, self.connection.schemas)
        scan = Scan(self.connection, self.topic, spans, limits, builder.can_match)
        rows: list[MessageRow] = []
        pending_bytes = 0
        while not scan.is_done and not self.cancelled():
            for part in scan.step():
                is_append_time = part.header.has_log_append_time
                for record in part.records:
                    row = builder.build(part.partition, record, is_log_append_time=is_append_time)
                    if row is not None:
                        rows.append(row)
                        pending_bytes += row.size_bytes
                while len(rows) >= _CHUNK or pending_bytes >= _CHUNK_BYTES:
                    yield self._encode(rows[:_CHUNK])
                    del rows[:_CHUNK]
                    pending_bytes = sum(row.size_bytes for row in rows)
            if self._bytes > self.limits.read_bytes:
                self._is_newest = scan.is_done
                break
        if rows:
            yield self._encode(rows)
        selected = sum(span.end - span.start for span in spans.values())
        self._damaged = len(scan.damaged)
        is_whole = not self._unread and not self._damaged
        self._is_complete = scan.is_done and selected == self._total and is_whole

    def report(self) -> TopicRead:
        """Return what was read."""
        return TopicRead(
            self.topic,
            self._records,
            self._total,
            self._bytes,
            self.needed.times.start_ms,
            self.needed.times.end_ms,
            self._is_complete,
            self._cut_values,
            self._replaced_values,
            self._unread,
            self._damaged,
            self._is_newest,
        )

    def _encode(self, rows: list[MessageRow]) -> bytes:
        plain = [_plain(row) for row in rows]
        for row, fields in zip(rows, plain, strict=True):
            parts = [row.key, row.value, *(value for _, value in row.headers)]
            shown = [part for part in parts if part is not None]
            self._cut_values += any(part.is_truncated for part in shown) or bool(fields["d"])
            self._replaced_values += any("\x00" in part.text for part in shown)
        data = json.dumps(plain, ensure_ascii=False)
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
        "m": json.dumps({name: _text(value) for name, value in row.headers}, ensure_ascii=False),
        "h": json.dumps(
            [{"name": name, "value": _text(value)} for name, value in row.headers],
            ensure_ascii=False,
        ),
        "d": row.value is not None and _is_deep(row.value.text),
    }


def _is_deep(text: str) -> bool:
    """Return True for a text that may be JSON which nests too deep for DuckDB."""
    if text.count("{") + text.count("[") <= _DEPTH_MAX:
        return False
    depth = deepest = 0
    for match in _BRACKETS.finditer(text):
        depth += 1 if match[0] in "{[" else -1
        deepest = max(deepest, depth)
    return deepest > _DEPTH_MAX


def _text(decoded: Decoded | None) -> str | None:
    # DuckDB's texts cannot have this character in JSON.
    return None if decoded is None else decoded.text.replace("\x00", "\ufffd")
