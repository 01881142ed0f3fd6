"""Records as bytes on standard output (org.apache.kafka.tools.consumer.DefaultMessageFormatter).

Not done: Java classes other than Apache Kafka's own formatters and deserializers. The formatters of
internal topics before Apache Kafka 4.0 are refused, because their output was no JSON.
"""

import json
import struct
import uuid
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from ottla.base.errors import ConfigError
from ottla.base.loading import load_module
from ottla.client.raw.consumer import ConsumedRecord
from ottla_scripts.printing import java_double, java_float

Format = Callable[[ConsumedRecord], bytes]
Deserialize = Callable[[bytes], bytes]
_TOOLS = "org.apache.kafka.tools.consumer."
_PACKAGE = "org.apache.kafka.common.serialization."


def _number(form: str, text: Callable[[Any], str] = str) -> Deserialize:
    layout = struct.Struct(form)

    def deserialize(data: bytes) -> bytes:
        if len(data) != layout.size:
            raise ConfigError(f"Size of data received by the deserializer is not {layout.size}")
        return text(layout.unpack(data)[0]).encode()

    return deserialize


def _uuid(data: bytes) -> bytes:
    try:
        return str(uuid.UUID(data.decode())).encode()
    except ValueError:
        raise ConfigError(
            f"Error parsing data into UUID: {data!r} is not the text of one"
        ) from None


_DESERIALIZERS: Mapping[str, Deserialize] = {
    "StringDeserializer": lambda data: data.decode("utf-8", "replace").encode(),
    "ByteArrayDeserializer": lambda data: data,
    "BytesDeserializer": lambda data: "".join(
        chr(byte) if 32 <= byte < 127 and byte != 92 else f"\\x{byte:02X}" for byte in data
    ).encode(),
    "IntegerDeserializer": _number(">i"),
    "LongDeserializer": _number(">q"),
    "ShortDeserializer": _number(">h"),
    "FloatDeserializer": _number(">f", java_float),
    "DoubleDeserializer": _number(">d", java_double),
    "BooleanDeserializer": lambda data: b"true" if data == b"\x01" else b"false",
    "UUIDDeserializer": _uuid,
    "VoidDeserializer": lambda data: b"null",
}
_TIMESTAMPS = {"create": b"CreateTime:%d", "logappend": b"LogAppendTime:%d"}


def formatter(name: str, properties: Mapping[str, str]) -> Format:
    """Return the formatter of a class name; ConfigError if it is not one of Apache Kafka's."""
    kind = name.rpartition(".")[2]
    # Apache Kafka's second formatter is the first, with a copy for a logger.
    if kind in ("DefaultMessageFormatter", "LoggingMessageFormatter"):
        return DefaultFormatter(properties).format
    if kind == "NoOpMessageFormatter":
        return lambda record: b""
    # Only these need the messages of internal topics.
    internal = load_module(f"{__package__}.internal_topics")
    if name.removeprefix(_TOOLS) in internal.FORMATTERS:
        return partial(internal.format_record, kind)
    known = ("DefaultMessageFormatter", "LoggingMessageFormatter", "NoOpMessageFormatter")
    raise ConfigError(
        f"--formatter {name} is a Java class: known are {', '.join([*known, *internal.FORMATTERS])}"
    )


def format_as_json(record: ConsumedRecord) -> bytes:
    """Return a record as a line of JSON: `--output json`, an extension.

    Bytes that are not UTF-8 are replaced by U+FFFD.
    """
    row = {
        "topic": record.topic,
        "partition": record.partition,
        "offset": record.offset,
        "timestamp": record.timestamp,
        "key": _as_text(record.key),
        "value": _as_text(record.value),
        "headers": [[name, _as_text(value)] for name, value in record.headers or ()],
    }
    return json.dumps(row, ensure_ascii=False).encode() + b"\n"


def _as_text(data: bytes | None) -> str | None:
    return None if data is None else data.decode("utf-8", "replace")


class DefaultFormatter:
    """The default formatter: the parts that `print.…` selects, between separators."""

    def __init__(self, properties: Mapping[str, str]) -> None:
        def shows(name: str, default: str = "false") -> bool:
            return properties.get(f"print.{name}", default).strip().lower() == "true"

        def word(name: str, default: str) -> bytes:
            return properties.get(name, default).encode()

        self._separator = word("key.separator", "\t")
        self._end = word("line.separator", "\n")
        self._headers_separator = word("headers.separator", ",")
        self._null = word("null.literal", "null")
        self._of_key = _deserializer(properties.get("key.deserializer"))
        self._of_value = _deserializer(properties.get("value.deserializer"))
        self._of_header = _deserializer(properties.get("headers.deserializer"))
        parts: list[tuple[bool, Format]] = [
            (shows("timestamp"), _timestamp),
            (shows("partition"), lambda record: b"Partition:%d" % record.partition),
            (shows("offset"), lambda record: b"Offset:%d" % record.offset),
            (shows("delivery"), lambda record: b"Delivery:NOT_PRESENT"),
            (shows("epoch"), lambda record: b"Epoch:NOT_PRESENT"),
            (shows("headers"), self._headers),
            (shows("key"), lambda record: self._text(record.key, self._of_key)),
            (shows("value", "true"), lambda record: self._text(record.value, self._of_value)),
        ]
        self._parts = [part for is_shown, part in parts if is_shown]

    def format(self, record: ConsumedRecord) -> bytes:
        """Return the bytes of one record, with the line's end."""
        if not self._parts:
            return b""
        return self._separator.join([part(record) for part in self._parts]) + self._end

    def _text(self, data: bytes | None, deserialize: Deserialize | None) -> bytes:
        if data is None:
            data = self._null
        return data if deserialize is None else deserialize(data)

    def _headers(self, record: ConsumedRecord) -> bytes:
        if not record.headers:
            return b"NO_HEADERS"
        return self._headers_separator.join(
            name.encode() + b":" + self._text(value, self._of_header)
            for name, value in record.headers
        )


def _timestamp(record: ConsumedRecord) -> bytes:
    form = _TIMESTAMPS.get(record.timestamp_type)
    return b"NO_TIMESTAMP" if form is None else form % record.timestamp


def _deserializer(name: str | None) -> Deserialize | None:
    if name is None:
        return None
    deserializer = _DESERIALIZERS.get(name.removeprefix(_PACKAGE))
    if deserializer is None:
        raise ConfigError(
            f"{name} is a Java class: known deserializers are {', '.join(_DESERIALIZERS)}"
        )
    return deserializer
