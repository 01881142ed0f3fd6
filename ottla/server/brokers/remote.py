"""The port through which the controller reaches another broker.

Requests have the versions of Apache Kafka 3.4 to 3.9 (KIP-866); a large one is split, so that
neither broker's loop is busy with it for long. Follows ControllerChannelManager and
RequestSendThread.
"""

import weakref
from collections.abc import Callable, Mapping, Sequence
from itertools import groupby
from typing import TYPE_CHECKING, TypeVar

from ottla.base.clock import Clock
from ottla.base.errors import ApiError, ErrorCode
from ottla.base.loading import deferred_module
from ottla.cluster.image import BrokerImage, PartitionState
from ottla.controller.planning.notices import Fence, MetadataUpdate, TopicPartition
from ottla.net.port import Net
from ottla.net.requests import RequestChannel
from ottla.server.brokers import states
from ottla.server.brokers.process_watch import Registration, wait_until_gone
from ottla.server.brokers.states import SentImage, TopicDifference
from ottla.server.current import Contacts
from ottla.wire.fields import Message
from ottla.wire.messages.leader_and_isr import (
    LeaderAndIsrLiveLeader,
    LeaderAndIsrRequest,
    LeaderAndIsrResponse,
)
from ottla.wire.messages.stop_replica import (
    StopReplicaPartitionState,
    StopReplicaRequest,
    StopReplicaResponse,
    StopReplicaTopicState,
)
from ottla.wire.messages.update_metadata import (
    UpdateMetadataRequest,
    UpdateMetadataResponse,
)

if TYPE_CHECKING:
    from ottla.wire import pieces
else:
    # A cluster of one broker sends nothing.
    pieces = deferred_module("ottla.wire.pieces")

M = TypeVar("M", bound=Message)

# The default of Kafka's controller.socket.timeout.ms.
TIMEOUT_SECONDS = 30.0
LEADER_AND_ISR_VERSION = 7
STOP_REPLICA_VERSION = 4
UPDATE_METADATA_VERSION = 8
# LeaderAndIsr.EpochDuringDelete: a replica is deleted in whichever leader epoch it is (KIP-570).
_DELETION_EPOCH = -2
_NO_EPOCH = -1
# Partitions per request: encoding and decoding are done at a stretch.
STATES_MAX = 1000
METADATA_MAX = 1000


class EncodedTopics:
    """The topics of an update, encoded for all brokers that have been sent the same so far.

    Each chunk is encoded when the first broker needs it.
    """

    def __init__(self, differences: Sequence[TopicDifference], controller_epoch: int) -> None:
        self._differences = differences
        self._controller_epoch = controller_epoch
        self._chunks: list[pieces.Pieces] = []
        self._rest = states.in_chunks(
            states.changes_of(differences), controller_epoch, METADATA_MAX
        )

    def are(self, differences: Sequence[TopicDifference], controller_epoch: int) -> bool:
        """Return True if these are the topics of the same differences, in the same term."""
        return (
            self._controller_epoch == controller_epoch
            and len(self._differences) == len(differences)
            and all(map(TopicDifference.is_same, self._differences, differences))
        )

    def chunk(self, number: int) -> "pieces.Pieces | None":
        """Return the topics of one request; None after the last."""
        while len(self._chunks) <= number:
            topics = next(self._rest, None)
            if topics is None:
                return None
            encoded = pieces.Pieces(UpdateMetadataRequest, UPDATE_METADATA_VERSION, "topic_states")
            encoded.add(topics)
            self._chunks.append(encoded)
        return self._chunks[number]


class UpdatesUnderWay:
    """The encoded topics that are being sent to some brokers, for those that need the same.

    They are forgotten when the last broker has received them.
    """

    def __init__(self) -> None:
        self._encoded: weakref.WeakSet[EncodedTopics] = weakref.WeakSet()

    def topics(
        self, differences: Sequence[TopicDifference], controller_epoch: int
    ) -> EncodedTopics:
        """Return these topics, encoded."""
        for encoded in self._encoded:
            if encoded.are(differences, controller_epoch):
                return encoded
        encoded = EncodedTopics(differences, controller_epoch)
        self._encoded.add(encoded)
        return encoded


