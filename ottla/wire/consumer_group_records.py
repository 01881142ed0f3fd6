"""Keys and values of `__consumer_offsets` for groups of the consumer protocol (KIP-848).

The bytes are Apache Kafka's: a two-byte version and the message; the version of a key is also its
kind (3 to 8, and 16). Every value has version 0 and is flexible. Tombstones (value None) are not
encoded here. `group_records` contains the records of classic groups and of offsets.
"""

import struct
from typing import TypeVar

from ottla.base.buffers import Buffer
from ottla.base.errors import ProtocolError
from ottla.wire.schema import (
    Message,
    Struct,
    array,
    decode,
    encode,
    int8,
    int32,
    int64,
    nested,
    octets,
    string,
    uuid,
)

VALUE_VERSION = 0

_VERSION = struct.Struct(">h")

M = TypeVar("M", bound=Message)


class ConsumerGroupMetadataKey(Message, versions=(3, 3)):
    """Key of a group's epoch record."""

    group_id: str = string()


class ConsumerGroupPartitionMetadataKey(Message, versions=(4, 4)):
    """Key of a group's topic metadata; brokers since 4.1 only delete it (KIP-1101)."""

    group_id: str = string()


class ConsumerGroupMemberMetadataKey(Message, versions=(5, 5)):
    """Key of a member and its subscription."""

    group_id: str = string()
    member_id: str = string()


class ConsumerGroupTargetAssignmentMetadataKey(Message, versions=(6, 6)):
    """Key of the epoch of a group's target assignment."""

    group_id: str = string()


class ConsumerGroupTargetAssignmentMemberKey(Message, versions=(7, 7)):
    """Key of a member's target assignment."""

    group_id: str = string()
    member_id: str = string()


class ConsumerGroupCurrentMemberAssignmentKey(Message, versions=(8, 8)):
    """Key of a member's current assignment."""

    group_id: str = string()
    member_id: str = string()


class ConsumerGroupRegularExpressionKey(Message, versions=(16, 16)):
    """Key of the topics that a regular expression resolves to."""

    group_id: str = string()
    regular_expression: str = string()


class ConsumerGroupMetadataValue(Message, versions=(0, 0), flexible_since=0):
    """A group's epoch, and the hash of the topics it reads (KIP-1101)."""

    epoch: int = int32()
    metadata_hash: int = int64(tag=0)


class PartitionMetadata(Struct):
    """The racks of a partition's replicas."""

    partition: int = int32()
    racks: list[str] = array(string)


class TopicMetadata(Struct):
    """A topic in a group's topic metadata."""

    topic_id: bytes = uuid()
    topic_name: str = string()
    num_partitions: int = int32()
    partition_metadata: list[PartitionMetadata] = array(PartitionMetadata)


class ConsumerGroupPartitionMetadataValue(Message, versions=(0, 0), flexible_since=0):
    """The topics that a group reads."""

    topics: list[TopicMetadata] = array(TopicMetadata)


class ClassicProtocol(Struct):
    """A protocol of a classic member, and its subscription in it."""

    name: str = string()
    metadata: bytes = octets()


class ClassicMemberMetadata(Struct):
    """Additional state of a member that uses the classic protocol; the timeout in ms."""

    session_timeout_ms: int = int32()
    supported_protocols: list[ClassicProtocol] = array(ClassicProtocol)


class ConsumerGroupMemberMetadataValue(Message, versions=(0, 0), flexible_since=0):
    """A member and its subscription; the timeout in ms."""

    instance_id: str | None = string(nullable_since=0, default=None)
    rack_id: str | None = string(nullable_since=0, default=None)
    client_id: str = string()
    client_host: str = string()
    subscribed_topic_names: list[str] = array(string)
    subscribed_topic_regex: str | None = string(nullable_since=0, default=None)
    rebalance_timeout_ms: int = int32(default=-1)
    server_assignor: str | None = string(nullable_since=0, default=None)
    # Kafka reads an absent value as an empty struct, so null is always written explicitly.
    classic_member_metadata: ClassicMemberMetadata | None = nested(
        ClassicMemberMetadata, nullable_since=0, default=(), tag=0
    )


