"""Replication between the brokers of a cluster, assembled: fetchers and ISR updates."""

from ottla.base.clock import Clock
from ottla.base.options import Snapshot
from ottla.base.tasks import Tasks
from ottla.replication import fetcher, isr_updates
from ottla.replication.fetcher import ReplicaFetchers
from ottla.replication.follower_fetches import Limits
from ottla.replication.isr_updates import IsrUpdates
from ottla.replication.ports import IsrChanges
from ottla.replication.traffic.throttle import ReplicationTraffic, Throttle, Window
from ottla.server.brokers.channels import Channels
from ottla.server.brokers.peers import Peers
from ottla.server.context import Broker


def fetch_limits(options: Snapshot) -> Limits:
    """Return the limits of follower fetches from the broker options."""
    return Limits(
        partition_bytes_max=options.integer("replica.fetch.max.bytes"),
        response_bytes_max=options.integer("replica.fetch.response.max.bytes"),
        bytes_min=options.integer("replica.fetch.min.bytes"),
        wait_ms=options.integer("replica.fetch.wait.max.ms"),
        backoff_seconds=options.integer("replica.fetch.backoff.ms") / 1000,
    )


def replication_traffic(broker: Broker) -> ReplicationTraffic:
    """Return the traffic of a broker, limited by its options (KIP-73)."""
    window = Window(
        broker.options.integer("replication.quota.window.num"),
        broker.options.integer("replication.quota.window.size.seconds"),
    )

    def throttle(option: str) -> Throttle:
        return Throttle(lambda: broker.options.integer(option), window)

    return ReplicationTraffic(
        throttle("leader.replication.throttled.rate"),
        throttle("follower.replication.throttled.rate"),
    )


def replica_fetchers(
    broker: Broker, channels: Channels, *, clock: Clock, tasks: Tasks
) -> ReplicaFetchers:
    """Return the fetchers of a broker; they start with the first partition that it follows."""
    leaders = Peers(broker, channels, "fetcher")
    return ReplicaFetchers(
        fetcher.Dependencies(
            node_id=broker.node_id,
            clock=clock,
            tasks=tasks,
            connect=leaders.channel,
            broker_epoch=lambda: broker.controller.broker_epoch,
            limits=lambda: fetch_limits(broker.options),
            traffic=broker.replicas.replication,
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
