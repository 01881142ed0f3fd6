"""The content of a notice from the controller to a broker, and the port that delivers it."""

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple, Protocol

from ottla.base.errors import ErrorCode
from ottla.cluster.image import BrokerImage, ClusterImage, PartitionState, TopicImage

TopicPartition = tuple[str, int]


class Fence(NamedTuple):
    """The epochs of sender and receiver: a broker rejects a request if one is stale (KIP-380)."""

    controller_id: int
    controller_epoch: int
    broker_epoch: int


class MetadataUpdate(NamedTuple):
    """The change of an image. `brokers` is the complete list, or None if it did not change.

    If `is_complete`, `changed` contains every topic, and the receiver drops all others.
    """

    brokers: Mapping[int, BrokerImage] | None
    changed: Sequence[TopicImage]
    deleted: Sequence[str]
    is_complete: bool = False

    def apply(self, image: ClusterImage, fence: Fence) -> ClusterImage:
        """Return a broker's image after this update."""
        deleted = image.topics.keys() - self._names() if self.is_complete else self.deleted
        if self.changed or deleted:
            image = image.with_topics(self.changed, deleted)
        if self.brokers is not None:
            removed = [broker_id for broker_id in image.brokers if broker_id not in self.brokers]
            image = image.with_brokers(self.brokers.values(), removed)
        return image.with_controller(fence.controller_id, fence.controller_epoch)

    def _names(self) -> set[str]:
        return {topic.name for topic in self.changed}


class BrokerPort(Protocol):
    """The connection from the controller to one broker, over the network or within this process.

    Every method raises ApiError STALE_CONTROLLER_EPOCH or STALE_BROKER_EPOCH if the fence is stale,
    and BROKER_NOT_AVAILABLE if the broker cannot be reached now.
    """

    async def introduce(self, fence: Fence, brokers: Mapping[int, BrokerImage]) -> None:
        """Set the live brokers: a follower needs the address of its leader."""
        ...

    async def apply_leader_and_isr(
        self, fence: Fence, states: Sequence[PartitionState]
    ) -> Mapping[TopicPartition, ErrorCode]:
        """Apply the partition states to the broker's replicas."""
        ...

    async def update_metadata(self, fence: Fence, update: MetadataUpdate) -> None:
        """Apply a metadata update to the broker's image."""
        ...

    async def stop_replicas(
        self, fence: Fence, partitions: Sequence[TopicPartition], *, delete: bool
    ) -> Mapping[TopicPartition, ErrorCode]:
        """Stop the replicas and, with `delete`, delete their logs; unknown replicas are ignored."""
        ...

    async def wait_until_gone(self, reached: Callable[[], None]) -> None:
        """Return when the broker's process has ended; its session may still last.

        Calls `reached` whenever the process has accepted a connection.
        """
        ...

    def close(self) -> None:
        """Release the connection."""
        ...


class Notice(NamedTuple):
    """All requests that one event causes for one broker."""

    broker_id: int
    leaders: Sequence[PartitionState] = ()
    metadata: MetadataUpdate | None = None
    stop: Sequence[TopicPartition] = ()
    delete: bool = False


class Delivered(NamedTuple):
    """A broker's response to a notice; `errors` contains only partitions that failed."""

    notice: Notice
    errors: Mapping[TopicPartition, ErrorCode]
