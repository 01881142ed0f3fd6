"""What the controller is asked for and what it answers: values, the same for every way of asking.

Handlers translate wire requests into these; tests and internal topics build them directly.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import IntEnum
from typing import NamedTuple

from ottla.base.errors import ApiError
from ottla.base.uuids import ZERO_UUID

BY_DEFAULT = -1


@dataclass(frozen=True, slots=True)
class TopicRequest:
    """A topic to create. `assignments` (partition, replicas) stand instead of the two numbers.

    `BY_DEFAULT` takes num.partitions and default.replication.factor.
    """

    name: str
    partitions: int = BY_DEFAULT
    replication_factor: int = BY_DEFAULT
    assignments: tuple[tuple[int, tuple[int, ...]], ...] = ()
    config: Mapping[str, str | None] = field(default_factory=dict)


class TopicResult(NamedTuple):
    """What became of a creation; the rest has meaning only where `error` is None."""

    name: str
    error: ApiError | None
    topic_id: bytes = ZERO_UUID
    partitions: int = -1
    replication_factor: int = -1
    config: Mapping[str, str] = {}


@dataclass(frozen=True, slots=True)
class PartitionsRequest:
    """A topic to give `count` partitions in all; `assignments` has the replicas of each new one."""

    name: str
    count: int
    assignments: tuple[tuple[int, ...], ...] | None = None


class Outcome(NamedTuple):
    """What became of one named thing; no error means that it is done."""

    name: str
    error: ApiError | None


class PartitionOutcome(NamedTuple):
    """What became of one partition; no error means that it is done, or begun."""

    topic: str
    partition: int
    error: ApiError | None


class Reassignment(NamedTuple):
    """A partition and the replicas that it is to have, in order; None cancels a move (KIP-455)."""

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


@dataclass(frozen=True, slots=True)
class ConfigRequest:
    """Changes of one entity, type and path as in the tree; the broker default is `<default>`.

    One that `replaces` leaves nothing of what was set before.
    """

    entity_type: str
    entity: str
    changes: tuple[ConfigChange, ...]
    replaces: bool = False
