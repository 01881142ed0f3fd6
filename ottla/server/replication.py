"""Replication between the brokers of a cluster, assembled: fetchers, channels and ISR updates."""

from collections.abc import Callable, Collection

from ottla.base.clock import Clock
from ottla.base.options import Snapshot
from ottla.base.tasks import Tasks
from ottla.cluster.image import ClusterImage
from ottla.net.port import Net
from ottla.net.requests import RequestChannel
from ottla.replication import fetcher, isr_updates
from ottla.replication.fetcher import ReplicaFetchers
from ottla.replication.follower_fetches import Limits
from ottla.replication.isr_updates import IsrUpdates
from ottla.replication.ports import IsrChanges
from ottla.server.context import Broker


class LeaderChannels:
    """The channels on which a broker fetches from leaders; one for each address."""

    def __init__(
        self, net: Net, image: Callable[[], ClusterImage], listener: str, client_id: str
    ) -> None:
        self._net = net
        self._image = image
        self._listener = listener
        self._client_id = client_id
        self._channels: dict[int, RequestChannel] = {}

    def connect(self, broker_id: int) -> RequestChannel | None:
        """Return the channel to a broker; None while no such broker is registered.

        A broker that registers at another address gets a new channel.
        """
        broker = self._image().broker(broker_id)
        endpoint = broker and broker.endpoint(self._listener)
        if endpoint is None:
            return None
        channel = self._channels.get(broker_id)
        if channel is None or (channel.host, channel.port) != (endpoint.host, endpoint.port):
            channel = self._channels[broker_id] = RequestChannel(
                self._net, endpoint.host, endpoint.port, client_id=self._client_id
            )
        return channel

    def close(self) -> None:
        """Close all channels."""
        for channel in self._channels.values():
            channel.close()


def fetch_limits(options: Snapshot) -> Limits:
    """Return the limits of follower fetches from the broker options."""
    return Limits(
        partition_bytes_max=options.integer("replica.fetch.max.bytes"),
        response_bytes_max=options.integer("replica.fetch.response.max.bytes"),
        bytes_min=options.integer("replica.fetch.min.bytes"),
        wait_ms=options.integer("replica.fetch.wait.max.ms"),
        backoff_seconds=options.integer("replica.fetch.backoff.ms") / 1000,
    )


def replica_fetchers(
    broker: Broker,
    *,
    clock: Clock,
    tasks: Tasks,
    connect: Callable[[int], RequestChannel | None],
    broker_epoch: Callable[[], int],
) -> ReplicaFetchers:
    """Return the fetchers of a broker; they start with the first partition that it follows."""
    return ReplicaFetchers(
        fetcher.Dependencies(
            node_id=broker.node_id,
            clock=clock,
            tasks=tasks,
            connect=connect,
            broker_epoch=broker_epoch,
            limits=lambda: fetch_limits(broker.options),
            timeout_seconds=lambda: broker.options.integer("replica.socket.timeout.ms") / 1000,
        )
    )


def isr_updates_of(broker: Broker, changes: IsrChanges) -> IsrUpdates:
    """Return the ISR updates of a broker, which proposes them through `changes`."""

    def eligible() -> Collection[int]:
        return broker.image.brokers

    return IsrUpdates(
        isr_updates.Dependencies(
            clock=broker.clock,
            changes=changes,
            lag_seconds=lambda: broker.options.integer("replica.lag.time.max.ms") / 1000,
            eligible=eligible,
            partitions=broker.replicas.partitions,
        )
    )
