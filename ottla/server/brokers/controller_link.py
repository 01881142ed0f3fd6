"""Requests of this broker to the controller of the cluster, on whichever broker it is.

A request is sent once, to the broker that is known to be the controller. A controller that has lost
the role returns NOT_CONTROLLER and forwards nothing, so that no request can go round in circles.
Follows NodeToControllerChannelManager.
"""

from collections.abc import Callable
from typing import TypeVar

from ottla.base.errors import ApiError, ErrorCode
from ottla.cluster.image import NO_CONTROLLER
from ottla.server.brokers.peers import Peers
from ottla.server.current import Current
from ottla.wire.fields import Message

M = TypeVar("M", bound=Message)

# The default of Kafka's request.timeout.ms.
TIMEOUT_SECONDS = 30.0


class ControllerLink:
    """The way to the current controller; `from_tree` returns its broker id, as read from the tree."""

    def __init__(
        self, node_id: int, current: Current, peers: Peers, from_tree: Callable[[], int]
    ) -> None:
        self._node_id = node_id
        self._current = current
        self._peers = peers
        self._from_tree = from_tree

    async def request(
        self, message: Message, version: int, response: type[M], seconds: float = TIMEOUT_SECONDS
    ) -> M:
        """Send a request and return the response, whatever it says.

        ApiError NOT_CONTROLLER if no other broker is known to be the controller, and
        BROKER_NOT_AVAILABLE if it cannot be reached: then the request may have been performed.
        """
        controller_id = self._controller()
        channel = None if controller_id == self._node_id else self._peers.channel(controller_id)
        if channel is None:
            raise ApiError(ErrorCode.NOT_CONTROLLER)
        try:
            reply = await channel.request(message, version, seconds=seconds)
        except OSError as error:
            raise ApiError(ErrorCode.BROKER_NOT_AVAILABLE, str(error)) from error
        assert isinstance(reply, response), "a response has the class of its request"
        return reply

    def _controller(self) -> int:
        # The tree is read before the first notice of a new controller arrives.
        from_tree = self._from_tree()
        return self._current.image.controller_id if from_tree == NO_CONTROLLER else from_tree

    def close(self) -> None:
        """Close the connections; the next request establishes another one."""
        self._peers.close()
