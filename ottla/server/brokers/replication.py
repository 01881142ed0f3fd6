"""Replication between the brokers of a cluster, assembled: fetchers and ISR updates."""

from collections.abc import Callable

from ottla.base.clock import Clock
from ottla.base.options import Snapshot
from ottla.base.tasks import Tasks
from ottla.replication import fetcher, isr_updates
from ottla.replication.fetcher import ReplicaFetchers
from ottla.replication.follower_fetches import FollowerFetchLimits
from ottla.replication.isr_updates import IsrUpdates
from ottla.replication.ports import IsrChanges
from ottla.replication.replicas import Replicas
from ottla.replication.traffic.throttle import ReplicationQuotaWindow, ReplicationTraffic, Throttle
from ottla.server.brokers.peers import Peers
from ottla.server.current import Current


def fetch_limits(options: Snapshot) -> FollowerFetchLimits:
    """Return the limits of follower fetches from the broker options."""
    return FollowerFetchLimits(
        partition_bytes_max=options.integer("replica.fetch.max.bytes"),
        response_bytes_max=options.integer("replica.fetch.response.max.bytes"),
        bytes_min=options.integer("replica.fetch.min.bytes"),
        wait_ms=options.integer("replica.fetch.wait.max.ms"),
        backoff_seconds=options.integer("replica.fetch.backoff.ms") / 1000,
    )


class _FetchLimits:
    """The limits of follower fetches as of the present options, for every fetch."""

    def __init__(self, current: Current) -> None:
        self._current = current
        self._options = current.options
        self._limits = fetch_limits(self._options)

    def __call__(self) -> FollowerFetchLimits:
        """Return the limits."""
        options = self._current.options
        if options is not self._options:
            self._options, self._limits = options, fetch_limits(options)
        return self._limits


def limit_traffic(replicas: Replicas, current: Current) -> None:
    """Limit replication and the moves between log directories by the broker's options (KIP-73)."""
    replicas.move_bytes_per_second = lambda: current.options.integer(
        "replica.alter.log.dirs.io.max.bytes.per.second"
    )
    window = ReplicationQuotaWindow(
        current.options.integer("replication.quota.window.num"),
        current.options.integer("replication.quota.window.size.seconds"),
    )

    def throttle(option: str) -> Throttle:
        return Throttle(lambda: current.options.integer(option), window)

    replicas.replication = ReplicationTraffic(
        throttle("leader.replication.throttled.rate"),
        throttle("follower.replication.throttled.rate"),
    )


def replica_fetchers(
    node_id: int,
    current: Current,
    leaders: Peers,
    *,
    traffic: ReplicationTraffic,
    broker_epoch: Callable[[], int],
    clock: Clock,
    tasks: Tasks,
) -> ReplicaFetchers:
    """Return the fetchers of a broker; they start with the first partition that it follows."""
    contacts = current.contacts
    return ReplicaFetchers(
        fetcher.Dependencies(
            node_id=node_id,
            clock=clock,
            tasks=tasks,
            connect=leaders.channel,
            broker_epoch=broker_epoch,
            limits=_FetchLimits(current),
            timeout_seconds=lambda: current.options.integer("replica.socket.timeout.ms") / 1000,
            traffic=traffic,
            lost=lambda leader: contacts.fetch_lost(leader, clock.monotonic()),
            fetched=contacts.fetched,
        )
    )


def isr_updates_of(
    current: Current, replicas: Replicas, changes: IsrChanges, clock: Clock
) -> IsrUpdates:
    """Return the ISR updates of a broker, which proposes them through `changes`."""
    return IsrUpdates(
        isr_updates.Dependencies(
            clock=clock,
            changes=changes,
            lag_seconds=lambda: current.options.integer("replica.lag.time.max.ms") / 1000,
            eligible=lambda: current.image.brokers,
            partitions=replicas.partitions,
        )
    )
