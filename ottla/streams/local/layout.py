"""The tasks of an application in this engine, and the partitions that each reads.

As in Kafka Streams, a sub-topology has a task for each partition of its topics, and repartition
topics are topics on the broker.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from ottla.client.records import TopicPartition
from ottla.streams.layout.internal_topics import (
    REPARTITION_CONFIG,
    InternalTopic,
    changelogs_of,
    internal_topics,
)
from ottla.streams.layout.layout import Application, SubTopology, lay_out
from ottla.streams.topology.topology import Source


class TaskId(NamedTuple):
    """The number of a sub-topology, and a partition of its topics (Kafka's TaskId)."""

    sub_topology: int
    partition: int

    def __str__(self) -> str:
        return f"{self.sub_topology}_{self.partition}"

    @classmethod
    def parse(cls, text: str) -> "TaskId":
        """Return the id with this text; ValueError for another text."""
        sub_topology, partition = text.split("_")
        return cls(int(sub_topology), int(partition))


@dataclass(frozen=True)
class TaskLayout:
    """All tasks of an application, and the internal topics that it needs."""

    sub_topologies: tuple[SubTopology, ...]
    inputs: Mapping[TaskId, tuple[TopicPartition, ...]]
    topics: tuple[InternalTopic, ...]
    readers: Mapping[TopicPartition, TaskId] = field(init=False, default_factory=dict)

    def __post_init__(self) -> None:
        readers = {key: task for task, keys in self.inputs.items() for key in keys}
        object.__setattr__(self, "readers", readers)

    def changelogs(self, task: TaskId) -> dict[TopicPartition, str]:
        """Return the changelog partitions of a task, with the names of their stores."""
        sub_topology = self.sub_topologies[task.sub_topology]
        stores = changelogs_of(sub_topology.application, sub_topology.topology.stores)
        return {TopicPartition(name, task.partition): row.name for name, row in stores.items()}


def task_layout(application: Application, counts: Mapping[str, int]) -> TaskLayout:
    """Return the tasks; `counts` has the numbers of partitions of the topics on the broker.

    Raises TopologyError if a source topic does not exist.
    """
    layout = lay_out([replace(application, keeps_changelogs=True)], counts)
    shuffled = {
        topic: layout.sub_topologies[number].partitions for topic, number in layout.shuffled.items()
    }
    known = {**counts, **shuffled, **layout.created}
    inputs = {}
    for number, sub_topology in enumerate(layout.sub_topologies):
        topics = _read_topics(sub_topology, known)
        for partition in range(sub_topology.partitions):
            keys = (
                TopicPartition(topic, partition) for topic in topics if partition < known[topic]
            )
            inputs[TaskId(number, partition)] = tuple(keys)
    repartitions = [
        InternalTopic(topic, count, REPARTITION_CONFIG) for topic, count in shuffled.items()
    ]
    internal = (*repartitions, *internal_topics(layout))
    return TaskLayout(layout.sub_topologies, inputs, internal)


def subscription(application: Application) -> list[str]:
    """Return the topics and patterns (after ^) that the tasks of an application read."""
    names = []
    for node in application.topology.nodes.values():
        if not isinstance(node, Source) or node.is_global:
            continue
        names += [application.topic_name(topic) for topic in node.topics]
        names += [] if node.pattern is None else [f"^(?:{node.pattern})$"]
    return names


def _read_topics(sub_topology: SubTopology, counts: Mapping[str, int]) -> list[str]:
    names: list[str] = []
    for node in sub_topology.topology.nodes.values():
        if not isinstance(node, Source) or node.is_global:
            continue
        names += [sub_topology.application.topic_name(topic) for topic in node.topics]
        if node.pattern is not None:
            names += [topic for topic in counts if re.fullmatch(node.pattern, topic)]
    return names
