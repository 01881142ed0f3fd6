"""The client's metrics at the end of a performance test (`--print-metrics`).

They have the names of the Java client (org.apache.kafka.clients.producer.internals.SenderMetrics
and its neighbours) and come from librdkafka's statistics. Rates cover the whole run, the Java
client's cover the last 30 seconds.

Not done: metrics without a counterpart in librdkafka: of single nodes and topics, of buffers,
compression and splits, of the selector's time, and of the steps of a rebalance.
"""

import json
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from ottla_scripts.printing import out

INTERVAL_S = 0.1
"""The time between two reports of librdkafka."""
_PATIENCE_S = 5 * INTERVAL_S
_US_PER_MS = 1000


class IntervalAverage:
    """The average and the maximum of values that arrive as averages of intervals."""

    def __init__(self) -> None:
        self.count = 0
        self.sum = 0.0
        self.maximum = 0.0

    def add(self, report: Mapping[str, float]) -> None:
        """Add an interval, as librdkafka reports it."""
        self.count += int(report["cnt"])
        self.sum += report["sum"]
        if report["cnt"]:
            self.maximum = max(self.maximum, report["max"])

    def average(self, unit: float = 1) -> float | None:
        """Return the average of all values, divided by `unit`; None if no value was recorded."""
        return self.sum / self.count / unit if self.count else None


class ClientStatistics:
    """What librdkafka has reported about one client; `settings` make it report."""

    def __init__(self) -> None:
        self.last: Mapping[str, Any] = {}
        self.reports_count = 0
        self.latency, self.queue_time, self.throttle = (
            IntervalAverage(),
            IntervalAverage(),
            IntervalAverage(),
        )
        self.batch_bytes, self.batch_records = IntervalAverage(), IntervalAverage()
        self._started_at = time.monotonic()

    def settings(self) -> dict[str, Any]:
        """Return options of librdkafka."""
        interval_ms = int(INTERVAL_S * 1000)
        return {"statistics.interval.ms": interval_ms, "stats_cb": self.add}

    def add(self, report: str) -> None:
        """Add one report, a text of JSON."""
        self.last = json.loads(report)
        self.reports_count += 1
        for broker in self.last["brokers"].values():
            self.latency.add(broker["rtt"])
            self.queue_time.add(broker["int_latency"])
            self.throttle.add(broker["throttle"])
        for topic in self.last["topics"].values():
            self.batch_bytes.add(topic["batchsize"])
            self.batch_records.add(topic["batchcnt"])

    def await_report(self, poll: Callable[[float], object]) -> None:
        """Call `poll` with a time in seconds until a report has arrived that has the whole run.

        The next one may have been written before the last response.
        """
        wanted, deadline = self.reports_count + 2, time.monotonic() + _PATIENCE_S
        while self.reports_count < wanted and time.monotonic() < deadline:
            poll(INTERVAL_S / 4)

    def elapsed_s(self) -> float:
        """Return the seconds since the start of the run."""
        return max(time.monotonic() - self._started_at, 1e-3)


def producer_metrics(statistics: ClientStatistics) -> Iterator[tuple[str, float | None]]:
    """Yield a producer's metrics: group and name, and the value if there is one (bytes, ms)."""
    group, elapsed_s = "producer-metrics", statistics.elapsed_s()
    yield from _network_metrics(group, statistics, elapsed_s)
    yield f"{group}:batch-size-avg", statistics.batch_bytes.average()
    yield f"{group}:batch-size-max", statistics.batch_bytes.maximum
    yield f"{group}:records-per-request-avg", statistics.batch_records.average()
    yield f"{group}:record-queue-time-avg", statistics.queue_time.average(_US_PER_MS)
    yield f"{group}:record-queue-time-max", statistics.queue_time.maximum / _US_PER_MS
    yield f"{group}:request-latency-avg", statistics.latency.average(_US_PER_MS)
    yield f"{group}:request-latency-max", statistics.latency.maximum / _US_PER_MS
    yield f"{group}:produce-throttle-time-avg", statistics.throttle.average() or 0.0
    yield f"{group}:produce-throttle-time-max", statistics.throttle.maximum
    yield from _flow(f"{group}:record-send", statistics.last.get("txmsgs", 0), elapsed_s)


def consumer_metrics(
    statistics: ClientStatistics, records_count: int, size_bytes: int
) -> Iterator[tuple[str, float | None]]:
    """Yield a consumer's metrics, with the records and bytes that it has returned."""
    last, elapsed_s = statistics.last, statistics.elapsed_s()
    yield from _network_metrics("consumer-metrics", statistics, elapsed_s)
    group = "consumer-fetch-manager-metrics"
    yield from _flow(f"{group}:bytes-consumed", size_bytes, elapsed_s)
    yield from _flow(f"{group}:records-consumed", records_count, elapsed_s)
    yield from _flow(f"{group}:fetch", _total(last, "req", "Fetch"), elapsed_s)
    lags = [
        partition["consumer_lag"]
        for topic in last.get("topics", {}).values()
        for partition in topic["partitions"].values()
        if partition["consumer_lag"] >= 0
    ]
    yield f"{group}:records-lag-max", max(lags, default=None)
    members = last.get("cgrp", {})
    group = "consumer-coordinator-metrics"
    yield f"{group}:assigned-partitions", members.get("assignment_size", 0)
    yield f"{group}:rebalance-total", members.get("rebalance_cnt", 0)


def _network_metrics(
    group: str, statistics: ClientStatistics, elapsed_s: float
) -> Iterator[tuple[str, float]]:
    last = statistics.last
    brokers = list(last.get("brokers", {}).values())
    yield f"{group}:connection-count", sum(broker["state"] == "UP" for broker in brokers)
    yield from _flow(f"{group}:connection-creation", _total(last, "connects"), elapsed_s)
    yield from _flow(f"{group}:connection-close", _total(last, "disconnects"), elapsed_s)
    sent, received = last.get("tx", 0), last.get("rx", 0)
    yield from _flow(f"{group}:outgoing-byte", last.get("tx_bytes", 0), elapsed_s)
    yield from _flow(f"{group}:incoming-byte", last.get("rx_bytes", 0), elapsed_s)
    yield from _flow(f"{group}:network-io", sent + received, elapsed_s)
    yield from _flow(f"{group}:request", sent, elapsed_s)
    yield from _flow(f"{group}:response", received, elapsed_s)


def _total(last: Mapping[str, Any], *names: str) -> int:
    """Return the sum of a counter of every broker."""
    total = 0
    for broker in last.get("brokers", {}).values():
        value = broker
        for name in names:
            value = value.get(name, 0)
        total += value
    return total


def _flow(name: str, total: float, elapsed_s: float) -> Iterator[tuple[str, float]]:
    yield f"{name}-rate", total / elapsed_s
    yield f"{name}-total", total


def print_metrics(metrics: Mapping[str, float | None], client_id: str) -> None:
    """Print a table as the Java client's tools do: sorted, with three decimals."""
    rows = {f"{name}:{{client-id={client_id}}}": metrics[name] for name in sorted(metrics)}
    width = max(map(len, rows))
    out(f"\n{'Metric Name':{width}}   Value")
    for name, value in rows.items():
        out(f"{name:{width}} : {'NaN' if value is None else f'{value:.3f}'}")
