"""Instances of an application that come and go while records arrive, on any brokers."""

import random
import threading
import time
from collections import defaultdict

from confluent_kafka import Consumer, Producer, TopicPartition

from ottla.streams import KafkaStreams, Serdes, StreamsBuilder, Topology

_PARTITIONS, _KEYS, _RECORDS = 4, 20, 6_000
ONCE = [list(range(1, _RECORDS // _KEYS + 1))] * _KEYS
"""The counts of all keys if each record counts once, in order."""
_WAIT_S = 90.0


def _counts(words: str, out: str) -> Topology:
    builder = StreamsBuilder()
    counts = builder.stream(words).group_by_key().count(materialized="counts")
    counts.map_values(str).to_stream().to(out)
    return builder.build()


def _instance(bootstrap: str, guarantee: str, topics: tuple[str, str]) -> KafkaStreams:
    return KafkaStreams(
        _counts(*topics),
        application_id=f"app-of-{topics[0]}",
        bootstrap_servers=bootstrap,
        engine="local",
        processing_guarantee=guarantee,
        default_key_serde=Serdes.string(),
        default_value_serde=Serdes.string(),
        commit_interval_ms=50,
        heartbeat_interval_ms=100,
    )


def _produce(bootstrap: str, topic: str) -> None:
    producer = Producer({"bootstrap.servers": bootstrap, "partitioner": "murmur2_random"})
    for number in range(_RECORDS):
        producer.produce(topic, b"x", f"k{number % _KEYS}")
        if number % 50 == 0:
            producer.flush(_WAIT_S)
    assert producer.flush(_WAIT_S) == 0


def committed_counts(bootstrap: str, topic: str, total: int) -> dict[bytes, list[int]]:
    """Return the committed counts of each key, in order, until their last ones have this sum."""
    consumer = Consumer(
        {"bootstrap.servers": bootstrap, "group.id": "judge", "isolation.level": "read_committed"}
    )
    consumer.assign([TopicPartition(topic, number, 0) for number in range(_PARTITIONS)])
    results: dict[bytes, list[int]] = defaultdict(list)
    deadline = time.monotonic() + _WAIT_S
    while sum(max(rows) for rows in results.values()) < total:
        message = consumer.poll(0.5)
        if message is not None:
            results[message.key() or b""].append(int(message.value() or b"0"))
        assert time.monotonic() < deadline, {key: rows[-1] for key, rows in results.items()}
    consumer.close()
    return results


def run_instances(bootstrap: str, guarantee: str, topics: tuple[str, str]) -> list[list[int]]:
    """Start and close up to three instances under load; return the committed counts of each key.

    The topics of records and of results exist, with four partitions.
    """
    rng = random.Random(3)
    load = threading.Thread(target=_produce, args=(bootstrap, topics[0]))
    load.start()
    apps = [_instance(bootstrap, guarantee, topics)]
    apps[0].start()
    for _ in range(6):
        if len(apps) < 3 and (len(apps) == 1 or rng.random() < 0.5):
            apps.append(_instance(bootstrap, guarantee, topics))
            apps[-1].start()
            apps[-1].await_running()
        else:
            assert apps.pop(rng.randrange(len(apps))).close(_WAIT_S)
    load.join()
    results = committed_counts(bootstrap, topics[1], _RECORDS)
    for app in apps:
        assert app.close(_WAIT_S)
        assert app.error is None
    return list(results.values())
