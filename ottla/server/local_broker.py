"""The port through which the controller reaches the broker in its own process.

The only code that changes the broker's image. The controller's requests take effect before the call
returns. Follows KafkaApis' handlers of LeaderAndIsr, UpdateMetadata and StopReplica.
"""

from collections.abc import Callable, Mapping, Sequence

from ottla.base.errors import ApiError, ErrorCode
from ottla.base.slices import Slices
from ottla.cluster.image import PartitionState
from ottla.controller.planning.notices import Fence, MetadataUpdate, TopicPartition
from ottla.server.context import Broker


class LocalBroker:
    """The BrokerPort of this process; `broker_epoch` is called each time: registrations raise it."""

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
        """Refuse requests of a former controller or for a former registration of this broker."""
        if fence.controller_epoch < self._controller_epoch:
            raise ApiError(ErrorCode.STALE_CONTROLLER_EPOCH)
        if fence.broker_epoch < self._broker_epoch():
            raise ApiError(ErrorCode.STALE_BROKER_EPOCH)
        self._controller_epoch = fence.controller_epoch

    async def apply_leader_and_isr(
        self, fence: Fence, states: Sequence[PartitionState]
    ) -> Mapping[TopicPartition, ErrorCode]:
        """Apply `states` to the broker's replicas."""
        self._check(fence)
        known = self._broker.image.topics
        new = {state.topic: None for state in states if state.topic not in known}
        if new:
            # Logs are created with the topic's own settings.
            await self._broker.configs.load_topics(new)
            self._check(fence)
        codes: dict[TopicPartition, ErrorCode] = {}
        apply = self._broker.replicas.apply_leader_and_isr
        slices = Slices(self._broker.clock)
        for state in states:
            codes |= apply(fence.controller_epoch, (state,))
            # Creating logs takes a while; requests are served in between.
            if await slices.pause():
                self._check(fence)
        return codes

    async def update_metadata(self, fence: Fence, update: MetadataUpdate) -> None:
        """Apply the controller's update to the broker's image."""
        self._check(fence)
        self._broker.image = update.apply(self._broker.image, fence)
        self._on_update(update)

    async def stop_replicas(
        self, fence: Fence, partitions: Sequence[TopicPartition], *, delete: bool
    ) -> Mapping[TopicPartition, ErrorCode]:
        """Stop the replicas and, with `delete`, remove their logs; unknown replicas are ignored."""
        self._check(fence)
        codes: dict[TopicPartition, ErrorCode] = {}
        replicas, epoch = self._broker.replicas, fence.controller_epoch
        slices = Slices(self._broker.clock)
        for key in partitions:
            codes |= replicas.stop_replicas(epoch, (key,), delete=delete, settles=False)
            if await slices.pause():
                self._check(fence)
        # A crash must not restore deleted logs; one sync is enough for all.
        return codes | await replicas.settle_deletions_in_background(partitions)
