"""The deletion of one topic, from the request to the last replica: a value and its steps. Pure.

Brokers remove the topic from their metadata first, then stop its replicas and delete the logs; then
the controller removes its nodes from the tree. It does not wait for brokers that are down: as in
Apache Kafka with KRaft, the name is free at once, and a broker that returns finds that the log has
the id of no topic, and sets it aside. A replica that a live broker could not delete is deleted when
that broker returns. `topic_deletions` performs what `start` returns. Follows TopicDeletionManager.
"""

from collections.abc import Collection, Container, Mapping
from typing import NamedTuple

from ottla.cluster.image import TopicImage
from ottla.controller.planning.machines import ReplicaStatus, move_replica

Replica = tuple[int, int]


class Deletion(NamedTuple):
    """A topic that is being deleted; `replicas` maps (partition, broker) to the replica's status."""

    topic: TopicImage
    replicas: Mapping[Replica, ReplicaStatus]

    @property
    def is_put_off(self) -> bool:
        """True if the remaining replicas all wait for a broker or a log directory to return.

        For clients the topic is deleted then, as in Kafka; only its name is still in use.
        """
        return not self._those(ReplicaStatus.OFFLINE, ReplicaStatus.DELETION_STARTED)

    def is_left_to(self, live_brokers: Container[int]) -> bool:
        """Return True if no live broker holds a log of the topic: the deletion is complete.

        The log of a live broker may be in a failed directory. If its name were free, the broker
        could get a second log of that name.
        """
        waiting = self._those(ReplicaStatus.DELETION_INELIGIBLE)
        return self.is_put_off and all(key[1] not in live_brokers for key in waiting)

    def _moved(self, replicas: Collection[Replica], target: ReplicaStatus) -> "Deletion":
        moved = {key: move_replica(self.replicas[key], target) for key in replicas}
        return self._replace(replicas={**self.replicas, **moved})

    def _those(self, *statuses: ReplicaStatus, broker: int | None = None) -> list[Replica]:
        return [
            key
            for key, status in self.replicas.items()
            if status in statuses and broker in (None, key[1])
        ]


def begin(topic: TopicImage) -> Deletion:
    """Return the deletion of a topic whose replicas have been stopped."""
    replicas = {
        (partition.partition, broker): ReplicaStatus.OFFLINE
        for partition in topic.partitions
        for broker in partition.replicas
    }
    return Deletion(topic, replicas)


def start(
    deletion: Deletion, live_brokers: Container[int]
) -> tuple[Deletion, dict[int, list[tuple[str, int]]]]:
    """Start or postpone every replica; return the deletion and what each broker must delete."""
    offline = deletion._those(ReplicaStatus.OFFLINE)
    online = [key for key in offline if key[1] in live_brokers]
    put_off = [key for key in offline if key[1] not in live_brokers]
    orders: dict[int, list[tuple[str, int]]] = {}
    for partition, broker in online:
        orders.setdefault(broker, []).append((deletion.topic.name, partition))
    started = deletion._moved(online, ReplicaStatus.DELETION_STARTED)
    return started._moved(put_off, ReplicaStatus.DELETION_INELIGIBLE), orders


def answered(
    deletion: Deletion,
    broker: int,
    failed: Container[int],
    stopped: Container[int] | None = None,
) -> Deletion:
    """Return the deletion after a broker deleted its replicas, except the `failed` ones.

    `stopped` None means every replica that the broker was ordered to delete.
    """
    started = deletion._those(ReplicaStatus.DELETION_STARTED, broker=broker)
    started = [key for key in started if stopped is None or key[0] in stopped]
    successful = [key for key in started if key[0] not in failed]
    put_off = [key for key in started if key[0] in failed]
    deletion = deletion._moved(successful, ReplicaStatus.DELETION_SUCCESSFUL)
    return deletion._moved(put_off, ReplicaStatus.DELETION_INELIGIBLE)


def broker_gone(deletion: Deletion, broker: int) -> Deletion:
    """Return the deletion after a broker left: its unfinished replicas wait for it."""
    waiting = deletion._those(ReplicaStatus.OFFLINE, ReplicaStatus.DELETION_STARTED, broker=broker)
    return deletion._moved(waiting, ReplicaStatus.DELETION_INELIGIBLE)


def broker_returned(deletion: Deletion, broker: int) -> Deletion:
    """Return the deletion after a broker returned: `start` orders its replicas again."""
    waiting = deletion._those(ReplicaStatus.DELETION_INELIGIBLE, broker=broker)
    return deletion._moved(waiting, ReplicaStatus.OFFLINE)
