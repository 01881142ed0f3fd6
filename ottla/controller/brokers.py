"""Brokers that register, leave or lose a log directory, in one controller term.

Follows KafkaController.onBrokerStartup, onBrokerFailure and onReplicasBecomeOffline.

Not done: a broker does not report at registration that its last shutdown was unclean (KIP-966). As
in Apache Kafka 3.9 on ZooKeeper, a registration has no field for that, and the state of a partition
has no field for the replicas that could lead instead (ELR). Without them the partition would have
no leader. A broker that restarts leaves the ISR of every partition that has another live member,
and has to catch up; only the last member of an ISR leads again with what its device has kept. With
flush.on.ack that is every acknowledged record.
"""

import logging
from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING

from ottla.base.errors import ApiError, ErrorCode
from ottla.base.loading import deferred_module
from ottla.cluster.image import BrokerImage, ClusterImage
from ottla.controller import events, state
from ottla.controller.planning import elections, planner
from ottla.controller.planning.notices import Notice
from ottla.controller.reachability import Reachability
from ottla.controller.term_context import TermContext
from ottla.controller.topic_deletions import TopicDeletions

if TYPE_CHECKING:
    from ottla.controller.planning import shutdown
else:
    # The first broker that stops needs it.
    shutdown = deferred_module("ottla.controller.planning.shutdown")

_log = logging.getLogger(__name__)


