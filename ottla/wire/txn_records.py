"""Keys and values of `__transaction_state`, byte for byte Apache Kafka's.

Each is a two-byte version and the message; tombstones (value None) are not encoded here. Version 1
of the value is flexible and belongs to transaction.version 1 and later (KIP-890); every broker
reads version 0.
"""

import struct

from ottla.base.buffers import Buffer
from ottla.base.errors import ProtocolError
from ottla.wire.schema import (
    Message,
    Struct,
    array,
    decode,
    encode,
    int8,
    int16,
    int32,
    int64,
    string,
)

KEY_VERSION = 0
VALUE_VERSION_MAX = 1

_VERSION = struct.Struct(">h")


class TransactionLogKey(Message, versions=(0, 0)):
    """Key of a transactional id."""

    transactional_id: str = string()


class PartitionsSchema(Struct):
    """An element of `transaction_partitions`."""

    topic: str = string()
    partition_ids: list[int] = array(int32)


class TransactionLogValue(Message, versions=(0, 1), flexible_since=1):
    """State of a transactional id; times in ms, -1 if not set.

    1 flexible; neighbouring producer ids and the client's transaction version (KIP-890).
    """

    producer_id: int = int64()
    previous_producer_id: int = int64(since=1, tag=0, default=-1, ignorable=True)
    next_producer_id: int = int64(since=1, tag=1, default=-1, ignorable=True)
    producer_epoch: int = int16()
    next_producer_epoch: int = int16(since=1, tag=3, default=-1, ignorable=True)
    transaction_timeout_ms: int = int32()
    transaction_status: int = int8()
    transaction_partitions: list[PartitionsSchema] | None = array(
        PartitionsSchema, nullable_since=0, default=None
    )
    transaction_last_update_timestamp_ms: int = int64()
    transaction_start_timestamp_ms: int = int64()
    client_transaction_version: int = int16(since=1, tag=2, ignorable=True)


def encode_key(transactional_id: str) -> bytes:
    """Encode a key."""
    key = TransactionLogKey(transactional_id=transactional_id)
    return _VERSION.pack(KEY_VERSION) + encode(key, KEY_VERSION)


def decode_key(data: Buffer) -> str | None:
    """Return the transactional id of a key; None for kinds that newer brokers write."""
    version = _version(data)
    if version != KEY_VERSION:
        return None
    return decode(TransactionLogKey, version, data, _VERSION.size)[0].transactional_id


def encode_value(value: TransactionLogValue, version: int) -> bytes:
    """Encode a value."""
    return _VERSION.pack(version) + encode(value, version)


def decode_value(data: Buffer) -> TransactionLogValue:
    """Decode a value, any version. Raises ProtocolError."""
    return decode(TransactionLogValue, _version(data), data, _VERSION.size)[0]


def _version(data: Buffer) -> int:
    if len(data) < _VERSION.size:
        raise ProtocolError("transaction record without a version")
    return int(_VERSION.unpack_from(data)[0])
