"""Records of groups of the consumer protocol are compared with the bytes of Apache Kafka 4.3."""

import pytest

from ottla.base.errors import ProtocolError
from ottla.wire import consumer_group_records as stored
from ottla.wire.consumer_group_records import ClassicMemberMetadata, ClassicProtocol

WRITTEN_BY_KAFKA = [
    (
        "00000269000872646b61666b610b2f3132372e302e302e310105285e7429000493e00001000100",
        stored.ConsumerGroupMemberMetadataValue(
            instance_id="i",
            client_id="rdkafka",
            client_host="/127.0.0.1",
            subscribed_topic_regex="(^t)",
            rebalance_timeout_ms=300_000,
            classic_member_metadata=None,
        ),
    ),
    (
        "00000202740000000000000025000001a1fe93504b00",
        stored.ConsumerGroupRegularExpressionValue(
            topics=["t"], version=37, timestamp=0x1A1FE93504B
        ),
    ),
    (
        "0000000000020100088cbd9aa90487ca04",
        stored.ConsumerGroupMetadataValue(epoch=2, metadata_hash=-8_305_312_087_085_168_124),
    ),
    (
        "000000000002010008000001a1fe93510f",
        stored.ConsumerGroupTargetAssignmentMetadataValue(
            assignment_epoch=2, assignment_timestamp=0x1A1FE93510F
        ),
    ),
]


@pytest.mark.parametrize(("text", "value"), WRITTEN_BY_KAFKA)
def test_values_are_kafkas_byte_for_byte(text: str, value: stored.Message) -> None:
    """Kafka's bytes are decoded, and encoded to the same bytes."""
    assert stored.decode_value(type(value), bytes.fromhex(text)) == value
    assert stored.encode_value(value).hex() == text


@pytest.mark.parametrize(
    "classic",
    [
        None,
        ClassicMemberMetadata(),
        ClassicMemberMetadata(
            session_timeout_ms=3, supported_protocols=[ClassicProtocol(name="r", metadata=b"x")]
        ),
    ],
)
def test_absent_classic_metadata_is_written_as_null(classic: ClassicMemberMetadata | None) -> None:
    """Kafka reads a missing tag as an empty struct: a member would be a classic one."""
    value = stored.ConsumerGroupMemberMetadataValue(classic_member_metadata=classic)
    encoded = stored.encode_value(value)
    assert stored.decode_value(type(value), encoded) == value
    assert encoded.endswith(bytes.fromhex("0001000100")) == (classic is None)


def test_version_of_key_is_its_kind() -> None:
    """The version of a key is its kind; kinds of other groups are ignored."""
    key = stored.ConsumerGroupCurrentMemberAssignmentKey(group_id="g", member_id="m")
    assert stored.encode_key(key).hex() == "000800016700016d"
    assert stored.decode_key(stored.encode_key(key)) == key
    assert stored.decode_key(bytes.fromhex("0009000167")) is None
    for broken in (b"", b"\0", b"\0\x08\0\x05g"):
        with pytest.raises(ProtocolError):
            stored.decode_key(broken)


def test_broken_values_are_rejected() -> None:
    """Every truncation of a value is a ProtocolError."""
    encoded = bytes.fromhex(WRITTEN_BY_KAFKA[0][0])
    for end in range(len(encoded)):
        with pytest.raises(ProtocolError):
            stored.decode_value(stored.ConsumerGroupMemberMetadataValue, encoded[:end])
