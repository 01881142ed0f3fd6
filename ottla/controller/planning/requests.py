"""Requests to the controller and their results, independent of the wire protocol.

Handlers translate wire requests into these values; tests and internal topics create them directly.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import IntEnum
from types import MappingProxyType
from typing import NamedTuple

from ottla.base.errors import ApiError
from ottla.base.uuids import ZERO_UUID

BY_DEFAULT = -1
Admit = Callable[[str, int], ApiError | None]
"""Counts the new partitions of a topic that could be created; returns the error if it may not.

A plan that is made again, because the tree has changed, asks again for the same topic.
"""


def admit_all(_topic: str, _partitions: int) -> None:
    """Admit every topic."""


class TopicRequest(NamedTuple):
    """A topic to create. `assignments` (partition, replicas) replaces the two numbers.

    `BY_DEFAULT` means num.partitions and default.replication.factor.
    """

    name: str
    partitions: int = BY_DEFAULT
    replication_factor: int = BY_DEFAULT
    assignments: tuple[tuple[int, tuple[int, ...]], ...] = ()
    config: Mapping[str, str | None] = MappingProxyType({})


class TopicResult(NamedTuple):
    """The result of a topic creation; if `error` is not None, only `name` and `error` are set."""

    name: str
    error: ApiError | None
    topic_id: bytes = ZERO_UUID
    partitions: int = -1
    replication_factor: int = -1
    config: Mapping[str, str] = {}


@dataclass(frozen=True, slots=True)
class PartitionsRequest:
    """A topic to grow to `count` partitions; `assignments` has the replicas of each new one."""

    name: str
    count: int
    assignments: tuple[tuple[int, ...], ...] | None = None


class EntityResult(NamedTuple):
    """The result for one named entity; `error` None means success."""

    name: str
    error: ApiError | None


class PartitionChangeResult(NamedTuple):
    """The result for one partition; `error` None means that it is done or in progress."""

    topic: str
    partition: int
    error: ApiError | None


class Reassignment(NamedTuple):
    """The new replicas of a partition, in order; None cancels a reassignment (KIP-455)."""

    topic: str
    partition: int
    replicas: tuple[int, ...] | None


class Alteration(IntEnum):
    """Operations of IncrementalAlterConfigs (KIP-339), by their codes on the wire."""

    SET = 0
    DELETE = 1
    APPEND = 2
    SUBTRACT = 3


class ConfigChange(NamedTuple):
    """One setting to change; `value` is a list of items for APPEND and SUBTRACT."""

    name: str
    alteration: Alteration
    value: str | None = None


class ConfigRequest(NamedTuple):
    """Changes of one entity, with type and path as in the tree; the broker default is `<default>`.

    With `replaces`, settings that are not named are removed.
    """

    entity_type: str
    entity: str
    changes: tuple[ConfigChange, ...]
    replaces: bool = False
