"""The lag of a group that has no commit in every second partition, by all that report it."""

import json
import time
import urllib.request
from collections.abc import Sequence
from typing import Any

import confluent_kafka

from tests.corpus.judges import Reading, read_with_librdkafka
from tests.corpus.setting import PARTITIONS, Setting
from tests.unit.server.monitoring.exposition import parse

_TOLERANCE_MS = 60_000
_DEADLINE_S = 20.0
_METRIC = "kafka_consumergroup_lag"


def lags(at: Setting, topic: str, rows: Sequence[Reading]) -> tuple[Any, Any]:
    """Compare the console, `ottla group describe` and the metrics with a plain consumer."""
    group = f"lag-{topic}"
    settings = {
        "bootstrap.servers": at.cluster.bootstrap,
        "group.id": group,
        "isolation.level": "read_uncommitted",
        "enable.auto.commit": False,
    }
    count = PARTITIONS.get(topic, 1)
    consumer = confluent_kafka.Consumer(settings)
    try:
        consumer.subscribe([topic])
        _await_assignment(consumer, count)
        marks = [consumer.get_watermark_offsets(_partition(topic, n), 10) for n in range(count)]
        committed = {n: (marks[n][0] + marks[n][1]) // 2 for n in range(1, count, 2)}
        if committed:
            positions = [_partition(topic, n, offset) for n, offset in committed.items()]
            consumer.commit(offsets=positions, asynchronous=False)
        starts = {n: committed.get(n, marks[n][0]) for n in range(count)}
        expected = {n: marks[n][1] - start for n, start in starts.items()}
        detail = at.call(f"/api/v1/clusters/local/groups/{group}").json
        in_console = {row["partition"]: row["lag"] for row in detail["partitions"]}
        shown = at.run("group", "describe", group, "--output", "json").out
        by_command = {row["partition"]: row["lag"] for row in json.loads(shown)}
        found = [in_console, by_command, _metrics(at, group, topic)]
        ages = {row["partition"]: row["lag_s"] for row in detail["partitions"]}
    finally:
        consumer.close()
    times = _times(at, topic, starts)
    return (found, _close(ages, times)), ([expected] * 3, dict.fromkeys(expected, True))


def _partition(topic: str, number: int, offset: int = -1001) -> confluent_kafka.TopicPartition:
    return confluent_kafka.TopicPartition(topic, number, offset)


def _await_assignment(consumer: confluent_kafka.Consumer, count: int) -> None:
    deadline = time.monotonic() + _DEADLINE_S
    while len(consumer.assignment()) < count:
        assert time.monotonic() < deadline, "the group has no assignment"
        consumer.poll(0.05)


def _metrics(at: Setting, group: str, topic: str) -> dict[int, int]:
    address = at.cluster.node(1).monitoring_address
    assert address is not None
    url = "http://{}:{}/metrics".format(*address)
    with urllib.request.urlopen(url, timeout=_DEADLINE_S) as response:
        samples = parse(response.read().decode())
    required = {("consumergroup", group), ("topic", topic)}
    return {
        int(dict(labels)["partition"]): int(value)
        for (name, labels), value in samples.items()
        if name == _METRIC and required <= labels
    }


def _times(at: Setting, topic: str, starts: dict[int, int]) -> dict[int, int | None]:
    """Return the time of the first record of each partition that is not consumed."""
    times: dict[int, int | None] = dict.fromkeys(starts)
    rows = read_with_librdkafka(at.cluster.bootstrap, topic, range(len(starts)), committed=False)
    for row in reversed(rows):
        if row.offset >= starts[row.partition]:
            times[row.partition] = row.timestamp
    return times


def _close(ages: dict[int, float | None], times: dict[int, int | None]) -> dict[int, bool]:
    """Return whether the age of each partition is that of its record; unknown without a time."""
    now_ms = time.time() * 1000
    result = {}
    for number, time_ms in times.items():
        age = ages[number]
        if time_ms is None:
            result[number] = not age
        elif time_ms < 0:
            result[number] = age is None
        else:
            expected = max(0.0, now_ms - time_ms)
            result[number] = age is not None and abs(age * 1000 - expected) < _TOLERANCE_MS
    return result
