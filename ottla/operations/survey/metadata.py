"""The metadata of a whole cluster in one request, cached for a second."""

from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass

from ottla.base.errors import ApiError, ErrorCode
from ottla.client.admin.cluster import Broker
from ottla.client.admin.topics import Topic, topic_of
from ottla.operations.survey.connections import ClusterConnection

Key = tuple[str, int]
State = tuple[int, tuple[int, ...], tuple[int, ...]]
"""The leader, the replicas and the ISR of a partition."""

_TTL_S = 1.0
# Longer than the pause between two readings of an open page, which therefore does not wait.
_STALE_S = 9.0
# Numbers of all partitions of a cluster take so long that no page waits for them.
_LARGE_PARTITIONS = 2000
_TRANSIENT = frozenset({ErrorCode.LEADER_NOT_AVAILABLE, ErrorCode.REPLICA_NOT_AVAILABLE})


@dataclass(frozen=True, slots=True)
class Metadata:
    """The brokers and topics of a cluster; `controller_id` is -1 while there is none."""

    cluster_id: str
    controller_id: int
    nodes: Mapping[int, Broker]
    topics: Mapping[str, Topic]
    read_at_ms: int

    def topic(self, name: str) -> Topic:
        """Return a topic; ApiError UNKNOWN_TOPIC_OR_PARTITION if there is none."""
        if name not in self.topics:
            raise unknown_topic(name)
        return self.topics[name]

    @property
    def is_large(self) -> bool:
        """True if pages show numbers of all partitions only when another thread has read them."""
        return sum(len(topic.partitions) for topic in self.topics.values()) > _LARGE_PARTITIONS

    def states(self) -> Counter[State]:
        """Return the different states of partitions with their numbers: few in a large cluster."""
        return Counter(
            (row.leader, row.replicas, row.isr)
            for topic in self.topics.values()
            for row in topic.partitions
        )

    def leaders(self) -> dict[Key, int]:
        """Return the leader of each partition that has one, if it is running."""
        return {
            (topic.name, partition.partition): partition.leader
            for topic in self.topics.values()
            for partition in topic.partitions
            if partition.leader in self.nodes
        }

    def leaders_among(self, keys: Collection[Key]) -> dict[Key, int]:
        """Return the leader of each of these partitions that has one, if it is running."""
        leaders = {
            (name, row.partition): row.leader
            for name in {name for name, _ in keys} & self.topics.keys()
            for row in self.topics[name].partitions
        }
        return {key: leaders[key] for key in keys if leaders.get(key) in self.nodes}


def read_metadata(connection: ClusterConnection, *, is_fresh: bool = False) -> Metadata:
    """Return the metadata of all topics; with `is_fresh` none from the cache."""
    if is_fresh:
        return connection.reload("metadata", lambda: _load(connection))
    return connection.cached("metadata", _TTL_S, lambda: _load(connection), stale_s=_STALE_S)


def read_topic(connection: ClusterConnection, name: str) -> Topic:
    """Return the current metadata of one topic; ApiError UNKNOWN_TOPIC_OR_PARTITION if there is
    none.
    """
    with connection.brokers() as brokers:
        (described,) = brokers.retry(lambda: brokers.metadata([name])).topics
        if described.error_code and described.error_code not in _TRANSIENT:
            if described.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
                raise unknown_topic(name)
            code = ErrorCode(described.error_code)
            raise ApiError(code, f"Topic {name!r}: {code.message}")
        return topic_of(described, {})


def leaders_of(topic: Topic) -> dict[Key, int]:
    """Return the leader of each partition of a topic that has one."""
    return {(topic.name, row.partition): row.leader for row in topic.partitions if row.leader >= 0}


def unknown_topic(name: str) -> ApiError:
    """Return the error for a topic that does not exist."""
    return ApiError(
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        f"There is no topic {name!r}: it may have been deleted. Choose one from the list.",
    )


def _load(connection: ClusterConnection) -> Metadata:
    with connection.brokers() as brokers:
        response = brokers.retry(lambda: brokers.metadata(None))
    nodes = {
        row.node_id: Broker(row.node_id, row.host, row.port, row.rack)
        for row in sorted(response.brokers, key=lambda row: row.node_id)
    }
    shared: dict[tuple[int, ...], tuple[int, ...]] = {}
    topics = sorted((topic_of(row, shared) for row in response.topics), key=lambda row: row.name)
    return Metadata(
        cluster_id=response.cluster_id or "",
        controller_id=response.controller_id,
        nodes=nodes,
        topics={topic.name: topic for topic in topics if topic.name},
        read_at_ms=connection.now_ms(),
    )
