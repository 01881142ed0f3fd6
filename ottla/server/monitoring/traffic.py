"""Records, bytes and requests: BrokerTopicMetrics and RequestMetrics."""

from collections.abc import Iterable, Iterator, Sequence
from operator import attrgetter

from ottla.base.errors import ERRORS
from ottla.metrics.exposition import Family, Kind, Sample, counter, gauge, labels
from ottla.replication.partition import Partition
from ottla.replication.traffic.counts import Traffic
from ottla.replication.traffic.throttle import ReplicationTraffic
from ottla.server.monitoring.sources import Pace
from ottla.server.transport.dispatch import Route
from ottla.server.transport.request_probe import ApiProbe, Times
from ottla.wire.api_keys import ApiKey

_TOPICS = "kafka_server_brokertopicmetrics_"
_REQUESTS = "kafka_network_requestmetrics_"
# Name, attribute of the traffic, description.
_COUNTED = (
    ("messagesin", "appended_records", "Records appended."),
    ("bytesin", "produced_bytes", "Bytes of records appended, except by followers."),
    ("bytesout", "fetched_bytes", "Bytes of records sent to consumers."),
    ("bytesrejected", "rejected_bytes", "Bytes of batches rejected as too large."),
    ("totalproducerequests", "appends_count", "Appends to partitions."),
    ("totalfetchrequests", "fetches_count", "Reads of partitions."),
)
SHARES = (0.5, 0.75, 0.95, 0.98, 0.99, 0.999)


async def topics(past: Traffic, partitions: Sequence[Partition], pace: Pace) -> list[Family]:
    """Return the traffic of topics and of the whole broker since the start."""
    by_topic: dict[str, Traffic] = {}
    total = Traffic()
    total.add(past)
    for partition in partitions:
        await pace.rest()
        of_topic = by_topic.get(partition.topic)
        if of_topic is None:
            of_topic = by_topic[partition.topic] = Traffic()
        of_topic.add(partition)
        total.add(partition)
    written = {topic: labels(topic=topic) for topic in by_topic}

    def samples(attribute: str) -> Iterator[Sample]:
        get = attrgetter(attribute)
        yield "", get(total)
        for topic, traffic in by_topic.items():
            yield written[topic], get(traffic)

    return [
        *(
            counter(f"{_TOPICS}{name}_total", meaning, samples(attribute))
            for name, attribute, meaning in _COUNTED
        ),
    ]


def replication(traffic: ReplicationTraffic, now: float) -> list[Family]:
    """Return the bytes of replication, and the rates that can be limited (KIP-73, KIP-352)."""
    return [
        counter(
            f"{_TOPICS}replicationbytesin_total",
            "Bytes copied from leaders.",
            traffic.received_bytes,
        ),
        counter(
            f"{_TOPICS}replicationbytesout_total", "Bytes sent to followers.", traffic.sent_bytes
        ),
        counter(
            f"{_TOPICS}reassignmentbytesin_total",
            "Bytes copied to replicas that a reassignment adds.",
            traffic.reassigned_received_bytes,
        ),
        counter(
            f"{_TOPICS}reassignmentbytesout_total",
            "Bytes sent to replicas that a reassignment adds.",
            traffic.reassigned_sent_bytes,
        ),
        gauge(
            "kafka_server_leaderreplication_byte_rate",
            "Bytes per second sent to throttled replicas.",
            traffic.to_followers.bytes_per_second(now),
        ),
        gauge(
            "kafka_server_followerreplication_byte_rate",
            "Bytes per second copied to throttled replicas.",
            traffic.from_leaders.bytes_per_second(now),
        ),
    ]


def requests(routes: Iterable[Route], now: float) -> list[Family]:
    """Return the number of requests, their versions, their results, and their durations."""
    counted = sorted(
        ((route.probe.name, route.version, route.requests_count) for route in routes),
    )
    probes = {route.probe.name: route.probe for route in routes}
    return [
        counter(
            f"{_REQUESTS}requests_total",
            "Requests, by API and version.",
            [(labels(request=name, version=version), count) for name, version, count in counted],
        ),
        counter(
            f"{_REQUESTS}errors_total",
            "Errors in responses, by API; a response may contain several.",
            [
                (labels(request=name, error=ERRORS[code].name), count)
                for name, probe in sorted(probes.items())
                for code, count in sorted(probe.errors.items())
            ],
        ),
        *_failed(probes.values()),
        _times("totaltimems", "Milliseconds from a request to its response.", probes, "total", now),
        _times("localtimems", "Milliseconds of work for a request.", probes, "local", now),
        _times("remotetimems", "Milliseconds that a request waited.", probes, "remote", now),
    ]


def _failed(probes: Iterable[ApiProbe]) -> Iterator[Family]:
    counts = {probe.name: sum(probe.errors.values()) for probe in probes}
    for key, name in ((ApiKey.PRODUCE, "produce"), (ApiKey.FETCH, "fetch")):
        yield counter(
            f"{_TOPICS}failed{name}requests_total",
            "Partitions for which a request was refused.",
            counts.get(key.name.title(), 0),
        )


def _times(
    name: str, meaning: str, probes: dict[str, ApiProbe], attribute: str, now: float
) -> Family:
    rows: list[tuple[str, Times]] = [
        (request, getattr(probe, attribute)) for request, probe in sorted(probes.items())
    ]
    return Family(
        f"{_REQUESTS}{name}",
        Kind.SUMMARY,
        meaning,
        [
            (labels(request=request, quantile=share), value / 1000)
            for request, times in rows
            for share, value in zip(SHARES, times.quantiles(SHARES, now), strict=True)
        ],
        {
            "_count": [(labels(request=request), times.count) for request, times in rows],
            "_sum": [(labels(request=request), times.sum / 1000) for request, times in rows],
        },
    )
