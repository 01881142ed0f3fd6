"""Keys and values of `__consumer_offsets`; their bytes by version are in golden/stored.txt."""

import pytest

from ottla.base.errors import ProtocolError
from ottla.wire.group_records import (
    GroupMetadataKey,
    GroupMetadataValue,
    MemberMetadata,
    OffsetCommitKey,
    OffsetCommitValue,
    UnknownKey,
    decode_group_metadata_value,
    decode_key,
    decode_offset_commit_value,
    encode_key,
    encode_value,
)


def test_keys_start_with_the_version_that_kafka_writes() -> None:
    """The version is 1 for an offset, 2 for a group."""
    offset = OffsetCommitKey(group="g", topic="t", partition=3)
    assert encode_key(offset) == bytes.fromhex("0001 0001 67 0001 74 00000003")
    assert encode_key(GroupMetadataKey(group="g")) == bytes.fromhex("0002 0001 67")
    assert decode_key(encode_key(offset)) == offset
    assert decode_key(encode_key(GroupMetadataKey(group="g"))) == GroupMetadataKey(group="g")


def test_offset_key_of_the_oldest_brokers_is_read() -> None:
    """Version 0 has the same content."""
    data = bytes.fromhex("0000 0001 67 0001 74 00000003")
    assert decode_key(data) == OffsetCommitKey(group="g", topic="t", partition=3)


def test_key_of_another_kind_is_named_by_its_version() -> None:
    """Members of KIP-848 groups are in the same topic."""
    assert decode_key(bytes.fromhex("0005 0001 67")) == UnknownKey(5)


@pytest.mark.parametrize("version", range(5))
def test_every_version_of_an_offset_is_read(version: int) -> None:
    """Fields that a version does not have get their defaults."""
    value = OffsetCommitValue(offset=7, metadata="m", commit_timestamp=9)
    assert decode_offset_commit_value(encode_value(value, version)) == value


def test_offset_is_written_with_its_leader_epoch() -> None:
    """Version 3 is readable for brokers of 3.x."""
    value = OffsetCommitValue(offset=7, leader_epoch=2, metadata="", commit_timestamp=9)
    assert encode_value(value) == bytes.fromhex(
        "0003 0000000000000007 00000002 0000 0000000000000009"
    )


@pytest.mark.parametrize("version", range(5))
def test_every_version_of_a_group_is_read(version: int) -> None:
    """A group without members is an ended one."""
    member = MemberMetadata(member_id="m", client_id="c", client_host="/h", subscription=b"s")
    value = GroupMetadataValue(
        protocol_type="consumer", generation=4, protocol="range", leader="m", members=[member]
    )
    assert decode_group_metadata_value(encode_value(value, version)) == value


@pytest.mark.parametrize("data", [b"", b"\0", bytes.fromhex("0009 00"), bytes.fromhex("0003 00")])
def test_broken_values_are_rejected(data: bytes) -> None:
    """Values that are too short, or have an unknown version, are rejected."""
    with pytest.raises(ProtocolError):
        decode_offset_commit_value(data)


def test_broken_keys_are_rejected() -> None:
    """Keys without a version, or truncated ones, are rejected."""
    for data in (b"", b"\0", bytes.fromhex("0001 0005 67")):
        with pytest.raises(ProtocolError):
            decode_key(data)
