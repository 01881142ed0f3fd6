"""Metrics of tasks with Kafka Streams' names (group `stream-task-metrics`): dropped records."""

from collections.abc import Mapping
from typing import NamedTuple

GROUP = "stream-task-metrics"
DROPPED_TOTAL = "dropped-records-total"
DROPPED_RATE = "dropped-records-rate"
_DESCRIPTIONS = {
    DROPPED_TOTAL: "The total number of dropped records",
    DROPPED_RATE: "The average number of dropped records per second",
}


class MetricName(NamedTuple):
    """The name of a metric, as Kafka's MetricName; tags are (name, value) pairs in alphabetical
    order.
    """

    name: str
    group: str
    description: str
    tags: tuple[tuple[str, str], ...]


class Metric(NamedTuple):
    """A metric and its value at the time it was read."""

    metric_name: MetricName
    metric_value: float


Metrics = Mapping[MetricName, Metric]


def task_metrics(thread_id: str, task_id: str, values: Mapping[str, float]) -> Metrics:
    """Return the metrics of a task. `values` are by metric name."""
    tags = ("task-id", task_id), ("thread-id", thread_id)
    results = {}
    for name, value in values.items():
        key = MetricName(name, GROUP, _DESCRIPTIONS[name], tags)
        results[key] = Metric(key, value)
    return results
