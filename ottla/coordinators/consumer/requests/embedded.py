"""Conversion of the consumer protocol that classic members embed in their requests: ids and names."""

import struct
from collections.abc import Iterable, Mapping

from ottla.base.errors import ProtocolError
from ottla.cluster.image import ClusterImage
from ottla.wire import consumer_protocol
from ottla.wire.consumer_protocol import ConsumerProtocolAssignment, TopicPartition

_VERSION = struct.Struct(">h")


def by_id(topics: Iterable[TopicPartition], image: ClusterImage) -> dict[bytes, list[int]]:
    """Return partitions by topic id; nonexistent ones are left out.

    A name may belong to a newer topic than when it was written, with fewer partitions.
    """
    existing = ((image.topic(topic.topic), topic.partitions) for topic in topics)
    return {
        topic.topic_id: [number for number in partitions if topic.partition(number) is not None]
        for topic, partitions in existing
        if topic is not None
    }


def assignment(
    partitions: Mapping[bytes, Iterable[int]], image: ClusterImage, subscription: bytes
) -> bytes:
    """Return an assignment in the version of the member's subscription."""
    topics = []
    for topic_id, numbers in partitions.items():
        topic = image.topic_by_id(topic_id)
        if topic is not None:
            topics.append(TopicPartition(topic=topic.name, partitions=sorted(numbers)))
    if len(subscription) < _VERSION.size:
        raise ProtocolError("a subscription has no version")
    (version,) = _VERSION.unpack_from(subscription)
    message = ConsumerProtocolAssignment
    return consumer_protocol.encode_assignment(
        message(assigned_partitions=topics),
        max(message.MIN_VERSION, min(version, message.MAX_VERSION)),
    )
