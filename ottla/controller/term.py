"""One controller term: the image of the cluster, and how each event changes it.

A ControllerTerm is created when a broker is elected and dropped when it loses the role, so no state
outlives a term; `Role` has the current one. This module loads the tree and ends the term. Brokers,
leaders, topics and settings have a class each; `term_context` has the state that they share.
Follows KafkaController and ControllerContext.
"""

import asyncio
import logging
from collections.abc import Iterable, Sequence
from functools import partial

from ottla.base.errors import ApiError, ErrorCode
from ottla.cluster.image import BrokerImage, ClusterImage
from ottla.cluster.zk.port import Coordination, Create
from ottla.cluster.znodes import DeleteTopicsNode
from ottla.controller import events, state
from ottla.controller.brokers import Brokers
from ottla.controller.config_changes import ConfigChanges
from ottla.controller.leadership import Leadership
from ottla.controller.planning import elections, planner
from ottla.controller.planning.notices import Delivered, Notice
from ottla.controller.planning.requests import ConfigRequest, EntityResult
from ottla.controller.term_context import (
    ATTEMPTS,
    CONFLICTS,
    Deliveries,
    Dependencies,
    TermContext,
)
from ottla.controller.topic_creation import TopicCreation
from ottla.controller.topic_deletions import TopicDeletions

_log = logging.getLogger(__name__)


# How long a controller that has just restarted waits for news of processes that have ended.
PROBE_SECONDS = 0.1


