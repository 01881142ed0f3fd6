"""Foreign clients on a cluster of three brokers: nothing acknowledged is lost, whatever dies.

Records are written in the order of their numbers with acks=all; afterwards every acknowledged
number must be in the topic exactly once, in order within its partition, and the three replicas must
be the same bytes.
"""

import logging
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, KafkaError, Producer, TopicPartition

from ottla.testing import Cluster
from tests.compat import kafka_python_client

pytestmark = [pytest.mark.compat, pytest.mark.slow]

_TOPIC = "orders"
_PARTITIONS = 3
_SECONDS = 3.0
_PER_SECOND = 1_000
_PATIENCE_S = 60.0


@pytest.fixture
def three(tmp_path: Path) -> Iterator[Cluster]:
    """Three brokers with a topic that needs two of three replicas."""
    with Cluster(brokers=3, data=tmp_path / "data") as running:
        running.create_topic(
            _TOPIC,
            partitions=_PARTITIONS,
            replication_factor=3,
            config={"min.insync.replicas": "2"},
        )
        yield running


class Writer:
    """Writes numbers at a steady rate with librdkafka on a thread, and notes what is acknowledged."""

    def __init__(self, bootstrap: str) -> None:
        self._producer = Producer(
            {
                "bootstrap.servers": bootstrap,
                "enable.idempotence": True,
                "acks": "all",
                "linger.ms": 2,
                "message.timeout.ms": 60_000,
                "reconnect.backoff.max.ms": 500,
                "socket.timeout.ms": 5_000,
                "logger": _silent(),
            }
        )
        self.acknowledged: list[tuple[int, int]] = []
        self.failures: list[str] = []
        self._thread = threading.Thread(target=self._write)

    def __enter__(self) -> "Writer":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._thread.join()
        assert self._producer.flush(_PATIENCE_S) == 0

    def _write(self) -> None:
        pause = threading.Event()
        started, number, count = time.monotonic(), 0, int(_SECONDS * _PER_SECOND)
        # A thread that had no processor for a while writes what it has missed.
        while number < count:
            elapsed = time.monotonic() - started
            while number < min(elapsed * _PER_SECOND, count):
                self._producer.produce(
                    _TOPIC,
                    b"%d" % number,
                    partition=number % _PARTITIONS,
                    on_delivery=self._delivered,
                )
                number += 1
            self._producer.poll(0)
            pause.wait(0.005)

    def _delivered(self, error: KafkaError | None, message: Any) -> None:
        if error is None:
            self.acknowledged.append((message.partition(), int(message.value())))
        else:
            self.failures.append(str(error))


def _silent() -> Any:
    """Return a logger that does not print the connections that a test breaks."""
    logger = logging.getLogger("librdkafka.expected")
    logger.setLevel(logging.CRITICAL)
    return logger


def read_all(bootstrap: str, count: int) -> dict[int, list[int]]:
    """Return the numbers in each partition, in order, once there are `count` or the end is reached."""
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": "check",
            "auto.offset.reset": "earliest",
            "logger": _silent(),
        }
    )
    consumer.assign([TopicPartition(_TOPIC, number, 0) for number in range(_PARTITIONS)])
    entries: dict[int, list[int]] = {number: [] for number in range(_PARTITIONS)}
    deadline = time.monotonic() + _PATIENCE_S
    while sum(map(len, entries.values())) < count and time.monotonic() < deadline:
        for message in consumer.consume(1000, 0.2):
            if message.error() is None:
                entries[message.partition()].append(int(message.value()))
    consumer.close()
    return entries


def check(running: Cluster, writer: Writer) -> None:
    """Assert that every acknowledged number is there once and in order, and nothing failed."""
    assert writer.failures == []
    acknowledged = writer.acknowledged
    assert len(acknowledged) >= _SECONDS * _PER_SECOND * 0.9
    records = read_all(running.bootstrap, len(acknowledged))
    for partition, numbers in records.items():
        assert sorted(set(numbers)) == numbers, f"partition {partition} has duplicates or disorder"
    everything = {(partition, number) for partition in records for number in records[partition]}
    assert set(acknowledged) - everything == set()


