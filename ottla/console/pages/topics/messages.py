"""The messages of a topic: browse, search with progress, live tail, download, one message."""

import json
import sys
import threading
from collections.abc import Iterator, Mapping
from dataclasses import replace
from datetime import datetime
from typing import Any
from zoneinfo import ZoneInfo

from ottla.base.errors import ConfigError, OttlaError
from ottla.base.search.conditions import Condition, Field, JsonComparison, Operator
from ottla.console.fields import Fields
from ottla.console.model.messages.browsing import (
    BrowseRequest,
    BrowseResult,
    MessageRow,
    SearchEvent,
    Seek,
    browse,
    read_message,
    read_value,
    search,
    search_bounds,
    tail,
)
from ottla.console.model.messages.decoding import Format
from ottla.console.model.messages.values import ShownFormats
from ottla.console.page import Download, Events, NotFound, Page, Source, View
from ottla.console.spreadsheets import csv_line, harmless
from ottla.operations.numbers import INT_MAX, natural_number
from ottla.operations.survey.metadata import read_topic

CONDITIONS = 3
# The field of forms with the name of the zone of their times.
ZONE = "zone"
_LIMITS = (20, 50, 100, 500)
_TEXT_LIMIT = 2_000
# A page with a condition responds soon, even if nothing matches; the search has no such limit.
_PAGE_SCAN_LIMIT = 20_000
_PAGE_TIMEOUT_S = 5.0
_SEARCH_LIMIT = 500
_SEARCH_TIMEOUT_S = 3600.0
_DOWNLOAD_STEP = 2_000
# A spreadsheet would run the text as a formula, so an apostrophe is in front of it.
_APOSTROPHE = "-with-apostrophe"
_UNREAD = "Records of partitions without a running leader are missing: {partitions}."
_DAMAGED = "Records of {count} batches that cannot be decoded are missing."


def show_messages(view: View) -> Mapping[str, Any]:
    """Return records as the query says; a first page of matches if it has conditions."""
    request = browse_request(view)
    result = browse(
        view.cluster,
        replace(request, scan_limit=_PAGE_SCAN_LIMIT, timeout_s=_PAGE_TIMEOUT_S),
    )
    following = ",".join(f"{partition}:{offset}" for partition, offset in result.next_positions)
    partitions = len(read_topic(view.cluster, view.path["topic"]).partitions)
    return {
        "topic": view.path["topic"],
        "result": result,
        "rows": result.rows,
        "following": following,
        "partitions": partitions,
        "conditions": CONDITIONS,
        "limits": _LIMITS,
        "fields": list(Field),
        "operators": list(Operator),
        "comparisons": list(JsonComparison),
        "formats": list(Format),
        "seeks": list(Seek),
        **_formats(view.query),
        "stream_query": view.here.partition("?")[2],
    }


def show_message(view: View) -> Mapping[str, Any]:
    """Return one record in full, in the formats of the query."""
    query = view.query
    key_format = _option(Format, query.text("key_format", Format.AUTO), "key_format")
    value_format = _option(Format, query.text("value_format", Format.AUTO), "value_format")
    topic, partition, offset = _address(view)
    shown = ShownFormats(key_format, value_format)
    row = read_message(view.cluster, topic, partition, offset, masking=view.masking, shown=shown)
    return {"topic": topic, "row": row, "formats": list(Format), **_formats(query)}


def _formats(query: Fields) -> dict[str, Any]:
    """Return the chosen formats, which the links to records have."""
    names = ("key_format", "value_format")
    return {
        "chosen": {name: text for name in names if (text := query.text(name)) not in ("", "auto")}
    }


def _address(view: View) -> tuple[str, int, int]:
    partition = natural_number(view.path["partition"], INT_MAX)
    offset = natural_number(view.path["offset"])
    if partition is None or offset is None:
        raise NotFound("the address of a message has two numbers: its partition and its offset")
    return view.path["topic"], partition, offset


def stream_search(view: View) -> Events:
    """Return the events of a search through all records."""
    stopped = threading.Event()
    request = replace(browse_request(view), limit=_SEARCH_LIMIT, timeout_s=_SEARCH_TIMEOUT_S)

    def events() -> Iterator[tuple[str, Any]]:
        try:
            for event in search(view.cluster, request, cancelled=stopped.is_set):
                if event.rows:
                    yield "records", _rows(view, event.rows)
                yield "progress", event.progress
                if event.result is not None:
                    yield "end", {"note": _missing(view, event.result)}
        except (OttlaError, OSError) as error:
            yield "failed", {"reason": str(error)}

    return Events(events(), stopped.set)


