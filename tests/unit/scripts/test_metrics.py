"""Statistics of librdkafka under the names of the Java client."""

import json

import pytest

from ottla_scripts.perf.metrics import (
    ClientStatistics,
    consumer_metrics,
    print_metrics,
    producer_metrics,
)

pytestmark = pytest.mark.slow

# Groups and names as `--print-metrics` of Apache Kafka 4.3.0 prints them.
_NETWORK = [
    "connection-close-rate", "connection-close-total", "connection-count",
    "connection-creation-rate", "connection-creation-total", "incoming-byte-rate",
    "incoming-byte-total", "network-io-rate", "network-io-total", "outgoing-byte-rate",
    "outgoing-byte-total", "request-rate", "request-total", "response-rate", "response-total",
]  # fmt: skip
_PRODUCER = [
    "batch-size-avg", "batch-size-max", "produce-throttle-time-avg", "produce-throttle-time-max",
    "record-queue-time-avg", "record-queue-time-max", "record-send-rate", "record-send-total",
    "records-per-request-avg", "request-latency-avg", "request-latency-max",
]  # fmt: skip
_FETCHES = [
    "bytes-consumed-rate", "bytes-consumed-total", "fetch-rate", "fetch-total",
    "records-consumed-rate", "records-consumed-total", "records-lag-max",
]  # fmt: skip
_GROUP = ["assigned-partitions", "rebalance-total"]


def window(count: int, total: float, largest: float) -> dict[str, float]:
    return {"cnt": count, "sum": total, "max": largest}


def report(latency: dict[str, float], sent_count: int) -> str:
    """Return the part of a report of librdkafka that is read."""
    none = window(0, 0, 0)
    broker = {
        "state": "UP", "connects": 2, "disconnects": 1, "rtt": latency, "int_latency": none,
        "throttle": none, "req": {"Fetch": 7},
    }  # fmt: skip
    topic = {"batchsize": window(1, 100, 100), "batchcnt": window(1, 10, 10), "partitions": {}}
    return json.dumps(
        {
            "tx": 4, "rx": 3, "tx_bytes": 500, "rx_bytes": 50, "txmsgs": sent_count,
            "brokers": {"b:1": broker}, "topics": {"t": topic},
        }
    )  # fmt: skip


def test_intervals_are_joined() -> None:
    """Totals come from the last report; averages and maxima are of all reports."""
    statistics = ClientStatistics()
    statistics.add(report(window(1, 3_000, 3_000), 5))
    statistics.add(report(window(3, 9_000, 8_000), 20))
    metrics = dict(producer_metrics(statistics))
    assert metrics["producer-metrics:record-send-total"] == 20
    assert metrics["producer-metrics:request-latency-avg"] == 3.0
    assert metrics["producer-metrics:request-latency-max"] == 8.0
    assert metrics["producer-metrics:network-io-total"] == 7
    assert metrics["producer-metrics:connection-creation-total"] == 2
    assert metrics["producer-metrics:record-queue-time-avg"] is None


def test_names_are_those_of_the_java_client() -> None:
    """Dashboards and scripts that look for a name find it."""
    statistics = ClientStatistics()
    statistics.add(report(window(1, 3_000, 3_000), 5))
    produced = dict(producer_metrics(statistics))
    consumed = dict(consumer_metrics(statistics, 3, 30))
    assert sorted(produced) == sorted(f"producer-metrics:{name}" for name in _NETWORK + _PRODUCER)
    assert sorted(consumed) == sorted(
        [f"consumer-metrics:{name}" for name in _NETWORK]
        + [f"consumer-fetch-manager-metrics:{name}" for name in _FETCHES]
        + [f"consumer-coordinator-metrics:{name}" for name in _GROUP]
    )
    assert consumed["consumer-fetch-manager-metrics:fetch-total"] == 7


def test_table_is_printed_as_in_java(capsys: pytest.CaptureFixture[str]) -> None:
    """Sorted, in columns, with three decimals; NaN is a metric without a value."""
    print_metrics({"g:longer-name": None, "g:a": 2}, "me")
    assert capsys.readouterr().out == (
        "\n"
        "Metric Name                    Value\n"
        "g:a:{client-id=me}           : 2.000\n"
        "g:longer-name:{client-id=me} : NaN\n"
    )
