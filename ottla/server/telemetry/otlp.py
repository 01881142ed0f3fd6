"""A parser of OpenTelemetry's MetricsData, as clients push it (KIP-714): names, labels, numbers.

Reads the few fields of the protocol-buffers encoding that are needed and skips all others: gauges
and sums, which are all that Kafka's clients send. Raises ValueError for other bytes.
"""

import struct
from collections.abc import Iterator, Mapping
from typing import NamedTuple

# Wire types of protocol buffers.
_VARINT, _FIXED_64, _BYTES, _FIXED_32 = 0, 1, 2, 5
_DOUBLE, _INTEGER = struct.Struct("<d"), struct.Struct("<q")
_VARINT_BYTES_MAX = 10
# Fields of the messages, from outer to inner: opentelemetry/proto/metrics/v1/metrics.proto.
_RESOURCE_METRICS, _SCOPE_METRICS, _METRICS = 1, 2, 2
_NAME, _GAUGE, _SUM = 1, 5, 7
_DATA_POINTS, _AS_DOUBLE, _AS_INTEGER, _ATTRIBUTES = 1, 4, 6, 7
_KEY, _VALUE = 1, 2
# AnyValue: opentelemetry/proto/common/v1/common.proto.
_STRING, _BOOLEAN, _INTEGER_VALUE, _DOUBLE_VALUE = 1, 2, 3, 4

Field = tuple[int, int | memoryview]


class Figure(NamedTuple):
    """One number of a client; a sum increases from push to push by the count since the last one."""

    name: str
    labels: Mapping[str, str]
    value: float
    is_sum: bool


def figures(payload: bytes) -> Iterator[Figure]:
    """Yield the figures of a payload; raises ValueError, perhaps after a few, if it is invalid."""
    for resource in _messages(memoryview(payload), _RESOURCE_METRICS):
        for scope in _messages(resource, _SCOPE_METRICS):
            for metric in _messages(scope, _METRICS):
                yield from _metric(metric)


def _metric(metric: memoryview) -> Iterator[Figure]:
    name = ""
    for number, value in _fields(metric):
        if number == _NAME and isinstance(value, memoryview):
            name = _text(value)
        elif number in (_GAUGE, _SUM) and isinstance(value, memoryview):
            for point in _messages(value, _DATA_POINTS):
                figure = _point(name, point, is_sum=number == _SUM)
                if figure is not None:
                    yield figure


def _point(name: str, point: memoryview, *, is_sum: bool) -> Figure | None:
    labels: dict[str, str] = {}
    number: float | None = None
    for field, value in _fields(point):
        if not isinstance(value, memoryview):
            continue
        if field == _AS_DOUBLE and len(value) == _DOUBLE.size:
            (number,) = _DOUBLE.unpack(value)
        elif field == _AS_INTEGER and len(value) == _INTEGER.size:
            (number,) = _INTEGER.unpack(value)
        elif field == _ATTRIBUTES:
            key, text = _attribute(value)
            labels[key] = text
    return None if number is None else Figure(name, labels, number, is_sum)


def _attribute(pair: memoryview) -> tuple[str, str]:
    """Return key and value; a value that is a list, a map or bytes is returned as ""."""
    key = text = ""
    for number, value in _fields(pair):
        if number == _KEY and isinstance(value, memoryview):
            key = _text(value)
        elif number == _VALUE and isinstance(value, memoryview):
            text = "".join(_scalar(kind, content) for kind, content in _fields(value))
    return key, text


def _scalar(kind: int, content: int | memoryview) -> str:
    if isinstance(content, int):
        if kind == _BOOLEAN:
            return "true" if content else "false"
        # A negative number is encoded in two's complement of 64 bits.
        return (
            str(content - 2**64 if content >= 2**63 else content) if kind == _INTEGER_VALUE else ""
        )
    if kind == _STRING:
        return _text(content)
    if kind == _DOUBLE_VALUE and len(content) == _DOUBLE.size:
        return str(_DOUBLE.unpack(content)[0])
    return ""


def _messages(message: memoryview, field_number: int) -> Iterator[memoryview]:
    for number, value in _fields(message):
        if number == field_number and isinstance(value, memoryview):
            yield value


def _fields(message: memoryview) -> Iterator[Field]:
    """Yield number and content of each field: an integer, or the bytes."""
    position, end = 0, len(message)
    while position < end:
        tag, position = _varint(message, position)
        kind = tag & 7
        if kind == _VARINT:
            value, position = _varint(message, position)
            yield tag >> 3, value
            continue
        if kind == _BYTES:
            size, position = _varint(message, position)
        elif kind in (_FIXED_64, _FIXED_32):
            size = 8 if kind == _FIXED_64 else 4
        else:
            raise ValueError(f"unknown wire type {kind}")
        if size > end - position:
            raise ValueError("a field is longer than its message")
        yield tag >> 3, message[position : position + size]
        position += size


def _varint(message: memoryview, position: int) -> tuple[int, int]:
    value = 0
    for index, byte in enumerate(message[position : position + _VARINT_BYTES_MAX]):
        value |= (byte & 0x7F) << 7 * index
        if byte < 0x80:
            return value, position + index + 1
    raise ValueError("an integer is incomplete")


def _text(value: memoryview) -> str:
    return str(value, "utf-8", "replace")
