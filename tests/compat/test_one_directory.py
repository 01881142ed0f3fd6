"""One log directory, written in turn by Ottla and by Apache Kafka 3.9.2 on a ZooKeeper, both ways."""

import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

import pytest
from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewTopic,
    ResourceType,
)

from ottla.testing.process import BrokerProcess, run_command
from tests.compat import zookeeper

pytestmark = [
    pytest.mark.compat,
    pytest.mark.slow,
    pytest.mark.timeout(240),
    pytest.mark.needs("java"),
]

PARTITIONS = 3
CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
STARTING = (KafkaError.NOT_COORDINATOR, KafkaError.COORDINATOR_LOAD_IN_PROGRESS)
GROUP, TOPIC = "readers", "t"


class Server(Protocol):
    """A broker with the directory."""

    bootstrap: str

    def start(self) -> object:
        """Start the broker."""
        ...

    def stop(self) -> object:
        """Stop the broker cleanly."""
        ...


@dataclass
class History:
    """The data written so far; the next broker of the directory must have all of it."""

    committed: set[bytes] = field(default_factory=set)
    positions: dict[int, int] = field(default_factory=dict)
    configs: dict[str, str] = field(default_factory=dict)
    topics: set[str] = field(default_factory=set)


def transactional(bootstrap: str, name: str) -> Producer:
    """Return a producer that has fenced earlier ones of the same id."""
    producer = Producer({"bootstrap.servers": bootstrap, "transactional.id": name, "log_level": 0})
    producer.init_transactions(60)
    return producer


def write(bootstrap: str, label: str, history: History) -> Producer:
    """Write with all codecs, in transactions of each outcome, with a group; return an open
    transaction.
    """
    settings = {"bootstrap.servers": bootstrap, "enable.idempotence": True}
    producers = [Producer({**settings, "compression.type": codec}) for codec in CODECS]
    for codec, producer in zip(CODECS, producers, strict=True):
        for number in range(200):
            value = f"{label}-{codec}-{number}".encode()
            producer.produce(TOPIC, value, partition=number % PARTITIONS)
            history.committed.add(value)
    # Each waits half a second for its producer id, all at the same time.
    for producer in producers:
        assert producer.flush(60) == 0
    # This is first, so that there is a coordinator: librdkafka 2.16 may wait for one forever in the
    # next call.
    commit_plainly(bootstrap, history)
    for fate in ("commit", "abort"):
        producer = transactional(bootstrap, f"{fate}-id")
        producer.begin_transaction()
        producer.produce(TOPIC, f"{label}-{fate}".encode(), partition=0)
        offsets = [TopicPartition(TOPIC, 0, 100 + len(history.committed))]
        consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": GROUP})
        producer.send_offsets_to_transaction(offsets, consumer.consumer_group_metadata(), 60)
        consumer.close()
        getattr(producer, f"{fate}_transaction")(60)
        if fate == "commit":
            history.committed.add(f"{label}-{fate}".encode())
            history.positions[0] = offsets[0].offset
    unfinished = transactional(bootstrap, "open-id")
    unfinished.begin_transaction()
    unfinished.produce(TOPIC, f"{label}-open".encode(), partition=1)
    assert unfinished.flush(60) == 0
    return unfinished


def commit_plainly(bootstrap: str, history: History) -> None:
    """Commit offsets of a member that really joins."""
    settings = {"bootstrap.servers": bootstrap, "group.id": "members", "enable.auto.commit": False}
    consumer = Consumer({**settings, "auto.offset.reset": "earliest"})
    consumer.subscribe([TOPIC])
    first = consumer.consume(1, 60)[0]
    assert first.error() is None
    history.positions[10 + first.partition()] = first.offset() + 1
    consumer.commit(message=first, asynchronous=False)
    consumer.close()


def settle(bootstrap: str) -> None:
    """Return when the broker has its own metadata; Apache Kafka responds before that."""
    deadline = time.monotonic() + 60
    while True:
        admin = AdminClient({"bootstrap.servers": bootstrap})
        with suppress(KafkaException):
            cluster = admin.list_topics(timeout=30)
            if cluster.brokers and cluster.controller_id >= 0:
                return
        assert time.monotonic() < deadline
        admin.poll(0.2)


def administer(bootstrap: str, label: str, history: History) -> None:
    """Create and delete topics, and change configurations."""
    admin = AdminClient({"bootstrap.servers": bootstrap})
    fresh = [NewTopic(f"{label}-kept", 2, 1), NewTopic(f"{label}-gone", 1, 1)]
    if TOPIC not in history.topics:
        fresh.append(NewTopic(TOPIC, PARTITIONS, 1, config={"segment.bytes": "1200000"}))
        history.configs["segment.bytes"] = "1200000"
    for future in admin.create_topics(fresh, request_timeout=60).values():
        future.result(60)
    for future in admin.delete_topics([f"{label}-gone"]).values():
        future.result(60)
    history.topics |= {TOPIC, f"{label}-kept"}
    history.configs["max.message.bytes"] = str(1_000_000 + len(history.topics))
    entry = ConfigEntry(
        "max.message.bytes",
        history.configs["max.message.bytes"],
        incremental_operation=AlterConfigOpType.SET,
    )
    resource = ConfigResource(ResourceType.TOPIC, TOPIC, incremental_configs=[entry])
    for future in admin.incremental_alter_configs([resource]).values():
        future.result(60)


