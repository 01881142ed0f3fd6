"""Replication between the brokers of a cluster, assembled: fetchers, channels and ISR updates."""

from collections.abc import Callable

from ottla.base.clock import Clock
from ottla.base.options import Snapshot
from ottla.base.tasks import Tasks
from ottla.cluster.image import ClusterImage
from ottla.net.requests import RequestChannel
from ottla.replication import fetcher, isr_updates
from ottla.replication.fetcher import ReplicaFetchers
from ottla.replication.follower_fetches import Limits
from ottla.replication.isr_updates import IsrUpdates
from ottla.replication.ports import IsrChanges
from ottla.server.brokers.addresses import inter_broker_endpoint
from ottla.server.brokers.channels import Channels
from ottla.server.context import Broker


class LeaderChannels:
    """The channels on which a broker fetches from leaders; one for each address."""

    def __init__(
        self, channels: Channels, image: Callable[[], ClusterImage], options: Snapshot
    ) -> None:
        self._channels = channels
        self._image = image
        self._options = options
        self._by_leader: dict[int, RequestChannel] = {}

    def connect(self, broker_id: int) -> RequestChannel | None:
        """Return the channel to a broker; None while no such broker is registered.

        A broker that registers at another address gets a new channel, and so does one whose
        fetcher has been stopped.
        """
        broker = self._image().broker(broker_id)
        if broker is None:
            return None
        endpoint = inter_broker_endpoint(broker, self._options)
        channel = self._by_leader.get(broker_id)
        is_usable = channel is not None and not channel.is_closed
        if (
            channel is None
            or not is_usable
            or (channel.host, channel.port) != (endpoint.host, endpoint.port)
        ):
            channel = self._by_leader[broker_id] = self._channels.open(
                endpoint.host, endpoint.port, purpose="fetcher"
            )
        return channel


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
    channels: Channels,
    options: Snapshot,
    *,
    clock: Clock,
    tasks: Tasks,
) -> ReplicaFetchers:
    """Return the fetchers of a broker; they start with the first partition that it follows."""
    leaders = LeaderChannels(channels, lambda: broker.image, options)
    return ReplicaFetchers(
        fetcher.Dependencies(
            node_id=broker.node_id,
            clock=clock,
            tasks=tasks,
            connect=leaders.connect,
            broker_epoch=lambda: broker.controller.broker_epoch,
            limits=lambda: fetch_limits(broker.options),
            timeout_seconds=lambda: broker.options.integer("replica.socket.timeout.ms") / 1000,
        )
    )


def isr_updates_of(broker: Broker, changes: IsrChanges) -> IsrUpdates:
    """Return the ISR updates of a broker, which proposes them through `changes`."""
    return IsrUpdates(
        isr_updates.Dependencies(
            clock=broker.clock,
            changes=changes,
            lag_seconds=lambda: broker.options.integer("replica.lag.time.max.ms") / 1000,
            eligible=lambda: broker.image.brokers,
            partitions=broker.replicas.partitions,
        )
    )
