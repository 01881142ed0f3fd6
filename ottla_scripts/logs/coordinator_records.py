"""Records of `__consumer_offsets` and `__transaction_state` as `kafka-dump-log` prints them: JSON.

Not done: records of share groups (KIP-932) and of streams groups (KIP-1071), which Ottla's broker
does not write.
"""

import struct
from collections.abc import Mapping
from typing import Any, NamedTuple

from ottla.base.errors import OttlaError, ProtocolError
from ottla.operations.json_documents import compact
from ottla.wire import consumer_group_records as consumer
from ottla.wire import consumer_protocol as protocol
from ottla.wire import group_records as groups
from ottla.wire import txn_records as transactions
from ottla.wire.fields import Message
from ottla.wire.records.records import Record
from ottla.wire.schema import decode
from ottla_scripts.logs.message_json import message_fields

_VERSION = struct.Struct(">h")


class _Kind(NamedTuple):
    """The classes of one kind of record; the version of a key is its kind."""

    key: type[Message]
    value: type[Message]


Kinds = Mapping[int, _Kind]
OFFSETS: Kinds = {
    0: _Kind(groups.OffsetCommitKey, groups.OffsetCommitValue),
    1: _Kind(groups.OffsetCommitKey, groups.OffsetCommitValue),
    2: _Kind(groups.GroupMetadataKey, groups.GroupMetadataValue),
    3: _Kind(consumer.ConsumerGroupMetadataKey, consumer.ConsumerGroupMetadataValue),
    4: _Kind(
        consumer.ConsumerGroupPartitionMetadataKey, consumer.ConsumerGroupPartitionMetadataValue
    ),
    5: _Kind(consumer.ConsumerGroupMemberMetadataKey, consumer.ConsumerGroupMemberMetadataValue),
    6: _Kind(
        consumer.ConsumerGroupTargetAssignmentMetadataKey,
        consumer.ConsumerGroupTargetAssignmentMetadataValue,
    ),
    7: _Kind(
        consumer.ConsumerGroupTargetAssignmentMemberKey,
        consumer.ConsumerGroupTargetAssignmentMemberValue,
    ),
    8: _Kind(
        consumer.ConsumerGroupCurrentMemberAssignmentKey,
        consumer.ConsumerGroupCurrentMemberAssignmentValue,
    ),
    16: _Kind(
        consumer.ConsumerGroupRegularExpressionKey, consumer.ConsumerGroupRegularExpressionValue
    ),
}
TRANSACTIONS: Kinds = {
    0: _Kind(transactions.TransactionLogKey, transactions.TransactionLogValue),
}


def texts_of(record: Record, kinds: Kinds) -> tuple[str, str | None]:
    """Return key and value of a record as text; the value is None if the key cannot be decoded.

    OttlaError, with Apache Kafka's sentence, for a record without a key.
    """
    if record.key is None:
        raise OttlaError(
            f"Failed to decode message at offset {record.offset} using the specified decoder "
            "(message had a missing key)"
        )
    try:
        number = _version_of(record.key, "key")
        kind = kinds.get(number)
        if kind is None:
            return f"Unknown record type {number} at offset {record.offset}, skipping.", None
        key = {
            "type": str(number),
            "data": message_fields(_read(kind.key, record.key, "key"), number),
        }
        return compact(key), _value_text(kind, record.value)
    except ProtocolError as error:
        return f"Error at offset {record.offset}, skipping. {error}", None


def _value_text(kind: _Kind, data: bytes | None) -> str:
    if data is None:
        return "<DELETE>"
    version = _version_of(data, "value")
    message = _read(kind.value, data, "value")
    fields = message_fields(message, version)
    if isinstance(message, groups.GroupMetadataValue):
        _open_members(message, fields)
    return compact({"version": str(version), "data": fields})


def _open_members(group: groups.GroupMetadataValue, fields: dict[str, Any]) -> None:
    """Replace the bytes of the consumer protocol by their contents, unless they are others."""
    if group.protocol_type != protocol.PROTOCOL_TYPE:
        return
    for member, row in zip(group.members, fields["members"], strict=True):
        contents: tuple[tuple[str, type[Message], bytes], ...] = (
            ("subscription", protocol.ConsumerProtocolSubscription, member.subscription),
            ("assignment", protocol.ConsumerProtocolAssignment, member.assignment),
        )
        for name, cls, data in contents:
            try:
                row[name] = message_fields(_read(cls, data, name), _version_of(data, name))
            except ProtocolError:
                continue


def _version_of(data: bytes, part: str) -> int:
    if len(data) < _VERSION.size:
        raise ProtocolError(f"Could not read version from {part}'s buffer.")
    return int(_VERSION.unpack_from(data)[0])


def _read(cls: type[Message], data: bytes, part: str) -> Message:
    version = _version_of(data, part)
    try:
        return decode(cls, version, data, _VERSION.size)[0]
    except ProtocolError:
        # Java's exception for the end of the bytes has no message.
        raise ProtocolError(
            f"Could not read record with version {version} from {part}'s buffer due to: null."
        ) from None
