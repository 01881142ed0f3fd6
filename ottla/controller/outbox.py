"""Notices from the controller to brokers, delivered in order, one lane per broker.

A broker receives LeaderAndIsr before the UpdateMetadata that names the leaders, and StopReplica
last. A lane retries until the broker has left or a newer controller was elected. The controller's
own broker has a lane like any other. Follows ControllerChannelManager.
"""

import asyncio
import logging
from collections.abc import Callable, Iterable, Mapping

from ottla.base.clock import Clock
from ottla.base.errors import ApiError, ErrorCode
from ottla.base.tasks import Tasks
from ottla.cluster.image import BrokerImage
from ottla.controller.planning.notices import (
    BrokerPort,
    Delivered,
    Fence,
    Notice,
    TopicPartition,
)

_log = logging.getLogger(__name__)

RETRY_SECONDS = 0.1


OnDelivered = Callable[[Delivered], None]


class Outbox:
    """All lanes of a controller, from its election until it resigns."""

    def __init__(
        self, tasks: Tasks, clock: Clock, port_of: Callable[[BrokerImage], BrokerPort]
    ) -> None:
        self._tasks = tasks
        self._clock = clock
        self._port_of = port_of
        self._lanes: dict[int, _Lane] = {}

    def open(self, broker: BrokerImage, fence: Fence, on_delivered: OnDelivered) -> None:
        """Open a lane to a broker that registered; a lane to its former epoch is closed."""
        self.close_lane(broker.id)
        lane = _Lane(self._port_of(broker), fence, self._clock, on_delivered)
        self._lanes[broker.id] = lane
        lane.task = self._tasks.supervise(lane.run, "controller to broker", str(broker.id))

    def send(self, notices: Iterable[Notice]) -> "list[asyncio.Future[None]]":
        """Queue notices; each future completes when the broker responded or its lane was closed."""
        return [
            self._lanes[notice.broker_id].put(notice)
            for notice in notices
            if notice.broker_id in self._lanes
        ]

    def close_lane(self, broker_id: int) -> None:
        """Close a broker's lane: notices in its queue are not sent."""
        lane = self._lanes.pop(broker_id, None)
        if lane is not None:
            lane.close()

    def close(self) -> None:
        """Close all lanes."""
        for broker_id in list(self._lanes):
            self.close_lane(broker_id)


class _Lane:
    """The notices of one broker, in order, one at a time."""

    def __init__(
        self, port: BrokerPort, fence: Fence, clock: Clock, on_delivered: OnDelivered
    ) -> None:
        self._port = port
        self._fence = fence
        self._clock = clock
        self._on_delivered = on_delivered
        self._queue: asyncio.Queue[tuple[Notice, asyncio.Future[None]]] = asyncio.Queue()
        self._current: asyncio.Future[None] | None = None
        self._is_closed = False
        self.task: asyncio.Task[None] | None = None

    def put(self, notice: Notice) -> "asyncio.Future[None]":
        """Queue a notice."""
        sent: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        if self._is_closed:
            self._finish(sent)
        else:
            self._queue.put_nowait((notice, sent))
        return sent

    async def run(self) -> None:
        """Deliver until cancelled or fenced."""
        while True:
            notice, self._current = await self._queue.get()
            try:
                errors = await self._deliver_with_retries(notice)
            except ApiError as error:
                _log.warning(
                    "requests to broker stopped broker=%d code=%s",
                    notice.broker_id,
                    error.code.name,
                )
                self._give_up()
                return
            except Exception:
                # The notice will not be sent again: release its waiters.
                self._finish(self._current)
                raise
            self._finish(self._current)
            self._on_delivered(Delivered(notice, errors))

    async def _deliver_with_retries(self, notice: Notice) -> Mapping[TopicPartition, ErrorCode]:
        while True:
            try:
                return await self._deliver(notice)
            except ApiError as error:
                if error.code is not ErrorCode.BROKER_NOT_AVAILABLE:
                    raise
            await self._clock.sleep(RETRY_SECONDS)

    async def _deliver(self, notice: Notice) -> Mapping[TopicPartition, ErrorCode]:
        if notice.leaders and notice.metadata is not None and notice.metadata.brokers is not None:
            await self._port.introduce(self._fence, notice.metadata.brokers)
        # Leaders first: a client that reads the metadata must find the leader ready.
        codes: dict[TopicPartition, ErrorCode] = {}
        if notice.leaders:
            codes.update(await self._port.apply_leader_and_isr(self._fence, notice.leaders))
        if notice.metadata is not None:
            await self._port.update_metadata(self._fence, notice.metadata)
        if notice.stop:
            codes.update(
                await self._port.stop_replicas(self._fence, notice.stop, delete=notice.delete)
            )
        return {key: code for key, code in codes.items() if code is not ErrorCode.NONE}

    def close(self) -> None:
        """Stop delivering, and complete the futures of waiting callers."""
        if self.task is not None:
            self.task.cancel()
        self._port.close()
        self._give_up()

    def _give_up(self) -> None:
        self._is_closed = True
        if self._current is not None:
            self._finish(self._current)
        while not self._queue.empty():
            self._finish(self._queue.get_nowait()[1])

    @staticmethod
    def _finish(sent: "asyncio.Future[None]") -> None:
        if not sent.done():
            sent.set_result(None)
