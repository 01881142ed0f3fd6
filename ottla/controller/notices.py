"""What the controller sends to a broker because of one event, and the port that it is sent through."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from ottla.base.errors import ErrorCode
from ottla.cluster.image import BrokerImage, ClusterImage, PartitionState, TopicImage

TopicPartition = tuple[str, int]


class Fence(NamedTuple):
    """Who is speaking to which life of a broker: requests of others are refused (KIP-380)."""

    controller_id: int
    controller_epoch: int
    broker_epoch: int


class MetadataUpdate(NamedTuple):
    """What has changed in the image. `brokers` is the whole list, or None where it is the same.

    Where it `is_complete`, `changed` is every topic: others that a broker remembers are gone.
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
            gone = [broker_id for broker_id in image.brokers if broker_id not in self.brokers]
            image = image.with_brokers(self.brokers.values(), gone)
        return image.with_controller(fence.controller_id, fence.controller_epoch)

    def _names(self) -> set[str]:
        return {topic.name for topic in self.changed}


class BrokerPort(Protocol):
    """One broker as the controller reaches it; a call over the network or into this process.

    Each raises ApiError STALE_CONTROLLER_EPOCH or STALE_BROKER_EPOCH where the fence is outdated,
    and BROKER_NOT_AVAILABLE where the broker cannot be reached now.
    """

    async def apply_leader_and_isr(
        self, fence: Fence, states: Sequence[PartitionState]
    ) -> Mapping[TopicPartition, ErrorCode]:
        """Make the broker's replicas what `states` say."""
        ...

    async def update_metadata(self, fence: Fence, update: MetadataUpdate) -> None:
        """Make the broker's image what the controller's is."""
        ...

    async def stop_replicas(
        self, fence: Fence, partitions: Sequence[TopicPartition], *, delete: bool
    ) -> Mapping[TopicPartition, ErrorCode]:
        """Stop the replicas and, with `delete`, remove their logs; unknown ones are no error."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Notice:
    """Everything that one broker is told because of one event."""

    broker_id: int
    leaders: Sequence[PartitionState] = ()
    metadata: MetadataUpdate | None = None
    stop: Sequence[TopicPartition] = ()
    delete: bool = False


class Delivered(NamedTuple):
    """What a broker answered to a notice; `errors` are of the partitions that have one."""

    notice: Notice
    errors: Mapping[TopicPartition, ErrorCode]
