"""The rows of /search and /lag as lines of JSON."""

import base64
import json
from typing import Any

from ottla.wire.records.records import Record


def line(kind: str, **fields: Any) -> bytes:
    """Return a row."""
    row = {"type": kind, **fields}
    return json.dumps(row, ensure_ascii=False, separators=(",", ":")).encode() + b"\n"


def match(topic: str, partition: int, record: Record, kind: str, value_limit: int) -> bytes:
    """Return the row of a matching record; `kind` is the type of its timestamp."""
    value = record.value
    if value is not None and value_limit:
        value = value[:value_limit]
    fields: dict[str, Any] = {
        "topic": topic,
        "partition": partition,
        "offset": record.offset,
        "tstype": kind if record.timestamp >= 0 else "unknown",
        "ts": record.timestamp,
    }
    if record.headers:
        fields["headers"] = [part for name, data in record.headers for part in (name, _text(data))]
        if not all(data is None or _is_utf8(data) for _, data in record.headers):
            fields["headers_base64"] = [
                None if data is None else base64.b64encode(data).decode()
                for _, data in record.headers
            ]
    for name, data in (("key", record.key), ("payload", value)):
        fields[name] = _text(data)
        if data is not None and not _is_utf8(data):
            fields[f"{name}_base64"] = base64.b64encode(data).decode()
    size = None if record.value is None else len(record.value)
    return line("match", **fields, payload_size=size)


def _text(data: bytes | None) -> str | None:
    return None if data is None else data.decode(errors="replace")


def _is_utf8(data: bytes) -> bool:
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return True