class Brokers:
    """The live brokers of a term: those that are registered and whose process has not ended."""

    def __init__(self, context: TermContext, deletions: TopicDeletions) -> None:
        self._context = context
        self._deletions = deletions
        # Brokers whose process has ended, but whose session has not.
        self._lingering: frozenset[int] = frozenset()
        # Brokers that are about to stop, with the epoch of their registration.
        self._shutting_down: dict[int, int] = {}
        self._reachability = Reachability(
            context.dependencies, context.broker_id, self._post_change
        )

    async def live(self) -> dict[int, BrokerImage]:
        """Return the live brokers; `brokers_changed` is called at the next change."""
        registered = await state.load_brokers(self._context.session, self._watch)
        for broker in registered.values():
            self._reachability.watch(broker, self._context.fence_of(broker))
        self._reachability.forget_others(registered)
        await self._reachability.first_look()
        self._shutting_down = {
            key: epoch
            for key, epoch in self._shutting_down.items()
            if key in registered and registered[key].epoch == epoch
        }
        live = {
            key: broker
            for key, broker in registered.items()
            if not self._reachability.is_gone(broker)
        }
        self._lingering = frozenset(registered.keys() - live.keys())
        return live

    @property
    def lingering(self) -> frozenset[int]:
        """The registered brokers whose process has ended.

        Each may restart before its session expires, and no record is lost: a partition gets no
        leader that is not in sync while a member of its ISR is one of them.
        """
        return self._lingering

    def presume_gone(self, broker: BrokerImage) -> None:
        """Treat a broker as gone until it has proven to be alive in the same registration."""
        self._reachability.watch(broker, self._context.fence_of(broker), is_gone=True)

    def ended(self) -> list[BrokerImage]:
        """Return the registered brokers whose process has ended."""
        return self._reachability.ended()

    def open_lanes(self, brokers: Mapping[int, BrokerImage]) -> None:
        """Replace all lanes of the outbox by new ones."""
        self._context.outbox.close()
        for broker in brokers.values():
            self._context.open_lane(broker)

    def close(self) -> None:
        """Stop watching brokers."""
        self._reachability.close()

    def _watch(self, _path: str) -> None:
        self._post_change()

    def _post_change(self) -> None:
        self._context.post(lambda term: term.brokers.brokers_changed())

    def _watch_failures(self, _path: str) -> None:
        self._context.post(lambda term: term.brokers.directories_failed())

    async def planned(
        self, live: Mapping[int, BrokerImage], affected: frozenset[int] | None = None
    ) -> ClusterImage:
        """Return the image with these live brokers, and leaders for partitions without one.

        `affected` are the brokers that have changed since the last plan, None for all.
        """
        is_unclean, lingering = self._context.is_unclean, self._lingering
        return await self._context.planned(
            lambda image: planner.plan_brokers(image, live, is_unclean, lingering, affected)
        )

    async def brokers_changed(self) -> None:
        """Elect leaders for the partitions of brokers that registered, left or restarted."""
        context = self._context
        lingering = self._lingering
        live = await self.live()
        change = planner.compare_brokers(context.image.brokers, live)
        if not (change.registered or change.removed) and self._lingering >= lingering:
            return
        _log.info(
            "brokers changed registered=%s removed=%s",
            sorted(change.registered),
            sorted(change.removed),
        )
        before = context.image
        affected = change.registered | change.removed | (lingering ^ self._lingering)
        await context.write_states(await self.planned(live, affected))
        for broker_id in change.removed:
            context.outbox.close_lane(broker_id)
        for broker_id in change.registered:
            context.open_lane(live[broker_id])
        await context.send(before, change.registered)
        self._deletions.brokers_changed(change)
        await self._deletions.proceed()

    async def unclean_elections_enabled(self, topic: str | None) -> None:
        """Elect leaders for offline partitions of a topic, None for all, that now may have one."""
        context = self._context
        before = context.image
        await context.retried(partial(self._elect, topic))
        if context.image is not before:
            await context.send(before)

    async def _elect(self, topic: str | None) -> None:
        context = self._context
        lingering = self._lingering
        after = await context.planned(
            lambda image: planner.plan_elections(image, context.is_unclean, lingering, topic)
        )
        await context.write_states(after)

    # -- controlled shutdown ------------------------------------------------------------------

    def eligible(self) -> dict[int, BrokerImage]:
        """Return the live brokers that are not about to stop: they may join an ISR."""
        return {
            key: broker
            for key, broker in self._context.image.brokers.items()
            if self._shutting_down.get(key) != broker.epoch
        }

    async def shut_down(
        self, broker_id: int, broker_epoch: int
    ) -> events.Reply[list[elections.TopicPartition]]:
        """Move the leaders of a broker away; the reply has the partitions that it still leads.

        ApiError STALE_BROKER_EPOCH if that is not its registration, BROKER_NOT_AVAILABLE if it is
        not registered. The deliveries complete when every broker knows the new leaders.
        """
        context = self._context
        broker = context.image.broker(broker_id)
        if broker is None:
            raise ApiError(ErrorCode.BROKER_NOT_AVAILABLE)
        if broker.epoch != broker_epoch:
            raise ApiError(ErrorCode.STALE_BROKER_EPOCH)
        self._shutting_down[broker_id] = broker_epoch
        before = context.image
        await context.retried(partial(self._shut_down, broker_id))
        remaining = shutdown.remaining(context.image, broker_id)
        _log.info("broker shuts down broker=%d remaining=%d", broker_id, len(remaining))
        deliveries = await context.send(before) if context.image is not before else ()
        return events.Reply(remaining, deliveries)

    async def _shut_down(self, broker_id: int) -> None:
        shutting_down = self._shutting_down
        after = await self._context.planned(
            lambda image: shutdown.plan_shutdown(image, broker_id, shutting_down)
        )
        await self._context.write_states(after)

    # -- log directories ----------------------------------------------------------------------

    async def forget_failures(self) -> None:
        """Remove the reports of failed log directories: the term asks every broker anyway."""
        failures = await state.load_failed_directories(self._context.session, self._watch_failures)
        await self._context.tree.remove(failures)

    async def directories_failed(self) -> None:
        """Ask the brokers with failed log directories which replicas are offline."""
        context = self._context
        failures = await state.load_failed_directories(context.session, self._watch_failures)
        context.outbox.send(
            Notice(broker_id=broker_id, leaders=planner.states_of(broker_id, context.image))
            for broker_id in sorted(set(failures.values()) & context.image.brokers.keys())
        )
        await context.tree.remove(failures)

    async def replicas_failed(
        self, broker_id: int, failed: Sequence[elections.TopicPartition]
    ) -> None:
        """Elect other leaders for replicas whose log directory failed."""
        await self._context.retried(partial(self._take_offline, broker_id, failed))

    async def _take_offline(
        self, broker_id: int, failed: Sequence[elections.TopicPartition]
    ) -> None:
        context = self._context
        before = context.image
        after = planner.plan_failures(
            before, broker_id, failed, context.is_unclean, self._lingering
        )
        if after is not before:
            await context.write_states(after)
            _log.error("replicas offline broker=%d count=%d", broker_id, len(failed))
            await context.send(before)
