"""The state of a cluster at a glance, and the samples from which histories are drawn."""

from collections.abc import Mapping
from dataclasses import dataclass

from ottla.console.model.connections import ClusterConnection, planned

Key = tuple[str, int]


@dataclass(frozen=True, slots=True)
class Overview:
    """Counts of one cluster; `size_bytes` (all replicas) is None if no broker reports it."""

    cluster: str
    cluster_id: str
    controller_id: int
    brokers: int
    topics: int
    internal_topics: int
    partitions: int
    replicas: int
    under_replicated: int
    under_min_isr: int
    offline: int
    not_preferred_leader: int
    reassigning: int
    groups: int
    groups_by_state: Mapping[str, int]
    size_bytes: int | None
    read_at_ms: int


@dataclass(frozen=True, slots=True)
class PartitionState:
    """The leadership of a partition in a sample."""

    leader: int
    leader_epoch: int
    isr: tuple[int, ...]
    replicas: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Sample:
    """Measurements of one moment, for histories, alerts and forecasts.

    `end_offsets`, `start_offsets` and `sizes_bytes` are by (topic, partition); `sizes_bytes` are the
    leaders'. `group_lags` is records by group, `group_lags_s` seconds by group (None: unknown).
    """

    cluster: str
    at_ms: int
    controller_id: int
    brokers: tuple[int, ...]
    partitions: Mapping[Key, PartitionState]
    start_offsets: Mapping[Key, int]
    end_offsets: Mapping[Key, int]
    sizes_bytes: Mapping[Key, int]
    disk_total_bytes: Mapping[int, int]
    disk_usable_bytes: Mapping[int, int]
    group_states: Mapping[str, str]
    group_lags: Mapping[str, int]
    group_lags_s: Mapping[str, float | None]


@dataclass(frozen=True, slots=True)
class ClusterEvent:
    """A difference between two samples.

    `kind` is "isr.shrink", "isr.expand", "leader.change", "partition.offline",
    "partition.online", "controller.change", "broker.up" or "broker.down"; `resource` is the
    partition ("orders-0") or broker ("2").
    """

    at_ms: int
    kind: str
    resource: str
    before: str
    after: str


def read_overview(connection: ClusterConnection) -> Overview:
    """Return the counts of a cluster, at most a second old."""
    raise planned()


def take_sample(connection: ClusterConnection, *, with_groups: bool = True) -> Sample:
    """Measure the cluster once; the history calls it every few seconds."""
    raise planned()


def compare_samples(before: Sample, after: Sample) -> list[ClusterEvent]:
    """Return the events between two samples: the ISR timeline and the controller history. Pure."""
    raise planned()
