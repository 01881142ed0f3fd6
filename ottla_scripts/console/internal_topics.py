"""Records of internal topics as JSON (org.apache.kafka.tools.consumer.ApiMessageFormatter).

Records of another kind than a formatter's are left out. As there, no line's end follows an object.
"""

import struct
from collections.abc import Mapping
from typing import Any

from ottla.client.raw.consumer import ConsumedRecord
from ottla.operations.json_documents import compact
from ottla.wire import group_records, txn_records
from ottla.wire.schema import Message, decode
from ottla_scripts.logs.message_json import message_fields

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
    return message_fields(message, version)
