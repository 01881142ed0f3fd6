"""The port through which the controller reaches this broker, wherever the controller is.

In the controller's own process it is called directly, in others by the handlers of the same names.
The only code that changes the broker's image. The controller's requests take effect before the call
returns. Follows KafkaApis' handlers of LeaderAndIsr, UpdateMetadata and StopReplica.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial

from ottla.base.errors import ApiError, ErrorCode
from ottla.base.slices import Slices
from ottla.cluster.image import BrokerImage, PartitionState
from ottla.controller.planning.notices import Fence, MetadataUpdate, TopicPartition
from ottla.server.context import Broker

# How long a request waits until this broker knows its epochs.
KNOWN_SECONDS = 2.0
_RETRY_SECONDS = 0.05


class LocalBroker:
    """The BrokerPort of this process.

    `broker_epoch` returns the epoch of the current registration, -1 if there is none. `confirm`
    returns True if the tree has had a controller of the given epoch; by default every epoch is
    accepted.
    """

    def __init__(
        self,
        broker: Broker,
        broker_epoch: Callable[[], int],
        on_update: Callable[[MetadataUpdate], None],
        confirm: Callable[[int], Awaitable[bool]] | None = None,
    ) -> None:
        self._broker = broker
        self._broker_epoch = broker_epoch
        self._on_update = on_update
        self._confirm = confirm
        self._controller_epoch = 0
        self._is_informed = asyncio.Event()
        self._arrivals: dict[str, asyncio.Future[None]] = {}

    async def _admit(self, fence: Fence) -> None:
        """Wait until this broker knows the epochs of a request, and refuse it if they are stale.

        A request of a later controller is refused if the tree does not know that controller: a
        wrong epoch would lock out the right one.
        """
        if self._confirm is not None and fence.controller_epoch > self._controller_epoch:
            await self._known_within(partial(self._confirm, fence.controller_epoch))
        if self._broker_epoch() < fence.broker_epoch:
            # The controller may learn of a registration before this broker does.
            await self._known_within(partial(self._is_registered, fence.broker_epoch))
        self._check(fence)

    async def _is_registered(self, broker_epoch: int) -> bool:
        return self._broker_epoch() >= broker_epoch

    async def _known_within(self, is_known: Callable[[], Awaitable[bool]]) -> None:
        try:
            async with asyncio.timeout(KNOWN_SECONDS):
                while not await is_known():
                    await self._broker.clock.sleep(_RETRY_SECONDS)
        except TimeoutError as error:
            reason = "This broker does not know the epochs of the request yet."
            raise ApiError(ErrorCode.BROKER_NOT_AVAILABLE, reason) from error

    def _check(self, fence: Fence) -> None:
        """Refuse requests of a former controller or for a former registration of this broker."""
        if fence.controller_epoch < self._controller_epoch:
            raise ApiError(ErrorCode.STALE_CONTROLLER_EPOCH)
        if fence.broker_epoch < self._broker_epoch():
            raise ApiError(ErrorCode.STALE_BROKER_EPOCH)
        self._controller_epoch = fence.controller_epoch

    async def introduce(self, fence: Fence, brokers: Mapping[int, BrokerImage]) -> None:
        """Set the live brokers of the broker's image."""
        await self.update_metadata(fence, MetadataUpdate(brokers, (), ()))

    async def apply_leader_and_isr(
        self, fence: Fence, states: Sequence[PartitionState]
    ) -> Mapping[TopicPartition, ErrorCode]:
        """Apply `states` to the broker's replicas."""
        await self._admit(fence)
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
        await self._admit(fence)
        self._broker.image = update.apply(self._broker.image, fence)
        self._on_update(update)
        if update.is_complete or update.changed:
            self._is_informed.set()
        for name in [name for name in self._arrivals if name in self._broker.image.topics]:
            self._arrivals.pop(name).set_result(None)

    async def wait_until_informed(self, seconds: float) -> bool:
        """Return True once the broker has received the complete image; False after `seconds`."""
        try:
            async with asyncio.timeout(seconds):
                await self._is_informed.wait()
        except TimeoutError:
            return False
        return True

    async def wait_for_topic(self, name: str) -> None:
        """Return once the broker's image has the topic."""
        if name not in self._broker.image.topics:
            if name not in self._arrivals:
                self._arrivals[name] = asyncio.get_running_loop().create_future()
            await asyncio.shield(self._arrivals[name])

    async def stop_replicas(
        self, fence: Fence, partitions: Sequence[TopicPartition], *, delete: bool
    ) -> Mapping[TopicPartition, ErrorCode]:
        """Stop the replicas and, with `delete`, remove their logs; unknown replicas are ignored."""
        await self._admit(fence)
        codes: dict[TopicPartition, ErrorCode] = {}
        replicas, epoch = self._broker.replicas, fence.controller_epoch
        slices = Slices(self._broker.clock)
        for key in partitions:
            codes |= replicas.stop_replicas(epoch, (key,), delete=delete, settles=False)
            if await slices.pause():
                self._check(fence)
        # A crash must not restore deleted logs; one sync is enough for all.
        return codes | await replicas.settle_deletions_in_background(partitions)

    async def wait_until_gone(self) -> None:
        """Wait for ever: the controller ends with this process."""
        await asyncio.get_running_loop().create_future()

    def close(self) -> None:
        """Do nothing: the broker outlives the controller's term."""
