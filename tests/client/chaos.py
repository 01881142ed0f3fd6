"""Brokers that die and return while a client works, and what must be true afterwards.

Not done: paused brokers.
"""

import os
import random
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from types import TracebackType
from typing import Any

from ottla.base.errors import OttlaError
from ottla.client import Consumer, TopicPartition
from ottla.testing import Cluster

PARTITIONS = 3
# `make campaign` runs many rounds, with more kinds of fault.
IS_CAMPAIGN = bool(os.environ.get("OTTLA_CAMPAIGN"))
ROUNDS = 15 if IS_CAMPAIGN else 1
FAULTS = ("kill", "expire") if IS_CAMPAIGN else ("kill",)
# A client must make this much progress during each fault, and after it.
STRIDE = 20
PATIENCE_S = 60.0
QUICK = {
    "reconnect_backoff_ms": 10,
    "reconnect_backoff_max_ms": 100,
    "retry_backoff_ms": 10,
    "topic_metadata_refresh_fast_interval_ms": 20,
    "socket_timeout_ms": 2_000,
}
"""Settings of clients that retry soon."""
QUICK_PRODUCER = {**QUICK, "request_timeout_ms": 2_000}
"""Settings of producers that retry soon, also if a broker is paused."""
OPTIONS = {
    "min.insync.replicas": "2",
    "replica.fetch.backoff.ms": "20",
    "group.min.session.timeout.ms": "1000",
    "group.consumer.heartbeat.interval.ms": "100",
    "group.consumer.min.heartbeat.interval.ms": "100",
    "offsets.topic.num.partitions": "3",
    "transaction.state.log.num.partitions": "3",
}


class Storm:
    """Faults in a thread, one broker at a time, while `progress` counts what the clients have done.

    `progress` is the slowest client's. Each fault lasts until all have progressed: that shows
    that they work without that broker.
    """

    def __init__(
        self, cluster: Cluster, topics: Sequence[str], progress: Callable[[], int]
    ) -> None:
        self.seed = int(os.environ.get("OTTLA_SEED", random.randrange(1 << 30)))
        self._rng = random.Random(self.seed)
        self._cluster = cluster
        self._topics = topics
        self._progress = progress
        self._failure: BaseException | None = None
        self._is_abandoned = threading.Event()
        self._thread = threading.Thread(target=self._run, name="storm")
        self.faults: list[str] = []

    @property
    def is_over(self) -> bool:
        """Return True after the last fault, or after a failure."""
        return not self._thread.is_alive()

    def __enter__(self) -> "Storm":
        """Begin."""
        print(f"storm: OTTLA_SEED={self.seed}")
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Wait for the end; raise the failure of a fault, unless the client has failed already."""
        if kind is not None:
            self._is_abandoned.set()
        self._thread.join()
        if self._failure is not None and kind is None:
            raise self._failure

    def abandon(self) -> None:
        """End after the current fault: a client has failed."""
        self._is_abandoned.set()

    def _run(self) -> None:
        try:
            self._advance()
            for _ in range(ROUNDS):
                self._fault(self._rng.choice(FAULTS))
                self._advance()
        except (OttlaError, AssertionError) as error:
            self._failure = error

    def _fault(self, name: str) -> None:
        cluster = self._cluster
        topic = self._rng.choice(self._topics)
        victim = cluster.leader(topic, self._rng.randrange(PARTITIONS))
        self.faults.append(f"{name} {victim}")
        if name == "kill":
            cluster.kill(victim)
            cluster.expire_session(victim)
            self._advance()
            cluster.restart(victim)
        else:
            cluster.expire_session(victim)
        for topic in self._topics:
            cluster.wait_in_sync(topic)

    def _advance(self) -> None:
        target = self._progress() + STRIDE
        deadline = time.monotonic() + PATIENCE_S
        while self._progress() < target:
            assert time.monotonic() < deadline, f"no progress after {self.faults}"
            assert not self._is_abandoned.wait(0.005), "a client has failed"


def create(cluster: Cluster, name: str) -> str:
    """Create a topic on all brokers and return its name."""
    cluster.create_topic(name, partitions=PARTITIONS, replication_factor=3)
    cluster.wait_in_sync(name)
    return name


def stored(cluster: Cluster, topic: str, **settings: Any) -> dict[int, list[int]]:
    """Return the values of each partition in order; they are numbers."""
    keys = [TopicPartition(topic, number) for number in range(PARTITIONS)]
    by_key: dict[int, list[int]] = defaultdict(list)
    with Consumer(bootstrap_servers=cluster.bootstrap, **QUICK, **settings) as consumer:
        ends = consumer.end_offsets(keys)
        consumer.assign(dict.fromkeys(keys, 0))
        deadline = time.monotonic() + PATIENCE_S
        while any(consumer.positions().get(key, 0) < end for key, end in ends.items()):
            assert time.monotonic() < deadline, "the topic cannot be read to its end"
            for record in consumer.poll(0.2):
                by_key[record.partition].append(int(record.value))
    return dict(by_key)


def numbers(count: int) -> dict[int, list[int]]:
    """Return which numbers each partition has if number n was sent to partition n % 3."""
    return {part: list(range(part, count, PARTITIONS)) for part in range(PARTITIONS)}