def check_replicas(running: Cluster) -> None:
    """Stop the cluster and assert that the replicas of each partition are the same bytes."""
    running.wait_in_sync(_TOPIC, timeout_seconds=_PATIENCE_S)
    data = running.data
    running.stop()
    for partition in range(_PARTITIONS):
        contents = {
            broker: b"".join(
                path.read_bytes()
                for path in sorted(
                    (data / f"broker{broker}" / f"{_TOPIC}-{partition}").glob("*.log")
                )
            )
            for broker in running.brokers
        }
        assert len(set(contents.values())) == 1, f"replicas of partition {partition} differ"
        assert contents[1]


def kill_the_leader(running: Cluster) -> None:
    """Kill the leader of a partition and start it again."""
    leader = running.leader(_TOPIC)
    running.kill(leader)
    running.leader(_TOPIC)
    running.restart(leader)


def kill_the_controller(running: Cluster) -> None:
    """Kill the controller and start it again."""
    controller = running.controller()
    running.kill(controller)
    running.controller()
    running.restart(controller)


def kill_a_follower(running: Cluster) -> None:
    """Kill a broker that does not lead the first partition and start it again."""
    follower = next(broker for broker in running.brokers if broker != running.leader(_TOPIC))
    running.kill(follower)
    running.restart(follower)


def restart_one_after_the_other(running: Cluster) -> None:
    """Restart all brokers cleanly, waiting for the replicas in between."""
    for broker in running.brokers:
        running.restart(broker)
        running.wait_in_sync(_TOPIC)


def isolate_the_leader(running: Cluster) -> None:
    """Cut the leader off for longer than its session."""
    leader = running.leader(_TOPIC)
    running.isolate(leader)
    _wait_for_another_leader(running, leader)
    running.heal(leader)


def pause_the_leader(running: Cluster) -> None:
    """Stop the leader for longer than its session."""
    leader = running.leader(_TOPIC)
    running.pause(leader)
    _wait_for_another_leader(running, leader)
    running.resume(leader)


def expire_every_session(running: Cluster) -> None:
    """End the sessions of all brokers, one after the other."""
    for broker in running.brokers:
        running.expire_session(broker)
        running.wait_in_sync(_TOPIC)


def slow_down_a_disk(running: Cluster) -> None:
    """Delay every write of one broker while a second's records are written."""
    running.slow_disk(2, 0.02)
    _wait_for_records(running, _PER_SECOND)
    running.slow_disk(2, 0)


def _appended_count(running: Cluster) -> int:
    threads = running._running.values()
    return sum(thread.node.broker.replicas.traffic().appended_records for thread in threads)


def _wait_for_records(running: Cluster, count: int) -> None:
    """Wait until the leaders have appended `count` more records."""
    deadline, pause = time.monotonic() + _PATIENCE_S, threading.Event()
    end = _appended_count(running) + count
    while _appended_count(running) < end:
        assert time.monotonic() < deadline, "no records are written"
        pause.wait(0.02)


def _wait_for_another_leader(running: Cluster, leader: int) -> None:
    deadline, pause = time.monotonic() + _PATIENCE_S, threading.Event()
    others = [broker for broker in running.brokers if broker != leader]
    while time.monotonic() < deadline:
        known = running.node(others[0]).broker.image.topic(_TOPIC)
        if known is not None and known.partitions[0].leader in others:
            return
        pause.wait(0.02)
    pytest.fail("no other leader was elected")


@pytest.mark.parametrize(
    "fault",
    [
        kill_the_leader,
        kill_the_controller,
        kill_a_follower,
        restart_one_after_the_other,
        isolate_the_leader,
        pause_the_leader,
        expire_every_session,
        slow_down_a_disk,
    ],
    ids=lambda fault: fault.__name__,
)
def test_nothing_acknowledged_is_lost(three: Cluster, fault: Callable[[Cluster], None]) -> None:
    """librdkafka writes throughout the fault; all its acknowledged records survive, once, in order."""
    with Writer(three.bootstrap) as writer:
        _wait_for_records(three, _PER_SECOND // 2)
        fault(three)
    check(three, writer)
    check_replicas(three)


def test_kafka_python_continues_after_the_death_of_a_leader(three: Cluster) -> None:
    """Its producer and its consumer group find the new leader and the new coordinator."""
    with subprocess.Popen(
        [sys.executable, kafka_python_client.__file__, three.bootstrap, _TOPIC, "600"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    ) as client:
        assert client.stdout is not None
        assert client.stdout.readline() == "half\n"
        three.kill(three.leader(_TOPIC))
        output, _ = client.communicate("\n", timeout=2 * _PATIENCE_S)
    assert output == "600\n"
