"""Keys and values of `__consumer_offsets`, byte for byte Apache Kafka's.

Each is a two-byte version and the message. The key's version is also its kind: 0 and 1 an offset
commit, 2 a group; others (such as members of KIP-848 groups) are decoded as `UnknownKey`, so that a
loader can skip them. Tombstones (value None) are not encoded here.
"""

import struct
from typing import NamedTuple, TypeVar

from ottla.base.buffers import Buffer
from ottla.base.errors import ProtocolError
from ottla.wire.schema import (
    Message,
    Struct,
    array,
    decode,
    encode,
    int32,
    int64,
    octets,
    string,
    uuid,
)

# Version 4 of both values is flexible; brokers before 4.0 cannot read it.
VALUE_VERSION = 3

_VERSION = struct.Struct(">h")

M = TypeVar("M", bound=Message)


class OffsetCommitKey(Message, versions=(0, 1)):
    """Key of a committed offset; both versions are alike, 1 is written."""

    group: str = string()
    topic: str = string()
    partition: int = int32()


class GroupMetadataKey(Message, versions=(2, 2)):
    """Key of a group of the classic protocol."""

    group: str = string()


class UnknownKey(NamedTuple):
    """A key of a kind that is not decoded here."""

    version: int


class OffsetCommitValue(Message, versions=(0, 4), flexible_since=4):
    """A committed offset; times in ms since 1970.

    1 expire timestamp, 2 without it, 3 leader epoch (KIP-320), 4 flexible, topic id.
    """

    offset: int = int64()
    leader_epoch: int = int32(since=3, default=-1, ignorable=True)
    metadata: str = string()
    commit_timestamp: int = int64()
    expire_timestamp: int = int64(since=1, until=1, default=-1, ignorable=True)
    topic_id: bytes = uuid(since=4, tag=0, ignorable=True)


class MemberMetadata(Struct):
    """One member of a group; timeouts in ms."""

    member_id: str = string()
    group_instance_id: str | None = string(since=3, nullable_since=0, default=None, ignorable=True)
    client_id: str = string()
    client_host: str = string()
    rebalance_timeout: int = int32(since=1, default=-1, ignorable=True)
    session_timeout: int = int32()
    subscription: bytes = octets()
    assignment: bytes = octets()


class GroupMetadataValue(Message, versions=(0, 4), flexible_since=4):
    """A group at the end of a generation.

    1 rebalance timeout, 2 time of the last state change, 3 static members (KIP-345), 4 flexible.
    """

    protocol_type: str = string()
    generation: int = int32()
    protocol: str | None = string(nullable_since=0)
    leader: str | None = string(nullable_since=0)
    current_state_timestamp: int = int64(since=2, default=-1, ignorable=True)
    members: list[MemberMetadata] = array(MemberMetadata)


def encode_key(key: OffsetCommitKey | GroupMetadataKey) -> bytes:
    """Encode a key, with the version of its kind."""
    return _VERSION.pack(key.MAX_VERSION) + encode(key, key.MAX_VERSION)


def decode_key(data: Buffer) -> OffsetCommitKey | GroupMetadataKey | UnknownKey:
    """Decode a key. Raises ProtocolError."""
    version = _version(data)
    if version in (0, 1):
        return decode(OffsetCommitKey, version, data, _VERSION.size)[0]
    if version == GroupMetadataKey.MAX_VERSION:
        return decode(GroupMetadataKey, version, data, _VERSION.size)[0]
    return UnknownKey(version)


def encode_value(
    value: OffsetCommitValue | GroupMetadataValue, version: int = VALUE_VERSION
) -> bytes:
    """Encode a value."""
    return _VERSION.pack(version) + encode(value, version)


def decode_offset_commit_value(data: Buffer) -> OffsetCommitValue:
    """Decode the value of an `OffsetCommitKey`, any version. Raises ProtocolError."""
    return _decode(OffsetCommitValue, data)


def decode_group_metadata_value(data: Buffer) -> GroupMetadataValue:
    """Decode the value of a `GroupMetadataKey`, any version. Raises ProtocolError."""
    return _decode(GroupMetadataValue, data)


def _version(data: Buffer) -> int:
    if len(data) < _VERSION.size:
        raise ProtocolError("group record without a version")
    return int(_VERSION.unpack_from(data)[0])


def _decode(cls: type[M], data: Buffer) -> M:
    message, _ = decode(cls, _version(data), data, _VERSION.size)
    return message
