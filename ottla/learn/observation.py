"""Pictures of a running cluster: logs on disks, leaders, in-sync replicas, high watermarks, groups,
znodes.
"""

import json
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from ottla.base.errors import ApiError, OttlaError
from ottla.base.loading import deferred_module
from ottla.client.admin import groups, offsets
from ottla.cluster.image import NO_LEADER, PartitionImage
from ottla.cluster.zk.port import Coordination, NoNode
from ottla.cluster.znodes import ControllerNode
from ottla.learn.events import GroupView, PartitionView, ReplicaView, Slot
from ottla.wire.messages.find_coordinator import FindCoordinatorRequest, FindCoordinatorResponse
from ottla.wire.records.batch import BatchHeader
from ottla.wire.records.records import Record, decode_batch, iterate_batches

# The list of lessons needs none of them.
if TYPE_CHECKING:
    import asyncio

    from ottla.storage.files import checkpoints
    from ottla.testing.cluster import Cluster
else:
    asyncio = deferred_module("asyncio")
    checkpoints = deferred_module("ottla.storage.files.checkpoints")

_UNKNOWN = -1
_VALUE_LENGTH = 20


def partition_image(cluster: "Cluster", topic: str, partition: int = 0) -> PartitionImage:
    """Return the newest state of a partition that a live broker knows."""
    images = [
        image
        for broker in cluster.live_brokers
        if (image := cluster.node(broker).broker.image.partition(topic, partition)) is not None
    ]
    if not images:
        raise OttlaError(f"no live broker knows {topic}-{partition}")
    return max(images, key=lambda image: (image.leader_epoch, image.partition_epoch))


def partition_view(cluster: "Cluster", topic: str, partition: int = 0) -> PartitionView:
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


def high_watermark(cluster: "Cluster", topic: str, partition: int = 0) -> int:
    """Return the high watermark that the leader knows; -1 without a live leader."""
    leader = partition_image(cluster, topic, partition).leader
    if leader == NO_LEADER or leader not in cluster.live_brokers:
        return _UNKNOWN
    return int(cluster.node(leader).broker.replicas.get(topic, partition).high_watermark)


def log_end_offset(cluster: "Cluster", broker: int, topic: str, partition: int = 0) -> int:
    """Return the offset of the next record of a live replica."""
    return int(cluster.node(broker).broker.replicas.get(topic, partition).log.log_end_offset)


def requests_count(cluster: "Cluster", broker: int, api: str) -> int:
    """Return how many requests of an API, like "Fetch", a live broker has received."""
    routes = cluster.node(broker).sources.routes()
    return sum(route.requests_count for route in routes if route.probe.name == api)


def reads_count(cluster: "Cluster", broker: int, topic: str, partition: int = 0) -> int:
    """Return how many reads of a live replica were requested, without other partitions."""
    return int(cluster.node(broker).broker.replicas.get(topic, partition).fetches_count)


def stored(cluster: "Cluster", broker: int, topic: str, partition: int = 0) -> list[Slot]:
    """Return the records on the disk of a broker, which may be down."""
    slots = []
    for header, records in _batches(cluster, broker, topic, partition):
        if header.is_control:
            slots.append(Slot(header.base_offset, "marker"))
            continue
        slots += [Slot(record.offset, _text(record.value)) for record in records]
    return slots


def raw_records(cluster: "Cluster", broker: int, topic: str, partition: int = 0) -> list[Record]:
    """Return the records on the disk of a broker with their bytes, without transaction markers."""
    return [
        record
        for header, records in _batches(cluster, broker, topic, partition)
        if not header.is_control
        for record in records
    ]


def _batches(
    cluster: "Cluster", broker: int, topic: str, partition: int
) -> Iterator[tuple[BatchHeader, list[Record]]]:
    for data in _segments(cluster, broker, topic, partition):
        for position, header in iterate_batches(data):
            yield header, decode_batch(data, position, header=header)


def _text(value: bytes | None) -> str:
    text = (value or b"").decode("utf-8", "backslashreplace")
    return text if len(text) <= _VALUE_LENGTH else text[: _VALUE_LENGTH - 1] + "…"


