"""The topics that one controller term is deleting: orders to brokers, their responses, the last
write.

`deletion` decides what happens to one topic; this module keeps all of them, sends the orders and
completes the futures of the callers that wait. Follows TopicDeletionManager.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Container, Iterable, Mapping
from typing import TYPE_CHECKING

from ottla.base.errors import ApiError, ErrorCode
from ottla.base.loading import deferred_module
from ottla.cluster.image import TopicImage
from ottla.controller.outbox import Outbox
from ottla.controller.planning.notices import Delivered, Notice
from ottla.controller.planning.planner import BrokerChange

if TYPE_CHECKING:
    from ottla.controller.planning import deletion
else:
    # The first topic that is deleted needs it.
    deletion = deferred_module("ottla.controller.planning.deletion")

_log = logging.getLogger(__name__)


class TopicDeletions:
    """The deletions of one term, by topic name.

    `remove_nodes` removes a topic's nodes from the tree; it is called once per topic, when no live
    broker holds a log of the topic any more.
    """

    def __init__(
        self,
        outbox: Outbox,
        live_brokers: Callable[[], Container[int]],
        remove_nodes: Callable[[str], Awaitable[None]],
    ) -> None:
        self._outbox = outbox
        self._live_brokers = live_brokers
        self._remove_nodes = remove_nodes
        self._deletions: dict[str, deletion.Deletion] = {}
        self._waiting: dict[str, asyncio.Future[None]] = {}

    def __contains__(self, name: object) -> bool:
        return name in self._deletions

    def names(self) -> Iterable[str]:
        """Return the names of the topics that are being deleted."""
        return self._deletions.keys()

    def begin(self, topic: TopicImage) -> None:
        """Start to delete a topic that brokers' metadata no longer contains."""
        self._deletions[topic.name] = deletion.begin(topic)
        self._waiting.setdefault(topic.name, asyncio.get_running_loop().create_future())

    def futures(self, names: Iterable[str]) -> "list[asyncio.Future[None]]":
        """Return futures that complete when these topics are deleted, or wait only for lost
        brokers.
        """
        return [self._waiting[name] for name in names if name in self._waiting]

    async def resume(self, names: Iterable[str], topics: Mapping[str, TopicImage]) -> None:
        """Continue the deletions that an earlier term left in the tree."""
        self._deletions.clear()
        for name in names:
            if name in topics:
                self.begin(topics[name])
            else:
                await self._remove(name)
        await self.proceed()

    def brokers_changed(self, change: BrokerChange) -> None:
        """Postpone the replicas of brokers that left, and retry the replicas of brokers that
        returned.
        """
        for name in self._deletions:
            for broker_id in change.removed:
                self._deletions[name] = deletion.broker_gone(self._deletions[name], broker_id)
            for broker_id in change.registered:
                self._deletions[name] = deletion.broker_returned(self._deletions[name], broker_id)

    async def delivered(self, delivered: Delivered) -> None:
        """Apply a broker's response to an order to delete logs."""
        notice = delivered.notice
        for name in {topic for topic, _ in notice.stop} & self._deletions.keys():
            failed = {partition for topic, partition in delivered.errors if topic == name}
            # A reassignment may have ordered the deletion of other replicas of the topic.
            stopped = {partition for topic, partition in notice.stop if topic == name}
            self._deletions[name] = deletion.answered(
                self._deletions[name], notice.broker_id, failed, stopped
            )
        await self.proceed()

    async def proceed(self) -> None:
        """Send every order that is due, and remove the topics of which no live broker has a log."""
        for name in list(self._deletions):
            live_brokers = self._live_brokers()
            self._deletions[name], orders = deletion.start(self._deletions[name], live_brokers)
            self._outbox.send(
                Notice(broker_id=broker_id, stop=partitions, delete=True)
                for broker_id, partitions in orders.items()
            )
            if self._deletions[name].is_left_to(live_brokers):
                await self._remove(name)
            elif self._deletions[name].is_put_off:
                _complete(self._waiting.pop(name, None))

    def abandon(self) -> None:
        """Fail every waiting caller with NOT_CONTROLLER: the term is over."""
        for completed in self._waiting.values():
            completed.set_exception(ApiError(ErrorCode.NOT_CONTROLLER))
            # Mark the exception as retrieved: a future without a waiter must not log a warning.
            completed.exception()
        self._waiting.clear()

    async def _remove(self, name: str) -> None:
        await self._remove_nodes(name)
        self._deletions.pop(name, None)
        _complete(self._waiting.pop(name, None))
        _log.info("topic deleted name=%s", name)


def _complete(completed: "asyncio.Future[None] | None") -> None:
    if completed is not None and not completed.done():
        completed.set_result(None)
