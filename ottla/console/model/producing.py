"""Produce records: keys and values as text, JSON, integers or bytes, headers, codec, templates."""

import base64
import json
import struct
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from ottla.base.errors import ApiError, ConfigError, ErrorCode, OttlaError
from ottla.client.errors import SerializationError
from ottla.client.schemas.values import SchemaValues
from ottla.client.transport import LibrdkafkaError, translate
from ottla.console.model.messages.decoding import decode
from ottla.console.model.messages.templates import compile_template
from ottla.operations.changes import Change
from ottla.operations.survey.connections import ClusterConnection
from ottla.operations.survey.metadata import read_topic


class InputFormat(StrEnum):
    """The format of a key, value or header as the user types it.

    SCHEMA is JSON that is written with the latest schema of the topic in the cluster's registry,
    under the subject TOPIC-key or TOPIC-value.
    """

    NULL = "null"
    TEXT = "text"
    JSON = "json"
    INT32 = "int32"
    INT64 = "int64"
    DOUBLE = "double"
    HEX = "hex"
    BASE64 = "base64"
    SCHEMA = "schema"


@dataclass(frozen=True, slots=True)
class InputHeader:
    """A header; its value is text in a format, or None."""

    name: str
    value: str | None
    value_format: InputFormat = InputFormat.TEXT


@dataclass(frozen=True, slots=True)
class ProduceRequest:
    """Records to write.

    With `count` above 1 the templates are repeated: `{{n}}` is the number of the record from 0,
    `{{uuid}}`, `{{now}}` (ms), `{{iso_now}}`, `{{random_int(1,6)}}`, `{{choice(a,b,c)}}`; with
    `has_templates` False they are plain text. `codec` is "none", "gzip", "snappy", "lz4" or "zstd".
    `partition` None leaves the choice to the key. `timestamp_ms` None is the time of the call.
    """

    topic: str
    value: str = ""
    value_format: InputFormat = InputFormat.TEXT
    key: str = ""
    key_format: InputFormat = InputFormat.NULL
    headers: tuple[InputHeader, ...] = ()
    partition: int | None = None
    timestamp_ms: int | None = None
    codec: str = "none"
    count: int = 1
    has_templates: bool = False


@dataclass(frozen=True, slots=True)
class ProducedRecord:
    """The position of a written record."""

    partition: int
    offset: int


@dataclass(frozen=True, slots=True)
class ProduceResult:
    """The written records: the first 100 positions, the number of all, and the entry for the audit
    log, which contains no values.
    """

    records: int
    positions: tuple[ProducedRecord, ...]
    change: Change


def produce(connection: ClusterConnection, request: ProduceRequest) -> ProduceResult:
    """Write records with acks=all and wait for their acknowledgement.

    ConfigError for a value that does not have its format, an unknown template or `count` above
    100 000. ApiError UNKNOWN_TOPIC_OR_PARTITION if there is no such topic.
    """
    _check(request)
    topic = read_topic(connection, request.topic)
    if request.partition is not None and request.partition >= len(topic.partitions):
        raise ApiError(
            ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
            f"Topic {request.topic!r} has no partition {request.partition}: the last one is "
            f"{len(topic.partitions) - 1}. Without a partition, the key chooses one.",
        )
    render = _renderer(request, connection.now_ms(), connection.schemas)
    # The first record is rendered before anything is written: an error in it is an error in all.
    render(0)
    delivery = _Delivery()
    producer = connection.open_producer({"compression.type": request.codec, "linger.ms": 5})
    try:
        for number in range(request.count):
            _send(producer, request, render(number), delivery.report)
            delivery.check()
        while producer.flush(_FLUSH_S):
            delivery.check()
        delivery.check()
    finally:
        producer.purge()
        producer.flush(_FLUSH_S)
    return ProduceResult(
        records=delivery.count,
        positions=tuple(delivery.positions),
        change=Change(
            connection.name,
            "topic.produce",
            request.topic,
            after={
                "records": str(delivery.count),
                "positions": ", ".join(
                    f"{p.partition}:{p.offset}" for p in delivery.positions[:10]
                ),
            },
        ),
    )


def preview(request: ProduceRequest, *, now_ms: int, limit: int = 3) -> list[tuple[str, str]]:
    """Return the first records as (key, value) after the templates were filled in. Pure but for
    random values.
    """
    _check(request)
    render = _renderer(request, now_ms)
    rows = [render(number) for number in range(min(limit, request.count))]
    return [(_shown(row.key), _shown(row.value)) for row in rows]


