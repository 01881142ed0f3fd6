"""Coordinators move with their partitions: groups and transactions while brokers are killed."""

import threading
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import confluent_kafka
import pytest

from ottla.base.errors import ApiError, ErrorCode, OttlaError
from ottla.client.admin import offsets
from ottla.wire.messages.find_coordinator import FindCoordinatorRequest, FindCoordinatorResponse
from tests.process.broker_cluster import BrokerCluster, campaign, wait
from tests.process.load import Load

pytestmark = pytest.mark.slow
TOPIC = "orders"
GROUP = "group"
TRANSACTIONAL_ID = "payments"
_GROUP_KEY, _TRANSACTION_KEY = 0, 1
_OUTPUTS = 3
_TRANSACTIONS = 24


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[BrokerCluster]:
    """Three brokers with embedded coordination and a topic of twelve partitions."""
    with BrokerCluster(tmp_path) as running:
        running.create_topic(TOPIC)
        yield running


def coordinator(cluster: BrokerCluster, key: str, key_type: int) -> int:
    """Return the broker that coordinates a group or a transactional id; waits for one that runs."""
    found = -1

    def is_known() -> bool:
        nonlocal found
        request = FindCoordinatorRequest(key=key, key_type=key_type)
        try:
            with cluster.admin() as brokers:
                answer = brokers.ask(request, FindCoordinatorResponse, max_version=3)
        except (OttlaError, OSError):
            return False
        found = answer.node_id
        return answer.error_code == ErrorCode.NONE and found in cluster.running

    wait(is_known, f"{key} has a coordinator")
    return found


class Member:
    """A member of a group in a thread: reads, commits each batch, and notes what it has seen."""

    def __init__(self, bootstrap: str, protocol: str, seen: "Seen") -> None:
        self._seen = seen
        self._consumer = confluent_kafka.Consumer(
            {
                "bootstrap.servers": bootstrap,
                "group.id": GROUP,
                "group.protocol": protocol,
                "auto.offset.reset": "earliest",
                "enable.auto.commit": False,
                "log_level": 0,
                **({} if protocol == "consumer" else {"session.timeout.ms": 10_000}),
            }
        )
        self._consumer.subscribe([TOPIC])
        self._is_stopped = threading.Event()
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self) -> None:
        while not self._is_stopped.is_set():
            messages = self._consumer.consume(500, timeout=0.2)
            for message in messages:
                if message.error() is None:
                    self._seen.add(message.partition(), int(message.value()))
            if messages:
                self._commit()
        self._consumer.close()

    def _commit(self) -> None:
        try:
            committed = self._consumer.commit(asynchronous=False)
        except confluent_kafka.KafkaException:
            # A rebalance or a new coordinator: the records are committed later, or read again.
            return
        for item in committed:
            # A partition without a position has a negative offset.
            if item.error is None and item.offset >= 0:
                self._seen.committed(item.partition, item.offset)

    def close(self) -> None:
        """Leave the group."""
        self._is_stopped.set()
        self._thread.join()


class Seen:
    """What all members have read and committed."""

    def __init__(self) -> None:
        self.values: dict[int, set[int]] = defaultdict(set)
        self.offsets: dict[int, int] = {}
        self.count = 0
        self._lock = threading.Lock()

    def add(self, partition: int, value: int) -> None:
        """Note a record."""
        with self._lock:
            self.count += value not in self.values[partition]
            self.values[partition].add(value)

    def committed(self, partition: int, offset: int) -> None:
        """Note a successful commit."""
        with self._lock:
            self.offsets[partition] = max(offset, self.offsets.get(partition, 0))


@pytest.mark.parametrize("protocol", [pytest.param("classic", marks=campaign), "consumer"])
def test_group_continues_when_its_coordinator_is_killed(
    cluster: BrokerCluster, protocol: str
) -> None:
    """Committed offsets never decrease, and every record is read (scenario 20)."""
    seen = Seen()
    members = []
    try:
        with Load(cluster.bootstrap, TOPIC) as load:
            members = [Member(cluster.bootstrap, protocol, seen) for _ in range(4)]
            for _ in range(2):
                before = seen.count
                wait(lambda before=before: seen.count > before + 2000, "members read")  # type: ignore[misc]
                victim = coordinator(cluster, GROUP, _GROUP_KEY)
                acknowledged = dict(seen.offsets)
                cluster.kill(victim)
                coordinator(cluster, GROUP, _GROUP_KEY)
                check_committed(cluster, acknowledged)
                cluster.start(victim)
                cluster.wait_in_sync(TOPIC)
        total = sum(load.sent)
        wait(lambda: seen.count == total, "members have read every record")
    finally:
        for member in members:
            member.close()
    for partition, sent in enumerate(load.sent):
        assert seen.values[partition] == set(range(sent))
    check_committed(cluster, seen.offsets)
    load.check(cluster.bootstrap)
    cluster.verify(TOPIC, "__consumer_offsets")


