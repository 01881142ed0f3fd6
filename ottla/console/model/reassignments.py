"""Reassignment of partitions: a plan with its bytes and balance, throttle, progress, cancel.

The two parts of a plan: `Target` chooses replicas, `plan_moves` shows the consequences.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from ottla.console.model.changes import Change
from ottla.console.model.connections import ClusterConnection, planned
from ottla.console.model.partitions import BrokerLoad

Key = tuple[str, int]


class Goal(StrEnum):
    """How targets are chosen.

    BALANCE moves as few replicas as possible until brokers have equal numbers of replicas and
    leaders; SPREAD assigns all partitions again (kafka-reassign-partitions --generate);
    REPLICATION_FACTOR adds or removes replicas; EMPTY_BROKERS moves replicas away from the brokers
    that `brokers` does not contain; EXPLICIT takes `targets`.
    """

    BALANCE = "balance"
    SPREAD = "spread"
    REPLICATION_FACTOR = "replication-factor"
    EMPTY_BROKERS = "empty-brokers"
    EXPLICIT = "explicit"


@dataclass(frozen=True, slots=True)
class ReassignmentRequest:
    """The partitions to plan for (`topics` empty: all) and the brokers that may have replicas."""

    goal: Goal
    topics: tuple[str, ...] = ()
    brokers: tuple[int, ...] = ()
    replication_factor: int | None = None
    targets: Mapping[Key, tuple[int, ...]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Move:
    """A partition whose replicas change; `bytes_to_copy` is its size times the new replicas."""

    topic: str
    partition: int
    before: tuple[int, ...]
    after: tuple[int, ...]
    adding: tuple[int, ...]
    removing: tuple[int, ...]
    bytes_to_copy: int
    changes_leader: bool


@dataclass(frozen=True, slots=True)
class ReassignmentPlan:
    """A plan; nothing has moved. `bytes_by_broker` is (received, sent) by broker.

    Skews are the largest deviation from the mean number of replicas in percent.
    """

    moves: tuple[Move, ...]
    bytes_to_copy: int
    bytes_by_broker: Mapping[int, tuple[int, int]]
    balance_before: tuple[BrokerLoad, ...]
    balance_after: tuple[BrokerLoad, ...]
    skew_before: float
    skew_after: float
    warnings: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class RunningMove:
    """A reassignment in progress; `copied_bytes` is the size of the slowest new replica."""

    topic: str
    partition: int
    replicas: tuple[int, ...]
    adding: tuple[int, ...]
    removing: tuple[int, ...]
    copied_bytes: int
    total_bytes: int
    fraction: float


@dataclass(frozen=True, slots=True)
class Throttle:
    """The limits that are set, in bytes per second by broker; empty if there are none."""

    leader_bytes_per_s: Mapping[int, int]
    follower_bytes_per_s: Mapping[int, int]
    topics: tuple[str, ...]


def plan_moves(connection: ClusterConnection, request: ReassignmentRequest) -> ReassignmentPlan:
    """Return what a reassignment would move; changes nothing. ConfigError for impossible targets."""
    raise planned()


def execute(
    connection: ClusterConnection,
    moves: Sequence[Move],
    *,
    throttle_bytes_per_s: int | None = None,
) -> Change:
    """Start moves, with a throttle on the brokers concerned if it is given.

    ApiError INVALID_REQUEST if the replicas differ from a move's `before` (made an old plan).
    """
    raise planned()


def list_running(connection: ClusterConnection) -> list[RunningMove]:
    """Return the reassignments in progress with the bytes that have been copied."""
    raise planned()


def cancel(connection: ClusterConnection, partitions: Sequence[Key] | None = None) -> Change:
    """Cancel reassignments (None: all): the original replicas remain."""
    raise planned()


def read_throttle(connection: ClusterConnection) -> Throttle:
    """Return the replication throttles of all brokers."""
    raise planned()


def change_throttle(connection: ClusterConnection, bytes_per_s: int) -> Change:
    """Change the limit of the running reassignments."""
    raise planned()


def remove_throttle(connection: ClusterConnection) -> Change:
    """Remove the limits of all brokers and topics, as `--verify` does when moves are complete."""
    raise planned()
