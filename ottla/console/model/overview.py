"""The state of a cluster at a glance, and the samples from which histories are drawn."""

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from ottla.client.admin.replicas import list_reassignments
from ottla.console.model.brokers import list_brokers
from ottla.console.model.connections import ClusterConnection
from ottla.console.model.groups import summarize_groups
from ottla.console.model.partitions import min_isr_of_all
from ottla.console.model.requests.controllers import Controller, read_controller_id
from ottla.console.model.requests.directories import Directory, read_directories, replica_sizes
from ottla.console.model.requests.groups import list_groups
from ottla.console.model.requests.metadata import Key, Metadata, read_metadata
from ottla.console.model.requests.offsets import bounds_of


@dataclass(frozen=True, slots=True)
class Overview:
    """Counts of one cluster; `size_bytes` (all replicas) is None if no broker reports it.

    `controller_id` is -1 if there is none; in KRaft it may be a node that is not a broker.
    """

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

    `end_offsets`, `start_offsets` and `sizes_bytes` are by (topic, partition); `sizes_bytes` are
    the leaders'. `group_lags` is records by group, `group_lags_s` seconds by group (None: unknown),
    `group_positions` the sum of committed offsets by group.
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
    group_positions: Mapping[str, int] = field(default_factory=dict)


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
    """Return the counts of a cluster, some seconds old at most."""
    return connection.cached("overview", 1.0, lambda: _count(connection), stale_s=4.0)


def take_sample(
    connection: ClusterConnection,
    metadata: Metadata | None = None,
    controller: Controller | None = None,
) -> Sample:
    """Measure the cluster once; the sampler calls it every few seconds.

    Reads the cluster again, not the cache, except for sizes, which may be some seconds old.
    `metadata` and `controller` are read unless they are passed.
    """
    metadata = metadata or read_metadata(connection, is_fresh=True)
    controller_id = metadata.controller_id if controller is None else controller.node_id
    bounds = bounds_of(connection, metadata.leaders())
    directories = read_directories(connection)
    sizes = replica_sizes(directories)
    groups = summarize_groups(connection, bounds.ends)
    return Sample(
        cluster=connection.name,
        at_ms=metadata.read_at_ms,
        controller_id=controller_id,
        brokers=tuple(metadata.nodes),
        partitions={
            (topic.name, row.partition): PartitionState(
                row.leader, row.leader_epoch, tuple(sorted(row.isr)), row.replicas
            )
            for topic in metadata.topics.values()
            for row in topic.partitions
        },
        start_offsets=bounds.starts,
        end_offsets=bounds.ends,
        sizes_bytes={
            key: sizes[leader, *key]
            for key, leader in metadata.leaders().items()
            if (leader, *key) in sizes
        },
        disk_total_bytes=_disks(directories, lambda row: row.total_bytes),
        disk_usable_bytes=_disks(directories, lambda row: row.usable_bytes),
        group_states={group.group_id: group.state for group in groups},
        group_lags={group.group_id: group.lag for group in groups if group.lag is not None},
        group_lags_s={group.group_id: group.lag_s for group in groups},
        group_positions={
            group.group_id: group.position for group in groups if group.position is not None
        },
    )


def compare_samples(before: Sample, after: Sample) -> list[ClusterEvent]:
    """Return the events between two samples: the ISR timeline and the controller history. Pure."""
    events = _broker_events(before, after)
    if before.controller_id != after.controller_id:
        events.append(("controller.change", "", before.controller_id, after.controller_id))
    for key in sorted(before.partitions.keys() & after.partitions.keys()):
        old, new = before.partitions[key], after.partitions[key]
        if old != new:
            events += _partition_events(f"{key[0]}-{key[1]}", old, new)
    return [
        ClusterEvent(after.at_ms, kind, resource, _text(old), _text(new))
        for kind, resource, old, new in events
    ]


def _count(connection: ClusterConnection) -> Overview:
    metadata = read_metadata(connection)
    min_isr = min_isr_of_all(connection)
    groups = connection.cached("groups", 1.0, lambda: list_groups(connection), stale_s=10.0)
    with connection.brokers() as brokers:
        reassigning = len(list_reassignments(brokers))
    rows = [(topic, row) for topic in metadata.topics.values() for row in topic.partitions]
    internal = sum(topic.is_internal for topic in metadata.topics.values())
    sizes = [size for row in list_brokers(connection) if (size := row.size_bytes) is not None]
    return Overview(
        cluster=connection.name,
        cluster_id=metadata.cluster_id,
        controller_id=read_controller_id(connection, metadata),
        brokers=len(metadata.nodes),
        topics=len(metadata.topics) - internal,
        internal_topics=internal,
        partitions=len(rows),
        replicas=sum(len(row.replicas) for _, row in rows),
        under_replicated=sum(len(row.isr) < len(row.replicas) for _, row in rows),
        under_min_isr=sum(len(row.isr) < min_isr.get(topic.name, 1) for topic, row in rows),
        offline=sum(row.leader not in metadata.nodes for _, row in rows),
        not_preferred_leader=sum(
            bool(row.replicas) and row.leader != row.replicas[0] for _, row in rows
        ),
        reassigning=reassigning,
        groups=len(groups),
        groups_by_state=dict(Counter(group.state for group in groups)),
        size_bytes=sum(sizes) if sizes else None,
        read_at_ms=metadata.read_at_ms,
    )


_Event = tuple[str, str, object, object]


def _broker_events(before: Sample, after: Sample) -> list[_Event]:
    gone, came = set(before.brokers) - set(after.brokers), set(after.brokers) - set(before.brokers)
    down: list[_Event] = [("broker.down", str(node), "up", "down") for node in sorted(gone)]
    return [*down, *(("broker.up", str(node), "down", "up") for node in sorted(came))]


def _partition_events(name: str, old: PartitionState, new: PartitionState) -> list[_Event]:
    events: list[_Event] = []
    if old.leader != new.leader:
        kind = "leader.change"
        if new.leader < 0:
            kind = "partition.offline"
        elif old.leader < 0:
            kind = "partition.online"
        events.append((kind, name, old.leader, new.leader))
    if set(old.isr) - set(new.isr):
        events.append(("isr.shrink", name, old.isr, new.isr))
    elif set(new.isr) - set(old.isr):
        events.append(("isr.expand", name, old.isr, new.isr))
    return events


def _text(value: object) -> str:
    return ",".join(map(str, value)) if isinstance(value, tuple) else str(value)


def _disks(
    directories: Mapping[int, list[Directory]], amount: Callable[[Directory], int | None]
) -> dict[int, int]:
    amounts = {node: [amount(row) for row in rows] for node, rows in directories.items()}
    return {
        node: sum(value for value in values if value is not None)
        for node, values in amounts.items()
        if any(value is not None for value in values)
    }
