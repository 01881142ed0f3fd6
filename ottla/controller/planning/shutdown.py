"""Brokers that are about to stop: their leaders move away, and they leave every ISR. Pure.

Follows KafkaController.doControlledShutdown.
"""

from collections.abc import Collection
from dataclasses import replace

from ottla.cluster import election
from ottla.cluster.image import ClusterImage, PartitionImage
from ottla.controller.planning.creation import leader_and_isr

TopicPartition = tuple[str, int]


def plan_shutdown(
    image: ClusterImage, broker_id: int, shutting_down: Collection[int]
) -> ClusterImage:
    """Return the image after the leaders of a broker have moved, and it has left the ISRs.

    A partition whose only member is the broker remains as it is.
    """
    changed = []
    for topic in image.topics.values():
        partitions = [
            after
            for partition in topic.partitions
            if (after := _without(partition, image, broker_id, shutting_down)) is not partition
        ]
        if partitions:
            changed.append(topic.with_partitions(partitions))
    return image.with_topics(changed) if changed else image


def _without(
    partition: PartitionImage, image: ClusterImage, broker_id: int, shutting_down: Collection[int]
) -> PartitionImage:
    if broker_id not in partition.isr or partition.isr == (broker_id,):
        # Without its last member the ISR would be empty, and no replica could ever lead again.
        return partition
    if partition.leader != broker_id:
        isr = tuple(member for member in partition.isr if member != broker_id)
        return replace(partition, isr=isr, leader_epoch=partition.leader_epoch + 1)
    live = partition.live(image.brokers)
    elected = election.elect_for_shutdown(
        partition.replicas, leader_and_isr(partition), live, shutting_down
    )
    if elected is None:
        return partition
    return replace(
        partition, leader=elected.leader, isr=elected.isr, leader_epoch=partition.leader_epoch + 1
    )


def remaining(image: ClusterImage, broker_id: int) -> list[TopicPartition]:
    """Return the partitions that a broker still leads although they have other replicas."""
    return [
        (name, partition.partition)
        for name, topic in image.topics.items()
        for partition in topic.partitions
        if partition.leader == broker_id and len(partition.replicas) > 1
    ]
