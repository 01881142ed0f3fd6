"""The balance of leaders: which brokers lead too few of the partitions that prefer them. Pure.

Follows KafkaController.checkAndTriggerAutoLeaderRebalance.
"""

from ottla.cluster.image import ClusterImage

TopicPartition = tuple[str, int]


def unbalanced(image: ClusterImage, percentage: int) -> list[TopicPartition]:
    """Return the partitions whose preferred leader should lead again.

    They belong to the live brokers that do not lead more than `percentage` percent of the
    partitions that prefer them. Partitions that cannot be elected now, or are being reassigned,
    count but are not returned.
    """
    preferring: dict[int, int] = {}
    elsewhere: dict[int, list[TopicPartition]] = {}
    for name, topic in image.topics.items():
        for partition in topic.partitions:
            preferred = partition.preferred_leader
            if preferred not in image.brokers:
                continue
            preferring[preferred] = preferring.get(preferred, 0) + 1
            if partition.leader != preferred:
                elsewhere.setdefault(preferred, []).append((name, partition.partition))
    return [
        key
        for preferred, keys in elsewhere.items()
        if 100 * len(keys) > percentage * preferring[preferred]
        for key in keys
        if _can_lead(image, *key)
    ]


def _can_lead(image: ClusterImage, name: str, number: int) -> bool:
    partition = image.partition(name, number)
    assert partition is not None, "the partition is of this image"
    preferred = partition.preferred_leader
    return (
        not partition.is_being_reassigned
        and preferred in partition.isr
        and preferred in partition.live(image.brokers)
    )
