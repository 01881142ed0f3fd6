"""The state of a cluster at a glance, and the samples from which histories are drawn."""

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from ottla.client.admin.replicas import LogDirectory
from ottla.client.admin.topics import Partition
from ottla.console.model.brokers import list_brokers
from ottla.console.model.controllers import Controller, read_controller_id
from ottla.console.model.groups import summarize_groups
from ottla.console.model.partitions import known_min_isr, moving_partitions
from ottla.operations.survey.connections import ClusterConnection
from ottla.operations.survey.directories import leader_sizes, read_directories
from ottla.operations.survey.groups import list_groups
from ottla.operations.survey.metadata import Key, Metadata, read_metadata
from ottla.operations.survey.offsets import ends_of


@dataclass(frozen=True, slots=True)
class Overview:
    """Counts of one cluster; `size_bytes` (all replicas) is None if no broker reports it.

    `under_min_isr` is None if the cluster is large and its options have not been read yet.

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
    under_min_isr: int | None
    offline: int
    not_preferred_leader: int
    reassigning: int | None
    groups: int
    groups_by_state: Mapping[str, int]
    size_bytes: int | None
    read_at_ms: int


@dataclass(frozen=True, slots=True)
class Sample:
    """Measurements of one moment, for histories, alerts and forecasts.

    `end_offsets` and `sizes_bytes` are by (topic, partition); `sizes_bytes` are the leaders'.
    `group_lags` is records by group, `group_lags_s` seconds by group (None: unknown),
    `group_positions` the sum of committed offsets by group.
    """

    cluster: str
    at_ms: int
    controller_id: int
    brokers: tuple[int, ...]
    partitions: Mapping[Key, Partition]
    end_offsets: Mapping[Key, int]
    sizes_bytes: Mapping[Key, int]
    disk_total_bytes: Mapping[int, int]
    disk_usable_bytes: Mapping[int, int]
    group_states: Mapping[str, str]
    group_lags: Mapping[str, int]
    group_lags_s: Mapping[str, float | None]
    group_positions: Mapping[str, int] = field(default_factory=dict)


def read_overview(connection: ClusterConnection) -> Overview:
    """Return the counts of a cluster, some seconds old at most."""
    return connection.cached("overview", 1.0, lambda: _count(connection))


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
    leaders = metadata.leaders()
    ends = ends_of(connection, leaders)
    directories = read_directories(connection)
    groups = summarize_groups(connection, ends)
    return Sample(
        cluster=connection.name,
        at_ms=metadata.read_at_ms,
        controller_id=controller_id,
        brokers=tuple(metadata.nodes),
        partitions={
            (topic.name, row.partition): row
            for topic in metadata.topics.values()
            for row in topic.partitions
        },
        end_offsets=ends,
        sizes_bytes=leader_sizes(directories, leaders),
        disk_total_bytes=_disks(directories, lambda row: row.total_bytes),
        disk_usable_bytes=_disks(directories, lambda row: row.usable_bytes),
        group_states={group.group_id: group.state for group in groups},
        group_lags={group.group_id: group.lag for group in groups if group.lag is not None},
        group_lags_s={group.group_id: group.lag_s for group in groups},
        group_positions={
            group.group_id: group.position for group in groups if group.position is not None
        },
    )


def _count(connection: ClusterConnection) -> Overview:
    metadata = read_metadata(connection)
    moving = moving_partitions(connection)
    min_isr = known_min_isr(connection)
    groups = connection.cached("groups", 1.0, lambda: list_groups(connection), stale_s=10.0)
    states = metadata.states().items()
    internal = sum(topic.is_internal for topic in metadata.topics.values())
    sizes = [size for row in list_brokers(connection) if (size := row.size_bytes) is not None]
    return Overview(
        cluster=connection.name,
        cluster_id=metadata.cluster_id,
        controller_id=read_controller_id(connection, metadata),
        brokers=len(metadata.nodes),
        topics=len(metadata.topics) - internal,
        internal_topics=internal,
        partitions=sum(count for _, count in states),
        replicas=sum(len(replicas) * count for (_, replicas, _), count in states),
        under_replicated=sum(
            count for (_, replicas, isr), count in states if len(isr) < len(replicas)
        ),
        under_min_isr=None if min_isr is None else _under_min_isr(metadata, min_isr),
        offline=sum(count for (leader, _, _), count in states if leader not in metadata.nodes),
        not_preferred_leader=sum(
            count for (leader, replicas, _), count in states if replicas and leader != replicas[0]
        ),
        reassigning=None if moving is None else len(moving),
        groups=len(groups),
        groups_by_state=dict(Counter(group.state for group in groups)),
        size_bytes=sum(sizes) if sizes else None,
        read_at_ms=metadata.read_at_ms,
    )


def _under_min_isr(metadata: Metadata, min_isr: Mapping[str, int]) -> int:
    return sum(
        len(row.isr) < min_isr.get(topic.name, 1)
        for topic in metadata.topics.values()
        for row in topic.partitions
    )


def _disks(
    directories: Mapping[int, list[LogDirectory]], amount: Callable[[LogDirectory], int]
) -> dict[int, int]:
    amounts = {node: [amount(row) for row in rows] for node, rows in directories.items()}
    # -1 if the broker does not report a size.
    known = {node: [value for value in values if value >= 0] for node, values in amounts.items()}
    return {node: sum(values) for node, values in known.items() if values}
