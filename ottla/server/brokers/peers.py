"""One channel to each other broker, for one purpose."""

from ottla.net.requests import RequestChannel
from ottla.server.brokers.addresses import inter_broker_endpoint
from ottla.server.brokers.channels import Channels
from ottla.server.current import Current


class Peers:
    """Channels by broker id.

    A broker that registers at another address gets a new one, as does one whose channel was closed.
    """

    def __init__(self, current: Current, channels: Channels, purpose: str) -> None:
        self._current = current
        self._channels = channels
        self._purpose = purpose
        self._open: dict[int, RequestChannel] = {}

    def channel(self, broker_id: int) -> RequestChannel | None:
        """Return the channel to a broker; None while no such broker is registered."""
        broker = self._current.image.broker(broker_id)
        if broker is None:
            return None
        endpoint = inter_broker_endpoint(broker, self._current.options)
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
