"""The readers of the matrix: what each returns of a topic, and the same of a plain consumer.

Both are values that are compared. The form of a plain consumer's record is written here, not with
the code of the reader.
"""

import base64
import csv
import html
import io
import json
import sys
import unicodedata
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import duckdb

from ottla.client.arrow_table import read_table
from ottla.client.topic_view import TopicView
from ottla.console.model.messages.browsing import BrowseRequest, tail
from ottla.console.model.messages.decoding import Format
from ottla.console.model.messages.statistics import read_statistics
from tests.corpus.files import FILE_READS
from tests.corpus.judges import Reading
from tests.corpus.lags import lags
from tests.corpus.setting import PARTITIONS, Setting

Rows = Sequence[Reading]
Pair = tuple[Any, Any]
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
PAGE_LENGTH = 1_000_000
_CUT = "Only a part is shown"
_COLUMNS = ("partition", "offset", "timestamp", "key", "value", "headers")
_FORMAT = "%p,%o,%T,%K,%S,%k,%s,%h\\n"


def _text(data: bytes | None, null: bytes = b"") -> bytes:
    return null if data is None else data


def _length(data: bytes | None) -> int:
    return -1 if data is None else len(data)


def consume_format(at: Setting, topic: str, rows: Rows) -> Pair:
    """Compare every byte of standard output."""

    def line(row: Reading) -> bytes:
        head = (
            f"{row.partition},{row.offset},{row.timestamp},{_length(row.key)},{_length(row.value)},"
        )
        pairs = b",".join(name.encode() + b"=" + _text(v, b"NULL") for name, v in row.headers)
        return head.encode() + _text(row.key) + b"," + _text(row.value) + b"," + pairs + b"\n"

    done = at.run("consume", topic, "-e", "-q", "-f", _FORMAT, *_wide(topic))
    return _sorted_chunks(topic, done.out, rows, line)


def consume_key(at: Setting, topic: str, rows: Rows) -> Pair:
    """Compare every byte of standard output."""

    def line(row: Reading) -> bytes:
        return _text(row.key, b"NULL") + b"<K>" + _text(row.value, b"NULL") + b"<V>"

    done = at.run("consume", topic, "-e", "-q", "-Z", "-K", "<K>", "-D", "<V>", *_wide(topic))
    return _sorted_chunks(topic, done.out, rows, line)


def _wide(topic: str) -> tuple[str, ...]:
    # librdkafka reads two megabytes of several partitions at once by default.
    return ("-X", "fetch.message.max.bytes=30000000") if topic == "corpus-sizes" else ()


def _sorted_chunks(topic: str, data: bytes, rows: Rows, line: Callable[[Reading], bytes]) -> Pair:
    """Return both outputs; partitions may come in any order."""
    expected = [line(row) for row in rows]
    if PARTITIONS.get(topic, 1) == 1:
        return data, b"".join(expected)
    end = b"<V>" if b"<V>" in data else b"\n"
    return sorted(data.split(end)), sorted(b"".join(expected).split(end))


def consume_json(at: Setting, topic: str, rows: Rows) -> Pair:
    """Compare the records in the lines of JSON."""
    done = at.run("consume", topic, "-e", "-q", "-J", *_wide(topic))
    return _of_json_lines(done.out), list(rows)


def search_by_reading(at: Setting, topic: str, rows: Rows) -> Pair:
    """Search for all records, by reading the topic."""
    return _search(at, topic, rows, "--local")


def search_in_brokers(at: Setting, topic: str, rows: Rows) -> Pair:
    """Search for all records, in the broker."""
    address = at.cluster.node(1).monitoring_address
    assert address is not None
    return _search(at, topic, rows, "--http", f"{address[0]}:{address[1]}")


def _search(at: Setting, topic: str, rows: Rows, *words: str) -> Pair:
    done = at.run("topic", "search", topic, "--output", "json", *words)
    return _of_json_lines(done.out), list(rows)


def _of_json_lines(data: bytes) -> list[Reading]:
    return sorted(map(_of_json, data.splitlines()), key=lambda row: (row.partition, row.offset))