def _missing(view: View, result: BrowseResult) -> str:
    """Return which matches a search has left out, or an empty text."""
    said = []
    if result.ended_by == "limit":
        said.append(view.say("Only the first {count} matches are shown.", count=_SEARCH_LIMIT))
    elif result.ended_by == "timeout":
        said.append(view.say("The search was too long: there may be more."))
    if result.unread_partitions:
        numbers = ", ".join(map(str, result.unread_partitions))
        said.append(view.say(_UNREAD, partitions=numbers))
    if result.damaged_batches:
        said.append(view.say(_DAMAGED, count=result.damaged_batches))
    return " ".join(said)


def stream_tail(view: View) -> Events:
    """Return new records as they arrive."""
    stopped = threading.Event()
    request = browse_request(view)

    def events() -> Iterator[tuple[str, Any]]:
        try:
            for rows in tail(view.cluster, request, cancelled=stopped.is_set):
                yield "records", _rows(view, rows)
        except (OttlaError, OSError) as error:
            yield "failed", {"reason": str(error)}

    return Events(events(), stopped.set)


def download_json(view: View) -> Download:
    """Return the matching records as JSON, one per line."""
    lines = (json.dumps(_plain(row), ensure_ascii=False) + "\n" for row in _matching(view))
    name = f"{view.path['topic']}.jsonl"
    return Download(name, "application/x-ndjson", (line.encode() for line in lines))


def download_csv(view: View) -> Download:
    """Return the matching records as CSV."""
    lines = _csv_lines(_matching(view))
    return Download(f"{view.path['topic']}.csv", "text/csv; charset=utf-8", lines)


def browse_request(view: View) -> BrowseRequest:
    """Return the request that the query describes; ConfigError names a wrong value."""
    query = view.query
    seek = _option(Seek, query.text("seek", Seek.NEWEST), "seek")
    return BrowseRequest(
        topic=view.path["topic"],
        partitions=tuple(_partitions(query)),
        seek=seek,
        offset=query.integer("offset", 0, least=0),
        timestamp_ms=time_field(query, "from") or 0,
        until_ms=time_field(query, "until"),
        limit=min(query.integer("limit", 50, least=1), _LIMITS[-1]),
        where=query.text("where"),
        conditions=tuple(_conditions(query)),
        key_format=_option(Format, query.text("key_format", Format.AUTO), "key_format"),
        value_format=_option(Format, query.text("value_format", Format.AUTO), "value_format"),
        text_limit=_TEXT_LIMIT,
        is_read_committed=not query.is_checked("uncommitted"),
        positions=tuple(_positions(query.text("positions"))),
        masking=view.masking,
    )


def time_field(fields: Fields, name: str) -> int | None:
    """Return the milliseconds of a typed time, in the zone of the form; None if it is empty."""
    text = fields.text(name)
    return parse_time(text, fields.text(ZONE, "UTC")) if text else None


def parse_time(text: str, zone: str = "UTC") -> int:
    """Return milliseconds for a number of them, or for an ISO 8601 time (in `zone` unless it has
    one).
    """
    number = natural_number(text)
    if number is not None:
        return number
    try:
        at = datetime.fromisoformat(text)
    except ValueError:
        raise ConfigError(
            f"cannot read time {text!r}: write 2026-01-31T12:00 or milliseconds since 1970"
        ) from None
    try:
        return round((at if at.tzinfo else at.replace(tzinfo=ZoneInfo(zone))).timestamp() * 1000)
    except (OSError, ValueError, KeyError):
        raise ConfigError(
            f"the time zone {zone!r} is not known here: write the time with its offset, as in "
            "2026-01-31T12:00+01:00"
        ) from None


def _partitions(query: Fields) -> Iterator[int]:
    for part in query.text("partition").replace(",", " ").split():
        number = natural_number(part, INT_MAX)
        if number is None:
            raise ConfigError(f"{part!r} is not the number of a partition: write 0, or 0,2")
        yield number


def _positions(text: str) -> Iterator[tuple[int, int]]:
    for pair in filter(None, text.split(",")):
        yield read_position(pair)


def read_position(text: str) -> tuple[int, int]:
    """Return the partition and the offset of `PARTITION:OFFSET`; ConfigError if it is not that."""
    first, _, second = text.partition(":")
    partition, offset = natural_number(first, INT_MAX), natural_number(second)
    if partition is None or offset is None:
        raise ConfigError(f"cannot read position {text!r}: write PARTITION:OFFSET, as in 0:42")
    return partition, offset