class ControllerTerm:
    """The controller role during one term; only the controller's loop calls its methods.

    `ended` are brokers whose processes are known to have ended, although their sessions have not.
    """

    def __init__(
        self,
        session: Coordination,
        term: state.Term,
        broker_id: int,
        dependencies: Dependencies,
        post: events.Post,
        ended: Iterable[BrokerImage] = (),
    ) -> None:
        context = TermContext(session, term, broker_id, dependencies, post)
        context.reload = self.enter
        self._context = context
        # True from the moment at which other brokers may name this one as the controller.
        self.is_announced = False
        self._balance_timer: asyncio.TimerHandle | None = None
        self._deletions = TopicDeletions(
            context.outbox, lambda: context.image.brokers, self._remove_nodes_retried
        )
        self._configs = ConfigChanges(
            context.tree,
            dependencies.options,
            lambda: context.image.topics,
            lambda paths: post(lambda term: term.changes_expired(paths)),
        )
        self.brokers = Brokers(context, self._deletions)
        for broker in ended:
            self.brokers.presume_gone(broker)
        self.topics = TopicCreation(context, self._deletions.names)
        self.leadership = Leadership(context, self.brokers.eligible)

    @property
    def term(self) -> state.Term:
        """The epoch of the term."""
        return self._context.term

    @property
    def image(self) -> ClusterImage:
        """The controller's image of the cluster."""
        return self._context.image

    @property
    def unclean_elections_count(self) -> int:
        """Leaders elected in this term that were not in sync."""
        return self._context.unclean_elections_count

    # -- beginning and end ------------------------------------------------------------------------

    async def enter(self) -> Deliveries:
        """Load the tree, elect leaders where needed, and send the complete image to every broker.

        If brokers have registered again since partition states were written, new leaders are
        elected for these partitions, in a new leader epoch.
        """
        for _ in range(ATTEMPTS - 1):
            try:
                return await self._enter()
            except CONFLICTS as error:
                _log.warning("tree changed while it was read, reading it again error=%s", error)
        return await self._enter()

    async def _enter(self) -> Deliveries:
        context = self._context
        live = await self.brokers.live()
        topics, restarted = await state.load_topics(context.session, live)
        if context.broker_id in restarted and len(live) > 1:
            # Perhaps all brokers were killed: a registered process that has ended must not be left
            # as the only member of an ISR.
            await context.dependencies.clock.sleep(PROBE_SECONDS)
            live = await self.brokers.live()
        deletions = await state.load_deletions(context.session)
        loaded = ClusterImage(controller_id=context.broker_id, controller_epoch=context.term.epoch)
        loaded = loaded.with_brokers(
            broker for broker in live.values() if broker.id not in restarted
        ).with_topics(topic for topic in topics.values() if topic.name not in deletions)
        context.image = loaded
        await context.write_states(await self.brokers.planned(live))
        elected = context.image
        moving = await self.leadership.complete_moves()
        self.brokers.open_lanes(live)
        deliveries = await context.send(ClusterImage(), registered=live)
        self.is_announced = True
        deliveries += self.leadership.drop_replicas(elected, moving)
        _log.info(
            "controller elected epoch=%d brokers=%d topics=%d deletions=%d",
            context.term.epoch, len(live), len(self.image.topics), len(deletions),
        )  # fmt: skip
        await self._deletions.resume(deletions, topics)
        self._configs.expire_later(await state.load_config_changes(context.session))
        await self.brokers.forget_failures()
        self._schedule_balance()
        return deliveries

    def _schedule_balance(self) -> None:
        options = self._context.dependencies.options()
        if self._balance_timer is not None:
            self._balance_timer.cancel()
        if options.boolean("auto.leader.rebalance.enable"):
            seconds = options.integer("leader.imbalance.check.interval.seconds")
            loop = asyncio.get_running_loop()
            post = partial(self._context.post, lambda term: term.balance_leaders())
            self._balance_timer = loop.call_later(seconds, post)

    async def balance_leaders(self) -> None:
        """Elect the preferred leaders of brokers that lead too few partitions; repeated after the
        interval.
        """
        self._schedule_balance()
        await self.leadership.balance()

    async def isrs_changed(self) -> None:
        """Announce the ISRs that have changed in the last moments."""
        self.leadership.announce_isrs()

    def leave(self) -> None:
        """Close the outbox; callers that wait for a deletion get NOT_CONTROLLER."""
        if self._balance_timer is not None:
            self._balance_timer.cancel()
        self.brokers.close()
        self.leadership.close()
        self._context.outbox.close()
        self._configs.close()
        self._deletions.abandon()

    def barrier(self) -> Deliveries:
        """Return futures that complete once this broker has received every decision made so far."""
        return self._context.outbox.send([Notice(broker_id=self._context.broker_id)])

    async def settle(self) -> events.Reply[None]:
        """Reply once this broker has received every decision made so far."""
        return events.Reply(None, self.barrier())

    # -- deletion ---------------------------------------------------------------------------------

    async def delete_topics(self, topics: Sequence[str]) -> events.Reply[list[EntityResult]]:
        """Start to delete topics; the deliveries complete once every reachable log is deleted."""
        context = self._context
        results = [
            await context.attempt(name, partial(self._request_deletion, name)) for name in topics
        ]
        accepted = [result.name for result in results if result.error is None]
        before = context.image
        # If the tree was loaded in between, some deletions have been started there.
        started = [name for name in accepted if name in before.topics]
        context.image = before.with_topics(deleted=started)
        for name in started:
            self._deletions.begin(before.topics[name])
        await context.send(before)
        waiting = self._deletions.futures(accepted)
        await self._deletions.proceed()
        return events.Reply(results, waiting)

    async def _request_deletion(self, name: str) -> None:
        context = self._context
        if not context.dependencies.options().boolean("delete.topic.enable"):
            raise ApiError(ErrorCode.TOPIC_DELETION_DISABLED)
        if context.image.topic(name) is None:
            raise ApiError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        await context.tree.write([Create(DeleteTopicsNode.path(name))])

    async def _remove_nodes_retried(self, name: str) -> None:
        await self._context.retried(partial(self._remove_nodes, name))

    async def _remove_nodes(self, name: str) -> None:
        paths = await state.removable_paths(self._context.session, name)
        for write in planner.write_removal(paths):
            await self._context.tree.write(write.operations)

    async def delivered(self, delivered: Delivered) -> None:
        """Log the partitions that a broker failed to change, and apply logs that it deleted."""
        notice = delivered.notice
        failed_here: list[elections.TopicPartition] = []
        for (topic, partition), code in delivered.errors.items():
            if code is ErrorCode.STALE_CONTROLLER_EPOCH:
                # It knew this state, or a newer one, already.
                continue
            if code is ErrorCode.KAFKA_STORAGE_ERROR and not notice.delete:
                failed_here.append((topic, partition))
                continue
            _log.error(
                "broker reported an error broker=%d topic=%s partition=%d code=%s",
                notice.broker_id, topic, partition, code.name,
            )  # fmt: skip
        if failed_here:
            await self.brokers.replicas_failed(notice.broker_id, failed_here)
        if notice.delete:
            await self._deletions.delivered(delivered)

    # -- configuration ----------------------------------------------------------------------------

    async def alter_configs(
        self, requests: Sequence[ConfigRequest], validate_only: bool
    ) -> events.Reply[list[EntityResult]]:
        """Change dynamic settings; the reply has an EntityResult for each entity."""
        return events.Reply(
            [
                await self._context.attempt(
                    request.entity, partial(self._configs.alter, request, validate_only)
                )
                for request in requests
            ]
        )

    async def changes_expired(self, paths: Sequence[str]) -> None:
        """Remove change notifications that every broker has read."""
        await self._configs.expire(paths)


class Role:
    """The broker's current term, if it is the controller."""

    def __init__(self) -> None:
        self.term: ControllerTerm | None = None
        """The term in which events are handled; None while there is none, and while one begins."""
        self._beginning: ControllerTerm | None = None
        # Unclean elections of former terms.
        self._unclean_elections = 0

    @property
    def announced(self) -> ControllerTerm | None:
        """The term that other brokers may know. Events wait until it has begun."""
        beginning = self._beginning
        return beginning if beginning is not None and beginning.is_announced else self.term

    @property
    def unclean_elections_count(self) -> int:
        """Leaders elected by this broker that were not in sync."""
        now = self.term.unclean_elections_count if self.term is not None else 0
        return self._unclean_elections + now

    async def begin(self, term: ControllerTerm) -> Deliveries:
        """Begin a term. If that fails, the broker has no term."""
        self._beginning = term
        try:
            deliveries = await term.enter()
            self.term = term
        finally:
            self._beginning = None
            # A term that failed to load must not act; after a reconnect a new one is started.
            if self.term is not term:
                term.leave()
        return deliveries

    def resign(self) -> None:
        """End the term, if there is one."""
        if self.term is not None:
            _log.info("controller resigned epoch=%d", self.term.term.epoch)
            self.term.leave()
            self._unclean_elections += self.term.unclean_elections_count
        self.term = None