class ConsumerGroupTargetAssignmentMetadataValue(Message, versions=(0, 0), flexible_since=0):
    """The group epoch that the target was computed for, and the time (KIP-1263; ms since 1970)."""

    assignment_epoch: int = int32()
    assignment_timestamp: int = int64(tag=0, ignorable=True)


class TargetTopicPartitions(Struct):
    """Partitions of one topic."""

    topic_id: bytes = uuid()
    partitions: list[int] = array(int32)


class ConsumerGroupTargetAssignmentMemberValue(Message, versions=(0, 0), flexible_since=0):
    """The target assignment of a member."""

    topic_partitions: list[TargetTopicPartitions] = array(TargetTopicPartitions)


class CurrentTopicPartitions(Struct):
    """Partitions of one topic, and the epoch in which each was assigned (KIP-1251)."""

    topic_id: bytes = uuid()
    partitions: list[int] = array(int32)
    assignment_epochs: list[int] | None = array(int32, nullable_since=0, default=None, tag=0)


class ConsumerGroupCurrentMemberAssignmentValue(Message, versions=(0, 0), flexible_since=0):
    """The partitions that a member owns, and those it must still revoke."""

    member_epoch: int = int32()
    previous_member_epoch: int = int32()
    state: int = int8()
    assigned_partitions: list[CurrentTopicPartitions] = array(CurrentTopicPartitions)
    partitions_pending_revocation: list[CurrentTopicPartitions] = array(CurrentTopicPartitions)


class ConsumerGroupRegularExpressionValue(Message, versions=(0, 0), flexible_since=0):
    """The matching topics, the version of the image they were found in, and the time (ms)."""

    topics: list[str] = array(string)
    version: int = int64()
    timestamp: int = int64()


Key = (
    ConsumerGroupMetadataKey
    | ConsumerGroupPartitionMetadataKey
    | ConsumerGroupMemberMetadataKey
    | ConsumerGroupTargetAssignmentMetadataKey
    | ConsumerGroupTargetAssignmentMemberKey
    | ConsumerGroupCurrentMemberAssignmentKey
    | ConsumerGroupRegularExpressionKey
)

_KEYS: dict[int, type[Key]] = {
    3: ConsumerGroupMetadataKey,
    4: ConsumerGroupPartitionMetadataKey,
    5: ConsumerGroupMemberMetadataKey,
    6: ConsumerGroupTargetAssignmentMetadataKey,
    7: ConsumerGroupTargetAssignmentMemberKey,
    8: ConsumerGroupCurrentMemberAssignmentKey,
    16: ConsumerGroupRegularExpressionKey,
}


def encode_key(key: Key) -> bytes:
    """Encode a key, with the version of its kind."""
    return _VERSION.pack(key.MAX_VERSION) + encode(key, key.MAX_VERSION)


def decode_key(data: Buffer) -> Key | None:
    """Decode a key; None for kinds that do not belong to these groups. Raises ProtocolError."""
    version = _version(data)
    kind = _KEYS.get(version)
    return None if kind is None else decode(kind, version, data, _VERSION.size)[0]


def encode_value(value: Message) -> bytes:
    """Encode a value."""
    return _VERSION.pack(VALUE_VERSION) + encode(value, VALUE_VERSION)


def decode_value(cls: type[M], data: Buffer) -> M:
    """Decode a value of the class that belongs to its key. Raises ProtocolError."""
    message, _ = decode(cls, _version(data), data, _VERSION.size)
    return message


def _version(data: Buffer) -> int:
    if len(data) < _VERSION.size:
        raise ProtocolError("group record without a version")
    return int(_VERSION.unpack_from(data)[0])