class RemoteBroker:
    """The BrokerPort of another process; one registration of a broker has its own.

    Only what the broker has not been sent yet is sent next. `contacts` is for `wait_until_gone`;
    all ports of a controller share `under_way`.
    """

    def __init__(
        self,
        net: Net,
        clock: Clock,
        channel: RequestChannel,
        registration: Registration,
        contacts: Contacts,
        under_way: UpdatesUnderWay,
    ) -> None:
        self._registration = registration
        self._contacts = contacts
        self._net = net
        self._clock = clock
        self._channel = channel
        self._under_way = under_way
        self._sent = SentImage()

    async def introduce(self, fence: Fence, brokers: Mapping[int, BrokerImage]) -> None:
        """Send UpdateMetadata with brokers only."""
        self._sent.brokers = brokers
        await self._send_metadata(fence, None, states.INTRODUCTION)

    async def apply_leader_and_isr(
        self, fence: Fence, partition_states: Sequence[PartitionState]
    ) -> Mapping[TopicPartition, ErrorCode]:
        """Send LeaderAndIsr; a partition that the response does not name has succeeded."""
        codes: dict[TopicPartition, ErrorCode] = {}
        for start in range(0, len(partition_states), STATES_MAX) or (0,):
            codes |= await self._send_states(fence, partition_states[start : start + STATES_MAX])
        return codes

    async def _send_states(
        self, fence: Fence, sent_states: Sequence[PartitionState]
    ) -> dict[TopicPartition, ErrorCode]:
        leaders = {state.leader for state in sent_states}
        request = LeaderAndIsrRequest(
            controller_id=fence.controller_id,
            controller_epoch=fence.controller_epoch,
            broker_epoch=fence.broker_epoch,
            topic_states=states.leader_states(sent_states, fence.controller_epoch),
            live_leaders=[
                LeaderAndIsrLiveLeader(broker_id=broker.id, host_name=broker.host, port=broker.port)
                for broker in self._sent.brokers.values()
                if broker.id in leaders
            ],
        )
        response = await self._request(request, LEADER_AND_ISR_VERSION, LeaderAndIsrResponse)
        _check(response.error_code)
        names = {state.topic_id: state.topic for state in sent_states}
        return {
            (names[bytes(topic.topic_id)], partition.partition_index): known_code(
                partition.error_code
            )
            for topic in response.topics
            for partition in topic.partition_errors
            if bytes(topic.topic_id) in names
        }

    async def update_metadata(self, fence: Fence, update: MetadataUpdate) -> None:
        """Send UpdateMetadata with the changes since the last request, and with all brokers."""
        differences = self._sent.differences(update)
        encoded = self._under_way.topics(differences, fence.controller_epoch)
        if update.brokers is not None:
            self._sent.brokers = update.brokers
        number = 0
        topics = encoded.chunk(number)
        while (following := encoded.chunk(number + 1)) is not None:
            await self._send_metadata(fence, topics, states.PART)
            topics, number = following, number + 1
        await self._send_metadata(fence, topics, states.FULL if update.is_complete else 0)
        self._sent.sent(update)

    async def _send_metadata(self, fence: Fence, topics: "pieces.Pieces | None", kind: int) -> None:
        request = UpdateMetadataRequest(
            controller_id=fence.controller_id,
            type=kind,
            controller_epoch=fence.controller_epoch,
            broker_epoch=fence.broker_epoch,
            live_brokers=states.live_brokers(self._sent.brokers.values()),
        )
        response = await self._request(
            request, UPDATE_METADATA_VERSION, UpdateMetadataResponse, topics
        )
        _check(response.error_code)

    async def stop_replicas(
        self, fence: Fence, partitions: Sequence[TopicPartition], *, delete: bool
    ) -> Mapping[TopicPartition, ErrorCode]:
        """Send StopReplica; a partition that the response does not name has succeeded."""
        by_topic = groupby(sorted(partitions), lambda topic_partition: topic_partition[0])
        request = StopReplicaRequest(
            controller_id=fence.controller_id,
            controller_epoch=fence.controller_epoch,
            broker_epoch=fence.broker_epoch,
            topic_states=[
                StopReplicaTopicState(
                    topic_name=name,
                    partition_states=[
                        StopReplicaPartitionState(
                            partition_index=number,
                            leader_epoch=_DELETION_EPOCH if delete else _NO_EPOCH,
                            delete_partition=delete,
                        )
                        for _, number in group
                    ],
                )
                for name, group in by_topic
            ],
        )
        response = await self._request(request, STOP_REPLICA_VERSION, StopReplicaResponse)
        _check(response.error_code)
        return {
            (partition.topic_name, partition.partition_index): known_code(partition.error_code)
            for partition in response.partition_errors
        }

    async def wait_until_gone(self, reached: Callable[[], None]) -> None:
        """Return when the broker's process has ended: nothing listens at its address any more."""
        await wait_until_gone(
            self._net,
            self._clock,
            self._registration,
            self._contacts,
            reached,
            tls=self._channel.tls,
        )

    def close(self) -> None:
        """Close the connection."""
        self._channel.close()

    async def _request(
        self,
        message: Message,
        version: int,
        response: type[M],
        elements: "pieces.Pieces | None" = None,
    ) -> M:
        try:
            reply = await self._channel.request(
                message, version, seconds=TIMEOUT_SECONDS, pieces=elements
            )
        except OSError as error:
            raise ApiError(ErrorCode.BROKER_NOT_AVAILABLE, str(error)) from error
        self._contacts.connected(self._registration.broker_id, self._registration)
        assert isinstance(reply, response), "a response has the class of its request"
        return reply


def known_code(code: int) -> ErrorCode:
    """Return an error code of a response; UNKNOWN_SERVER_ERROR if this version does not know it."""
    try:
        return ErrorCode(code)
    except ValueError:
        return ErrorCode.UNKNOWN_SERVER_ERROR


def _check(code: int) -> None:
    if code != ErrorCode.NONE:
        raise ApiError(known_code(code))
