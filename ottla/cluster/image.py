"""The cluster metadata of a broker: frozen values, and a new value for every change.

The controller builds it from znodes, brokers from the controller's requests; request handlers read
it and never wait. To change one of ten thousand topics, two mappings are copied, nothing deeper.
Independent of znodes, files and connections. Follows Kafka's MetadataCache and MetadataImage.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from ottla.base.uuids import ZERO_UUID

NO_LEADER = -1
# LeaderAndIsr.LeaderDuringDelete: the partition is being deleted, no election may restore it.
LEADER_DURING_DELETE = -2
NO_EPOCH = -1
NO_CONTROLLER = -1


class Endpoint(NamedTuple):
    """The address of one listener of a broker; `listener` is its name, not its protocol."""

    listener: str
    host: str
    port: int
    security_protocol: str = "PLAINTEXT"

    @property
    def address(self) -> str:
        """Host and port as clients write them."""
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


@dataclass(frozen=True, slots=True)
class BrokerImage:
    """A registered broker. `epoch` is the czxid of its registration and fences its former
    processes.

    `host`, `port` and `listener` are the endpoint that clients use by default; `endpoints` lists
    all endpoints, and is empty if there is only that one. `registered_ms` is the time of the
    registration by the broker's clock, 0 if it is not known.
    """

    id: int
    host: str
    port: int
    rack: str | None = None
    epoch: int = NO_EPOCH
    listener: str = "PLAINTEXT"
    security_protocol: str = "PLAINTEXT"
    endpoints: tuple[Endpoint, ...] = ()
    registered_ms: int = field(default=0, compare=False)

    def endpoint(self, listener: str) -> Endpoint | None:
        """Return the endpoint of the named listener; None if the broker does not have it."""
        for endpoint in self.every_endpoint():
            if endpoint.listener == listener:
                return endpoint
        return None

    def every_endpoint(self) -> tuple[Endpoint, ...]:
        """Return all endpoints; only the default one if none are listed."""
        if self.endpoints:
            return self.endpoints
        return (Endpoint(self.listener, self.host, self.port, self.security_protocol),)


class ReplicaAssignment(NamedTuple):
    """The replicas of a partition, and which of them are being added or removed (KIP-455)."""

    replicas: tuple[int, ...]
    adding_replicas: tuple[int, ...] = ()
    removing_replicas: tuple[int, ...] = ()

    @property
    def target_replicas(self) -> tuple[int, ...]:
        """The replicas that remain when the reassignment is complete."""
        return tuple(replica for replica in self.replicas if replica not in self.removing_replicas)

    @property
    def original_replicas(self) -> tuple[int, ...]:
        """The replicas that remain if the reassignment is cancelled."""
        return tuple(replica for replica in self.replicas if replica not in self.adding_replicas)


@dataclass(frozen=True, slots=True)
class LeaderAndIsr:
    """The leader and the in-sync replicas of a partition: the content of its state znode.

    `partition_epoch` is the znode's version. `is_recovering` follows an unclean election (KIP-704).
    """

    leader: int
    leader_epoch: int
    isr: tuple[int, ...]
    partition_epoch: int = 0
    is_recovering: bool = False

    def with_leader(self, leader: int, isr: tuple[int, ...]) -> "LeaderAndIsr":
        """Return the state after an election: the leader epoch is incremented even if the leader
        stays.
        """
        return replace(self, leader=leader, leader_epoch=self.leader_epoch + 1, isr=isr)


@dataclass(frozen=True, slots=True)
class PartitionState:
    """The state of a partition that the controller sends to a replica (in LeaderAndIsr)."""

    topic: str
    topic_id: bytes
    partition: int
    leader: int
    leader_epoch: int
    isr: tuple[int, ...]
    replicas: tuple[int, ...]
    is_new: bool = False
    partition_epoch: int = 0
    adding_replicas: tuple[int, ...] = ()
    removing_replicas: tuple[int, ...] = ()
    is_recovering: bool = False


@dataclass(frozen=True, slots=True)
class PartitionImage:
    """One partition; `leader` is -1 if none can be elected, `replicas[0]` is the preferred one.

    `failed_replicas` are the members of `offline_replicas` whose broker is live, but whose log
    directory failed.
    """

    partition: int
    leader: int
    leader_epoch: int
    isr: tuple[int, ...]
    replicas: tuple[int, ...]
    adding_replicas: tuple[int, ...] = ()
    removing_replicas: tuple[int, ...] = ()
    offline_replicas: tuple[int, ...] = ()
    partition_epoch: int = 0
    is_recovering: bool = False
    failed_replicas: tuple[int, ...] = ()

    @property
    def preferred_leader(self) -> int:
        """The first replica, which leads while it is in sync."""
        return self.replicas[0] if self.replicas else NO_LEADER

    def live(self, brokers: Collection[int]) -> Collection[int]:
        """Return the brokers that can serve this partition: all but those on which it has failed."""
        if not self.failed_replicas:
            return brokers
        return {broker for broker in brokers if broker not in self.failed_replicas}

    @property
    def is_being_reassigned(self) -> bool:
        """True if replicas are being added or removed (KIP-455)."""
        return bool(self.adding_replicas or self.removing_replicas)


@dataclass(frozen=True, slots=True)
class TopicImage:
    """A topic; `partitions[n]` is partition n."""

    name: str
    topic_id: bytes
    partitions: tuple[PartitionImage, ...]

    def partition(self, number: int) -> PartitionImage | None:
        """Return one partition; None if the topic does not have it."""
        return self.partitions[number] if 0 <= number < len(self.partitions) else None

    def with_partitions(self, changed: Iterable[PartitionImage]) -> "TopicImage":
        """Return the topic with partitions replaced, or appended without a gap."""
        partitions = list(self.partitions)
        appended: dict[int, PartitionImage] = {}
        for partition in changed:
            if partition.partition < len(partitions):
                partitions[partition.partition] = partition
            else:
                appended[partition.partition] = partition
        partitions += [appended[number] for number in sorted(appended)]
        is_complete = not appended or partitions[-1].partition == len(partitions) - 1
        assert is_complete, "partitions have a gap"
        return TopicImage(self.name, self.topic_id, tuple(partitions))

    def differences(self, former: "TopicImage") -> list[PartitionImage]:
        """Return the partitions that are not the same objects as in `former`."""
        changed = [
            partition
            for partition, earlier in zip(self.partitions, former.partitions, strict=False)
            if partition is not earlier
        ]
        return [*changed, *self.partitions[len(former.partitions) :]]

    def states(self, *, is_new: bool = False) -> list[PartitionState]:
        """Return every partition as the controller sends it to replicas."""
        return [self.state(partition, is_new=is_new) for partition in self.partitions]

    def state(self, partition: PartitionImage, *, is_new: bool = False) -> PartitionState:
        """Return one of its partitions as the controller sends it to replicas."""
        return PartitionState(
            topic=self.name,
            topic_id=self.topic_id,
            partition=partition.partition,
            leader=partition.leader,
            leader_epoch=partition.leader_epoch,
            isr=partition.isr,
            replicas=partition.replicas,
            is_new=is_new,
            partition_epoch=partition.partition_epoch,
            adding_replicas=partition.adding_replicas,
            removing_replicas=partition.removing_replicas,
            is_recovering=partition.is_recovering,
        )


@dataclass(frozen=True, slots=True)
class ClusterImage:
    """The metadata of the whole cluster. Its mappings are never changed in place: an image can be
    kept.

    `topic_names` maps topic ids to names; topics without an id (from before KIP-516) are not in it.
    """

    cluster_id: str | None = None
    controller_id: int = NO_CONTROLLER
    controller_epoch: int = 0
    brokers: Mapping[int, BrokerImage] = field(default_factory=dict)
    topics: Mapping[str, TopicImage] = field(default_factory=dict)
    topic_names: Mapping[bytes, str] = field(default_factory=dict)

    def topic(self, name: str) -> TopicImage | None:
        """Return a topic by its name; None if it does not exist."""
        return self.topics.get(name)

    def topic_by_id(self, topic_id: bytes) -> TopicImage | None:
        """Return a topic by its id; None if it does not exist."""
        name = self.topic_names.get(topic_id)
        return None if name is None else self.topics.get(name)

    def partition(self, topic: str, partition: int) -> PartitionImage | None:
        """Return a partition; None if the topic or the partition does not exist."""
        topic_image = self.topics.get(topic)
        return None if topic_image is None else topic_image.partition(partition)

    def broker(self, broker_id: int) -> BrokerImage | None:
        """Return a live broker; None if it is not registered."""
        return self.brokers.get(broker_id)

    def parts(self, partitions_count: int) -> "Iterator[ClusterImage]":
        """Yield images with some of the topics each, of about this many partitions together.

        A topic is in one part, however many partitions it has. Without topics there is one part.
        """
        topics: dict[str, TopicImage] = {}
        count = 0
        for name, topic in self.topics.items():
            topics[name] = topic
            count += len(topic.partitions)
            if count >= partitions_count:
                yield replace(self, topics=topics)
                topics, count = {}, 0
        if topics or not self.topics:
            yield replace(self, topics=topics)

    def with_topics(
        self, changed: Iterable[TopicImage] = (), deleted: Iterable[str] = ()
    ) -> "ClusterImage":
        """Return the image with topics created or replaced, and others removed.

        A name in both is a topic that was deleted and created again.
        """
        topics = dict(self.topics)
        names: dict[bytes, str] | None = None
        for name in deleted:
            removed = topics.pop(name, None)
            if removed is not None and removed.topic_id in self.topic_names:
                names = dict(self.topic_names) if names is None else names
                names.pop(removed.topic_id, None)
        for topic in changed:
            former = topics.get(topic.name)
            topics[topic.name] = topic
            if former is not None and former.topic_id == topic.topic_id:
                continue
            names = dict(self.topic_names) if names is None else names
            if former is not None:
                names.pop(former.topic_id, None)
            if topic.topic_id != ZERO_UUID:
                names[topic.topic_id] = topic.name
        return replace(
            self, topics=topics, topic_names=self.topic_names if names is None else names
        )

    def with_brokers(
        self, changed: Iterable[BrokerImage] = (), removed: Iterable[int] = ()
    ) -> "ClusterImage":
        """Return the image with brokers added or replaced, and others removed; ids stay sorted."""
        brokers = dict(self.brokers)
        for broker_id in removed:
            brokers.pop(broker_id, None)
        brokers.update((broker.id, broker) for broker in changed)
        return replace(self, brokers={key: brokers[key] for key in sorted(brokers)})

    def with_controller(self, controller_id: int, controller_epoch: int) -> "ClusterImage":
        """Return the image with another controller."""
        return replace(self, controller_id=controller_id, controller_epoch=controller_epoch)
