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
        # The channels whose addresses were compared with this image and these options.
        self._compared: dict[int, RequestChannel] = {}
        self._image, self._options = current.image, current.options

    def channel(self, broker_id: int) -> RequestChannel | None:
        """Return the channel to a broker; None while no such broker is registered."""
        current = self._current
        if current.image is not self._image or current.options is not self._options:
            self._image, self._options = current.image, current.options
            self._compared.clear()
        compared = self._compared.get(broker_id)
        if compared is not None and not compared.is_closed:
            return compared
        channel = self._registered(broker_id)
        if channel is not None:
            self._compared[broker_id] = channel
        return channel

    def _registered(self, broker_id: int) -> RequestChannel | None:
        """Return the channel to the registered address of a broker."""
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
        self._compared.clear()
