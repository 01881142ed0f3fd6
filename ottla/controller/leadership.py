"""Elections by request and reassignments of one controller term. Follows KafkaController."""

import logging
from collections.abc import Iterable, Sequence
from functools import partial

from ottla.cluster.image import ClusterImage
from ottla.controller import events
from ottla.controller.planning import elections, reassignment
from ottla.controller.planning.notices import Notice
from ottla.controller.planning.requests import PartitionOutcome, Reassignment
from ottla.controller.term_context import Deliveries, TermContext

_log = logging.getLogger(__name__)


class Leadership:
    """Elects leaders and moves partitions to other brokers."""

    def __init__(self, context: TermContext) -> None:
        self._context = context

    async def elect_leaders(
        self,
        kind: elections.ElectionType,
        partitions: Sequence[elections.TopicPartition] | None,
    ) -> events.Reply:
        """Elect leaders; the reply has a PartitionOutcome for each partition.

        `partitions` None means every partition that needs an election.
        """
        context = self._context
        before = context.image
        results = await context.retried(partial(self._elect_leaders, kind, partitions))
        return events.Reply(results, context.send(before) if context.image is not before else ())

    async def _elect_leaders(
        self,
        kind: elections.ElectionType,
        partitions: Sequence[elections.TopicPartition] | None,
    ) -> list[PartitionOutcome]:
        context = self._context
        requested = elections.in_need(context.image, kind) if partitions is None else partitions
        after, outcomes = elections.plan_elections(context.image, kind, requested)
        if after is not context.image:
            await context.write_states(after)
        return outcomes

    async def reassign(
        self, partitions: Sequence[Reassignment], may_change_factor: bool
    ) -> events.Reply:
        """Start or cancel reassignments; the reply has a PartitionOutcome for each, by topic."""
        context = self._context
        before = context.image
        by_topic: dict[str, list[Reassignment]] = {}
        for request in partitions:
            by_topic.setdefault(request.topic, []).append(request)
        outcomes: list[PartitionOutcome] = []
        for requests in by_topic.values():
            for start in range(0, len(requests), reassignment.MOVES_MAX):
                some = requests[start : start + reassignment.MOVES_MAX]
                outcomes += await context.retried(
                    partial(self._reassign_topic, some, may_change_factor)
                )
        if context.image is before:
            return events.Reply(outcomes)
        return events.Reply(outcomes, self.send_moves(before, by_topic))

    def send_moves(self, before: ClusterImage, topics: Iterable[str]) -> Deliveries:
        """Send the difference between `before` and the image, and delete the replicas dropped."""
        context = self._context
        deliveries = context.send(before)
        # Last: the new replicas may still be copying from these logs.
        for broker_id, dropped in reassignment.dropped(before, context.image, topics).items():
            notice = Notice(broker_id=broker_id, stop=dropped, delete=True)
            deliveries += context.outbox.send([notice])
        return deliveries

    async def _reassign_topic(
        self, requests: Sequence[Reassignment], may_change_factor: bool
    ) -> list[PartitionOutcome]:
        context = self._context
        name = requests[0].topic
        rules = reassignment.Rules(
            context.image.brokers, may_change_factor, context.is_unclean(name)
        )
        former = context.image.topic(name)
        topic, outcomes = reassignment.plan_topic(former, requests, rules)
        if former is not None and topic is not None and topic is not former:
            write = reassignment.write_topic(former, topic, context.term.epoch)
            await context.tree.write(write.operations)
            context.image = context.image.with_topics(write.topics)
            _log.info("partitions reassigned topic=%s", name)
        return outcomes
