"""Spans: periods in which a partition, a broker or the controller did not change. Pure.

A sample is what the metadata of a cluster says at one moment. Changes that begin and end between
two samples are not seen, except that the leader epoch counts the elections between them.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from ottla.console.model.controllers import Controller
from ottla.operations.survey.metadata import Key, Metadata

NO_LEADER = -1
NO_EPOCH = -1


@dataclass(frozen=True, slots=True)
class Leadership:
    """The state of a partition; `leader` is -1 if it has none. `isr` is in ascending order."""

    topic_id: str
    leader: int
    leader_epoch: int
    isr: tuple[int, ...]
    replicas: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class ClusterState:
    """A sample of a cluster."""

    at_ms: int
    controller: Controller
    brokers: tuple[int, ...]
    partitions: Mapping[Key, Leadership]


@dataclass(frozen=True, slots=True)
class Changes:
    """The differences from one sample to the next: what begins (or begins again) and what ends."""

    controller: Controller | None
    started: tuple[int, ...]
    stopped: tuple[int, ...]
    partitions: Mapping[Key, Leadership]
    deleted: tuple[Key, ...]

    @property
    def is_empty(self) -> bool:
        """True if nothing has changed."""
        parts = (self.controller, self.started, self.stopped, self.partitions, self.deleted)
        return not any(parts)


@dataclass(frozen=True, slots=True)
class PartitionSpan:
    """A period in which one broker led a partition with one ISR.

    `end_ms` is None while it lasts. `epochs_missed` counts elections before the span that no sample
    has seen.
    """

    topic: str
    partition: int
    start_ms: int
    end_ms: int | None
    leader: int
    leader_epoch: int
    isr: tuple[int, ...]
    replicas: tuple[int, ...]
    epochs_missed: int

    @property
    def missing(self) -> tuple[int, ...]:
        """The replicas that are not in the ISR."""
        return tuple(broker for broker in self.replicas if broker not in self.isr)


@dataclass(frozen=True, slots=True)
class NodeSpan:
    """A period in which a broker was the controller, or was registered.

    `end_ms` is None while it lasts, and `epoch` is None for brokers and if it is unknown.
    """

    node_id: int
    start_ms: int
    end_ms: int | None
    epoch: int | None


@dataclass(frozen=True, slots=True)
class Period:
    """A period in which the console sampled a cluster without a gap."""

    start_ms: int
    end_ms: int


def state_of(metadata: Metadata, controller: Controller, partitions_max: int) -> ClusterState:
    """Return a sample; only the first `partitions_max` partitions are followed, topics by name."""
    partitions: dict[Key, Leadership] = {}
    for topic in metadata.topics.values():
        topic_id = topic.topic_id.hex()
        # Most partitions of a topic are equal: they share one object, which saves memory.
        states: dict[tuple[object, ...], Leadership] = {}
        for row in topic.partitions[: partitions_max - len(partitions)]:
            facts = row.leader, row.leader_epoch, row.isr, row.replicas
            if facts not in states:
                isr = tuple(sorted(row.isr))
                states[facts] = Leadership(
                    topic_id, row.leader, row.leader_epoch, isr, row.replicas
                )
            partitions[topic.name, row.partition] = states[facts]
    return ClusterState(metadata.read_at_ms, controller, tuple(metadata.nodes), partitions)


def compare(before: ClusterState, after: ClusterState) -> Changes:
    """Return the changes between two samples.

    A partition whose leader epoch is lower than before comes from a broker whose metadata is old,
    and is ignored, unless the topic has been created again.
    """
    partitions = {
        key: new
        for key, new in after.partitions.items()
        if (old := before.partitions.get(key)) != new and not _is_outdated(old, new)
    }
    return Changes(
        controller=after.controller if after.controller != before.controller else None,
        started=tuple(sorted(set(after.brokers) - set(before.brokers))),
        stopped=tuple(sorted(set(before.brokers) - set(after.brokers))),
        partitions=partitions,
        deleted=tuple(sorted(before.partitions.keys() - after.partitions.keys())),
    )


def merge(before: ClusterState, after: ClusterState) -> ClusterState:
    """Return the newer sample with the states of the older one that `compare` has kept."""
    partitions = dict(after.partitions)
    for key, new in after.partitions.items():
        old = before.partitions.get(key)
        if old is not None and _is_outdated(old, new):
            partitions[key] = old
    return ClusterState(after.at_ms, after.controller, after.brokers, partitions)


def missed_epochs(old: Leadership | None, new: Leadership) -> int:
    """Return the number of elections between two samples that neither shows."""
    if old is None or old.topic_id != new.topic_id:
        return 0
    return max(0, new.leader_epoch - old.leader_epoch - 1)


def _is_outdated(old: Leadership | None, new: Leadership) -> bool:
    if old is None or old.topic_id != new.topic_id:
        return False
    return new.leader_epoch < old.leader_epoch
