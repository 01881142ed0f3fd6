"""Records, bytes and requests: BrokerTopicMetrics, RequestMetrics and RequestChannel."""

from collections.abc import Iterable, Iterator, Sequence
from operator import attrgetter

from ottla.base.errors import ERRORS
from ottla.metrics.beans import (
    NONE,
    SHARES,
    Bean,
    Beans,
    Computed,
    Distribution,
    Measurement,
    Properties,
    distribution,
)
from ottla.replication.partition import Partition
from ottla.replication.replicas import Replicas
from ottla.replication.traffic.counts import Traffic
from ottla.replication.traffic.throttle import ReplicationTraffic
from ottla.server.monitoring.sources import Pace
from ottla.server.transport.dispatch import ApiRoute
from ottla.server.transport.request_probe import ApiProbe
from ottla.wire.api_keys import ApiKey

_topics = Beans("kafka.server", "BrokerTopicMetrics")
_requests = Beans("kafka.network", "RequestMetrics")
_channel = Beans("kafka.network", "RequestChannel")
_leader_replication = Beans("kafka.server", "LeaderReplication")
_follower_replication = Beans("kafka.server", "FollowerReplication")

# By attribute of the traffic.
_COUNTED: dict[str, Bean] = {
    "appended_records": _topics.meter("MessagesInPerSec", "Records appended."),
    "produced_bytes": _topics.meter(
        "BytesInPerSec", "Bytes of records appended, except by followers."
    ),
    "fetched_bytes": _topics.meter("BytesOutPerSec", "Bytes of records sent to consumers."),
    "rejected_bytes": _topics.meter(
        "BytesRejectedPerSec", "Bytes of batches rejected as too large."
    ),
    "appends_count": _topics.meter("TotalProduceRequestsPerSec", "Appends to partitions."),
    "fetches_count": _topics.meter("TotalFetchRequestsPerSec", "Reads of partitions."),
}
_FAILED_APPENDS = _topics.meter(
    "FailedProduceRequestsPerSec", "Partitions for which a request was refused."
)
_FAILED_FETCHES = _topics.meter(
    "FailedFetchRequestsPerSec", "Partitions for which a request was refused."
)
_REPLICATION_IN = _topics.meter("ReplicationBytesInPerSec", "Bytes copied from leaders.")
_REPLICATION_OUT = _topics.meter("ReplicationBytesOutPerSec", "Bytes sent to followers.")
_REASSIGNMENT_IN = _topics.meter(
    "ReassignmentBytesInPerSec", "Bytes copied to replicas that a reassignment adds."
)
_REASSIGNMENT_OUT = _topics.meter(
    "ReassignmentBytesOutPerSec", "Bytes sent to replicas that a reassignment adds."
)
_THROTTLED_OUT = _leader_replication.attribute(
    "byte-rate", "Bytes per second sent to throttled replicas."
)
_THROTTLED_IN = _follower_replication.attribute(
    "byte-rate", "Bytes per second copied to throttled replicas."
)
_REQUESTS = _requests.meter("RequestsPerSec", "Requests, by API and version.")
_ERRORS = _requests.meter(
    "ErrorsPerSec", "Errors in responses, by API; a response may contain several."
)
_TIMES: dict[str, Bean] = {
    "total": _requests.timer("TotalTimeMs", "Milliseconds from a request to its response."),
    "local": _requests.timer("LocalTimeMs", "Milliseconds of work for a request."),
    "remote": _requests.timer("RemoteTimeMs", "Milliseconds that a request waited."),
}
# The broker handles a request as soon as it has arrived, and writes its response at once.
_QUEUE_TIMES = (
    _requests.timer("RequestQueueTimeMs", "0: there is no queue between threads."),
    _requests.timer("ResponseQueueTimeMs", "0: there is no queue between threads."),
)
_QUEUE_SIZES = (
    _channel.gauge("RequestQueueSize", "0: there is no queue between threads."),
    _channel.gauge("ResponseQueueSize", "0: there is no queue between threads."),
)


async def topics(
    replicas: Replicas, partitions: Sequence[Partition], routes: Iterable[ApiRoute], pace: Pace
) -> list[Measurement]:
    """Return the traffic of topics and of the whole broker since the start."""
    by_topic: dict[str, Traffic] = {}
    total = Traffic()
    total.add(replicas.past_traffic)
    for partition in partitions:
        await pace.rest()
        of_topic = by_topic.get(partition.topic)
        if of_topic is None:
            of_topic = by_topic[partition.topic] = Traffic()
        of_topic.add(partition)
        total.add(partition)
    of_topics = [(Properties(topic=topic), traffic) for topic, traffic in by_topic.items()]
    return [
        *(
            bean.of(Computed([(NONE, total), *of_topics], attrgetter(attribute)))
            for attribute, bean in _COUNTED.items()
        ),
        *_failed(replicas, by_topic, routes),
    ]


def replication(traffic: ReplicationTraffic, now: float) -> Iterator[Measurement]:
    """Yield the bytes of replication, and the rates that can be limited (KIP-73, KIP-352)."""
    yield _REPLICATION_IN.of(traffic.received_bytes)
    yield _REPLICATION_OUT.of(traffic.sent_bytes)
    yield _REASSIGNMENT_IN.of(traffic.reassigned_received_bytes)
    yield _REASSIGNMENT_OUT.of(traffic.reassigned_sent_bytes)
    yield _THROTTLED_OUT.of(traffic.to_followers.bytes_per_second(now))
    yield _THROTTLED_IN.of(traffic.from_leaders.bytes_per_second(now))


def _failed(
    replicas: Replicas, topics: Iterable[str], routes: Iterable[ApiRoute]
) -> Iterator[Measurement]:
    """Yield the failures; their total includes failures of partitions that this broker does not
    have.
    """
    probes = {route.probe.name: route.probe for route in routes}
    counts = {probe.name: sum(probe.errors.values()) for probe in probes.values()}
    for key, bean, failures in (
        (ApiKey.PRODUCE, _FAILED_APPENDS, replicas.failed_appends),
        (ApiKey.FETCH, _FAILED_FETCHES, replicas.failed_fetches),
    ):
        rows = [(Properties(topic=topic), failures[topic]) for topic in topics]
        yield bean.of([(NONE, counts.get(key.name.title(), 0)), *rows])


def requests(routes: Iterable[ApiRoute], now: float) -> list[Measurement]:
    """Return the number of requests, their versions, their results, and their durations."""
    counted = sorted(
        ((route.probe.name, route.version, route.requests_count) for route in routes),
    )
    probes = dict(sorted((route.probe.name, route.probe) for route in routes))
    return [
        _REQUESTS.of(
            [(Properties(request=name, version=version), count) for name, version, count in counted]
        ),
        _ERRORS.of(
            [
                (Properties(request=name, error=ERRORS[code].name), count)
                for name, probe in probes.items()
                for code, count in sorted(probe.errors.items())
            ]
        ),
        *_times(probes, now),
        *(bean.of(0) for bean in _QUEUE_SIZES),
    ]


def _times(probes: dict[str, ApiProbe], now: float) -> Iterator[Measurement]:
    of_requests = [(Properties(request=name), probe) for name, probe in probes.items()]
    for attribute, bean in _TIMES.items():
        yield bean.of(
            [
                (properties, distribution(getattr(probe, attribute), now))
                for properties, probe in of_requests
            ]
        )
    for bean in _QUEUE_TIMES:
        yield bean.of(
            [(properties, _nothing(probe.total.count)) for properties, probe in of_requests]
        )


def _nothing(count: int) -> Distribution:
    return Distribution(count, 0.0, (0.0,) * len(SHARES))
