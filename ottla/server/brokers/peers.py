"""One channel to each other broker, for one purpose."""

from ottla.net.requests import RequestChannel
from ottla.server.brokers.addresses import inter_broker_endpoint
from ottla.server.brokers.channels import Channels
from ottla.server.context import Broker


class Peers:
    """Channels by broker id.

    A broker that registers at another address gets a new one, as does one whose channel was closed.
    """

    def __init__(self, broker: Broker, channels: Channels, purpose: str) -> None:
        self._broker = broker
        self._channels = channels
        self._purpose = purpose
        self._open: dict[int, RequestChannel] = {}

    def channel(self, broker_id: int) -> RequestChannel | None:
        """Return the channel to a broker; None while no such broker is registered."""
        found = self._broker.image.broker(broker_id)
        if found is None:
            return None
        endpoint = inter_broker_endpoint(found, self._broker.options)
        channel = self._open.get(broker_id)
        if channel is not None:
            address = channel.host, channel.port
            if address == (endpoint.host, endpoint.port) and not channel.is_closed:
                return channel
            channel.close()
        channel = self._open[broker_id] = self._channels.open(
            endpoint.host, endpoint.port, purpose=self._purpose
        )
        return channel

    def close(self) -> None:
        """Close all connections."""
        for channel in self._open.values():
            channel.close()
        self._open.clear()
