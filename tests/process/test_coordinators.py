"""Coordinators move with their partitions: groups and transactions while brokers are killed."""

import json
import subprocess
import sys
import threading
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import confluent_kafka
import pytest

from ottla.base.errors import ApiError, OttlaError
from ottla.client import AdminClient
from ottla.client.admin import offsets
from tests.compat import java
from tests.compat.reading import everything
from tests.compat.test_atomicity import COUNT, RESULTS, STEPS, Running, running
from tests.process.broker_cluster import (
    GROUP_KEY,
    TRANSACTION_KEY,
    BrokerCluster,
    coordinator,
    wait,
)
from tests.process.load import Load

pytestmark = pytest.mark.slow
TOPIC = "orders"
GROUP = "group"
TRANSACTIONAL_ID = "payments"
_OUTPUTS = 3
_TRANSACTIONS = 24
needs_java = (
    pytest.mark.compat,
    pytest.mark.needs("java"),
)


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[BrokerCluster]:
    """Three brokers with embedded coordination and a topic of twelve partitions."""
    with BrokerCluster(tmp_path) as running:
        running.create_topic(TOPIC)
        yield running


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


class JavaMember:
    """A VerifiableConsumer with the interface of `Member`; a thread reads the events it prints."""

    def __init__(self, bootstrap: str, protocol: str, seen: "Seen") -> None:
        self._seen = seen
        timeout = ["--session-timeout", "10000"] if protocol == "classic" else []
        self._process = subprocess.Popen(
            java.command(
                java.client_class_path("4.3.0"),
                "org.apache.kafka.tools.VerifiableConsumer",
                *("--bootstrap-server", bootstrap, "--topic", TOPIC, "--group-id", GROUP),
                *("--group-protocol", protocol, "--reset-policy", "earliest", "--verbose"),
                *timeout,
            ),
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            event = json.loads(line) if line.startswith("{") else {"name": "log"}
            if event["name"] == "record_data":
                self._seen.add(event["partition"], int(event["value"]))
            elif event["name"] == "offsets_committed" and event["success"]:
                for row in event["offsets"]:
                    self._seen.committed(row["partition"], row["offset"])

    def close(self) -> None:
        """Leave the group."""
        self._process.terminate()
        self._thread.join()
        with self._process:
            pass


class Seen:
    """The records and offsets that all members have read and committed."""

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


_repeated = pytest.mark.nightly("[Member-4-consumer]")
GROUPS = [
    pytest.param(Member, 20, "classic", marks=_repeated),
    (Member, 4, "consumer"),
    pytest.param(JavaMember, 2, "classic", marks=[_repeated, *needs_java]),
    pytest.param(JavaMember, 2, "consumer", marks=[_repeated, *needs_java]),
]


@pytest.mark.parametrize(("kind", "count", "protocol"), GROUPS)
def test_group_continues_when_its_coordinator_is_killed(
    cluster: BrokerCluster, kind: type[Member] | type[JavaMember], count: int, protocol: str
) -> None:
    """Committed offsets never decrease, and every record is read (scenario 20)."""
    seen = Seen()
    members: list[Member | JavaMember] = []
    try:
        with Load(cluster.bootstrap, TOPIC) as load:
            members += [kind(cluster.bootstrap, protocol, seen) for _ in range(count)]
            for _ in range(2):
                before = seen.count
                wait(lambda before=before: seen.count > before + 1000, "members read")  # type: ignore[misc]
                victim = coordinator(cluster, GROUP, GROUP_KEY)
                acknowledged = dict(seen.offsets)
                cluster.kill(victim)
                coordinator(cluster, GROUP, GROUP_KEY)
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
    entries: dict[int, int] = {}

    def is_answered() -> bool:
        try:
            with cluster.admin() as brokers:
                response = offsets.committed_offsets(brokers, GROUP)
        except (OttlaError, OSError):
            return False
        entries.update({key[1]: value.offset for key, value in response.items()})
        return True

    wait(is_answered, "the coordinator returns the committed offsets")
    for partition, offset in acknowledged.items():
        assert entries.get(partition, -1) >= offset, f"partition {partition} went back"


class Transactions:
    """librdkafka's transactional producer."""

    def __init__(self, bootstrap: str) -> None:
        self._bootstrap = bootstrap
        self._open()

    def _open(self) -> None:
        self._producer = confluent_kafka.Producer(
            {
                "bootstrap.servers": self._bootstrap,
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
        try:
            self._repeat(lambda: self._producer.abort_transaction(20))
        except confluent_kafka.KafkaException as error:
            # The request that adds partitions was lost with the former coordinator: the new one has
            # nothing to abort, which is a fatal error of librdkafka, also with Apache Kafka.
            if error.args[0].code() != confluent_kafka.KafkaError.INVALID_TXN_STATE:
                raise
            with AdminClient(bootstrap_servers=self._bootstrap) as admin:
                state = admin.describe_transaction(TRANSACTIONAL_ID).state
            assert state in ("Empty", "CompleteAbort", "CompleteCommit"), state
            self._open()
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
            down = coordinator(cluster, TRANSACTIONAL_ID, TRANSACTION_KEY)
            cluster.kill(down)
        elif number % 6 == 4 and down is not None:
            cluster.start(down)
            cluster.wait_in_sync(TOPIC)
            down = None
        elif number % 12 == 11:
            down = coordinator(cluster, TRANSACTIONAL_ID, TRANSACTION_KEY)
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
    rows = read_committed(cluster.bootstrap)
    if rows != [committed] * _OUTPUTS:
        # Was a record lost, or aborted by a marker of an old coordinator?
        print(cluster.segments(TOPIC), cluster.segments("__transaction_state"))
    assert rows == [committed] * _OUTPUTS
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
    rows: list[list[int]] = [[] for _ in range(_OUTPUTS)]
    ended: set[int] = set()

    def is_read() -> bool:
        for message in consumer.consume(500, timeout=0.5):
            if message.error() is None:
                rows[message.partition()].append(int(message.value()))
            else:
                ended.add(message.partition())
        return len(ended) == _OUTPUTS

    wait(is_read, "the topic is read to its end")
    consumer.close()
    return rows


def test_program_waits_at_each_step_although_its_client_writes_a_log() -> None:
    """A line of the log is not a step: the program gets one line of input for each step."""
    script = (
        "for step in ('begun', 'produced'):\n"
        "    print('WARN - not reachable', '', 'WARN - retried', step, sep='\\n', flush=True)\n"
        "    input()\n"
    )
    program = Running([sys.executable, "-c", script])
    try:
        program.reach("produced")
        assert program.steps == ["begun", "", "produced"]
    finally:
        program.kill()


@pytest.mark.nightly(
    "tests/process/test_coordinators.py"
    "::test_transactions_are_atomic_when_their_coordinator_is_killed"
)
@pytest.mark.parametrize("client", ["librdkafka", pytest.param("4.3.0", marks=needs_java)])
def test_every_input_has_one_output_when_the_coordinator_is_killed(
    tmp_path: Path, client: str
) -> None:
    """A program reads, processes and writes in transactions; their coordinator is killed at every
    step of one (scenario 19).
    """
    with BrokerCluster(tmp_path) as cluster:
        cluster.create_topic("in", partitions=2)
        cluster.create_topic("out", partitions=3)
        producer = confluent_kafka.Producer({"bootstrap.servers": cluster.bootstrap})
        for number in range(COUNT):
            producer.produce("in", str(number), partition=number % 2)
        assert producer.flush(30) == 0
        for step in STEPS:
            with running(client, cluster, step) as program:
                program.wait_for(step)
                if step == "committing":
                    program.go_on()
                victim = coordinator(cluster, "process", TRANSACTION_KEY)
                cluster.kill(victim)
                if step != "committing":
                    program.go_on()
                program.wait_for(step)
                cluster.start(victim)
                for topic in ("in", "out"):
                    cluster.wait_in_sync(topic)
        with running(client, cluster, "") as program:
            program.wait_for("done")
        assert sorted(everything(cluster, "out")) == RESULTS
        cluster.verify("out", "__transaction_state", "__consumer_offsets")
