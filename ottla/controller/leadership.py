"""Elections by request and reassignments of one controller term. Follows KafkaController."""

import asyncio
import logging
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING

from ottla.base.errors import ApiError, ErrorCode
from ottla.base.loading import deferred_module
from ottla.cluster.image import BrokerImage, ClusterImage, TopicImage
from ottla.controller import events
from ottla.controller.planning import elections, isr_changes
from ottla.controller.planning.isr_changes import IsrRequest, IsrResult
from ottla.controller.planning.notices import MetadataUpdate, Notice
from ottla.controller.planning.requests import PartitionChangeResult, Reassignment
from ottla.controller.term_context import Deliveries, TermContext

if TYPE_CHECKING:
    from ottla.controller.planning import balance, reassignment
else:
    # The first check of the balance needs the one, and the first move the other.
    balance = deferred_module("ottla.controller.planning.balance")
    reassignment = deferred_module("ottla.controller.planning.reassignment")

_log = logging.getLogger(__name__)

# Changes of the ISR are announced at most this often. The leader has its decision by then; the
# other brokers only describe the ISR. When a broker of a large cluster returns, every other broker
# proposes changes: one announcement to all brokers for each would be most of the controller's work.
ANNOUNCEMENT_SECONDS = 0.1


class Leadership:
    """Elects leaders and moves partitions to other brokers.

    `eligible` returns the brokers that may be members of an ISR.
    """

    def __init__(
        self, context: TermContext, eligible: Callable[[], Mapping[int, BrokerImage]]
    ) -> None:
        self._context = context
        self._eligible = eligible
        # Topics with changes of the ISR that only the leaders know.
        self._unannounced: set[str] = set()
        self._announced_at = float("-inf")
        self._announcement: asyncio.TimerHandle | None = None

    def close(self) -> None:
        """Cancel what has not been announced."""
        if self._announcement is not None:
            self._announcement.cancel()

    # -- the ISR ------------------------------------------------------------------------------

    async def alter_partitions(
        self, broker_id: int, broker_epoch: int, requests: Sequence[IsrRequest]
    ) -> events.Reply[list[IsrResult]]:
        """Store the ISRs that a leader proposes; the reply has an IsrResult for each.

        ApiError STALE_BROKER_EPOCH if the proposals are of another registration of the broker.
        """
        context = self._context
        broker = context.image.broker(broker_id)
        if broker is None or broker.epoch != broker_epoch:
            raise ApiError(ErrorCode.STALE_BROKER_EPOCH)
        before = context.image
        results, topics = await context.retried(partial(self._alter_partitions, requests))
        if topics and _has_move(before, requests):
            await context.retried(partial(self.complete_moves, topics))
            await self.send_moves(before, topics)
        else:
            self._announce_soon(topics)
        return events.Reply(results)

    def _announce_soon(self, topics: Collection[str]) -> None:
        """Announce the ISRs of topics to all brokers, together with those of a moment before."""
        self._unannounced.update(topics)
        if not self._unannounced or self._announcement is not None:
            return
        now = self._context.dependencies.clock.monotonic()
        seconds = self._announced_at + ANNOUNCEMENT_SECONDS - now
        if seconds <= 0:
            self.announce_isrs()
            return
        post = partial(self._context.post, lambda term: term.isrs_changed())
        self._announcement = asyncio.get_running_loop().call_later(seconds, post)

    def announce_isrs(self) -> None:
        """Send every broker the topics whose ISRs have changed."""
        image = self._context.image
        self._announcement = None
        self._announced_at = self._context.dependencies.clock.monotonic()
        changed = [image.topics[name] for name in self._unannounced if name in image.topics]
        self._unannounced.clear()
        if changed:
            update = MetadataUpdate(None, changed, ())
            self._context.outbox.send(
                Notice(broker_id=broker_id, metadata=update) for broker_id in image.brokers
            )

    async def _alter_partitions(
        self, requests: Sequence[IsrRequest]
    ) -> tuple[list[IsrResult], tuple[str, ...]]:
        context = self._context
        plan = isr_changes.plan(context.image, requests, self._eligible())
        if plan.topics:
            await context.write_states(plan.image)
        results = []
        for request, error in zip(requests, plan.errors, strict=True):
            topic = context.image.topic_by_id(request.topic_id)
            now = None
            if topic is not None and error is ErrorCode.NONE:
                now = topic.partition(request.partition)
            results.append(IsrResult(request.topic_id, request.partition, error, now))
        return results, plan.topics

    async def complete_moves(self, topics: Iterable[str] | None = None) -> list[str]:
        """Complete the reassignments whose new replicas have joined the ISR (KIP-455).

        Returns the topics that changed; `topics` None means all.
        """
        context = self._context
        completed = []
        for name in list(context.image.topics) if topics is None else topics:
            former = context.image.topic(name)
            if former is None or not any(
                partition.is_being_reassigned for partition in former.partitions
            ):
                continue
            rules = reassignment.ReassignmentConditions(
                context.image.brokers, is_unclean=context.is_unclean(name)
            )
            finished = [
                after
                for partition in former.partitions
                if (after := reassignment.completed(partition, rules)) is not partition
            ]
            if finished:
                await self._write_moves(former, former.with_partitions(finished))
                _log.info("reassignments completed topic=%s count=%d", name, len(finished))
                completed.append(name)
        return completed

    async def _write_moves(self, former: TopicImage, topic: TopicImage) -> None:
        context = self._context
        write = reassignment.write_topic(former, topic, context.term.epoch)
        await context.tree.write(write.operations)
        context.image = context.image.with_topics(write.topics)

    # -- elections ----------------------------------------------------------------------------

    async def balance(self) -> None:
        """Elect the preferred leaders of brokers that lead too few partitions."""
        context = self._context
        percentage = context.dependencies.options().integer(
            "leader.imbalance.per.broker.percentage"
        )
        keys = balance.unbalanced(context.image, percentage)
        if keys:
            _log.info("leaders balanced count=%d", len(keys))
            await self.elect_leaders(elections.ElectionType.PREFERRED, keys)

    async def elect_leaders(
        self,
        kind: elections.ElectionType,
        partitions: Sequence[elections.TopicPartition] | None,
    ) -> events.Reply[list[PartitionChangeResult]]:
        """Elect leaders; the reply has a PartitionChangeResult for each partition.

        `partitions` None means every partition that needs an election.
        """
        context = self._context
        before = context.image
        results = await context.retried(partial(self._elect_leaders, kind, partitions))
        deliveries = await context.send(before) if context.image is not before else ()
        return events.Reply(results, deliveries)

    async def _elect_leaders(
        self,
        kind: elections.ElectionType,
        partitions: Sequence[elections.TopicPartition] | None,
    ) -> list[PartitionChangeResult]:
        context = self._context
        requested = elections.in_need(context.image, kind) if partitions is None else partitions
        after, results = elections.plan_elections(context.image, kind, requested)
        if after is not context.image:
            await context.write_states(after)
        return results

    # -- reassignment -------------------------------------------------------------------------

    async def reassign(
        self, partitions: Sequence[Reassignment], may_change_factor: bool
    ) -> events.Reply[list[PartitionChangeResult]]:
        """Start or cancel reassignments; the reply has a PartitionChangeResult for each, by topic."""
        context = self._context
        before = context.image
        by_topic: dict[str, list[Reassignment]] = {}
        for request in partitions:
            by_topic.setdefault(request.topic, []).append(request)
        results: list[PartitionChangeResult] = []
        for requests in by_topic.values():
            for start in range(0, len(requests), reassignment.MOVES_MAX):
                chunk = requests[start : start + reassignment.MOVES_MAX]
                results += await context.retried(
                    partial(self._reassign_topic, chunk, may_change_factor)
                )
        if context.image is before:
            return events.Reply(results)
        return events.Reply(results, await self.send_moves(before, by_topic))

    async def send_moves(self, before: ClusterImage, topics: Collection[str]) -> Deliveries:
        """Send the difference between `before` and the image, and delete the replicas dropped."""
        # Last: the new replicas may still be copying from these logs.
        return await self._context.send(before) + self.drop_replicas(before, topics)

    def drop_replicas(self, before: ClusterImage, topics: Collection[str]) -> Deliveries:
        """Delete the replicas that brokers no longer have since `before`."""
        context = self._context
        if not topics:
            return []
        dropped = reassignment.dropped(before, context.image, topics)
        return context.outbox.send(
            Notice(broker_id=broker_id, stop=partitions, delete=True)
            for broker_id, partitions in dropped.items()
        )

    async def _reassign_topic(
        self, requests: Sequence[Reassignment], may_change_factor: bool
    ) -> list[PartitionChangeResult]:
        context = self._context
        name = requests[0].topic
        rules = reassignment.ReassignmentConditions(
            context.image.brokers, may_change_factor, context.is_unclean(name)
        )
        former = context.image.topic(name)
        topic, results = reassignment.plan_topic(former, requests, rules)
        if former is not None and topic is not None and topic is not former:
            await self._write_moves(former, topic)
            _log.info("partitions reassigned topic=%s", name)
        return results


def _has_move(image: ClusterImage, requests: Iterable[IsrRequest]) -> bool:
    """Return True if one of these partitions is being reassigned: its move may be complete."""
    for request in requests:
        topic = image.topic_by_id(request.topic_id)
        partition = None if topic is None else topic.partition(request.partition)
        if partition is not None and partition.is_being_reassigned:
            return True
    return False
