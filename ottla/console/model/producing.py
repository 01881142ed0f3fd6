"""Produce records: keys and values as text, JSON, integers or bytes, headers, codec, templates."""

from dataclasses import dataclass
from enum import StrEnum

from ottla.console.model.changes import Change
from ottla.console.model.connections import ClusterConnection, planned


class InputFormat(StrEnum):
    """The format of a key, value or header as the user types it."""

    NULL = "null"
    TEXT = "text"
    JSON = "json"
    INT32 = "int32"
    INT64 = "int64"
    DOUBLE = "double"
    HEX = "hex"
    BASE64 = "base64"


@dataclass(frozen=True, slots=True)
class InputHeader:
    """A header; its value is text, or None."""

    name: str
    value: str | None


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
    100 000.
    """
    raise planned()


def preview(request: ProduceRequest, *, now_ms: int, limit: int = 3) -> list[tuple[str, str]]:
    """Return the first records as (key, value) after the templates were filled in. Pure."""
    raise planned()
