"""Output formats of kcat: a format string is compiled once to a list of small functions.

Tokens: %t topic, %p partition, %o offset, %k key, %s value, %K and %S their lengths (-1 for null),
%R value length as four bytes, %T timestamp in ms, %h headers, %%. All output is bytes: keys and
values are written unchanged.
"""

import base64
import json
import struct
from collections.abc import Callable

from ottla.client.raw.consumer import ConsumedRecord
from ottla.tools.escapes import unescape

Format = Callable[[ConsumedRecord], bytes]


def _length(data: bytes | None) -> int:
    return -1 if data is None else len(data)


def _headers(record: ConsumedRecord) -> bytes:
    return b",".join(
        name.encode() + b"=" + (b"NULL" if value is None else value)
        for name, value in record.headers
    )


def _tokens(null: bytes) -> dict[str, Format]:
    return {
        "t": lambda record: record.topic.encode(),
        "p": lambda record: b"%d" % record.partition,
        "o": lambda record: b"%d" % record.offset,
        "k": lambda record: null if record.key is None else record.key,
        "s": lambda record: null if record.value is None else record.value,
        "K": lambda record: b"%d" % _length(record.key),
        "S": lambda record: b"%d" % _length(record.value),
        "R": lambda record: struct.pack(">i", _length(record.value)),
        "T": lambda record: b"%d" % record.timestamp,
        "h": _headers,
        "%": lambda record: b"%",
    }


def _constant(text: str) -> Format:
    data = unescape(text)
    return lambda record: data


def compile_format(text: str, *, null: bytes = b"") -> Format:
    """Return the function for a format string; ValueError names an unknown token."""
    tokens = _tokens(null)
    parts: list[Format] = []
    position = 0
    while (at := text.find("%", position)) >= 0:
        if at > position:
            parts.append(_constant(text[position:at]))
        token = text[at + 1 : at + 2]
        if token not in tokens:
            known = " ".join(f"%{name}" for name in tokens)
            raise ValueError(f"%{token} is not a format token; supported tokens: {known}")
        parts.append(tokens[token])
        position = at + 2
    if position < len(text):
        parts.append(_constant(text[position:]))
    return lambda record: b"".join([part(record) for part in parts])


def plain_format(delimiter: bytes, key_delimiter: bytes | None, *, null: bytes = b"") -> Format:
    """Return the format without -f: the value and a delimiter, optionally preceded by the key."""

    def write(record: ConsumedRecord) -> bytes:
        value = null if record.value is None else record.value
        if key_delimiter is None:
            return value + delimiter
        key = null if record.key is None else record.key
        return key + key_delimiter + value + delimiter

    return write


def json_format(record: ConsumedRecord) -> bytes:
    """Return kcat's JSON envelope on one line; bytes that are not UTF-8 are added as base64.

    `headers_base64` has the values of all headers, if one of them is not UTF-8.
    """
    envelope: dict[str, object] = {
        "topic": record.topic,
        "partition": record.partition,
        "offset": record.offset,
        "tstype": record.timestamp_type,
        "ts": record.timestamp,
    }
    if record.headers:
        envelope["headers"] = [
            part
            for name, value in record.headers
            for part in (name, None if value is None else value.decode(errors="replace"))
        ]
        values = [value for _, value in record.headers]
        if not all(value is None or _is_utf8(value) for value in values):
            envelope["headers_base64"] = [
                None if value is None else base64.b64encode(value).decode() for value in values
            ]
    for name, data in (("key", record.key), ("payload", record.value)):
        envelope[name] = None if data is None else data.decode(errors="replace")
        if data is not None and not _is_utf8(data):
            envelope[f"{name}_base64"] = base64.b64encode(data).decode()
    return json.dumps(envelope, ensure_ascii=False, separators=(",", ":")).encode() + b"\n"


def _is_utf8(data: bytes) -> bool:
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return True
