"""This broker as the controller in the same process reaches it: leaders, metadata, stop.

The one place where the broker's image changes. What the controller is told to be done is done. Follows KafkaApis' handlers of LeaderAndIsr, UpdateMetadata and StopReplica.
"""

from collections.abc import Callable, Mapping, Sequence

from ottla.base.errors import ApiError, ErrorCode
from ottla.base.slices import Slices
from ottla.cluster.image import PartitionState
from ottla.controller.planning.notices import Fence, MetadataUpdate, TopicPartition
from ottla.server.context import Broker


class LocalBroker:
    """The BrokerPort of this process; `broker_epoch` is asked anew, it grows with registrations."""

    def __init__(
        self,
        broker: Broker,
        broker_epoch: Callable[[], int],
        on_update: Callable[[MetadataUpdate], None],
    ) -> None:
        self._broker = broker
        self._broker_epoch = broker_epoch
        self._on_update = on_update
        self._controller_epoch = 0

    def _check(self, fence: Fence) -> None:
        """Refuse a controller that has been replaced, or words meant for a former life."""
        if fence.controller_epoch < self._controller_epoch:
            raise ApiError(ErrorCode.STALE_CONTROLLER_EPOCH)
        if fence.broker_epoch < self._broker_epoch():
            raise ApiError(ErrorCode.STALE_BROKER_EPOCH)
        self._controller_epoch = fence.controller_epoch

    async def apply_leader_and_isr(
        self, fence: Fence, states: Sequence[PartitionState]
    ) -> Mapping[TopicPartition, ErrorCode]:
        """Make the broker's replicas what `states` say."""
        self._check(fence)
        known = self._broker.image.topics
        new = {state.topic: None for state in states if state.topic not in known}
        if new:
            # Logs are made with the topic's own settings.
            await self._broker.configs.load_topics(new)
            self._check(fence)
        codes: dict[TopicPartition, ErrorCode] = {}
        apply = self._broker.replicas.apply_leader_and_isr
        slices = Slices(self._broker.clock)
        for state in states:
            codes |= apply(fence.controller_epoch, (state,))
            # Making logs takes a while; requests are served in between.
            if await slices.pause():
                self._check(fence)
        return codes

    async def update_metadata(self, fence: Fence, update: MetadataUpdate) -> None:
        """Make the broker's image what the controller's is."""
        self._check(fence)
        self._broker.image = update.apply(self._broker.image, fence)
        self._on_update(update)

    async def stop_replicas(
        self, fence: Fence, partitions: Sequence[TopicPartition], *, delete: bool
    ) -> Mapping[TopicPartition, ErrorCode]:
        """Stop the replicas and, with `delete`, remove their logs; unknown ones are no error."""
        self._check(fence)
        codes: dict[TopicPartition, ErrorCode] = {}
        replicas, epoch = self._broker.replicas, fence.controller_epoch
        slices = Slices(self._broker.clock)
        for key in partitions:
            codes |= replicas.stop_replicas(epoch, (key,), delete=delete, settles=False)
            if await slices.pause():
                self._check(fence)
        # What is deleted must stay so after a crash; one sync is enough for all.
        return codes | await replicas.settle_deletions_in_background(partitions)