def check(bootstrap: str, history: History) -> None:
    """Check all data: topics, configurations, offsets and records."""
    admin = AdminClient({"bootstrap.servers": bootstrap})
    assert topics(admin, history.topics) == history.topics
    resource = ConfigResource(ResourceType.TOPIC, TOPIC)
    (future,) = admin.describe_configs([resource]).values()
    configs = future.result(60)
    assert {name: configs[name].value for name in history.configs} == history.configs
    for group, base in ((GROUP, 0), ("members", 10)):
        consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": group})
        requested = [TopicPartition(TOPIC, number) for number in range(PARTITIONS)]
        positions = {record.partition: record.offset for record in committed(consumer, requested)}
        for key, offset in history.positions.items():
            if base <= key < base + PARTITIONS:
                assert positions[key - base] == offset, (group, key - base)
        consumer.close()
    # The open transaction ends now: a new producer with its id fences the old one.
    transactional(bootstrap, "open-id")
    assert read_committed(bootstrap) == history.committed


def committed(consumer: Consumer, requested: list[TopicPartition]) -> list[TopicPartition]:
    """Return the offsets of a group; Apache Kafka returns its coordinator before that has loaded
    it.
    """
    deadline = time.monotonic() + 30
    while True:
        try:
            return list(consumer.committed(requested, 60))
        except KafkaException as error:
            if error.args[0].code() not in STARTING:
                raise
            assert time.monotonic() < deadline, error
            consumer.poll(0.2)


def topics(admin: AdminClient, required: set[str]) -> set[str]:
    """Return the topics that are not internal, as soon as there are enough.

    Apache Kafka responds before its controller has sent the metadata.
    """
    deadline = time.monotonic() + 30
    while True:
        names = admin.list_topics(timeout=30).topics
        result = {name for name in names if not name.startswith("__")}
        if len(result) >= len(required) or time.monotonic() > deadline:
            return result
        admin.poll(0.1)


def read_committed(bootstrap: str) -> set[bytes]:
    """Return the values of all partitions; none may appear twice."""
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": "checks",
            "enable.auto.commit": False,
            "isolation.level": "read_committed",
            "enable.partition.eof": True,
            "check.crcs": True,
        }
    )
    consumer.assign([TopicPartition(TOPIC, number, 0) for number in range(PARTITIONS)])
    values: list[bytes] = []
    ended: set[int | None] = set()
    while len(ended) < PARTITIONS:
        message = consumer.poll(60)
        assert message is not None, f"nothing more after {len(values)} records"
        error = message.error()
        if error is not None:
            assert error.code() == KafkaError._PARTITION_EOF, error
            ended.add(message.partition())
            continue
        value = message.value()
        assert isinstance(value, bytes)
        values.append(value)
    consumer.close()
    assert len(values) == len(set(values))
    return set(values)


def carry(verb: str, data: Path, address: str, *words: str) -> None:
    """Run `ottla zookeeper export` or `import`."""
    arguments = ("--data", str(data), "--connect", f"{address}/kafka")
    done = run_command("zookeeper", verb, *arguments, *words)
    assert done.returncode == 0, done.stderr.decode()
    assert b"Copied" in done.stdout


@pytest.fixture
def address(tmp_path: Path) -> Iterator[str]:
    """Return the address of a ZooKeeper."""
    with zookeeper.running(tmp_path / "zookeeper") as running:
        yield running


# Each broker follows the other one in both cases.
@pytest.mark.parametrize(
    "first", ["kafka", pytest.param("ottla", marks=pytest.mark.nightly("[kafka]"))]
)
def test_ottla_and_kafka_take_turns_with_a_directory(
    first: str, tmp_path: Path, address: str
) -> None:
    """Topics, settings, records, groups and transactions move to the other broker, back, and again."""
    data = tmp_path / "data"
    ours = BrokerProcess(data, options={"log.retention.check.interval.ms": "1000"})
    # Kafka would wait three seconds for more members of each new group.
    no_delay = ("group.initial.rebalance.delay.ms=0",)
    theirs = zookeeper.Broker(tmp_path / "kafka", f"{address}/kafka", data, no_delay)
    to_them: Callable[..., None] = lambda *words: carry("export", data, address, *words)  # noqa: E731
    to_us: Callable[..., None] = lambda *words: carry("import", data, address, *words)  # noqa: E731
    turns: list[tuple[str, Server, Callable[..., None]]] = [
        ("ottla", ours, to_them),
        ("kafka", theirs, to_us),
    ]
    if first == "kafka":
        turns.reverse()
    history = History()
    unfinished: list[Producer] = []
    try:
        for number in range(3):
            name, server, hand_over = turns[number % 2]
            server.start()
            settle(server.bootstrap)
            if number:
                check(server.bootstrap, history)
            administer(server.bootstrap, f"{name}{number}", history)
            unfinished.append(write(server.bootstrap, f"{name}{number}", history))
            server.stop()
            hand_over(*(("--replace",) if number else ()))
        name, server, _ = turns[1]
        server.start()
        check(server.bootstrap, history)
        server.stop()
    finally:
        theirs.kill()
