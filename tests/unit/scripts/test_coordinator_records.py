"""Records of coordinators as JSON, for kinds that the recorded topics do not contain."""

import json

import pytest

from ottla.wire import consumer_group_records as consumer
from ottla.wire import group_records as groups
from ottla.wire.records.records import Record
from ottla_scripts.logs.coordinator_records import OFFSETS, TRANSACTIONS, texts_of

pytestmark = pytest.mark.slow


def _record(key: bytes, value: bytes | None) -> Record:
    return Record(key, value, (), 0, 7)


def test_bytes_that_are_no_subscription_stay_bytes() -> None:
    """A member of another protocol, or with damaged bytes, is shown in base64."""
    member = groups.MemberMetadata(
        member_id="m", client_id="c", client_host="/h", subscription=b"?"
    )
    value = groups.GroupMetadataValue(
        protocol_type="consumer", protocol="range", leader="m", members=[member]
    )
    key = groups.encode_key(groups.GroupMetadataKey(group="g"))
    _, text = texts_of(_record(key, groups.encode_value(value)), OFFSETS)
    (row,) = json.loads(str(text))["data"]["members"]
    assert (row["subscription"], row["assignment"]) == ("Pw==", "")


def test_tagged_struct_of_a_classic_member() -> None:
    """It is shown if it is there, with the names of its fields."""
    classic = consumer.ClassicMemberMetadata(
        session_timeout_ms=1,
        supported_protocols=[consumer.ClassicProtocol(name="p", metadata=b"?")],
    )
    value = consumer.ConsumerGroupMemberMetadataValue(classic_member_metadata=classic)
    key = consumer.ConsumerGroupMemberMetadataKey(group_id="g", member_id="m")
    record = _record(consumer.encode_key(key), consumer.encode_value(value))
    name, text = texts_of(record, OFFSETS)
    assert json.loads(name) == {"type": "5", "data": {"groupId": "g", "memberId": "m"}}
    assert json.loads(str(text))["data"]["classicMemberMetadata"] == {
        "sessionTimeoutMs": 1,
        "supportedProtocols": [{"name": "p", "metadata": "Pw=="}],
    }


@pytest.mark.parametrize(
    ("key", "value", "sentence"),
    [
        (b"\0", None, "Could not read version from key's buffer."),
        (b"\0\0", None, "Could not read record with version 0 from key's buffer due to: null."),
        (b"\0\0\0\1t", b"\0\1", "Could not read record with version 1 from value's buffer due to: null."),
    ],
)  # fmt: skip
def test_damaged_record_is_skipped(key: bytes, value: bytes | None, sentence: str) -> None:
    """The sentence replaces the key, and there is no value."""
    assert texts_of(_record(key, value), TRANSACTIONS) == (f"Error at offset 7, skipping. {sentence}", None)  # fmt: skip
