"""Groups: the number in each state, and for each group its committed offsets and its lag.

The coordinator of a group reports it, so that each group has one reporter in the cluster. The
coordinator asks other leaders for the high watermarks of their partitions. Names are
kafka_exporter's, and kafka-lag-exporter's for the lag in seconds; that exporter estimates it, here
it is the age of the first record that the group has not consumed. The lag of a partition without
a commit counts from its beginning; its committed offset is -1, or absent from kafka-lag-exporter's.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from ottla.coordinators.groups.service import GroupCoordinator
from ottla.metrics.beans import Beans, Measurement, Properties
from ottla.metrics.exposition import Family, Sample, gauge, labels
from ottla.server.context import Broker
from ottla.server.lag.ends import high_watermarks, log_starts
from ottla.server.lag.questions import Leaders, PartitionKey
from ottla.server.lag.times import RecordTimes
from ottla.server.lag.uncommitted import Owner, members_of, uncommitted_of
from ottla.server.monitoring.sources import Pace
from ottla.wire.messages.list_groups import ListedGroup, ListGroupsRequest

_manager = Beans("kafka.coordinator.group", "GroupMetadataManager")
_coordinator = Beans("kafka.server", "group-coordinator-metrics")

_NUM_GROUPS = _manager.gauge("NumGroups", "Groups of this coordinator.")
_NUM_OFFSETS = _manager.gauge("NumOffsets", "Committed offsets.")
_STATES = {
    state: _manager.gauge(f"NumGroups{state}", f"Groups in state {state}.")
    for state in (
        "Stable",
        "PreparingRebalance",
        "CompletingRebalance",
        "Assigning",
        "Reconciling",
        "Empty",
        "Dead",
    )
}
_GROUPS = _coordinator.attribute("group-count", "Groups of this coordinator, by protocol.")
_CONSUMER_GROUPS = _coordinator.attribute(
    "consumer-group-count", "Groups of the consumer protocol (KIP-848), by state."
)
_CONSUMER_STATES = ("Empty", "Assigning", "Reconciling", "Stable", "Dead")
_CONSUMER = "consumer"
_CLASSIC = "classic"
_UNKNOWN_LAG = -1


class Committed(NamedTuple):
    """A position of a group: the committed offset, or where the partition begins without one.

    `end` is the high watermark, None if it is unknown.
    """

    group: str
    topic: str
    partition: int
    offset: int
    end: int | None
    is_committed: bool = True

    @property
    def lag(self) -> int:
        """The records that are not consumed; -1 if that is unknown."""
        return _UNKNOWN_LAG if self.end is None else max(self.end - self.offset, 0)


class Groups(NamedTuple):
    """The groups of a coordinator at one time."""

    listed: list[ListedGroup]
    committed: list[Committed]
    # The number of members by group, and the members by group and partition.
    members: Mapping[str, int]
    owners: Mapping[tuple[str, str, int], Owner]


def counts(groups: GroupCoordinator) -> Iterator[Measurement]:
    """Yield the beans of the coordinator."""
    listed = groups.list_groups(ListGroupsRequest()).groups
    yield _NUM_GROUPS.of(len(listed))
    for state, bean in _STATES.items():
        yield bean.of(sum(group.group_state == state for group in listed))
    yield _NUM_OFFSETS.of(sum(len(offsets) for _, offsets in groups.committed_offsets()))
    types = [group.group_type for group in listed]
    yield _GROUPS.of(
        [(Properties(protocol=kind), types.count(kind)) for kind in (_CLASSIC, _CONSUMER)]
    )
    states = [group.group_state for group in listed if group.group_type == _CONSUMER]
    yield _CONSUMER_GROUPS.of(
        [(Properties(state=state.lower()), states.count(state)) for state in _CONSUMER_STATES]
    )


async def collect(broker: Broker, leaders: Leaders, pace: Pace) -> Groups:
    """Return the groups of this coordinator with the ends of the partitions that they consume."""
    groups = broker.groups
    offsets: list[tuple[str, PartitionKey, int]] = []
    known: defaultdict[str, set[PartitionKey]] = defaultdict(set)
    for group_id, of_group in groups.committed_offsets():
        for partition, committed in list(of_group.items()):
            await pace.rest()
            offsets.append((group_id, partition, committed.offset))
            known[group_id].add(partition)
    listed = groups.list_groups(ListGroupsRequest()).groups
    members: dict[str, int] = {}
    owners: dict[tuple[str, str, int], Owner] = {}
    for group in listed:
        await pace.rest_if_due()
        described = members_of(groups, group)
        if described is not None:
            members[group.group_id] = len(described)
            for owner, owned in described:
                owners |= {(group.group_id, *partition_key): owner for partition_key in owned}
    missing = await uncommitted_of(broker.image, listed, known, owners, pace.rest_if_due)
    keys = {partition for _, partition, _ in offsets} | {partition for _, partition in missing}
    ends = await high_watermarks(broker.image, broker.replicas, leaders, keys)
    starts = await log_starts(
        broker.image, broker.replicas, leaders, {partition for _, partition in missing}
    )
    rows = [
        Committed(group, *partition, offset, ends.get(partition))
        for group, partition, offset in offsets
    ]
    rows += [
        Committed(group, *partition, starts[partition], ends.get(partition), is_committed=False)
        for group, partition in missing
        if partition in starts
    ]
    return Groups(listed, rows, members, owners)


# -- kafka_exporter -------------------------------------------------------------------------------


def exported(groups: Groups) -> list[Family]:
    """Return the groups under the names of kafka_exporter."""
    rows = [
        (labels(consumergroup=row.group, topic=row.topic, partition=row.partition), row)
        for row in groups.committed
    ]
    sums: defaultdict[tuple[str, str], list[Committed]] = defaultdict(list)
    for row in groups.committed:
        sums[row.group, row.topic].append(row)
    totals = [
        (labels(consumergroup=group, topic=topic), committed)
        for (group, topic), committed in sums.items()
    ]
    members = [(labels(consumergroup=group), count) for group, count in groups.members.items()]
    prefix = "kafka_consumergroup_"
    return [
        gauge(f"{prefix}members", "Members.", members),
        gauge(
            f"{prefix}current_offset",
            "Committed offset; -1 without one.",
            ((at, row.offset if row.is_committed else -1) for at, row in rows),
        ),
        gauge(
            f"{prefix}lag",
            "Records between the committed offset, or the beginning of the partition without one, "
            "and the high watermark; -1 if unknown.",
            ((at, row.lag) for at, row in rows),
        ),
        gauge(
            f"{prefix}current_offset_sum",
            "Committed offsets of a topic.",
            (
                (at, sum(row.offset for row in committed if row.is_committed))
                for at, committed in totals
            ),
        ),
        gauge(
            f"{prefix}lag_sum",
            "Lag in a topic.",
            ((at, sum(max(row.lag, 0) for row in committed)) for at, committed in totals),
        ),
    ]


# -- kafka-lag-exporter ---------------------------------------------------------------------------


async def lag_seconds(
    broker: Broker, record_times: RecordTimes, groups: Groups, pace: Pace
) -> list[Family]:
    """Return the lag of each group in seconds."""
    behind = [row for row in groups.committed if row.lag > 0]
    positions = {(row.topic, row.partition, row.offset) for row in behind}
    times = await record_times.find(broker.image, broker.replicas, positions, pace.rest)
    now_ms = broker.clock.time_ms()
    rows: list[Sample] = []
    highest: dict[str, float] = {}
    for row in groups.committed:
        seconds = 0.0
        if row.lag:
            time_ms = times.get((row.topic, row.partition, row.offset))
            if time_ms is None:
                continue
            seconds = max(now_ms - time_ms, 0) / 1000
        rows.append((_labels(broker, groups, row), seconds))
        highest[row.group] = max(highest.get(row.group, 0.0), seconds)
    prefix = "kafka_consumergroup_group_"
    return [
        gauge(
            f"{prefix}lag_seconds", "Age of the first record that the group has not consumed.", rows
        ),
        gauge(f"{prefix}max_lag_seconds", "Largest lag of a group.", _of_groups(broker, highest)),
    ]


def lag_exporter(broker: Broker, groups: Groups) -> list[Family]:
    """Return the other families of kafka-lag-exporter."""
    rows = [(_labels(broker, groups, row), row) for row in groups.committed]
    lags: defaultdict[str, list[int]] = defaultdict(list)
    of_topics: defaultdict[tuple[str, str], int] = defaultdict(int)
    for row in groups.committed:
        lags[row.group].append(max(row.lag, 0))
        of_topics[row.group, row.topic] += max(row.lag, 0)
    prefix = "kafka_consumergroup_group_"
    cluster = broker.cluster_id
    return [
        gauge(
            f"{prefix}offset",
            "Committed offset.",
            ((at, row.offset) for at, row in rows if row.is_committed),
        ),
        gauge(
            f"{prefix}lag", "Lag in records.", ((at, row.lag) for at, row in rows if row.lag >= 0)
        ),
        gauge(
            f"{prefix}max_lag",
            "Largest lag of a group.",
            _of_groups(broker, {group: max(values) for group, values in lags.items()}),
        ),
        gauge(
            f"{prefix}sum_lag",
            "Lag of a group.",
            _of_groups(broker, {group: sum(values) for group, values in lags.items()}),
        ),
        gauge(
            f"{prefix}topic_sum_lag",
            "Lag of a group in a topic.",
            [
                (labels(cluster_name=cluster, group=group, topic=topic), lag)
                for (group, topic), lag in of_topics.items()
            ],
        ),
    ]


def _of_groups(broker: Broker, values: Mapping[str, float]) -> list[Sample]:
    cluster = broker.cluster_id
    return [(labels(cluster_name=cluster, group=group), value) for group, value in values.items()]


def _labels(broker: Broker, groups: Groups, committed: Committed) -> str:
    owner = groups.owners.get((committed.group, committed.topic, committed.partition), Owner())
    return labels(
        cluster_name=broker.cluster_id,
        group=committed.group,
        topic=committed.topic,
        partition=committed.partition,
        member_host=owner.host,
        consumer_id=owner.consumer_id,
        client_id=owner.client_id,
    )
