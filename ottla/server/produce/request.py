"""A produce request: its context, and the partition and record bytes of each of its items."""

from typing import Any, Protocol

from ottla.base.clock import Clock
from ottla.base.tasks import Tasks
from ottla.cluster.image import BrokerImage, ClusterImage
from ottla.net.connection import Connection
from ottla.replication.partition import Partition
from ottla.replication.replicas import Replicas
from ottla.server.produce.admission import Admission
from ottla.server.produce.heavy_batches import HeavyBatches
from ottla.server.quotas.clients import RequestUsage
from ottla.wire.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from ottla.wire.schema import first_version

_FIRST_VERSION_WITH_TOPIC_IDS = first_version(TopicProduceData, "topic_id")


class ProduceBroker(Protocol):
    """The parts of a broker that produce requests need."""

    @property
    def clock(self) -> Clock:
        """The monotonic clock of the broker's loop."""
        ...

    @property
    def image(self) -> ClusterImage:
        """The cluster's metadata as of now."""
        ...

    @property
    def replicas(self) -> Replicas:
        """The partitions of the broker."""
        ...

    @property
    def admission(self) -> Admission:
        """The admission of transactional batches."""
        ...

    @property
    def heavy_batches(self) -> HeavyBatches:
        """The validation of large batches."""
        ...

    @property
    def tasks(self) -> Tasks:
        """The background tasks of the broker."""
        ...


class ProduceContext(Protocol):
    """The parts of a request's context that a produce request needs."""

    # True if the next requests of the connection must wait for this response.
    keeps_order: bool

    @property
    def broker(self) -> ProduceBroker:
        """The broker that serves the request."""
        ...

    @property
    def connection(self) -> Connection:
        """The connection that the response is sent on."""
        ...

    @property
    def api_version(self) -> int:
        """The version of the request."""
        ...

    @property
    def client_id(self) -> str | None:
        """The name that the client has chosen."""
        ...

    @property
    def usage(self) -> RequestUsage | None:
        """The quotas of the client; None without a quota."""
        ...

    def address_of(self, broker: BrokerImage) -> tuple[str, int] | None:
        """Return the address at which the client reaches a broker."""
        ...


def target_of(
    context: ProduceContext, topic: TopicProduceData, item: PartitionProduceData
) -> Partition:
    """Return the partition that the item is for; raises ApiError if it is not on this broker."""
    replicas = context.broker.replicas
    if context.api_version >= _FIRST_VERSION_WITH_TOPIC_IDS:
        return replicas.get_by_id(topic.topic_id, item.index)
    return replicas.get(topic.name, item.index)


def bytes_of(item: PartitionProduceData) -> Any:
    """Return the record batch, or None: decoded record bytes are one view over the frame."""
    return item.records


def keep_records(request: ProduceRequest) -> int:
    """Copy the records out of the frame; return their size."""
    size = 0
    for topic in request.topic_data:
        for item in topic.partition_data:
            if item.records is not None:
                item.records = bytearray(bytes_of(item))
                size += len(item.records)
    return size
