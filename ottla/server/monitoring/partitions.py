"""Every replica of the broker: offsets, sizes, leaders, in-sync replicas, lag behind leaders.

Under two sets of names: Kafka's own beans (`kafka_log_log_size`) and those of kafka_exporter
(`kafka_topic_partition_current_offset`), because dashboards use both.
"""

from collections.abc import Callable, Iterator, Sequence

from ottla.metrics.exposition import Family, Sample, counter, gauge, labels
from ottla.replication.fetcher import ReplicaFetchers
from ottla.replication.partition import Partition
from ottla.server.context import Broker
from ottla.server.monitoring.sources import Pace

# A partition and its labels.
Rows = list[tuple[str, Partition]]
Value = Callable[[Partition], int]


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


# Name, description, value; the first are of all replicas, the others of leaders only.
_OF_LOGS: tuple[tuple[str, str, Value], ...] = (
    ("kafka_log_log_size", "Bytes of the log.", lambda replica: replica.log.size_bytes),
    ("kafka_log_log_logstartoffset", "First offset.", lambda replica: replica.log.log_start_offset),
    ("kafka_log_log_logendoffset", "Next offset.", lambda replica: replica.log.log_end_offset),
    ("kafka_log_log_numlogsegments", "Segments.", lambda replica: replica.log.segments_count),
)
_OF_LEADERS: tuple[tuple[str, str, Value], ...] = (
    ("kafka_cluster_partition_underreplicated", "Replicas are missing.", _is_under_replicated),
    (
        "kafka_cluster_partition_underminisr",
        "Fewer in-sync replicas than min.insync.replicas.",
        lambda leader: int(_missing(leader) < 0),
    ),
    (
        "kafka_cluster_partition_atminisr",
        "As many in-sync replicas as min.insync.replicas.",
        lambda leader: int(leader.isr is not None and _missing(leader) == 0),
    ),
    ("kafka_cluster_partition_replicascount", "Replicas.", lambda leader: len(leader.replicas)),
    ("kafka_cluster_partition_insyncreplicascount", "In-sync replicas.", _isr_count),
    (
        "kafka_cluster_partition_laststableoffsetlag",
        "Offsets between the last stable one and the high watermark.",
        lambda leader: leader.high_watermark - leader.log.last_stable_offset(leader.high_watermark),
    ),
    (
        "kafka_topic_partition_current_offset",
        "High watermark.",
        lambda leader: leader.high_watermark,
    ),
    (
        "kafka_topic_partition_oldest_offset",
        "First offset.",
        lambda leader: leader.log.log_start_offset,
    ),
    ("kafka_topic_partition_in_sync_replica", "In-sync replicas.", _isr_count),
    ("kafka_topic_partition_leader", "Id of the leader.", lambda leader: leader.leader),
    (
        "kafka_topic_partition_leader_is_preferred",
        "The preferred replica is the leader.",
        lambda leader: int(leader.leader == leader.replicas[0]),
    ),
    ("kafka_topic_partition_replicas", "Replicas.", lambda leader: len(leader.replicas)),
    (
        "kafka_topic_partition_under_replicated_partition",
        "Replicas are missing.",
        _is_under_replicated,
    ),
)


async def every_partition(partitions: Sequence[Partition], pace: Pace) -> list[Family]:
    """Return the families that have a sample for each partition; they are read when written."""
    online: Rows = []
    for partition in partitions:
        await pace.rest()
        if not partition.is_offline:
            online.append((labels(topic=partition.topic, partition=partition.partition), partition))
    led = [(written, replica) for written, replica in online if replica.is_leader]
    return [
        *(gauge(name, meaning, _samples(online, value)) for name, meaning, value in _OF_LOGS),
        *(gauge(name, meaning, _samples(led, value)) for name, meaning, value in _OF_LEADERS),
    ]


def _samples(rows: Rows, value: Value) -> Iterator[Sample]:
    for written, partition in rows:
        # A log that has failed in the meantime has no values.
        if not partition.is_offline:
            yield written, value(partition)


async def replicas(broker: Broker, partitions: Sequence[Partition], pace: Pace) -> list[Family]:
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
            known = image.partition(partition.topic, partition.partition)
            moving += known is not None and known.is_being_reassigned
    prefix = "kafka_server_replicamanager_"
    return [
        gauge(f"{prefix}leadercount", "Partitions that this broker leads.", led),
        gauge(f"{prefix}partitioncount", "Replicas on this broker.", len(partitions)),
        gauge(f"{prefix}offlinereplicacount", "Replicas in failed directories.", offline),
        gauge(
            f"{prefix}underreplicatedpartitions",
            "Leader partitions with fewer in-sync replicas than replicas.",
            under_replicated,
        ),
        gauge(
            f"{prefix}underminisrpartitioncount",
            "Leader partitions with fewer in-sync replicas than min.insync.replicas.",
            under_minimum,
        ),
        gauge(
            f"{prefix}atminisrpartitioncount",
            "Leader partitions with as many in-sync replicas as min.insync.replicas.",
            at_minimum,
        ),
        gauge(
            f"{prefix}reassigningpartitions", "Leader partitions that are being reassigned.", moving
        ),
        counter(
            f"{prefix}isrshrinks_total",
            "Removals of replicas from the ISR.",
            broker.isr_updates.shrinks_count,
        ),
        counter(
            f"{prefix}isrexpands_total",
            "Additions of replicas to the ISR.",
            broker.isr_updates.expansions_count,
        ),
    ]


async def followed(fetchers: ReplicaFetchers | None, pace: Pace) -> list[Family]:
    """Return how far this broker's replicas are behind their leaders (FetcherLagMetrics)."""
    rows: list[Sample] = []
    largest = 0
    for fetcher in fetchers.fetchers() if fetchers is not None else ():
        client_id = f"ReplicaFetcherThread-0-{fetcher.leader}"
        for item in fetcher.fetches:
            await pace.rest()
            written = labels(clientid=client_id, topic=item.topic, partition=item.key[1])
            # As in Kafka, an unknown lag is -1.
            rows.append((written, item.lag))
            largest = max(largest, item.lag)
    return [
        gauge(
            "kafka_server_fetcherlagmetrics_consumerlag",
            "Records by which a replica is behind its leader's high watermark.",
            rows,
        ),
        gauge(
            "kafka_server_replicafetchermanager_maxlag",
            "Largest lag of this broker's replicas behind their leaders, in records.",
            [(labels(clientid="Replica"), largest)],
        ),
    ]
