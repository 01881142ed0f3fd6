"""The records of groups in __consumer_offsets, in the format of Apache Kafka."""

import pytest

from ottla.base.errors import ProtocolError
from ottla.coordinators.classic.state import Group, GroupState, Member
from ottla.coordinators.classic.stored import group_from, metadata_value
from ottla.coordinators.groups import records
from ottla.coordinators.groups.offsets import CommittedOffset
from ottla.coordinators.groups.records import GroupMetadata, OffsetCommit
from ottla.wire.records.records import Record


def hexed(record):
    return record.key.hex(), None if record.value is None else record.value.hex()


def test_offset_is_written_in_version_3():
    """The key has version 1; the value has offset, leader epoch, metadata and commit time."""
    change = OffsetCommit("g", ("t", 2), CommittedOffset(5, 7, "m", 1000))
    key, value = hexed(records.encode(change, 1))
    assert key == "0001" + "000167" + "000174" + "00000002"
    assert value == "0003" + "0000000000000005" + "00000007" + "00016d" + "00000000000003e8"


def test_offset_with_an_expiry_is_written_in_version_1():
    """Only version 1 has a field for the expiration time."""
    change = OffsetCommit("g", ("t", 2), CommittedOffset(5, -1, "", 1000, 2000))
    _, value = hexed(records.encode(change, 1))
    times = "00000000000003e8" + "00000000000007d0"
    assert value == "0001" + "0000000000000005" + "0000" + times


@pytest.mark.parametrize(
    "change",
    [
        OffsetCommit("g", ("t", 2), CommittedOffset(5, 7, "m", 1000)),
        OffsetCommit("g", ("t", 2), CommittedOffset(5, -1, "", 1000, 2000)),
        OffsetCommit("g", ("t", 2), None),
        GroupMetadata("g", None),
    ],
)
def test_change_is_decoded_from_its_record(change):
    """The round trip includes tombstones."""
    assert records.decode(records.encode(change, 1)) == change


def test_group_is_decoded_from_its_record():
    """The group is stable and has a dynamic and a static member, a leader and assignments."""
    group = Group(
        "g",
        state=GroupState.STABLE,
        state_since_ms=77,
        generation=4,
        protocol_type="connect",
        protocol_name="v1",
    )
    for name, instance in (("a", None), ("b", "i")):
        group.add(
            Member(
                member_id=name,
                group_instance_id=instance,
                client_id="client",
                client_host="/10.0.0.1",
                session_timeout_ms=10,
                rebalance_timeout_ms=20,
                protocols={"v1": name.encode()},
                assignment=name.encode() * 2,
            )
        )
    value = metadata_value(group, {"a": b"aa", "b": b"bb"})
    record = records.encode(GroupMetadata("g", value), 1)
    assert record.key.hex() == "0002" + "000167"
    decoded = records.decode(record)
    assert group_from("g", decoded.value) == group


def test_group_record_of_version_0_uses_the_session_timeout():
    """Version 0 of the record has no rebalance timeout."""
    group = Group("g", generation=1, protocol_type="connect", protocol_name="v1")
    group.add(
        Member(
            member_id="a",
            client_id="",
            client_host="",
            session_timeout_ms=10,
            rebalance_timeout_ms=-1,
            protocols={"v1": b""},
        )
    )
    value = metadata_value(group, {"a": b""})
    assert group_from("g", value).members["a"].rebalance_timeout_ms == 10


def test_records_of_other_group_types_are_skipped():
    """A log that Apache Kafka wrote may contain groups of KIP-848."""
    assert records.decode(Record(key=b"\x00\x03\x00\x01g", value=b"\x00\x00")) is None


@pytest.mark.parametrize("record", [Record(None, b""), Record(b"\x00", b""),
                                    Record(b"\x00\x02\x00\x09g", b"")])  # fmt: skip
def test_damaged_record_is_rejected(record):
    """An unreadable key fails the load instead of losing a group."""
    with pytest.raises(ProtocolError):
        records.decode(record)
