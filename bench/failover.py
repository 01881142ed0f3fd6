"""The time in which a partition cannot be written after its leader has died or fallen silent.

The whole pause is measured with a librdkafka producer. The cluster's part of it is measured by a
client without timers of its own: it asks each surviving broker for the leader, and writes as soon
as that broker leads.
"""

import os
import signal
import threading
import time
from collections.abc import Sequence
from typing import NamedTuple

import confluent_kafka

from ottla.base.errors import ErrorCode, OttlaError
from ottla.client.bootstrap import Address
from ottla.client.connection import Connection
from ottla.wire.messages.metadata import MetadataRequest, MetadataRequestTopic, MetadataResponse
from ottla.wire.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)
from ottla.wire.records.records import Record, encode_batch
from tests.process.broker_cluster import BrokerCluster, wait

_PATIENCE_S = 90.0
_PAUSE_S = 0.005
# The first version that names topics by their id.
_NAMED_TOPICS = 12


class Pulse:
    """A producer that writes a record every 5 ms; the longest time between acknowledgements."""

    def __init__(self, bootstrap: str, topic: str) -> None:
        self.gap_seconds = 0.0
        self.count = 0
        self._topic = topic
        self._last_at = time.monotonic()
        self._is_stopped = threading.Event()
        self._producer = confluent_kafka.Producer(
            {
                "bootstrap.servers": bootstrap,
                "enable.idempotence": True,
                "linger.ms": 0,
                "retry.backoff.ms": 50,
                "retry.backoff.max.ms": 100,
                "reconnect.backoff.ms": 50,
                "reconnect.backoff.max.ms": 200,
                # librdkafka sends nothing to a new leader while a request to the former one waits.
                "socket.timeout.ms": 1000,
                "log_level": 0,
            }
        )
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self) -> None:
        while not self._is_stopped.is_set():
            self._producer.produce(self._topic, b"x", partition=0, on_delivery=self._delivered)
            self._producer.poll(0.005)
        self._producer.flush(30)

    def _delivered(self, error: object, message: object) -> None:
        now = time.monotonic()
        self.gap_seconds = max(self.gap_seconds, now - self._last_at)
        self._last_at = now
        self.count += 1

    def close(self) -> None:
        """Stop writing."""
        self._is_stopped.set()
        self._thread.join()


class Observer:
    """A thread that asks one broker for the leader of partition 0, and writes to it if it leads.

    `known_at` is the time at which the broker named a leader other than `victim`, and `written_at`
    the time of the first acknowledgement; 0.0 until then.
    """

    def __init__(self, cluster: BrokerCluster, number: int, topic: str, victim: int) -> None:
        self.known_at = self.written_at = 0.0
        self._number = number
        self._topic = topic
        self._victim = victim
        self._deadline = time.monotonic() + _PATIENCE_S
        address = Address(cluster.host(number), cluster.port(number))
        self._connection = Connection(address, client_id="observer")
        self._is_stopped = threading.Event()
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self) -> None:
        while not self._is_stopped.is_set() and time.monotonic() < self._deadline:
            try:
                self._look()
            except OttlaError:
                return
            self._is_stopped.wait(_PAUSE_S)

    def _look(self) -> None:
        leader = self._leader()
        if leader < 0 or leader == self._victim:
            return
        self.known_at = self.known_at or time.monotonic()
        if leader == self._number and not self.written_at and self._write() is ErrorCode.NONE:
            self.written_at = time.monotonic()

    def _leader(self) -> int:
        topic = MetadataRequestTopic(name=self._topic)
        answer = self._connection.call(MetadataRequest(topics=[topic]), MetadataResponse)
        partitions = answer.topics[0].partitions
        return partitions[0].leader_id if partitions else -1

    def _write(self) -> ErrorCode:
        batch = encode_batch([Record(None, b"x", (), int(time.time() * 1000))])
        partition = PartitionProduceData(index=0, records=bytes(batch))
        topic = TopicProduceData(name=self._topic, partition_data=[partition])
        request = ProduceRequest(acks=-1, timeout_ms=10_000, topic_data=[topic])
        answer = self._connection.call(request, ProduceResponse, max_version=_NAMED_TOPICS)
        return ErrorCode(answer.responses[0].partition_responses[0].error_code)

    def close(self) -> None:
        """End the thread and the connection."""
        self._is_stopped.set()
        self._thread.join()
        self._connection.close()


class FailOver(NamedTuple):
    """Seconds from the fault on, and the longest time between acknowledgements of librdkafka.

    `known`: every surviving broker names the new leader; `written`: a record of the client without
    timers is acknowledged; `pause` is librdkafka's.
    """

    pause: float
    known: float
    written: float


def fail_over(cluster: BrokerCluster, topic: str, *, is_silent: bool) -> FailOver:
    """Kill the leader of partition 0, or stop it with SIGSTOP, while a producer writes."""
    pulse = Pulse(cluster.bootstrap, topic)
    wait(lambda: pulse.count > 100, "the producer writes")
    victim = cluster.leader(topic)
    others = [number for number in cluster.ids if number != victim]
    observers = [Observer(cluster, number, topic, victim) for number in others]
    pulse.gap_seconds, count = 0.0, pulse.count
    wait(lambda: pulse.count > count, "the producer writes")
    started = time.monotonic()
    if is_silent:
        cluster.pause(victim)
    else:
        os.kill(cluster.process_id(victim), signal.SIGKILL)
    try:
        known, written = _await_leader(observers)
        count = pulse.count
        wait(lambda: pulse.count > count + 200, "the producer writes again", _PATIENCE_S)
    finally:
        pulse.close()
        for observer in observers:
            observer.close()
    if is_silent:
        cluster.resume(victim)
    else:
        cluster.kill(victim)
        cluster.start(victim)
    cluster.wait_in_sync(topic, 60)
    return FailOver(pulse.gap_seconds, known - started, written - started)


def _await_leader(observers: Sequence[Observer]) -> tuple[float, float]:
    """Return when the last observer knew the leader, and when the first one had written."""
    wait(lambda: all(one.known_at for one in observers), "another leader", _PATIENCE_S)
    wait(lambda: any(one.written_at for one in observers), "a record is written", _PATIENCE_S)
    written = min(one.written_at for one in observers if one.written_at)
    return max(one.known_at for one in observers), written
