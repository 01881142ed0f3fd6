"""Metadata of instances, threads, tasks and stores, with Kafka Streams' names.

A host is the value of `application_server` of an instance.

Not done: client ids of `ThreadMetadata`; `endOffsets` and `timeCurrentIdlingStarted` of
`TaskMetadata`.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from ottla.client.records import TopicPartition


@dataclass(frozen=True)
class StreamsMetadata:
    """An instance of an application (Kafka's StreamsMetadata)."""

    application_id: str
    instance: str
    host: str
    is_active: bool
    state_store_names: frozenset[str]
    topics: frozenset[str]


@dataclass(frozen=True)
class KeyQueryMetadata:
    """The instances that have a key of a store (Kafka's KeyQueryMetadata)."""

    NOT_AVAILABLE: ClassVar["KeyQueryMetadata"]
    """No instance has the task of the key now, because it moves or is being restored."""

    active_host: str
    standby_hosts: frozenset[str]
    partition: int


KeyQueryMetadata.NOT_AVAILABLE = KeyQueryMetadata("unavailable", frozenset(), -1)


@dataclass(frozen=True)
class TaskMetadata:
    """A task in this process (Kafka's TaskMetadata)."""

    task_id: str
    topic_partitions: frozenset[TopicPartition]
    committed_offsets: Mapping[TopicPartition, int]


@dataclass(frozen=True)
class ThreadMetadata:
    """A worker of the local engine (Kafka's ThreadMetadata)."""

    thread_name: str
    thread_state: str
    """STARTING, PARTITIONS_ASSIGNED while tasks are being restored, or RUNNING."""
    active_tasks: tuple[TaskMetadata, ...]
    standby_tasks: tuple[TaskMetadata, ...]


@dataclass(frozen=True)
class LagInfo:
    """The position of a store in its changelog (Kafka's LagInfo)."""

    current_offset_position: int
    end_offset_position: int

    @property
    def offset_lag(self) -> int:
        """The number of offsets that the store is behind its changelog."""
        return max(0, self.end_offset_position - self.current_offset_position)
