"""Records of internal topics as JSON (org.apache.kafka.tools.consumer.ApiMessageFormatter).

Records of another kind than a formatter's are left out. As there, no line's end follows an object.
"""

import base64
import struct
from collections.abc import Mapping
from typing import Any

from ottla.base.uuids import uuid_text
from ottla.client.transport import ConsumedRecord
from ottla.tools.scripts.printing import compact
from ottla.wire import group_records, txn_records
from ottla.wire.fields import UUID, Array, Nested, Type
from ottla.wire.schema import Message, Struct, decode

_VERSION = struct.Struct(">h")
_OFFSETS = (group_records.OffsetCommitKey, group_records.OffsetCommitValue)
# By formatter, the messages of keys and values; the version of a key is its kind.
FORMATTERS: Mapping[str, Mapping[int, tuple[type[Message], type[Message]]]] = {
    "OffsetsMessageFormatter": {0: _OFFSETS, 1: _OFFSETS},
    "GroupMetadataMessageFormatter": {
        2: (group_records.GroupMetadataKey, group_records.GroupMetadataValue)
    },
    "TransactionLogMessageFormatter": {
        0: (txn_records.TransactionLogKey, txn_records.TransactionLogValue)
    },
}


def format_record(formatter: str, record: ConsumedRecord) -> bytes:
    """Return a record as an object; it is empty if the record is of another kind."""
    if record.key is None or len(record.key) < _VERSION.size:
        return b""
    (kind,) = _VERSION.unpack_from(record.key)
    messages = FORMATTERS[formatter].get(kind)
    if messages is None:
        return b""
    key = {"type": kind, "data": _decoded(messages[0], kind, record.key)}
    value = None
    if record.value is not None:
        (version,) = _VERSION.unpack_from(record.value)
        value = {"version": version, "data": _decoded(messages[1], version, record.value)}
    return compact({"key": key, "value": value}).encode()


def _decoded(cls: type[Message], version: int, data: bytes) -> dict[str, Any]:
    message, _ = decode(cls, version, data, _VERSION.size)
    return _as_object(message, version)


def _as_object(message: Struct, version: int) -> dict[str, Any]:
    """Return the fields of a version; a tagged field only if it has not its default."""
    return {
        _camel_case(field.name): _plain(field.type, getattr(message, field.name), version)
        for field in message.FIELDS
        if field.is_in(version)
        and (field.tag is None or getattr(message, field.name) != field.default)
    }


def _plain(kind: Type, value: Any, version: int) -> Any:
    if value is None:
        return None
    if isinstance(kind, Array):
        return [_plain(kind.item, item, version) for item in value]
    if isinstance(kind, Nested):
        return _as_object(value, version)
    if kind is UUID:
        return uuid_text(value)
    return base64.b64encode(value).decode() if isinstance(value, bytes) else value


def _camel_case(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(word.capitalize() for word in rest)
