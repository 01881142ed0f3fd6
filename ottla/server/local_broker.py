"""The port through which the controller reaches this broker, wherever the controller is.

In the controller's own process it is called directly, in others by the handlers of the same names.
The only code that changes the broker's image. The controller's requests take effect before the call
returns. Follows KafkaApis' handlers of LeaderAndIsr, UpdateMetadata and StopReplica.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from ottla.base.clock import Clock
from ottla.base.errors import ApiError, ErrorCode
from ottla.base.slices import Slices
from ottla.cluster.image import NO_EPOCH, BrokerImage, PartitionState, TopicImage
from ottla.cluster.zk.port import ConnectionSuspended, SessionLost
from ottla.controller.planning.notices import Fence, MetadataUpdate, TopicPartition
from ottla.replication import leading
from ottla.replication.replicas import Replicas
from ottla.server.config.store import ConfigStore
from ottla.server.current import Current

# How long a request waits until this broker knows its epochs.
KNOWN_SECONDS = 2.0
_RETRY_SECONDS = 0.05
# A member of the ensemble may lag behind by a few controllers.
_CONTROLLERS_MAX = 10


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class Dependencies:
    """The parts of the broker that a controller's notices change.

    `broker_epoch` returns the epoch of the current registration, -1 if the broker is not
    registered.
    `newest_controller` reads the epoch of the latest controller from the tree; without it every
    epoch is accepted.
    """

    node_id: int
    clock: Clock
    current: Current
    replicas: Replicas
    configs: ConfigStore
    broker_epoch: Callable[[], int]
    on_update: Callable[[MetadataUpdate], None]
    newest_controller: Callable[[], Awaitable[int]] | None = None


class LocalBroker:
    """The BrokerPort of this process."""

    def __init__(self, dependencies: Dependencies) -> None:
        self._parts = dependencies
        self._current = dependencies.current
        self._broker_epoch = dependencies.broker_epoch
        self._controller_epoch = 0
        self._arrivals: dict[str, asyncio.Future[None]] = {}

    async def _admit(self, fence: Fence) -> None:
        """Wait until this broker knows the epochs of a request, and refuse it if they are stale.

        A request of a later controller is refused if the tree does not know that controller: a
        wrong epoch would lock out the right one.
        """
        if self._broker_epoch() == NO_EPOCH or fence.controller_epoch > self._controller_epoch:
            try:
                async with asyncio.timeout(KNOWN_SECONDS):
                    while not await self._is_known(fence):
                        await self._parts.clock.sleep(_RETRY_SECONDS)
            except TimeoutError as error:
                reason = "This broker does not know the epochs of the request yet."
                raise ApiError(ErrorCode.BROKER_NOT_AVAILABLE, reason) from error
        self._check(fence)

    async def _is_known(self, fence: Fence) -> bool:
        # The controller may learn of a registration before this broker does.
        if self._broker_epoch() == NO_EPOCH:
            return False
        newest_controller = self._parts.newest_controller
        if newest_controller is None:
            return True
        newest = await newest_controller()
        if newest + _CONTROLLERS_MAX < fence.controller_epoch:
            raise ApiError(ErrorCode.STALE_CONTROLLER_EPOCH, "The tree knows no such controller.")
        return newest >= fence.controller_epoch

    def _check(self, fence: Fence) -> None:
        """Refuse requests of a former controller or for a former registration of this broker."""
        if fence.controller_epoch < self._controller_epoch:
            raise ApiError(ErrorCode.STALE_CONTROLLER_EPOCH)
        if fence.broker_epoch != self._broker_epoch():
            raise ApiError(ErrorCode.STALE_BROKER_EPOCH)
        self._controller_epoch = fence.controller_epoch

    async def introduce(self, fence: Fence, brokers: Mapping[int, BrokerImage]) -> None:
        """Set the live brokers of the broker's image."""
        await self._update(fence, MetadataUpdate(brokers, (), ()))

    async def apply_leader_and_isr(
        self, fence: Fence, states: Sequence[PartitionState]
    ) -> Mapping[TopicPartition, ErrorCode]:
        """Apply `states` to the broker's replicas."""
        await self._admit(fence)
        # Logs are created with the topic's own settings.
        await self._read_settings(fence, (state.topic for state in states))
        codes: dict[TopicPartition, ErrorCode] = {}
        apply = self._parts.replicas.apply_leader_and_isr
        slices = Slices(self._parts.clock)
        for state in states:
            await self._settle(fence, state)
            codes |= apply(fence.controller_epoch, (state,))
            # Creating logs takes a while; requests are served in between.
            if await slices.pause():
                self._check(fence)
        return codes

    async def _settle(self, fence: Fence, state: PartitionState) -> None:
        """Wait until a log is no longer being truncated: a leader would append to it."""
        fetchers = self._parts.replicas.fetchers
        if fetchers is not None and await fetchers.truncations.wait(state.topic, state.partition):
            self._check(fence)

    async def _read_settings(self, fence: Fence, topics: Iterable[str]) -> None:
        """Read the settings of topics that are new here; BROKER_NOT_AVAILABLE without the tree."""
        new = self._parts.configs.unread(topics)
        if not new:
            return
        try:
            await self._parts.configs.load_topics(new)
        except (ConnectionSuspended, SessionLost) as error:
            raise ApiError(ErrorCode.BROKER_NOT_AVAILABLE, str(error)) from error
        self._check(fence)

    async def update_metadata(self, fence: Fence, update: MetadataUpdate) -> None:
        """Apply the controller's update to the broker's image."""
        await self._update(fence, update)
        if self._parts.node_id in self._current.image.brokers:
            self._current.informed.set()

    async def _update(self, fence: Fence, update: MetadataUpdate) -> None:
        await self._admit(fence)
        # Any broker describes a topic's settings, and the controller needs them for elections.
        await self._read_settings(fence, (topic.name for topic in update.changed))
        former = self._current.image
        self._current.image = update.apply(former, fence)
        self._current.brokers_changed(former.brokers)
        self._apply_published_isrs(update.changed)
        self._parts.on_update(update)
        for name in [name for name in self._arrivals if name in self._current.image.topics]:
            self._arrivals.pop(name).set_result(None)

    def _apply_published_isrs(self, topics: Iterable[TopicImage]) -> None:
        for topic in topics:
            for partition in topic.partitions:
                if partition.leader != self._parts.node_id:
                    continue
                led = self._parts.replicas.find(topic.name, topic.topic_id, partition.partition)
                if led is not None and led.is_leader:
                    leading.isr_published(led, partition)

    async def wait_until_informed(self, seconds: float) -> bool:
        """Return True once a controller that knows this broker has informed it; False after
        `seconds`.
        """
        try:
            async with asyncio.timeout(seconds):
                await self._current.informed.wait()
        except TimeoutError:
            return False
        return True

    async def wait_for_topic(self, name: str) -> None:
        """Return once the broker's image has the topic."""
        if name not in self._current.image.topics:
            if name not in self._arrivals:
                self._arrivals[name] = asyncio.get_running_loop().create_future()
            await asyncio.shield(self._arrivals[name])

    async def stop_replicas(
        self, fence: Fence, partitions: Sequence[TopicPartition], *, delete: bool
    ) -> Mapping[TopicPartition, ErrorCode]:
        """Stop the replicas and, with `delete`, remove their logs; unknown replicas are ignored."""
        await self._admit(fence)
        codes: dict[TopicPartition, ErrorCode] = {}
        replicas, epoch = self._parts.replicas, fence.controller_epoch
        slices = Slices(self._parts.clock)
        for key in partitions:
            codes |= replicas.stop_replicas(epoch, (key,), delete=delete, settles=False)
            if await slices.pause():
                self._check(fence)
        # A crash must not restore deleted logs; one sync is enough for all.
        return codes | await replicas.settle_deletions_in_background(partitions)

    async def wait_until_gone(self, reached: Callable[[], None]) -> None:
        """Wait for ever: the controller ends with this process."""
        reached()
        await asyncio.get_running_loop().create_future()

    def close(self) -> None:
        """Do nothing: the broker outlives the controller's term."""