def _conditions(query: Fields) -> Iterator[Condition]:
    for number in range(CONDITIONS):
        operator = query.text(f"operator{number}")
        text = query.get(f"text{number}", "")
        if not operator or (not text and operator in _NEED_TEXT):
            continue
        yield Condition(
            field=_option(Field, query.text(f"field{number}", Field.ANY), "field"),
            operator=_option(Operator, operator, "operator"),
            text=text,
            header=query.text(f"header{number}"),
            path=query.text(f"path{number}"),
            comparison=_option(
                JsonComparison, query.text(f"comparison{number}", "exists"), "comparison"
            ),
            ignores_case=query.is_checked(f"nocase{number}"),
            negated=query.is_checked(f"not{number}"),
        )


_NEED_TEXT = (Operator.CONTAINS, Operator.EQUALS, Operator.STARTS_WITH, Operator.REGEX)


def _option(kind: Any, text: str, name: str) -> Any:
    try:
        return kind(text)
    except ValueError:
        options = ", ".join(item.value for item in kind)
        raise ConfigError(f"unknown {name} {text!r}: use {options}") from None


def _rows(view: View, rows: tuple[MessageRow, ...]) -> Mapping[str, Any]:
    return {
        "template": "message_rows.html",
        "topic": view.path["topic"],
        "rows": rows,
        **_formats(view.query),
    }


def download_value(view: View) -> Download:
    """Return the value of one record, byte for byte."""
    topic, partition, offset = _address(view)
    value = read_value(view.cluster, topic, partition, offset, masking=view.masking)
    return Download(f"{topic}-{partition}-{offset}", "application/octet-stream", iter([value]))


def _matching(view: View) -> Iterator[MessageRow]:
    """Return all matching records; a wrong query, or a partition that cannot be read, raises now,
    before the file has begun.
    """
    request = browse_request(view)
    if unread := search_bounds(view.cluster, request).unread:
        raise ConfigError(
            f"{request.topic}-{unread[0]} has no running leader: start its brokers, or choose other "
            "partitions"
        )
    request = replace(
        request,
        limit=_DOWNLOAD_STEP,
        timeout_s=_SEARCH_TIMEOUT_S,
        text_limit=sys.maxsize,
        key_format=_exact(request.key_format),
        value_format=_exact(request.value_format),
        header_format=Format.TEXT,
    )
    return _all_rows(view, request, search(view.cluster, request))


def _exact(chosen: Format) -> Format:
    """Return a format from which the bytes can be restored: text, or hexadecimal if it is none."""
    return Format.TEXT if chosen in (Format.AUTO, Format.JSON) else chosen


def _all_rows(
    view: View, request: BrowseRequest, events: Iterator[SearchEvent]
) -> Iterator[MessageRow]:
    """Yield the records; ConfigError at the end, which breaks the file off, if it lacks any."""
    damaged = 0
    while True:
        positions: tuple[tuple[int, int], ...] = ()
        for event in events:
            yield from event.rows
            if event.result is not None:
                positions = event.result.next_positions
                damaged += event.result.damaged_batches
        if not positions:
            break
        events = search(view.cluster, replace(request, positions=positions))
    if damaged:
        raise ConfigError(f"{damaged} batches of {request.topic} cannot be decoded")


def _plain(row: MessageRow) -> dict[str, Any]:
    """Return a record; an encoding names how bytes become the text: text (UTF-8), hex, int64 …"""
    return {
        "topic": row.topic,
        "partition": row.partition,
        "offset": row.offset,
        "timestamp_ms": row.timestamp_ms,
        "key": row.key.text if row.key else None,
        "key_encoding": row.key.format.value if row.key else None,
        "value": row.value.text if row.value else None,
        "value_encoding": row.value.format.value if row.value else None,
        "headers": [
            [name, value.text, value.format.value] if value else [name, None, None]
            for name, value in row.headers
        ],
    }


def _csv_lines(rows: Iterator[MessageRow]) -> Iterator[bytes]:
    columns = (
        "partition", "offset", "timestamp_ms", "key", "key_encoding", "value", "value_encoding",
        "headers",
    )  # fmt: skip
    yield csv_line(columns)
    for row in rows:
        plain = _plain(row)
        plain["headers"] = json.dumps(plain["headers"], ensure_ascii=False)
        for name in ("key", "value"):
            if harmless(plain[name]) != plain[name]:
                plain[f"{name}_encoding"] += _APOSTROPHE
        yield csv_line(plain[name] for name in columns)


PAGES = (
    Page("/topics/{topic}/messages", "messages.html", show_messages, "topics"),
    Page("/topics/{topic}/messages/{partition}/{offset}", "message.html", show_message, "topics"),
)
SOURCES = (
    Source("/topics/{topic}/search.events", stream_search),
    Source("/topics/{topic}/tail.events", stream_tail),
    Source("/topics/{topic}/messages.jsonl", download_json),
    Source("/topics/{topic}/messages.csv", download_csv),
    Source("/topics/{topic}/messages/{partition}/{offset}/value", download_value),
)
