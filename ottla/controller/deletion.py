"""The deletion of one topic, from the request to the last replica: a value and its steps.

A topic is gone from the brokers' metadata first, then its replicas are stopped and their logs
deleted, then its nodes leave the tree. A replica on a broker that is not there waits for it. Pure; the
loop performs what `start` returns. Follows TopicDeletionManager.
"""

from collections.abc import Collection, Container, Mapping
from dataclasses import dataclass, replace

from ottla.cluster.image import TopicImage
from ottla.controller.machines import ReplicaStatus, move_replica

Replica = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Deletion:
    """A topic on its way out; `replicas` has the status of each (partition, broker)."""

    topic: TopicImage
    replicas: Mapping[Replica, ReplicaStatus]

    @property
    def is_complete(self) -> bool:
        """Tell whether no broker holds a log of the topic any more."""
        return all(status is ReplicaStatus.DELETION_SUCCESSFUL for status in self.replicas.values())

    @property
    def is_put_off(self) -> bool:
        """Tell whether all that is left waits for brokers or log directories to come back.

        For clients the topic is gone then, as in Kafka; only its name is taken.
        """
        return not self._those(ReplicaStatus.OFFLINE, ReplicaStatus.DELETION_STARTED)

    def _moved(self, replicas: Collection[Replica], target: ReplicaStatus) -> "Deletion":
        moved = {key: move_replica(self.replicas[key], target) for key in replicas}
        return replace(self, replicas={**self.replicas, **moved})

    def _those(self, *statuses: ReplicaStatus, broker: int | None = None) -> list[Replica]:
        return [
            key
            for key, status in self.replicas.items()
            if status in statuses and broker in (None, key[1])
        ]


def begin(topic: TopicImage) -> Deletion:
    """Return the deletion of a topic whose replicas have been told to stop."""
    replicas = {
        (partition.partition, broker): ReplicaStatus.OFFLINE
        for partition in topic.partitions
        for broker in partition.replicas
    }
    return Deletion(topic, replicas)


def start(
    deletion: Deletion, live_brokers: Container[int]
) -> tuple[Deletion, dict[int, list[tuple[str, int]]]]:
    """Return the deletion with every replica begun or put off, and what each broker shall delete."""
    offline = deletion._those(ReplicaStatus.OFFLINE)
    due = [key for key in offline if key[1] in live_brokers]
    put_off = [key for key in offline if key[1] not in live_brokers]
    orders: dict[int, list[tuple[str, int]]] = {}
    for partition, broker in due:
        orders.setdefault(broker, []).append((deletion.topic.name, partition))
    begun = deletion._moved(due, ReplicaStatus.DELETION_STARTED)
    return begun._moved(put_off, ReplicaStatus.DELETION_INELIGIBLE), orders


def answered(
    deletion: Deletion,
    broker: int,
    failed: Container[int],
    stopped: Container[int] | None = None,
) -> Deletion:
    """Return the deletion after a broker has deleted its replicas, all but the `failed` ones.

    None of `stopped` stands for every replica that it was told to delete.
    """
    begun = deletion._those(ReplicaStatus.DELETION_STARTED, broker=broker)
    begun = [key for key in begun if stopped is None or key[0] in stopped]
    done = [key for key in begun if key[0] not in failed]
    put_off = [key for key in begun if key[0] in failed]
    deletion = deletion._moved(done, ReplicaStatus.DELETION_SUCCESSFUL)
    return deletion._moved(put_off, ReplicaStatus.DELETION_INELIGIBLE)


def broker_gone(deletion: Deletion, broker: int) -> Deletion:
    """Return the deletion after a broker went away: what it had not finished waits for it."""
    waiting = deletion._those(ReplicaStatus.OFFLINE, ReplicaStatus.DELETION_STARTED, broker=broker)
    return deletion._moved(waiting, ReplicaStatus.DELETION_INELIGIBLE)


def broker_returned(deletion: Deletion, broker: int) -> Deletion:
    """Return the deletion after a broker came back: `start` will ask it again."""
    waiting = deletion._those(ReplicaStatus.DELETION_INELIGIBLE, broker=broker)
    return deletion._moved(waiting, ReplicaStatus.OFFLINE)
