"""Every replica of the broker: offsets, sizes, leaders, in-sync replicas.

Under two sets of names: Kafka's own beans (`kafka.log:type=Log,name=Size`) and kafka_exporter's
names (`kafka_topic_partition_current_offset`), because dashboards use both. The latter are served
by the leader only, so that a sum over all brokers counts a partition once.
"""

from collections.abc import Callable, Iterator, Sequence

from ottla.metrics.beans import Bean, Beans, Computed, Measurement, Properties
from ottla.metrics.exposition import Family, Sample, gauge, labels
from ottla.replication.partition import Partition
from ottla.server.context import Broker
from ottla.server.monitoring.sources import Pace

# A partition and its properties.
Rows = list[tuple[Properties, Partition]]
Value = Callable[[Partition], int]

_log = Beans("kafka.log", "Log")
_partition = Beans("kafka.cluster", "Partition")
_manager = Beans("kafka.server", "ReplicaManager")


def _is_under_replicated(partition: Partition) -> int:
    isr = partition.isr
    return int(isr is not None and len(isr.isr) < len(isr.replicas))


def _missing(partition: Partition) -> int:
    """Return in-sync replicas minus min.insync.replicas; 1 if this broker is not the leader."""
    isr = partition.isr
    if isr is None:
        return 1
    return len(isr.isr) - isr.effective_min_isr(partition.min_insync_replicas)


def _isr_count(partition: Partition) -> int:
    return len(partition.isr.isr) if partition.isr is not None else 0


# The first are of all replicas, the second of leaders only.
_OF_LOGS: tuple[tuple[Bean, Value], ...] = (
    (_log.gauge("Size", "Bytes of the log."), lambda partition: partition.log.size_bytes),
    (
        _log.gauge("LogStartOffset", "First offset."),
        lambda partition: partition.log.log_start_offset,
    ),
    (_log.gauge("LogEndOffset", "Next offset."), lambda partition: partition.log.log_end_offset),
    (_log.gauge("NumLogSegments", "Segments."), lambda partition: partition.log.segments_count),
)
_OF_LEADERS: tuple[tuple[Bean, Value], ...] = (
    (_partition.gauge("UnderReplicated", "Replicas are missing."), _is_under_replicated),
    (
        _partition.gauge("UnderMinIsr", "Fewer in-sync replicas than min.insync.replicas."),
        lambda partition: int(_missing(partition) < 0),
    ),
    (
        _partition.gauge("AtMinIsr", "As many in-sync replicas as min.insync.replicas."),
        lambda partition: int(partition.isr is not None and _missing(partition) == 0),
    ),
    (_partition.gauge("ReplicasCount", "Replicas."), lambda partition: len(partition.replicas)),
    (_partition.gauge("InSyncReplicasCount", "In-sync replicas."), _isr_count),
    (
        _partition.gauge(
            "LastStableOffsetLag", "Offsets between the last stable one and the high watermark."
        ),
        lambda partition: (
            partition.high_watermark - partition.log.last_stable_offset(partition.high_watermark)
        ),
    ),
)
# Names of kafka_exporter.
_EXPORTED: tuple[tuple[str, str, Value], ...] = (
    ("current_offset", "High watermark.", lambda partition: partition.high_watermark),
    ("oldest_offset", "First offset.", lambda partition: partition.log.log_start_offset),
    ("in_sync_replica", "In-sync replicas.", _isr_count),
    ("leader", "Id of the leader.", lambda partition: partition.leader),
    (
        "leader_is_preferred",
        "The preferred replica is the leader.",
        lambda partition: int(partition.leader == partition.replicas[0]),
    ),
    ("replicas", "Replicas.", lambda partition: len(partition.replicas)),
    ("under_replicated_partition", "Replicas are missing.", _is_under_replicated),
)


async def rows(partitions: Sequence[Partition], pace: Pace) -> Rows:
    """Return the replicas that are online, with their properties."""
    online: Rows = []
    for partition in partitions:
        await pace.rest()
        if not partition.is_offline:
            properties = Properties(topic=partition.topic, partition=partition.partition)
            online.append((properties, partition))
    return online


