"""The records that groups write to and read from __consumer_offsets."""

from typing import NamedTuple, TypeAlias

from ottla.base.errors import ProtocolError
from ottla.coordinators.groups.offsets import NO_EXPIRY, CommittedOffset, TopicPartition
from ottla.wire import group_records
from ottla.wire.group_records import (
    GroupMetadataKey,
    GroupMetadataValue,
    OffsetCommitKey,
    OffsetCommitValue,
    UnknownKey,
)
from ottla.wire.records.records import Record

# The only version of the value with an expiry time; commits of versions 2 to 4 may set one.
_EXPIRING_VERSION = 1


class GroupMetadata(NamedTuple):
    """The metadata of a group; None if the group is deleted."""

    group_id: str
    value: GroupMetadataValue | None


class OffsetCommit(NamedTuple):
    """An offset of a group; None if it is deleted."""

    group_id: str
    topic_partition: TopicPartition
    offset: CommittedOffset | None


Change: TypeAlias = GroupMetadata | OffsetCommit


def encode(change: Change, now_ms: int) -> Record:
    """Return the record of a change; a tombstone if its value is None."""
    if isinstance(change, GroupMetadata):
        key = group_records.encode_key(GroupMetadataKey(group=change.group_id))
        value = None if change.value is None else group_records.encode_value(change.value)
    else:
        topic, partition = change.topic_partition
        commit_key = OffsetCommitKey(group=change.group_id, topic=topic, partition=partition)
        key = group_records.encode_key(commit_key)
        value = None if change.offset is None else _encode_offset(change.offset)
    return Record(key=key, value=value, timestamp=now_ms)


def decode(record: Record) -> Change | None:
    """Return the change in a record; None for record types that classic groups do not have."""
    if record.key is None:
        raise ProtocolError("a record of __consumer_offsets has no key")
    key = group_records.decode_key(record.key)
    if isinstance(key, UnknownKey):
        return None
    if isinstance(key, GroupMetadataKey):
        if record.value is None:
            return GroupMetadata(key.group, None)
        return GroupMetadata(key.group, group_records.decode_group_metadata_value(record.value))
    topic_partition = (key.topic, key.partition)
    if record.value is None:
        return OffsetCommit(key.group, topic_partition, None)
    return OffsetCommit(key.group, topic_partition, _decode_offset(record.value))


def _encode_offset(offset: CommittedOffset) -> bytes:
    has_expiry = offset.expire_timestamp_ms != NO_EXPIRY
    value = OffsetCommitValue(
        offset=offset.offset,
        leader_epoch=offset.leader_epoch,
        metadata=offset.metadata,
        commit_timestamp=offset.commit_timestamp_ms,
        expire_timestamp=offset.expire_timestamp_ms,
    )
    version = _EXPIRING_VERSION if has_expiry else group_records.VALUE_VERSION
    return group_records.encode_value(value, version)


def _decode_offset(data: bytes) -> CommittedOffset:
    value = group_records.decode_offset_commit_value(data)
    return CommittedOffset(
        offset=value.offset,
        leader_epoch=value.leader_epoch,
        metadata=value.metadata,
        commit_timestamp_ms=value.commit_timestamp,
        expire_timestamp_ms=value.expire_timestamp,
    )