def check_committed(cluster: BrokerCluster, acknowledged: dict[int, int]) -> None:
    """Fail if the coordinator has forgotten a commit that it has acknowledged."""
    found: dict[int, int] = {}

    def is_answered() -> bool:
        try:
            with cluster.admin() as brokers:
                answer = offsets.committed_offsets(brokers, GROUP)
        except (OttlaError, OSError):
            return False
        found.update({key[1]: value.offset for key, value in answer.items()})
        return True

    wait(is_answered, "the coordinator returns the committed offsets")
    for partition, offset in acknowledged.items():
        assert found.get(partition, -1) >= offset, f"partition {partition} went back"


class Transactions:
    """librdkafka's transactional producer."""

    def __init__(self, bootstrap: str) -> None:
        self._producer = confluent_kafka.Producer(
            {
                "bootstrap.servers": bootstrap,
                "transactional.id": TRANSACTIONAL_ID,
                "transaction.timeout.ms": 60_000,
                "log_level": 0,
            }
        )
        self._repeat(lambda: self._producer.init_transactions(10))

    def begin(self, number: int) -> None:
        """Begin a transaction and write its records."""
        self._producer.begin_transaction()
        for partition in range(_OUTPUTS):
            self._producer.produce(TOPIC, b"%d" % number, partition=partition)
        self._producer.flush(0.05)

    def end(self, *, commits: bool) -> bool:
        """Commit or abort; return True if it was committed."""
        if commits:
            try:
                self._repeat(lambda: self._producer.commit_transaction(20))
            except confluent_kafka.KafkaException as error:
                assert error.args[0].txn_requires_abort(), error
            else:
                return True
        self._repeat(lambda: self._producer.abort_transaction(20))
        return False

    def _repeat(self, call: Any) -> None:
        for _ in range(20):
            try:
                call()
            except confluent_kafka.KafkaException as error:
                if not error.args[0].retriable():
                    raise
            else:
                return
        raise AssertionError("the coordinator does not answer")


def test_transactions_are_atomic_when_their_coordinator_is_killed(cluster: BrokerCluster) -> None:
    """All records of a transaction are visible or none, and none hangs (scenario 19).

    The coordinator is killed with a transaction open, and while one is being committed.
    """
    producer = Transactions(cluster.bootstrap)
    committed = []
    down: int | None = None
    for number in range(_TRANSACTIONS):
        producer.begin(number)
        killing = None
        if number % 6 == 2:
            down = coordinator(cluster, TRANSACTIONAL_ID, _TRANSACTION_KEY)
            cluster.kill(down)
        elif number % 6 == 4 and down is not None:
            cluster.start(down)
            cluster.wait_in_sync(TOPIC)
            down = None
        elif number % 12 == 11:
            down = coordinator(cluster, TRANSACTIONAL_ID, _TRANSACTION_KEY)
            killing = threading.Timer(0.002, cluster.kill, [down])
            killing.start()
        if producer.end(commits=number % 4 != 3):
            committed.append(number)
        if killing is not None:
            killing.join()
            cluster.start(down)
            down = None
    if down is not None:
        cluster.start(down)
    cluster.wait_in_sync(TOPIC)
    assert len(committed) >= _TRANSACTIONS // 2
    wait(lambda: is_stable(cluster), "the last stable offset reaches the end", 10)
    assert read_committed(cluster.bootstrap) == [committed] * _OUTPUTS
    cluster.verify(TOPIC, "__transaction_state")


def is_stable(cluster: BrokerCluster) -> bool:
    """Return True if no transaction is open in the topic."""
    keys = [(TOPIC, partition) for partition in range(_OUTPUTS)]
    try:
        with cluster.admin() as brokers:
            ends = offsets.list_offsets(brokers, dict.fromkeys(keys, offsets.LATEST))
            stable = offsets.list_offsets(
                brokers, dict.fromkeys(keys, offsets.LATEST), isolation_level=offsets.READ_COMMITTED
            )
    except (ApiError, OttlaError, OSError):
        return False
    return [ends[key].offset for key in keys] == [stable[key].offset for key in keys]


def read_committed(bootstrap: str) -> list[list[int]]:
    """Return the numbers of the transactions that are visible in each partition."""
    consumer = confluent_kafka.Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": "reader",
            "isolation.level": "read_committed",
            "enable.partition.eof": True,
            "log_level": 0,
        }
    )
    consumer.assign(
        [confluent_kafka.TopicPartition(TOPIC, partition, 0) for partition in range(_OUTPUTS)]
    )
    found: list[list[int]] = [[] for _ in range(_OUTPUTS)]
    ended: set[int] = set()

    def is_read() -> bool:
        for message in consumer.consume(500, timeout=0.5):
            if message.error() is None:
                found[message.partition()].append(int(message.value()))
            else:
                ended.add(message.partition())
        return len(ended) == _OUTPUTS

    wait(is_read, "the topic is read to its end")
    consumer.close()
    return found
