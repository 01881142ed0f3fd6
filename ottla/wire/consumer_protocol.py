"""The subscriptions and assignments that consumers exchange inside JoinGroup and SyncGroup.

Both are a two-byte version and the message; the broker passes them on without decoding them. A
version above the highest known one is read as the highest: later versions only add fields at the
end.
"""

import struct
from collections.abc import Iterable, Iterator
from typing import TypeVar

from ottla.base.buffers import Buffer
from ottla.base.errors import ProtocolError
from ottla.wire.schema import Message, Struct, array, decode, encode, int32, octets, string

PROTOCOL_TYPE = "consumer"

_VERSION = struct.Struct(">h")

M = TypeVar("M", bound=Message)


class TopicPartition(Struct):
    """Partitions of one topic."""

    topic: str = string()
    partitions: list[int] = array(int32)


class ConsumerProtocolSubscription(Message, versions=(0, 3)):
    """The topics that a member subscribes to and the partitions that it owns.

    1 owned partitions (KIP-429), 2 the generation they belong to, 3 rack (KIP-881).
    """

    topics: list[str] = array(string)
    user_data: bytes | None = octets(nullable_since=0, default=None)
    owned_partitions: list[TopicPartition] = array(TopicPartition, since=1, ignorable=True)
    generation_id: int = int32(since=2, default=-1, ignorable=True)
    rack_id: str | None = string(since=3, nullable_since=0, default=None, ignorable=True)


class ConsumerProtocolAssignment(Message, versions=(0, 3)):
    """The partitions assigned to a member; all versions have the same layout."""

    assigned_partitions: list[TopicPartition] = array(TopicPartition)
    user_data: bytes | None = octets(nullable_since=0, default=None)


def grouped(partitions: Iterable[tuple[str, int]]) -> list[TopicPartition]:
    """Return a row for each topic, with its partitions in their order."""
    by_topic: dict[str, list[int]] = {}
    for topic, partition in partitions:
        by_topic.setdefault(topic, []).append(partition)
    return [TopicPartition(topic=topic, partitions=numbers) for topic, numbers in by_topic.items()]


def ungrouped(rows: Iterable[TopicPartition]) -> Iterator[tuple[str, int]]:
    """Yield the partitions of the rows, each with its topic."""
    for row in rows:
        for partition in row.partitions:
            yield row.topic, partition


def encode_subscription(subscription: ConsumerProtocolSubscription, version: int = 3) -> bytes:
    """Encode version and subscription."""
    return _VERSION.pack(version) + encode(subscription, version)


def decode_subscription(data: Buffer) -> ConsumerProtocolSubscription:
    """Decode version and subscription. Raises ProtocolError."""
    return _decode(ConsumerProtocolSubscription, data)


def encode_assignment(assignment: ConsumerProtocolAssignment, version: int = 3) -> bytes:
    """Encode version and assignment."""
    return _VERSION.pack(version) + encode(assignment, version)


def decode_assignment(data: Buffer) -> ConsumerProtocolAssignment:
    """Decode version and assignment; no bytes mean an empty assignment. Raises ProtocolError."""
    if not data:
        return ConsumerProtocolAssignment()
    return _decode(ConsumerProtocolAssignment, data)


def _decode(cls: type[M], data: Buffer) -> M:
    if len(data) < _VERSION.size:
        raise ProtocolError(f"{cls.__name__} has no version")
    (version,) = _VERSION.unpack_from(data)
    message, _ = decode(cls, min(version, cls.MAX_VERSION), data, _VERSION.size)
    return message