COUNT_MAX = 100_000
CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
_POSITIONS_MAX = 100
_FLUSH_S = 1.0


@dataclass(frozen=True, slots=True)
class _Rendered:
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...]


class _Delivery:
    """Acknowledgements: their number, the first positions, the first failure."""

    def __init__(self) -> None:
        self.count = 0
        self.positions: list[ProducedRecord] = []
        self._failure: OttlaError | None = None

    def report(self, error: Any, message: Any) -> None:
        if error is not None:
            self._failure = self._failure or translate(error)
            return
        self.count += 1
        if len(self.positions) < _POSITIONS_MAX:
            self.positions.append(ProducedRecord(message.partition(), message.offset()))

    def check(self) -> None:
        if self._failure is not None:
            raise self._failure


def _check(request: ProduceRequest) -> None:
    if not 1 <= request.count <= COUNT_MAX:
        raise ConfigError(f"{request.count} records are not possible: use 1 to {COUNT_MAX}")
    if request.codec not in CODECS:
        raise ConfigError(
            f"{request.codec!r} is not a known codec: choose one of {', '.join(CODECS)}"
        )
    if request.partition is not None and request.partition < 0:
        raise ConfigError(f"{request.partition} is not a partition: use 0 or more")


def _send(
    producer: Any, request: ProduceRequest, record: _Rendered, report: Callable[[Any, Any], None]
) -> None:
    options: dict[str, Any] = {}
    if request.partition is not None:
        options["partition"] = request.partition
    if request.timestamp_ms is not None:
        options["timestamp"] = request.timestamp_ms
    if record.headers:
        options["headers"] = list(record.headers)
    while True:
        try:
            producer.produce(request.topic, record.value, record.key, on_delivery=report, **options)
            break
        except BufferError:
            producer.poll(_FLUSH_S)
        except LibrdkafkaError as error:
            raise translate(error.args[0]) from error
    producer.poll(0)


def _renderer(
    request: ProduceRequest, now_ms: int, schemas: SchemaValues | None = None
) -> Callable[[int], _Rendered]:
    """Return a function from the number of a record to the record; without `schemas`, values that
    need one are their JSON.
    """

    def encoded(text: str, chosen: InputFormat, part: str) -> bytes | None:
        if chosen is not InputFormat.SCHEMA or schemas is None:
            return encode(text, chosen, part)
        try:
            return schemas.write(f"{request.topic}-{part}", text)
        except SerializationError as error:
            raise ConfigError(f"the {part} cannot be written: {error}") from error

    is_template = request.has_templates
    key = compile_template(request.key, is_template=is_template)
    value = compile_template(request.value, is_template=is_template)
    headers = [
        (header, compile_template(header.value or "", is_template=is_template))
        for header in request.headers
    ]

    def render(number: int) -> _Rendered:
        return _Rendered(
            encoded(key(number, now_ms), request.key_format, "key"),
            encoded(value(number, now_ms), request.value_format, "value"),
            tuple((header.name, _header(header, text(number, now_ms))) for header, text in headers),
        )

    return render


def _header(header: InputHeader, text: str) -> bytes | None:
    if header.value is None:
        return None
    return encode(text, header.value_format, f"header {header.name!r}")


def encode(text: str, chosen: InputFormat, part: str) -> bytes | None:
    """Return the bytes of a typed key or value; ConfigError if it does not have its format. Pure."""
    try:
        return _ENCODERS[chosen](text)
    except (ValueError, struct.error, RecursionError) as error:
        raise ConfigError(
            f"the {part} {text[:80]!r} does not have the format {chosen!s}: {error}"
        ) from error


def _json_bytes(text: str) -> bytes:
    json.loads(text)
    return text.encode()


def _shown(raw: bytes | None) -> str:
    return "null" if raw is None else decode(raw).text


_ENCODERS: Mapping[InputFormat, Callable[[str], bytes | None]] = {
    InputFormat.NULL: lambda text: None,
    InputFormat.TEXT: str.encode,
    InputFormat.JSON: _json_bytes,
    InputFormat.INT32: lambda text: struct.pack(">i", int(text)),
    InputFormat.INT64: lambda text: struct.pack(">q", int(text)),
    InputFormat.DOUBLE: lambda text: struct.pack(">d", float(text)),
    InputFormat.HEX: bytes.fromhex,
    InputFormat.BASE64: lambda text: base64.b64decode(text, validate=True),
    # A header has no subject, and a preview needs no registry.
    InputFormat.SCHEMA: _json_bytes,
}
