"""Requests of this broker to the controller of the cluster, on whichever broker it is.

A request is sent once, to the broker that is known to be the controller. A controller that has lost
the role answers NOT_CONTROLLER and forwards nothing, so that no request can go round in circles.
Follows NodeToControllerChannelManager.
"""

from typing import TypeVar

from ottla.base.errors import ApiError, ErrorCode
from ottla.cluster.image import NO_CONTROLLER
from ottla.net.requests import RequestChannel
from ottla.server.brokers.addresses import inter_broker_endpoint
from ottla.server.brokers.channels import Channels
from ottla.server.context import Broker
from ottla.wire.fields import Message

M = TypeVar("M", bound=Message)

# The default of Kafka's request.timeout.ms.
TIMEOUT_SECONDS = 30.0


class ControllerLink:
    """One connection to the current controller; another one after it has changed."""

    def __init__(self, channels: Channels, broker: Broker) -> None:
        self._channels = channels
        self._broker = broker
        self._channel: RequestChannel | None = None

    async def request(
        self, message: Message, version: int, response: type[M], seconds: float = TIMEOUT_SECONDS
    ) -> M:
        """Send a request and return the response, whatever it says.

        ApiError NOT_CONTROLLER if no other broker is known to be the controller, and
        BROKER_NOT_AVAILABLE if it cannot be reached: then the request may have been performed.
        """
        channel = self._to(*self._address())
        try:
            answer = await channel.request(message, version, seconds=seconds)
        except OSError as error:
            raise ApiError(ErrorCode.BROKER_NOT_AVAILABLE, str(error)) from error
        assert isinstance(answer, response), "a response has the class of its request"
        return answer

    def _address(self) -> tuple[str, int]:
        broker = self._broker
        # The tree is read before the first notice of a new controller arrives.
        known = broker.controller.controller_id
        controller_id = broker.image.controller_id if known == NO_CONTROLLER else known
        controller = broker.image.broker(controller_id)
        if controller is None or controller_id == broker.node_id:
            raise ApiError(ErrorCode.NOT_CONTROLLER)
        endpoint = inter_broker_endpoint(controller, broker.options)
        return endpoint.host, endpoint.port

    def _to(self, host: str, port: int) -> RequestChannel:
        channel = self._channel
        if channel is None or (channel.host, channel.port) != (host, port):
            self.close()
            channel = self._channel = self._channels.open(host, port, purpose="requests")
        return channel

    def close(self) -> None:
        """Close the connection; the next request establishes another one."""
        if self._channel is not None:
            self._channel.close()
            self._channel = None
