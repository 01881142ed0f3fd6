"""Pictures of a running cluster: logs on disks, leaders, in-sync replicas, high watermarks, groups."""

import json
from collections import Counter
from collections.abc import Mapping
from pathlib import Path

from ottla.base.errors import ApiError, OttlaError
from ottla.client.admin import groups, offsets
from ottla.cluster.image import NO_LEADER, PartitionImage
from ottla.testing.cluster import Cluster
from ottla.testing.learn.events import GroupView, PartitionView, ReplicaView, Slot
from ottla.wire.records.records import decode_batch, iterate_batches

_UNKNOWN = -1
_VALUE_LENGTH = 20


def partition_image(cluster: Cluster, topic: str, partition: int = 0) -> PartitionImage:
    """Return the newest state of a partition that a live broker knows."""
    images = [
        image
        for broker in cluster.live_brokers
        if (image := cluster.node(broker).broker.image.partition(topic, partition)) is not None
    ]
    if not images:
        raise OttlaError(f"no live broker knows {topic}-{partition}")
    return max(images, key=lambda image: (image.leader_epoch, image.partition_epoch))


def partition_view(cluster: Cluster, topic: str, partition: int = 0) -> PartitionView:
    """Return one partition as it is now."""
    image = partition_image(cluster, topic, partition)
    return PartitionView(
        topic,
        partition,
        image.leader,
        image.leader_epoch,
        tuple(sorted(image.isr)),
        high_watermark(cluster, topic, partition),
        tuple(
            _replica(cluster, topic, partition, broker, image) for broker in sorted(image.replicas)
        ),
    )


def high_watermark(cluster: Cluster, topic: str, partition: int = 0) -> int:
    """Return the high watermark that the leader knows; -1 without a live leader."""
    leader = partition_image(cluster, topic, partition).leader
    if leader == NO_LEADER or leader not in cluster.live_brokers:
        return _UNKNOWN
    return int(cluster.node(leader).broker.replicas.get(topic, partition).high_watermark)


def log_end_offset(cluster: Cluster, broker: int, topic: str, partition: int = 0) -> int:
    """Return the offset of the next record of a live replica."""
    return int(cluster.node(broker).broker.replicas.get(topic, partition).log.log_end_offset)


def stored(cluster: Cluster, broker: int, topic: str, partition: int = 0) -> list[Slot]:
    """Return the records on the disk of a broker, which may be down."""
    slots = []
    for data in _segments(cluster, broker, topic, partition):
        for position, header in iterate_batches(data):
            if header.is_control:
                slots.append(Slot(header.base_offset, "marker"))
                continue
            records = decode_batch(data, position, header=header)
            slots += [Slot(record.offset, _text(record.value)) for record in records]
    return slots


def _text(value: bytes | None) -> str:
    text = (value or b"").decode("utf-8", "backslashreplace")
    return text if len(text) <= _VALUE_LENGTH else text[: _VALUE_LENGTH - 1] + "…"


def batches(cluster: Cluster, broker: int, topic: str, partition: int = 0) -> list[tuple[int, int]]:
    """Return the number of records and the size in bytes of each batch on the disk of a broker."""
    return [
        (header.last_offset - header.base_offset + 1, header.size_bytes)
        for data in _segments(cluster, broker, topic, partition)
        for _, header in iterate_batches(data)
    ]


class RequestCounter:
    """Counts the requests of one client by API; the option `stats_cb` of the client."""

    def __init__(self) -> None:
        self._counts: Counter[str] = Counter()

    def __call__(self, statistics: str) -> None:
        """Read librdkafka's statistics, which are totals."""
        counts: Counter[str] = Counter()
        for broker in json.loads(statistics)["brokers"].values():
            counts.update(broker["req"])
        self._counts = counts

    def __getitem__(self, api: str) -> int:
        """Return the number of requests of an API, like "Fetch", so far."""
        return self._counts[api]


def folder(cluster: Cluster, broker: int, topic: str, partition: int = 0) -> Path:
    """Return the folder of a replica."""
    root = cluster.data if len(cluster.brokers) == 1 else cluster.data / f"broker{broker}"
    return root / f"{topic}-{partition}"


def _segments(cluster: Cluster, broker: int, topic: str, partition: int) -> list[bytes]:
    files = sorted(folder(cluster, broker, topic, partition).glob("*.log"))
    return [path.read_bytes() for path in files]


def _replica(
    cluster: Cluster, topic: str, partition: int, broker: int, image: PartitionImage
) -> ReplicaView:
    records = tuple(stored(cluster, broker, topic, partition))
    end = records[-1].offset + 1 if records else 0
    if broker not in cluster.live_brokers:
        return ReplicaView(broker, "down", end, records)
    end = log_end_offset(cluster, broker, topic, partition)
    if broker == image.leader:
        return ReplicaView(broker, "leader", end, records)
    state = "in sync" if broker in image.isr else "out of sync"
    return ReplicaView(broker, state, end, records)


def group_view(cluster: Cluster, group: str, names: Mapping[str, str] | None = None) -> GroupView:
    """Return a group as its coordinator describes it; `names` replace client ids."""
    with cluster.admin() as brokers:
        try:
            described = groups.describe_group(brokers, group)
        except ApiError:
            return GroupView(group, {}, {})
        committed = offsets.committed_offsets(brokers, group)
    members = {
        (names or {}).get(member.client_id, member.client_id): tuple(
            f"{topic}-{partition}" for topic, partition in sorted(member.assignment)
        )
        for member in sorted(described.members, key=lambda row: row.client_id)
    }
    rows = {f"{key[0]}-{key[1]}": row.offset for key, row in sorted(committed.items())}
    return GroupView(group, members, rows)
