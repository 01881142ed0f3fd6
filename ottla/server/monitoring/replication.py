"""Replication between brokers: changes of ISRs, and the lag of this broker's followers."""

from collections.abc import Iterator

from ottla.metrics.beans import Beans, Properties, Reading
from ottla.replication.fetcher import LeaderFetcher
from ottla.server.context import Broker

_manager = Beans("kafka.server", "ReplicaManager")
_fetchers = Beans("kafka.server", "ReplicaFetcherManager")
_lags = Beans("kafka.server", "FetcherLagMetrics")
_statistics = Beans("kafka.server", "FetcherStats")

_SHRINKS = _manager.meter("IsrShrinksPerSec", "Removals of replicas from the ISR.")
_EXPANDS = _manager.meter("IsrExpandsPerSec", "Additions of replicas to the ISR.")
_FAILED = _manager.meter("FailedIsrUpdatesPerSec", "Changes of an ISR that were refused.")
_MAX_LAG = _fetchers.gauge(
    "MaxLag", "Largest lag of this broker's replicas behind their leaders, in records."
)
_FAILED_PARTITIONS = _fetchers.gauge(
    "FailedPartitionsCount", "Replicas that are not fetched until the controller's next decision."
)
_DEAD = _fetchers.gauge("DeadThreadCount", "0: a fetcher that fails is restarted.")
_LAG = _lags.gauge("ConsumerLag", "Committed records that a replica lacks.")
_BYTES = _statistics.meter("BytesPerSec", "Bytes fetched from a leader.")

# The client of the beans of all fetchers together.
_ALL = Properties(clientId="Replica")


def replication(broker: Broker) -> Iterator[Reading]:
    """Yield the figures of ISR changes and of fetchers."""
    updates = broker.isr_updates
    yield _SHRINKS.of(updates.shrinks_count)
    yield _EXPANDS.of(updates.expansions_count)
    yield _FAILED.of(updates.failures_count)
    fetchers = broker.replicas.fetchers
    running = [] if fetchers is None else list(fetchers.fetchers())
    followed = [item for fetcher in running for item in fetcher.fetches.followed()]
    yield _MAX_LAG.of([(_ALL, max((item.lag for item in followed), default=0))])
    yield _FAILED_PARTITIONS.of([(_ALL, sum(item.is_failed for item in followed))])
    yield _DEAD.of([(_ALL, 0)])
    yield _LAG.of(
        [
            (
                Properties(clientId=_client(fetcher), topic=item.topic, partition=item.key[1]),
                item.lag,
            )
            for fetcher in running
            for item in fetcher.fetches.followed()
        ]
    )
    brokers = broker.image.brokers
    yield _BYTES.of(
        [
            (
                Properties(
                    clientId=_client(fetcher),
                    brokerHost=brokers[fetcher.leader].host,
                    brokerPort=brokers[fetcher.leader].port,
                ),
                fetcher.fetched_bytes,
            )
            for fetcher in running
            if fetcher.leader in brokers
        ]
    )


def _client(fetcher: LeaderFetcher) -> str:
    # As Kafka names the only fetcher thread for a leader.
    return f"ReplicaFetcherThread-0-{fetcher.leader}"
