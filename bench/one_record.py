"""One record at a time to three replicas: latency, and the processor time of all brokers.

`bench.cluster` runs it beside Apache Kafka (`--only record`). A record costs a produce request, a
fetch of each follower, its append, and the next fetches, which carry the new position. Rates are
not compared: a client that waits for each acknowledgement measures latency.
"""

import statistics
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from bench.compiled import compiled
from bench.coordination import quantile, times_of_records
from bench.load import produce_request, run_compiled
from bench.servers import processor_seconds
from tests.process.broker_cluster import BrokerCluster, wait

Figures = dict[str, float]
# One partition of a topic, and of a topic with many.
SIZES = (1, 1000)
_RECORD_BYTES = 100
_RATE = 1000
_WAIT_SECONDS = 240
AIMS = {
    f"{load} {figure} us": f"≤ {bound} us"
    for load in ("one record", f"one record, {SIZES[-1]} partitions")
    for figure, bound in (("p50", 600), ("p99", 2000), ("CPU", 700))
}


def topic_of(partitions: int) -> str:
    """Return the topic with so many partitions."""
    return f"bench-record-{partitions}"


def prepare(cluster: BrokerCluster, warm_seconds: float) -> None:
    """Create the topics, and write to them until the brokers are warm."""
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap, "log_level": 0})
    for partitions in SIZES:
        topic = topic_of(partitions)
        # The prepared records have an old timestamp.
        new = NewTopic(topic, partitions, len(cluster.ids), config={"retention.ms": "-1"})
        limits = {"request_timeout": _WAIT_SECONDS, "operation_timeout": _WAIT_SECONDS}
        created = admin.create_topics([new], **limits)[topic]
        # A busy controller may not respond in time, and creates the topic all the same.
        with suppress(KafkaException):
            created.result()
        _wait_in_sync(cluster, topic, partitions)
        _write(cluster, topic, warm_seconds)


def _wait_in_sync(cluster: BrokerCluster, topic: str, partitions: int) -> None:
    """Wait until all partitions have all brokers in their ISRs."""

    def is_in_sync() -> bool:
        rows = cluster.partitions(topic)
        in_sync = [row for row in rows if row.leader >= 0 and len(row.isr) == len(cluster.ids)]
        return len(in_sync) == partitions

    wait(is_in_sync, f"{topic} is in sync", _WAIT_SECONDS)


def one_record(cluster: BrokerCluster, seconds: float) -> Figures:
    """Return the figures of one record in flight, and of a thousand records a second."""
    figures: Figures = {}
    for partitions in SIZES:
        label = "one record" if partitions == 1 else f"one record, {partitions} partitions"
        with _processor_time(cluster) as used:
            result = _write(cluster, topic_of(partitions), seconds)
        figures[f"{label} p50 us"] = result["p50_us"]
        figures[f"{label} p99 us"] = result["p99_us"]
        figures[f"{label} CPU us"] = used[0] / result["requests"] * 1e6
    with _processor_time(cluster) as used:
        times = _end_to_end(cluster, seconds)
    label = f"{_RATE} records/s end to end"
    figures[f"{label} CPU us"] = used[0] / len(times) * 1e6
    # The first records are in a partition that was not fetched before.
    settled = times[len(times) // 5 :]
    figures[f"{label} p50 us"] = statistics.median(settled)
    figures[f"{label} p99 us"] = quantile(settled, 0.99)
    return figures


@contextmanager
def _processor_time(cluster: BrokerCluster) -> Iterator[list[float]]:
    """Yield a list that has the processor time (s) of all brokers at the end."""
    processes = [cluster.process_id(number) for number in cluster.running]
    before, used = sum(map(processor_seconds, processes)), [0.0]
    yield used
    used[0] = sum(map(processor_seconds, processes)) - before


def _write(cluster: BrokerCluster, topic: str, seconds: float) -> Figures:
    program = compiled("generator.c")
    assert program is not None, "a C compiler is required"
    (leader,) = [row.leader for row in cluster.partitions(topic) if row.partition == 0]
    request = produce_request(topic, 0, 1, _RECORD_BYTES, acks=-1)
    return run_compiled(program, cluster.port(leader), [request], 1, seconds)


def _end_to_end(cluster: BrokerCluster, seconds: float) -> list[float]:
    """Return how long (us) each record took from a producer with acks=all to a consumer."""
    topic, count = f"bench-end-{time.monotonic_ns()}", int(seconds * _RATE)
    cluster.create_topic(topic, partitions=1)
    _wait_in_sync(cluster, topic, 1)
    settings = {"bootstrap.servers": cluster.bootstrap, "log_level": 0}
    consumer = Consumer({**settings, "group.id": topic})
    consumer.assign([TopicPartition(topic, 0, 0)])
    producer = Producer(
        {**settings, "linger.ms": 0, "acks": "all", "partitioner": "murmur2_random"}
    )
    times = times_of_records(consumer, producer, topic, count, _RATE)
    consumer.close()
    return times
