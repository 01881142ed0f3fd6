"""Subscription and assignment, as members of a group write them."""

import pytest

from ottla.base.errors import ProtocolError
from ottla.wire.consumer_protocol import (
    ConsumerProtocolAssignment,
    ConsumerProtocolSubscription,
    TopicPartition,
    decode_assignment,
    decode_subscription,
    encode_assignment,
    encode_subscription,
)

SUBSCRIPTION = ConsumerProtocolSubscription(
    topics=["a", "b"],
    user_data=b"u",
    owned_partitions=[TopicPartition(topic="a", partitions=[0, 2])],
    generation_id=7,
    rack_id="r",
)


def test_subscription_round_trips() -> None:
    """All fields of the newest version follow the version."""
    data = encode_subscription(SUBSCRIPTION)
    assert data[:2] == b"\0\3"
    assert decode_subscription(memoryview(data)) == SUBSCRIPTION


def test_older_subscription_drops_later_fields() -> None:
    """Later fields are hints that an older reader does not need."""
    decoded = decode_subscription(encode_subscription(SUBSCRIPTION, version=0))
    assert decoded == ConsumerProtocolSubscription(topics=["a", "b"], user_data=b"u")


def test_subscription_from_the_future_is_read_as_the_newest_known() -> None:
    """New versions only append fields."""
    data = bytearray(encode_subscription(SUBSCRIPTION))
    data[1] = 9
    assert decode_subscription(data + b"more") == SUBSCRIPTION


def test_assignment_round_trips_and_no_bytes_are_an_empty_one() -> None:
    """The leader omits members without partitions; the broker then sends no bytes."""
    assignment = ConsumerProtocolAssignment(
        assigned_partitions=[TopicPartition(topic="a", partitions=[1])]
    )
    assert decode_assignment(encode_assignment(assignment, version=1)) == assignment
    assert decode_assignment(b"") == ConsumerProtocolAssignment()


@pytest.mark.parametrize("data", [b"", b"\0", b"\xff\xff\0\0\0\0", b"\0\0\0\0\0\5"])
def test_broken_subscriptions_are_rejected(data: bytes) -> None:
    """Data that is too short for a version or the topics, or has a negative version, is rejected."""
    with pytest.raises(ProtocolError):
        decode_subscription(data)
