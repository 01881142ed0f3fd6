"""Consumers that start at records of an age: `auto.offset.reset=by_duration` (KIP-1106)."""

import time
from typing import Any

import pytest

from ottla.base.errors import ConfigError
from ottla.client import Consumer, ConsumerRecord, Producer
from ottla.client.config.choices import reset_age_ms
from ottla.client.errors import TimedOut
from ottla.testing import Cluster
from ottla_scripts import entry
from tests.client.test_consumer import read, values_of

pytestmark = pytest.mark.slow

HOUR_MS = 3_600_000
GROUPS: dict[str, dict[str, Any]] = {
    "eager": {},
    "incremental": {"partition_assignment_strategy": "cooperative-sticky"},
    "sticky": {"partition_assignment_strategy": "sticky"},
    "consumer": {"group_protocol": "consumer"},
}


def fill(cluster: Cluster, topic: str, ages: dict[int, list[int]]) -> None:
    """Write records to partitions; the value of each is its age in hours."""
    now_ms = time.time_ns() // 1_000_000
    with Producer(bootstrap_servers=cluster.bootstrap, enable_idempotence=False) as producer:
        for partition, hours in ages.items():
            for hour in hours:
                value, timestamp = b"%d" % hour, now_ms - hour * HOUR_MS
                producer.send(topic, value, partition=partition, timestamp=timestamp)


def consumer_of(cluster: Cluster, *topics: str, **settings: Any) -> Consumer:
    """Return a consumer of the last twelve hours."""
    return Consumer(
        *topics,
        bootstrap_servers=cluster.bootstrap,
        auto_offset_reset="by_duration:PT12H",
        **settings,
    )


@pytest.mark.parametrize("kind", GROUPS)
def test_a_group_starts_at_records_of_the_age(cluster: Cluster, topic: str, kind: str) -> None:
    """Partitions without such a record start at their end."""
    fill(cluster, topic, {0: [50, 10, 2], 1: [50, 40]})
    with consumer_of(cluster, topic, group_id=topic, **GROUPS[kind]) as consumer:
        assert values_of(read(consumer, 2)) == [b"10", b"2"]
        fill(cluster, topic, {1: [0], 2: [1]})
        assert values_of(read(consumer, 2)) == [b"0", b"1"]
    with consumer_of(cluster, topic, group_id=topic, **GROUPS[kind]) as consumer:
        # The committed offsets come first.
        fill(cluster, topic, {0: [60]})
        assert values_of(read(consumer, 1)) == [b"60"]


def test_assigned_partitions_start_at_records_of_the_age(cluster: Cluster, topic: str) -> None:
    """This applies without a group, and with one that has committed nothing."""
    fill(cluster, topic, {0: [50, 10, 2], 1: [11]})
    for settings in ({}, {"group_id": topic, "enable_auto_commit": False}):
        with consumer_of(cluster, **settings) as consumer:
            consumer.assign([(topic, 0), (topic, 1)])
            assert values_of(read(consumer, 3)) == [b"10", b"11", b"2"]


def test_an_offset_that_does_not_exist_is_replaced_by_the_age(cluster: Cluster, topic: str) -> None:
    """As for earliest and latest, a position out of range is reset."""
    fill(cluster, topic, {0: [50, 10, 2]})
    with consumer_of(cluster) as consumer:
        consumer.assign({(topic, 0): 1000})
        assert values_of(read(consumer, 2)) == [b"10", b"2"]


def test_the_console_consumer_starts_at_records_of_the_age(
    cluster: Cluster, topic: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Without a group; for a group the error names the script that can do it."""
    fill(cluster, topic, {0: [50, 10], 1: [60], 2: [11]})
    words = f"--bootstrap-server {cluster.bootstrap} --topic {topic} --timeout-ms 10000".split()
    by_age = "auto.offset.reset=by_duration:PT12H"
    words = [*words, "--max-messages", "2", "--command-property"]
    assert entry.run("kafka-console-consumer", [*words, by_age]) == 0
    assert sorted(capsys.readouterr().out.split()) == ["10", "11"]
    assert entry.run("kafka-console-consumer", [*words, by_age, "--group", topic]) == 1
    assert "kafka-consumer-groups --reset-offsets --by-duration" in capsys.readouterr().err
    assert entry.run("kafka-console-consumer", [*words, "auto.offset.reset=none"]) == 0
    assert f"no reset policy for partitions: [{topic}-0, {topic}-1" in capsys.readouterr().err


def test_a_lookup_that_fails_is_repeated_and_loses_no_record(
    cluster: Cluster, topic: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The error is raised by a poll that has no record to return."""
    fill(cluster, topic, {0: [50, 10], 1: [50, 11]})
    with consumer_of(cluster) as consumer:
        lookup, failures = consumer._lookups.offsets_for_times, [TimedOut("injected")]

        def failing(times: Any) -> Any:
            if failures:
                raise failures.pop()
            return lookup(times)

        monkeypatch.setattr(consumer._lookups, "offsets_for_times", failing)
        consumer.assign({(topic, 0): 0, (topic, 1): 1000})
        records: list[ConsumerRecord] = []
        with pytest.raises(TimedOut, match="injected"):
            while True:
                records += consumer.poll(0.2)
        assert values_of(records) in ([], [b"10", b"50"])
        records += read(consumer, 3 - len(records))
        assert values_of(records) == [b"10", b"11", b"50"]


@pytest.mark.parametrize(
    ("text", "age_ms"),
    [
        ("earliest", None),
        ("by_duration:PT1H", HOUR_MS),
        ("by_duration:P2DT3H4M5.678S", 183_845_678),
        ("by_duration:p1d", 24 * HOUR_MS),
        ("by_duration:PT1.001S", 1_001),
        ("by_duration:PT0S", 0),
    ],
)
def test_the_age_is_a_duration_of_java(text: str, age_ms: int | None) -> None:
    """Days, hours, minutes and seconds, as java.time.Duration parses them."""
    assert reset_age_ms(text) == age_ms


@pytest.mark.parametrize(
    "text",
    [
        "by_duration:",
        "by_duration:1h",
        "by_duration:P",
        "by_duration:PT",
        "by_duration:-PT1H",
        "by_duration:PT-1H",
        "by_duration:P1M",
        "by_duration:PT1H1D",
        "PT1H",
        "smallest",
    ],
)
def test_another_age_is_rejected(text: str) -> None:
    """In the words of Kafka's ConfigDef; a negative age is not one."""
    with pytest.raises(ConfigError, match=r"of the format 'by_duration:<PnDTnHnMn\.nS\.>'"):
        Consumer(auto_offset_reset=text, bootstrap_servers="127.0.0.1:1")
