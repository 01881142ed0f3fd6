"""Instances come and go under load: each record counts once, and results stay in order."""

import random
import threading
import time
from collections import defaultdict

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

from ottla.streams import KafkaStreams, Serdes, StreamsBuilder, Topology
from ottla.testing import Cluster

_PARTITIONS, _KEYS, _RECORDS = 4, 20, 6_000
_WAIT_S = 60.0


def _counts() -> Topology:
    builder = StreamsBuilder()
    counts = builder.stream("words").group_by_key().count(materialized="counts")
    counts.map_values(str).to_stream().to("out")
    return builder.build()


def _instance(bootstrap: str, guarantee: str) -> KafkaStreams:
    return KafkaStreams(
        _counts(),
        application_id="app",
        bootstrap_servers=bootstrap,
        engine="local",
        processing_guarantee=guarantee,
        default_key_serde=Serdes.string(),
        default_value_serde=Serdes.string(),
        commit_interval_ms=50,
        heartbeat_interval_ms=100,
    )


def _produce(bootstrap: str) -> None:
    producer = Producer({"bootstrap.servers": bootstrap, "partitioner": "murmur2_random"})
    for number in range(_RECORDS):
        producer.produce("words", b"x", f"k{number % _KEYS}")
        if number % 50 == 0:
            producer.flush(_WAIT_S)
    assert producer.flush(_WAIT_S) == 0


def _results(bootstrap: str) -> dict[bytes, list[int]]:
    """Return the committed counts of each key, in order, until each has its last one."""
    consumer = Consumer(
        {"bootstrap.servers": bootstrap, "group.id": "judge", "isolation.level": "read_committed"}
    )
    consumer.assign([TopicPartition("out", number, 0) for number in range(_PARTITIONS)])
    results: dict[bytes, list[int]] = defaultdict(list)
    deadline = time.monotonic() + _WAIT_S
    while sum(max(rows) for rows in results.values()) < _RECORDS:
        message = consumer.poll(0.5)
        if message is not None:
            results[message.key() or b""].append(int(message.value() or b"0"))
        assert time.monotonic() < deadline, {key: rows[-1] for key, rows in results.items()}
    consumer.close()
    return results


@pytest.mark.parametrize("guarantee", ["exactly_once_v2", "at_least_once"])
def test_instances_join_and_leave_under_load(guarantee: str, ottla_cluster: Cluster) -> None:
    """Exactly once, the results of each key are 1, 2, 3… in order; at least once, none is lost."""
    rng = random.Random(3)
    ottla_cluster.create_topic("words", partitions=_PARTITIONS)
    ottla_cluster.create_topic("out", partitions=_PARTITIONS)
    load = threading.Thread(target=_produce, args=(ottla_cluster.bootstrap,))
    load.start()
    apps = [_instance(ottla_cluster.bootstrap, guarantee)]
    apps[0].start()
    for _ in range(6):
        if len(apps) < 3 and (len(apps) == 1 or rng.random() < 0.5):
            apps.append(_instance(ottla_cluster.bootstrap, guarantee))
            apps[-1].start()
            apps[-1].await_running()
        else:
            assert apps.pop(rng.randrange(len(apps))).close(_WAIT_S)
    load.join()
    results = _results(ottla_cluster.bootstrap)
    for app in apps:
        assert app.close(_WAIT_S)
        assert app.error is None
    assert {max(rows) for rows in results.values()} == {_RECORDS // _KEYS}
    if guarantee == "exactly_once_v2":
        expected = list(range(1, _RECORDS // _KEYS + 1))
        assert all(rows == expected for rows in results.values())
