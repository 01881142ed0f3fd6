"""Replication between brokers: changes of ISRs, and the lag of this broker's followers."""

from ottla.metrics.beans import Beans, LabelledValue, Measurement, Properties
from ottla.replication.fetcher import LeaderFetcher
from ottla.server.context import Broker
from ottla.server.monitoring.sources import Pace

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
_LAG = _lags.gauge("ConsumerLag", "Committed records that a replica lacks; -1 if unknown.")
_BYTES = _statistics.meter("BytesPerSec", "Bytes fetched from a leader.")

# The client of the beans of all fetchers together.
_ALL = Properties(clientId="Replica")


async def replication(broker: Broker, pace: Pace) -> list[Measurement]:
    """Return the figures of ISR changes and of fetchers."""
    updates, fetchers = broker.isr_updates, broker.replicas.fetchers
    brokers = broker.image.brokers
    lags: list[LabelledValue] = []
    fetched_bytes: list[LabelledValue] = []
    largest = failed_count = 0
    for fetcher in () if fetchers is None else fetchers.fetchers():
        client_id = _client(fetcher)
        for followed in fetcher.fetches:
            await pace.rest()
            topic, partition = followed.topic, followed.key[1]
            properties = Properties(clientId=client_id, topic=topic, partition=partition)
            lags.append((properties, followed.lag))
            largest = max(largest, followed.lag)
            failed_count += followed.is_failed
        leader = brokers.get(fetcher.leader)
        if leader is not None:
            properties = Properties(
                clientId=client_id, brokerHost=leader.host, brokerPort=leader.port
            )
            fetched_bytes.append((properties, fetcher.fetched_bytes))
    return [
        _SHRINKS.of(updates.shrinks_count),
        _EXPANDS.of(updates.expansions_count),
        _FAILED.of(updates.failures_count),
        _MAX_LAG.of([(_ALL, largest)]),
        _FAILED_PARTITIONS.of([(_ALL, failed_count)]),
        _DEAD.of([(_ALL, 0)]),
        _LAG.of(lags),
        _BYTES.of(fetched_bytes),
    ]


def _client(fetcher: LeaderFetcher) -> str:
    # As Kafka names the only fetcher thread for a leader.
    return f"ReplicaFetcherThread-0-{fetcher.leader}"