def _of_json(line: bytes) -> Reading:
    row = json.loads(line)

    def part(name: str) -> bytes | None:
        if f"{name}_base64" in row:
            return base64.b64decode(row[f"{name}_base64"])
        return None if row[name] is None else str(row[name]).encode()

    texts = row.get("headers", [])
    values = [None if text is None else text.encode() for text in texts[1::2]]
    if "headers_base64" in row:
        coded = row["headers_base64"]
        values = [None if text is None else base64.b64decode(text) for text in coded]
    headers = tuple(zip(texts[::2], values, strict=True))
    return Reading(
        row["partition"], row["offset"], row["ts"], part("key"), part("payload"), headers
    )


def table(at: Setting, topic: str, rows: Rows) -> Pair:
    """Compare the columns of an Arrow table."""
    result = read_table(
        topic, bootstrap=at.cluster.bootstrap, columns=_COLUMNS, isolation="read_committed"
    )
    return _of_arrow(result.to_pylist()), list(rows)


def view(at: Setting, topic: str, rows: Rows) -> Pair:
    """Compare the columns of a TopicView."""
    shown = TopicView(topic, at.cluster.bootstrap)
    result = shown.to_arrow(columns=_COLUMNS, isolation="read_committed")
    return _of_arrow(result.to_pylist()), list(rows)


def duckdb_view(at: Setting, topic: str, rows: Rows) -> Pair:
    """Compare the rows of a SELECT over a registered topic."""
    shown = TopicView(topic, at.cluster.bootstrap)
    with duckdb.connect() as connection:
        shown.register(connection, "t", columns=_COLUMNS, isolation="read_committed")
        names = 'partition, "offset", epoch_us("timestamp") AS us, key, value, headers'
        result = connection.execute(f"SELECT {names} FROM t ORDER BY 1, 2").fetchall()
    readings = [
        Reading(
            row[0],
            row[1],
            row[2] // 1000,
            row[3],
            row[4],
            tuple((pair["key"], pair["value"]) for pair in row[5] or ()),
        )
        for row in result
    ]
    return readings, list(rows)


def _of_arrow(rows: Sequence[Mapping[str, Any]]) -> list[Reading]:
    return [
        Reading(
            row["partition"],
            row["offset"],
            (row["timestamp"] - _EPOCH) // timedelta(milliseconds=1),
            row["key"],
            row["value"],
            tuple((pair["key"], pair["value"]) for pair in row["headers"] or ()),
        )
        for row in rows
    ]


def rest(at: Setting, topic: str, rows: Rows) -> Pair:
    """Page through the REST API, in hexadecimal."""
    found: list[Reading] = []
    positions: Any = []
    while True:
        request = {
            "topic": topic,
            "seek": "oldest",
            "limit": 500,
            "positions": positions,
            "text_limit": 50_000_000,
            **dict.fromkeys(("key_format", "value_format", "header_format"), "hex"),
        }
        path = f"/api/v1/clusters/local/topics/{topic}/messages/search"
        page = at.call(path, json.dumps({"request": request})).json
        found += map(_of_hex, page["rows"])
        positions = page["next_positions"]
        if not positions:
            break
    return sorted(found, key=lambda row: (row.partition, row.offset)), list(rows)


def _of_hex(row: Mapping[str, Any]) -> Reading:
    def part(decoded: Any) -> bytes | None:
        return None if decoded is None else bytes.fromhex(decoded["text"])

    headers = tuple((name, part(value)) for name, value in row["headers"])
    return Reading(
        row["partition"],
        row["offset"],
        row["timestamp_ms"],
        part(row["key"]),
        part(row["value"]),
        headers,
    )


def mcp(at: Setting, topic: str, rows: Rows) -> Pair:
    """Compare positions and times of the newest records."""
    arguments = {"cluster": "local", "topic": topic, "limit": 500}
    params = {"name": "read_messages", "arguments": arguments}
    message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
    answer = at.call("/api/mcp", json.dumps(message)).json["result"]
    page = json.loads(answer["content"][0]["text"])
    found = [(row["partition"], row["offset"], row["timestamp_ms"]) for row in page["rows"]]
    return sorted(found), [(row.partition, row.offset, row.timestamp) for row in rows]


