"""Partitions: the map of replicas, leaders and ISR, its skew, and elections of leaders."""

from collections.abc import Sequence
from dataclasses import dataclass

from ottla.console.model.changes import Change
from ottla.console.model.connections import ClusterConnection, planned


@dataclass(frozen=True, slots=True)
class ReplicaRow:
    """A replica on one broker; size and lag are None if that broker does not report them."""

    broker: int
    is_leader: bool
    is_preferred: bool
    is_in_sync: bool
    is_offline: bool
    size_bytes: int | None
    offset_lag: int | None
    log_directory: str | None


@dataclass(frozen=True, slots=True)
class PartitionRow:
    """A partition; `leader` is -1 if it has none, and the offsets are None then.

    `replicas` are in the order of the assignment: the first is the preferred leader.
    """

    topic: str
    partition: int
    leader: int
    leader_epoch: int
    replicas: tuple[ReplicaRow, ...]
    isr: tuple[int, ...]
    start_offset: int | None
    end_offset: int | None
    is_under_replicated: bool
    is_under_min_isr: bool
    is_reassigning: bool


@dataclass(frozen=True, slots=True)
class BrokerLoad:
    """The load of a broker: of one topic, or of the cluster."""

    broker: int
    leaders: int
    replicas: int
    size_bytes: int


@dataclass(frozen=True, slots=True)
class PartitionMap:
    """The partitions of a topic and their distribution.

    `leader_skew` and `replica_skew` are the largest deviation from the mean in percent;
    `size_skew` compares the largest partition with the mean.
    """

    topic: str
    partitions: tuple[PartitionRow, ...]
    loads: tuple[BrokerLoad, ...]
    leader_skew: float
    replica_skew: float
    size_skew: float


def read_map(connection: ClusterConnection, topic: str) -> PartitionMap:
    """Return the partitions of a topic; ApiError UNKNOWN_TOPIC_OR_PARTITION if there is none."""
    raise planned()


def list_troubled(connection: ClusterConnection) -> list[PartitionRow]:
    """Return the partitions of all topics that are offline, under-replicated or under min ISR."""
    raise planned()


def elect_leaders(
    connection: ClusterConnection,
    partitions: Sequence[tuple[str, int]] | None = None,
    *,
    unclean: bool = False,
) -> Change:
    """Elect preferred leaders of these partitions (None: all), or any live replica if `unclean`,
    which can lose records.
    """
    raise planned()
