"""The topics that a group reads: ids, partition counts, and a hash of these."""

import hashlib
from collections.abc import Iterable

from ottla.cluster.image import ClusterImage, TopicImage

_HASH_BYTES = 8


def partition_counts(image: ClusterImage, names: Iterable[str]) -> dict[bytes, int]:
    """Return the partition count by topic id of the topics that exist, in the order of names."""
    counts = {}
    for name in sorted(names):
        topic = image.topic(name)
        if topic is not None:
            counts[topic.topic_id] = len(topic.partitions)
    return counts


def metadata_hash(image: ClusterImage, names: Iterable[str]) -> int:
    """Return a number that changes with the topics: their ids, partitions and racks; 0 for none.

    It is the same on every broker. Apache Kafka hashes the same data differently: a group that it
    takes over gets one new epoch, which has no other effect.
    """
    digest = hashlib.blake2b(digest_size=_HASH_BYTES)
    is_empty = True
    for name in sorted(names):
        topic = image.topic(name)
        if topic is not None:
            is_empty = False
            digest.update(_facts(image, topic))
    return 0 if is_empty else int.from_bytes(digest.digest(), "big", signed=True)


def _facts(image: ClusterImage, topic: TopicImage) -> bytes:
    racks = {broker.id: broker.rack for broker in image.brokers.values() if broker.rack is not None}
    of_partitions = []
    if racks:
        of_partitions = [
            sorted(racks[replica] for replica in partition.replicas if replica in racks)
            for partition in topic.partitions
        ]
    return repr((topic.topic_id, topic.name, len(topic.partitions), of_partitions)).encode()