def jsonl(at: Setting, topic: str, rows: Rows) -> Pair:
    """Restore the bytes of a download by the encodings that it names."""
    data = at.session.get(f"/c/local/topics/{topic}/messages.jsonl?seek=oldest").data
    found = [
        Reading(
            row["partition"],
            row["offset"],
            row["timestamp_ms"],
            _restored(row["key"], row["key_encoding"]),
            _restored(row["value"], row["value_encoding"]),
            tuple((name, _restored(text, encoding)) for name, text, encoding in row["headers"]),
        )
        for row in map(json.loads, data.decode().split("\n")[:-1])
    ]
    return sorted(found, key=lambda row: (row.partition, row.offset)), list(rows)


def csv_file(at: Setting, topic: str, rows: Rows) -> Pair:
    """Restore the bytes of a download by the encodings that it names."""
    csv.field_size_limit(sys.maxsize)
    data = at.session.get(f"/c/local/topics/{topic}/messages.csv?seek=oldest").data
    found = [
        Reading(
            int(row["partition"]),
            int(row["offset"]),
            int(row["timestamp_ms"].removeprefix("'")),
            _restored(row["key"], row["key_encoding"] or None),
            _restored(row["value"], row["value_encoding"] or None),
            tuple(
                (name, _restored(text, encoding))
                for name, text, encoding in json.loads(row["headers"])
            ),
        )
        for row in csv.DictReader(io.StringIO(data.decode(), newline=""))
    ]
    return sorted(found, key=lambda row: (row.partition, row.offset)), list(rows)


def _restored(text: str | None, encoding: str | None) -> bytes | None:
    if text is None or encoding is None:
        return None
    if encoding.endswith("-with-apostrophe"):
        text, encoding = text.removeprefix("'"), encoding.removesuffix("-with-apostrophe")
    return bytes.fromhex(text) if encoding == "hex" else text.encode()


def record_page(at: Setting, topic: str, rows: Rows) -> Pair:
    """Look for the text of every seventh value, on its page and in the list.

    All values of the topic of sizes, of which the page has a million characters and says so.
    """
    found, expected = [], []
    address = f"/c/local/topics/{topic}/messages"
    for row in rows if topic == "corpus-sizes" else rows[::7]:
        shown = _shown(row.value)
        if shown is None:
            continue
        page = at.session.get(f"{address}/{row.partition}/{row.offset}").text
        listed = at.session.get(
            f"{address}?seek=offset&partition={row.partition}&offset={row.offset}&limit=20"
        ).text
        in_page, in_list = ("".join(html.unescape(text).split()) for text in (page, listed))
        is_cut = len(shown) > PAGE_LENGTH
        expected.append((row.offset, True, True, is_cut))
        is_shown, is_listed = shown[:PAGE_LENGTH] in in_page, shown[:100] in in_list
        found.append((row.offset, is_shown, is_listed, _CUT in page))
    return found, expected


def _shown(data: bytes | None) -> str | None:
    """Return a value as pages show it, without white space; None for bytes and integers."""
    if data is None or len(data) in (4, 8) or data[:1] == b"\x00":
        return None
    try:
        text = data.decode()
    except UnicodeDecodeError:
        return None
    is_control = [
        unicodedata.category(c) in ("Cc", "Cf", "Zl", "Zp") and c not in "\t\n\r" for c in text
    ]
    codes = [
        (f"\\x{ord(c):02x}" if ord(c) < 256 else f"\\u{ord(c):04x}") if hidden else c
        for c, hidden in zip(text, is_control, strict=True)
    ]
    return "".join("".join(codes).split())


def values(at: Setting, topic: str, rows: Rows) -> Pair:
    """Download every seventh value."""
    some = rows if topic == "corpus-sizes" else rows[::7]
    address = f"/c/local/topics/{topic}/messages"
    found = [at.session.get(f"{address}/{row.partition}/{row.offset}/value") for row in some]
    return [page.data for page in found], [_text(row.value) for row in some]