def batches(
    cluster: "Cluster", broker: int, topic: str, partition: int = 0
) -> list[tuple[int, int]]:
    """Return the number of records and the size in bytes of each batch on the disk of a broker."""
    return [
        (header.last_offset - header.base_offset + 1, header.size_bytes)
        for data in _segments(cluster, broker, topic, partition)
        for _, header in iterate_batches(data)
    ]


class RequestCounter:
    """Counts the requests of one client by API; the option `stats_cb` of the client.

    `timeouts` is the number of requests whose response did not arrive in time.
    """

    def __init__(self) -> None:
        self._counts: Counter[str] = Counter()
        self.timeouts = 0

    def __call__(self, statistics: str) -> None:
        """Read librdkafka's statistics, which are totals."""
        counts: Counter[str] = Counter()
        brokers = json.loads(statistics)["brokers"].values()
        for broker in brokers:
            counts.update(broker["req"])
        self._counts = counts
        self.timeouts = sum(broker["req_timeouts"] for broker in brokers)

    def __getitem__(self, api: str) -> int:
        """Return the number of requests of an API, like "Fetch", so far."""
        return self._counts[api]


def folder(cluster: "Cluster", broker: int, topic: str, partition: int = 0) -> Path:
    """Return the folder of a replica."""
    return _root(cluster, broker) / f"{topic}-{partition}"


def checkpointed_high_watermark(
    cluster: "Cluster", broker: int, topic: str, partition: int = 0
) -> int:
    """Return the high watermark on the disk of a broker; -1 if it has not been written yet."""
    path = _root(cluster, broker) / checkpoints.HIGH_WATERMARK_FILE
    if not path.exists():
        return _UNKNOWN
    return checkpoints.parse_offsets(path.read_bytes()).get((topic, partition), _UNKNOWN)


def controller(cluster: "Cluster") -> int:
    """Return the controller according to ZooKeeper. Needs several brokers."""
    return ControllerNode.decode((znode(cluster, ControllerNode.PATH) or "").encode())


def znode(cluster: "Cluster", path: str) -> str | None:
    """Return the content of a ZooKeeper node; None if it does not exist. Needs several brokers."""
    try:
        data, _ = asyncio.run(_session(cluster).get(path))
    except NoNode:
        return None
    return data.decode()


def znodes(cluster: "Cluster", path: str) -> list[str]:
    """Return the names of the children of a node in ZooKeeper. Needs several brokers."""
    return asyncio.run(_session(cluster).children(path))


def _session(cluster: "Cluster") -> Coordination:
    """Return a broker's session, which any event loop may use if the tree has its own thread."""
    return cluster.node(cluster.live_brokers[0]).broker.controller.session


def _root(cluster: "Cluster", broker: int) -> Path:
    return cluster.data if len(cluster.brokers) == 1 else cluster.data / f"broker{broker}"


def _segments(cluster: "Cluster", broker: int, topic: str, partition: int) -> list[bytes]:
    files = sorted(folder(cluster, broker, topic, partition).glob("*.log"))
    return [path.read_bytes() for path in files]


def _replica(
    cluster: "Cluster", topic: str, partition: int, broker: int, image: PartitionImage
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


def group_view(cluster: "Cluster", group: str, names: Mapping[str, str] | None = None) -> GroupView:
    """Return a group as its coordinator describes it; `names` replace client ids."""
    with cluster.admin() as brokers:
        try:
            described = groups.describe_group(brokers, group)
        except ApiError:
            return GroupView(group, {}, {})
        stored_offsets = offsets.committed_offsets(brokers, group)
    members = {
        (names or {}).get(member.client_id, member.client_id): tuple(
            f"{topic}-{partition}" for topic, partition in sorted(member.assignment)
        )
        for member in sorted(described.members, key=lambda row: row.client_id)
    }
    rows = {f"{key[0]}-{key[1]}": row.offset for key, row in sorted(stored_offsets.items())}
    return GroupView(group, members, rows)


def committed(cluster: "Cluster", group: str) -> dict[str, int]:
    """Return the committed offsets of a group by partition, as topic-partition."""
    return dict(group_view(cluster, group).committed)


def coordinator(cluster: "Cluster", group: str) -> int:
    """Return the broker that coordinates a group."""
    request = FindCoordinatorRequest(key=group, key_type=0)
    with cluster.admin() as brokers:
        response = brokers.retry(
            lambda: brokers.ask(request, FindCoordinatorResponse, max_version=3)
        )
    return int(response.node_id)
