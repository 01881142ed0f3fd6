"""Partition states and metadata between the controller's values and the wire. Pure.

Used in both directions: by the port that sends them, and by the handlers that receive them. Follows
ControllerBrokerRequestBatch and ZkMetadataCache.updateMetadata.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import NamedTuple

from ottla.base.errors import ApiError, ErrorCode
from ottla.cluster import names
from ottla.cluster.image import (
    LEADER_DURING_DELETE,
    BrokerImage,
    ClusterImage,
    Endpoint,
    PartitionImage,
    PartitionState,
    TopicImage,
)
from ottla.controller.planning.notices import MetadataUpdate
from ottla.wire.messages.leader_and_isr import LeaderAndIsrPartitionState, LeaderAndIsrTopicState
from ottla.wire.messages.update_metadata import (
    UpdateMetadataBroker,
    UpdateMetadataEndpoint,
    UpdateMetadataPartitionState,
    UpdateMetadataTopicState,
)

# AbstractControlRequest.Type: the request has everything, so the receiver drops all other topics.
FULL = 2
# Not in Apache Kafka, which ignores it: the rest of the update follows in the next requests.
PART = 64
# Likewise: brokers only, the topics follow.
INTRODUCTION = 65

# The codes of org.apache.kafka.common.security.auth.SecurityProtocol.
_PROTOCOLS = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")
_RECOVERED, _RECOVERING = 0, 1


def leader_states(
    states: Sequence[PartitionState], controller_epoch: int
) -> list[LeaderAndIsrTopicState]:
    """Return partition states as LeaderAndIsr has them; states of one topic must be adjacent."""
    return [
        LeaderAndIsrTopicState(
            topic_name=name,
            topic_id=topic_id,
            partition_states=[_leader_state(state, controller_epoch) for state in group],
        )
        for (name, topic_id), group in groupby(states, lambda state: (state.topic, state.topic_id))
    ]


def _leader_state(state: PartitionState, controller_epoch: int) -> LeaderAndIsrPartitionState:
    return LeaderAndIsrPartitionState(
        partition_index=state.partition,
        controller_epoch=controller_epoch,
        leader=state.leader,
        leader_epoch=state.leader_epoch,
        isr=list(state.isr),
        partition_epoch=state.partition_epoch,
        replicas=list(state.replicas),
        adding_replicas=list(state.adding_replicas),
        removing_replicas=list(state.removing_replicas),
        is_new=state.is_new,
        leader_recovery_state=int(state.is_recovering),
    )


def partition_states(topics: Sequence[LeaderAndIsrTopicState]) -> list[PartitionState]:
    """Return the partition states of a LeaderAndIsr request; ApiError for an invalid topic."""
    for topic in topics:
        names.validate_topic_name(topic.topic_name)
        if any(state.partition_index < 0 for state in topic.partition_states):
            raise ApiError(ErrorCode.INVALID_REQUEST, "a partition has a negative number")
    return [
        PartitionState(
            topic=topic.topic_name,
            topic_id=bytes(topic.topic_id),
            partition=state.partition_index,
            leader=state.leader,
            leader_epoch=state.leader_epoch,
            isr=tuple(state.isr),
            replicas=tuple(state.replicas),
            is_new=state.is_new,
            partition_epoch=state.partition_epoch,
            adding_replicas=tuple(state.adding_replicas),
            removing_replicas=tuple(state.removing_replicas),
            is_recovering=is_recovering(state.leader_recovery_state),
        )
        for topic in topics
        for state in topic.partition_states
    ]


class TopicChange(NamedTuple):
    """The partitions of a topic to send; `is_deleted` if the topic no longer exists."""

    topic: TopicImage
    partitions: Sequence[PartitionImage]
    is_deleted: bool = False


class TopicDifference(NamedTuple):
    """A topic, and what a broker has been sent of it; `is_deleted` if it no longer exists."""

    topic: TopicImage
    former: TopicImage | None
    is_deleted: bool = False

    def is_same(self, other: "TopicDifference") -> bool:
        """Return True if both have the same objects."""
        is_same_topic = self.topic is other.topic and self.former is other.former
        return is_same_topic and self.is_deleted == other.is_deleted


def changes_of(differences: Iterable[TopicDifference]) -> Iterator[TopicChange]:
    """Yield the partitions to send of each topic."""
    for topic, former, is_deleted in differences:
        if former is None:
            yield TopicChange(topic, topic.partitions, is_deleted)
        elif changed := topic.differences(former):
            yield TopicChange(topic, changed)


class SentImage:
    """The topics and brokers that a broker has been sent; only the difference is sent next."""

    def __init__(self) -> None:
        self.brokers: Mapping[int, BrokerImage] = {}
        self._topics: dict[str, TopicImage] = {}

    def differences(self, update: MetadataUpdate) -> "list[TopicDifference]":
        """Return the topics that the broker does not know yet as they are.

        Deletions are first, since a name can be used again.
        """
        topics = self._topics
        deleted = set(update.deleted)
        if update.is_complete:
            deleted |= topics.keys() - {topic.name for topic in update.changed}
        for topic in update.changed:
            if topic.name in topics and topics[topic.name].topic_id != topic.topic_id:
                deleted.add(topic.name)
        differences = [
            TopicDifference(topics[name], None, is_deleted=True)
            for name in sorted(deleted & topics.keys())
        ]
        for topic in update.changed:
            former = None if topic.name in deleted else topics.get(topic.name)
            if former is not topic:
                differences.append(TopicDifference(topic, former))
        return differences

    def changes(self, update: MetadataUpdate) -> Iterator[TopicChange]:
        """Yield what the broker does not know yet."""
        return changes_of(self.differences(update))

    def sent(self, update: MetadataUpdate) -> None:
        """Note that the broker knows an update."""
        if update.is_complete:
            self._topics = {}
        for name in update.deleted:
            self._topics.pop(name, None)
        self._topics.update((topic.name, topic) for topic in update.changed)
        if update.brokers is not None:
            self.brokers = update.brokers


def in_chunks(
    changes: Iterable[TopicChange], controller_epoch: int, partitions_max: int
) -> Iterator[list[UpdateMetadataTopicState]]:
    """Yield topic states of at most `partitions_max` partitions each."""
    chunk: list[UpdateMetadataTopicState] = []
    count = 0
    for change in changes:
        for start in range(0, len(change.partitions), partitions_max):
            partitions = change.partitions[start : start + partitions_max]
            if chunk and count + len(partitions) > partitions_max:
                yield chunk
                chunk, count = [], 0
            chunk.append(_topic_state(change, partitions, controller_epoch))
            count += len(partitions)
    if chunk:
        yield chunk


def _topic_state(
    change: TopicChange, partitions: Iterable[PartitionImage], controller_epoch: int
) -> UpdateMetadataTopicState:
    return UpdateMetadataTopicState(
        topic_name=change.topic.name,
        topic_id=change.topic.topic_id,
        partition_states=[
            UpdateMetadataPartitionState(
                partition_index=partition.partition,
                controller_epoch=controller_epoch,
                leader=LEADER_DURING_DELETE if change.is_deleted else partition.leader,
                leader_epoch=partition.leader_epoch,
                isr=list(partition.isr),
                zk_version=partition.partition_epoch,
                replicas=list(partition.replicas),
                offline_replicas=list(partition.offline_replicas),
            )
            for partition in partitions
        ],
    )


def live_brokers(brokers: Iterable[BrokerImage]) -> list[UpdateMetadataBroker]:
    """Return brokers as UpdateMetadata has them."""
    return [
        UpdateMetadataBroker(
            id=broker.id,
            endpoints=[
                UpdateMetadataEndpoint(
                    port=endpoint.port,
                    host=endpoint.host,
                    listener=endpoint.listener,
                    security_protocol=_PROTOCOLS.index(endpoint.security_protocol),
                )
                for endpoint in broker.every_endpoint()
            ],
            rack=broker.rack,
        )
        for broker in brokers
    ]


class ReceivedUpdate:
    """The update of `image` that UpdateMetadata requests contain, one topic state after the other.

    A topic whose partitions have the leader -2 is being deleted. ApiError INVALID_REQUEST for
    values that no controller sends.
    """

    def __init__(self, image: ClusterImage) -> None:
        self._image = image
        self._changed: dict[str, TopicImage] = {}
        self._deleted: list[str] = []

    def add(self, state: UpdateMetadataTopicState) -> None:
        """Add partitions of a topic."""
        name, topic_id = state.topic_name, bytes(state.topic_id)
        if any(partition.leader == LEADER_DURING_DELETE for partition in state.partition_states):
            self._changed.pop(name, None)
            self._deleted.append(name)
            return
        former = self._changed.get(name) or self._image.topic(name)
        if former is None or former.topic_id != topic_id:
            former = TopicImage(name, topic_id, ())
        partitions = [_partition(partition) for partition in state.partition_states]
        self._changed[name] = _with(former, partitions)

    def complete(
        self, brokers: Sequence[UpdateMetadataBroker], *, is_complete: bool
    ) -> MetadataUpdate:
        """Return the update."""
        changed = tuple(self._changed.values())
        live = _brokers(self._image, brokers)
        return MetadataUpdate(live, changed, self._deleted, is_complete=is_complete)


def _with(topic: TopicImage, partitions: Sequence[PartitionImage]) -> TopicImage:
    count = len(topic.partitions)
    numbers = {partition.partition for partition in partitions}
    # A controller sends the partitions of a new topic in order.
    new = sorted(number for number in numbers if number >= count)
    if min(numbers, default=0) < 0 or new != list(range(count, count + len(new))):
        raise ApiError(ErrorCode.INVALID_REQUEST, f"the partitions of {topic.name} have a gap")
    return topic.with_partitions(partitions)


def _partition(state: UpdateMetadataPartitionState) -> PartitionImage:
    return PartitionImage(
        partition=state.partition_index,
        leader=state.leader,
        leader_epoch=state.leader_epoch,
        isr=tuple(state.isr),
        replicas=tuple(state.replicas),
        offline_replicas=tuple(state.offline_replicas),
        partition_epoch=state.zk_version,
    )


def _brokers(
    image: ClusterImage, brokers: Sequence[UpdateMetadataBroker]
) -> Mapping[int, BrokerImage] | None:
    """Return the brokers of a request; None if the image has the same brokers."""
    live = {broker.id: _broker(broker) for broker in brokers if broker.endpoints}
    # The request does not have the brokers' epochs.
    same = live.keys() == image.brokers.keys() and all(
        (former.rack, former.every_endpoint()) == (broker.rack, broker.every_endpoint())
        for broker in live.values()
        for former in (image.brokers[broker.id],)
    )
    return None if same else dict(sorted(live.items()))


def _broker(state: UpdateMetadataBroker) -> BrokerImage:
    endpoints = tuple(
        Endpoint(
            endpoint.listener, endpoint.host, endpoint.port, _protocol(endpoint.security_protocol)
        )
        for endpoint in state.endpoints
    )
    first = endpoints[0]
    return BrokerImage(
        id=state.id,
        host=first.host,
        port=first.port,
        rack=state.rack,
        listener=first.listener,
        security_protocol=first.security_protocol,
        endpoints=endpoints,
    )


def _protocol(code: int) -> str:
    if not 0 <= code < len(_PROTOCOLS):
        raise ApiError(ErrorCode.INVALID_REQUEST, f"Unknown security protocol {code}")
    return _PROTOCOLS[code]


def is_recovering(leader_recovery_state: int) -> bool:
    """Return True for the state of a leader after an unclean election (KIP-704).

    Raises ApiError INVALID_REQUEST for an unknown state.
    """
    if leader_recovery_state not in (_RECOVERED, _RECOVERING):
        raise ApiError(
            ErrorCode.INVALID_REQUEST, f"Unknown leader recovery state {leader_recovery_state}"
        )
    return leader_recovery_state == _RECOVERING