def live_tail(at: Setting, topic: str, rows: Rows) -> Pair:
    """Follow from the beginning until as many records have come."""
    request = BrowseRequest(
        topic,
        limit=100,
        text_limit=sys.maxsize,
        key_format=Format.HEX,
        value_format=Format.HEX,
        header_format=Format.HEX,
        positions=tuple((number, 0) for number in range(PARTITIONS.get(topic, 1))),
    )
    found: list[Reading] = []
    for new in tail(at.connection, request, cancelled=lambda: len(found) >= len(rows) > 0):
        for row in new:
            parts = [None if p is None else bytes.fromhex(p.text) for p in (row.key, row.value)]
            headers = tuple(
                (name, None if h is None else bytes.fromhex(h.text)) for name, h in row.headers
            )
            found.append(Reading(row.partition, row.offset, row.timestamp_ms, *parts, headers))
        if not rows:
            break
    return sorted(found, key=lambda row: (row.partition, row.offset)), list(rows)


def statistics(at: Setting, topic: str, rows: Rows) -> Pair:
    """Compare counts, sizes and times."""
    result = read_statistics(at.connection, topic, scan_limit=1_000_000)
    sizes = [
        len(row.key or b"")
        + len(row.value or b"")
        + sum(len(name) + len(value or b"") for name, value in row.headers)
        for row in rows
    ]
    times = [row.timestamp for row in rows if row.timestamp >= 0]
    expected = (
        len(rows),
        sum(row.key is None for row in rows),
        sum(row.value is None for row in rows),
        len({(row.partition, row.key) for row in rows if row.key is not None}),
        max(sizes, default=None),
        min(times, default=None),
        max(times, default=None),
    )
    found = (
        result.scanned,
        result.null_keys,
        result.tombstones,
        result.distinct_keys,
        result.size_percentiles_bytes.get(100),
        result.first_timestamp_ms,
        result.last_timestamp_ms,
    )
    return found, expected


def sql(at: Setting, topic: str, rows: Rows) -> Pair:
    """Compare positions, times, and every text."""
    statement = (
        f'SELECT _partition, _offset, epoch_ms(_time), _key, _value, _headers::JSON FROM "{topic}" '
        "ORDER BY 1, 2"
    )
    body = json.dumps({"sql": statement})
    answer = at.call("/api/v1/clusters/local/sql", body).json
    found = [
        (
            row[0],
            row[1],
            row[2],
            _if_text(row[3], r.key),
            _if_text(row[4], r.value),
            len(json.loads(row[5])),
        )
        for row, r in zip(answer["rows"], rows, strict=False)
    ]
    assert len(answer["rows"]) == len(rows)
    has_nul = any(b"\x00" in (row.value or b"")[1:] and _is_text(row.value) for row in rows)
    assert (answer["topics"][0]["replaced_values"] > 0) is has_nul
    expected = [
        (
            row.partition,
            row.offset,
            row.timestamp,
            _if_text(_decoded(row.key), row.key),
            _if_text(_decoded(row.value), row.value),
            len(row.headers),
        )
        for row in rows
    ]
    return found, expected


def _decoded(data: bytes | None) -> str | None:
    return None if data is None else data.decode(errors="replace")


def _is_text(data: bytes | None) -> bool:
    """Return True for bytes that are shown as text: no integer, and no wire format."""
    if data is None or len(data) in (4, 8) or data[:1] == b"\x00":
        return False
    return data.decode(errors="ignore").encode() == data


def _if_text(shown: str | None, data: bytes | None) -> str | None:
    """Return a text; other bytes are shown as numbers or hexadecimal, and NUL is replaced."""
    if data is None or b"\x00" in data or len(data) > 4 << 20:
        return None
    try:
        data.decode()
    except UnicodeDecodeError:
        return None
    return None if len(data) in (4, 8) else shown


READS: Mapping[str, Callable[[Setting, str, Rows], Pair]] = {
    "ottla consume -f": consume_format,
    "ottla consume -J": consume_json,
    "ottla consume -K": consume_key,
    "ottla topic search --local": search_by_reading,
    "ottla topic search in the brokers": search_in_brokers,
    "read_table": table,
    "TopicView": view,
    "DuckDB registration": duckdb_view,
    "REST search": rest,
    "MCP read_messages": mcp,
    "console download JSONL": jsonl,
    "console download CSV": csv_file,
    "console list and record page": record_page,
    "console whole value": values,
    "console live tail": live_tail,
    "console SQL": sql,
    "console statistics": statistics,
    "lag in records and seconds": lags,
    **FILE_READS,
}
