"""Registered brokers whose process has ended, or is back.

A session outlives its process by many seconds. The controller elects new leaders as soon as the
process has ended. If the process is alive after all, the epochs fence the old leaders. A broker
that is back in the same registration has to prove that it is the same process, by accepting a
request with its epoch; otherwise the process is a new one that has not registered yet.
"""

import asyncio
import contextlib
import logging
from collections.abc import Callable, Container

from ottla.base.errors import ApiError
from ottla.cluster.image import BrokerImage
from ottla.controller.planning.notices import BrokerPort, Fence
from ottla.controller.term_context import Dependencies

_log = logging.getLogger(__name__)

# Between two attempts to reach a broker whose process seems to have ended.
RETRY_SECONDS = 0.5
# A broker that has neither accepted nor refused a connection after this time is believed to live.
FIRST_LOOK_SECONDS = 0.25


class Reachability:
    """Watches every other broker; `changed` is called when a process ends or is reached again."""

    def __init__(
        self, dependencies: Dependencies, own_id: int, changed: Callable[[], None]
    ) -> None:
        self._dependencies = dependencies
        self._own_id = own_id
        self._changed = changed
        self._watches: dict[int, _Watch] = {}

    def watch(self, broker: BrokerImage, fence: Fence, *, is_gone: bool = False) -> None:
        """Watch a registration; a watch on an earlier one of the same broker ends.

        `is_gone` says that its process is known to have ended.
        """
        watched = self._watches.get(broker.id)
        if broker.id == self._own_id or (watched is not None and watched.epoch == broker.epoch):
            return
        self._end(broker.id)
        port = self._dependencies.port_of(broker)
        watch = _Watch(self._dependencies, broker, port, fence, self._changed, is_gone=is_gone)
        self._watches[broker.id] = watch

    async def first_look(self) -> None:
        """Return when every watched broker was reached or found gone; after 0.25 s in any case.

        Without it a controller that begins its term after several brokers have died would elect
        those that are still registered, and take the restarted ones out of the ISR.
        """
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(FIRST_LOOK_SECONDS):
                for watch in list(self._watches.values()):
                    await watch.is_known.wait()

    def forget_others(self, registered: Container[int]) -> None:
        """End the watches on brokers that are no longer registered."""
        for broker_id in [watched for watched in self._watches if watched not in registered]:
            self._end(broker_id)

    def is_gone(self, broker: BrokerImage) -> bool:
        """Return True if the process of this registration has ended."""
        watch = self._watches.get(broker.id)
        return watch is not None and watch.epoch == broker.epoch and watch.is_gone

    def ended(self) -> list[BrokerImage]:
        """Return the registrations whose process has ended."""
        return [watch.broker for watch in self._watches.values() if watch.is_gone]

    def close(self) -> None:
        """End all watches."""
        for broker_id in list(self._watches):
            self._end(broker_id)

    def _end(self, broker_id: int) -> None:
        watch = self._watches.pop(broker_id, None)
        if watch is not None:
            watch.close()


class _Watch:
    """One registration of one broker."""

    def __init__(
        self,
        dependencies: Dependencies,
        broker: BrokerImage,
        port: BrokerPort,
        fence: Fence,
        changed: Callable[[], None],
        *,
        is_gone: bool,
    ) -> None:
        self.broker = broker
        self.epoch = fence.broker_epoch
        self.is_gone = is_gone
        self.is_known = asyncio.Event()
        if is_gone:
            self.is_known.set()
        self._clock = dependencies.clock
        self._port = port
        self._fence = fence
        self._changed = changed
        self._task: asyncio.Task[None] = dependencies.tasks.supervise(
            self._run, "watch on a broker", str(fence.broker_epoch)
        )

    async def _run(self) -> None:
        while True:
            if not self.is_gone:
                await self._port.wait_until_gone(self.is_known.set)
                self._set(is_gone=True)
            while not await self._is_same_process():
                await self._clock.sleep(RETRY_SECONDS)
            self._set(is_gone=False)

    def _set(self, *, is_gone: bool) -> None:
        self.is_gone = is_gone
        self.is_known.set()
        _log.warning("process of a broker checked epoch=%d is_gone=%s", self.epoch, is_gone)
        self._changed()

    async def _is_same_process(self) -> bool:
        try:
            await self._port.apply_leader_and_isr(self._fence, ())
        except ApiError:
            return False
        return True

    def close(self) -> None:
        self._task.cancel()
        self._port.close()
