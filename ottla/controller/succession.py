"""Takes over from a controller whose process has ended, before its session expires.

Every other broker watches the controller's process. The first that finds it ended takes the role in
one multi that increments the controller epoch. If the former controller is alive after all, the
epoch fences its writes and its notices, and it resigns when it sees that it has lost the role.
"""

import asyncio
import logging
from collections.abc import Callable

from ottla.cluster.image import BrokerImage
from ottla.controller.planning.notices import BrokerPort
from ottla.controller.term_context import Dependencies

_log = logging.getLogger(__name__)

# A broker that has lost the role although it was alive does not take it early for this long:
# otherwise two brokers that cannot reach each other would take it from each other for ever.
PAUSE_SECONDS = 60.0


def _ignore() -> None:
    pass


class Succession:
    """Watches the process of the current controller.

    `on_ended` is called with the controller and the czxid of its node.
    """

    def __init__(
        self, dependencies: Dependencies, on_ended: Callable[[BrokerImage, int], None]
    ) -> None:
        self._dependencies = dependencies
        self._on_ended = on_ended
        self._czxid = -1
        self._has_ended = False
        self._port: BrokerPort | None = None
        self._task: asyncio.Task[None] | None = None
        self._not_before = float("-inf")

    def follow(self, controller: BrokerImage, czxid: int) -> None:
        """Watch a controller, unless it is watched already; `czxid` is its node's.

        Calls `on_ended` again if its process is known to have ended: the caller could not act then.
        """
        if self._czxid == czxid and self._task is not None:
            if self._has_ended:
                self._on_ended(controller, czxid)
            return
        self.stop()
        self._czxid = czxid
        self._has_ended = False
        port = self._port = self._dependencies.port_of(controller)

        async def watch() -> None:
            await port.wait_until_gone(_ignore)
            _log.warning("process of the controller has ended broker=%d", controller.id)
            self._has_ended = True
            self._on_ended(controller, czxid)

        self._task = self._dependencies.tasks.supervise(
            watch, "watch on the controller", str(controller.id)
        )

    def stop(self) -> None:
        """Stop watching."""
        if self._task is not None:
            self._task.cancel()
            self._task = None
        if self._port is not None:
            self._port.close()
            self._port = None

    def role_lost(self) -> None:
        """Note that another broker took the role while this one was alive."""
        self._not_before = self._dependencies.clock.monotonic() + PAUSE_SECONDS

    @property
    def may_take_over(self) -> bool:
        """True unless this broker has lost the role recently."""
        return self._dependencies.clock.monotonic() >= self._not_before