def every_partition(online: Rows) -> list[Measurement]:
    """Return the beans that have a value for each partition; they are read when written."""
    led = [(properties, replica) for properties, replica in online if replica.is_leader]
    return [
        *(bean.of(_OfPartitions(online, value)) for bean, value in _OF_LOGS),
        *(bean.of(_OfPartitions(led, value)) for bean, value in _OF_LEADERS),
    ]


class _OfPartitions(Computed[Partition]):
    """Rows of partitions, without those whose log has failed in the meantime."""

    def __init__(self, partitions: Rows, value: Value) -> None:
        super().__init__(
            partitions, lambda partition: None if partition.is_offline else value(partition)
        )
        self._partitions = partitions
        self._number = value

    def samples(self) -> Iterator[Sample]:
        """Yield labels and values without a call in between: there are many partitions."""
        return _samples(self._partitions, self._number)


def exported(online: Rows) -> list[Family]:
    """Return the partitions that this broker leads under the names of kafka_exporter."""
    led = [(properties, replica) for properties, replica in online if replica.is_leader]
    prefix = "kafka_topic_partition_"
    return [
        gauge(f"{prefix}{name}", meaning, _samples(led, value))
        for name, meaning, value in _EXPORTED
    ]


def lag_exporter(online: Rows, cluster_id: str) -> list[Family]:
    """Return the ends of the partitions that this broker leads, as kafka-lag-exporter names them."""
    led = [
        (labels(cluster_name=cluster_id, topic=replica.topic, partition=replica.partition), replica)
        for _, replica in online
        if replica.is_leader
    ]
    return [
        gauge(
            "kafka_partition_latest_offset",
            "High watermark.",
            ((written, replica.high_watermark) for written, replica in led),
        ),
        gauge(
            "kafka_partition_earliest_offset",
            "First offset.",
            ((written, replica.log.log_start_offset) for written, replica in led),
        ),
    ]


def _samples(partitions: Rows, value: Value) -> Iterator[Sample]:
    for properties, partition in partitions:
        if not partition.is_offline:
            yield properties.text, value(partition)


_LEADERS = _manager.gauge("LeaderCount", "Partitions that this broker leads.")
_REPLICAS = _manager.gauge("PartitionCount", "Replicas on this broker.")
_OFFLINE = _manager.gauge("OfflineReplicaCount", "Replicas in failed directories.")
_UNDER_REPLICATED = _manager.gauge(
    "UnderReplicatedPartitions", "Leader partitions with fewer in-sync replicas than replicas."
)
_UNDER_MINIMUM = _manager.gauge(
    "UnderMinIsrPartitionCount",
    "Leader partitions with fewer in-sync replicas than min.insync.replicas.",
)
_AT_MINIMUM = _manager.gauge(
    "AtMinIsrPartitionCount",
    "Leader partitions with as many in-sync replicas as min.insync.replicas.",
)
_MOVING = _manager.gauge("ReassigningPartitions", "Leader partitions that are being reassigned.")


async def replicas(
    broker: Broker, partitions: Sequence[Partition], pace: Pace
) -> list[Measurement]:
    """Return ReplicaManager's counts."""
    led = offline = under_replicated = under_minimum = at_minimum = moving = 0
    image = broker.image
    for partition in partitions:
        await pace.rest()
        offline += partition.is_offline
        if partition.is_leader:
            led += 1
            under_replicated += _is_under_replicated(partition)
            missing = _missing(partition)
            under_minimum += missing < 0
            at_minimum += missing == 0
            stored = image.partition(partition.topic, partition.partition)
            moving += stored is not None and stored.is_being_reassigned
    return [
        _LEADERS.of(led),
        _REPLICAS.of(len(partitions)),
        _OFFLINE.of(offline),
        _UNDER_REPLICATED.of(under_replicated),
        _UNDER_MINIMUM.of(under_minimum),
        _AT_MINIMUM.of(at_minimum),
        _MOVING.of(moving),
    ]
