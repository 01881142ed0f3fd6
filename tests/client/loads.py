"""Each kind of client at work until a storm is over, and the check of what it has done.

A load has topics of its own. `run` works until `is_over` returns True, `done` counts what it has
done, and `check` asserts its guarantee afterwards.
"""

import asyncio
import sqlite3
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable
from typing import Any, ClassVar

from ottla.client import (
    AsyncConsumer,
    AsyncProducer,
    Consumer,
    Producer,
    RebalanceListener,
    SqliteOffsetStore,
    TopicPartition,
)
from ottla.client.errors import CommitFailed, TransactionAborted
from ottla.testing import Cluster
from tests.client.chaos import PARTITIONS, QUICK, QUICK_PRODUCER, create, numbers, stored

# A producer never has more unacknowledged records than this.
WINDOW = 10
MEMBER = {"auto_offset_reset": "earliest", "heartbeat_interval_ms": 50}
IsOver = Callable[[], bool]


class Load(ABC):
    """One kind of client, with a topic of its own."""

    guarantee: ClassVar[str]

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        self.topic = create(cluster, type(self).__name__)
        self.words = {"bootstrap_servers": cluster.bootstrap, **QUICK}
        self.producing = {"bootstrap_servers": cluster.bootstrap, **QUICK_PRODUCER}
        self.sent = 0
        self.done = 0

    @abstractmethod
    def run(self, is_over: IsOver) -> None:
        """Work until the storm is over."""

    @abstractmethod
    def check(self) -> None:
        """Assert the guarantee of this client."""


class Idempotent(Load):
    """A producer with Kafka's defaults."""

    guarantee = "every acknowledged record is stored once, in order"
    settings: ClassVar[dict[str, Any]] = {}

    def run(self, is_over: IsOver) -> None:
        """Send numbers."""
        with Producer(self.producing | self.settings, linger_ms=0) as producer:
            while not is_over():
                self.feed(producer)

    def feed(self, producer: Producer) -> None:
        """Send the next numbers and wait for them."""
        futures = []
        for number in range(self.sent, self.sent + WINDOW):
            part = number % PARTITIONS
            futures.append(producer.send(self.topic, b"%d" % number, partition=part))
        self.sent += WINDOW
        for future in futures:
            assert future.exception(60) is None
            self.done += 1

    def check(self) -> None:
        """Each partition has its numbers."""
        assert stored(self.cluster, self.topic) == numbers(self.sent)


class AtLeastOnce(Idempotent):
    """A producer without idempotence."""

    guarantee = "every acknowledged record is stored; a retry may store it again"
    settings: ClassVar[dict[str, Any]] = {"enable_idempotence": False}

    def check(self) -> None:
        """Each partition has its numbers, some perhaps twice."""
        stored_values = stored(self.cluster, self.topic)
        assert {part: sorted(set(row)) for part, row in stored_values.items()} == numbers(self.sent)


class AsyncIdempotent(Load):
    """A producer for asyncio."""

    guarantee = "every acknowledged record of the asyncio producer is stored once, in order"

    def run(self, is_over: IsOver) -> None:
        """Send numbers."""
        asyncio.run(self._send(is_over))

    async def _send(self, is_over: IsOver) -> None:
        async with AsyncProducer(self.producing, linger_ms=0) as producer:
            while not is_over():
                futures = []
                for number in range(self.sent, self.sent + WINDOW):
                    part = number % PARTITIONS
                    futures.append(await producer.send(self.topic, b"%d" % number, partition=part))
                self.sent += WINDOW
                await asyncio.gather(*futures)
                self.done += WINDOW

    def check(self) -> None:
        """Each partition has its numbers."""
        assert stored(self.cluster, self.topic) == numbers(self.sent)


class Transactional(Load):
    """A transactional producer: each transaction has a record in every partition."""

    guarantee = "every transaction is visible once and whole"

    def run(self, is_over: IsOver) -> None:
        """Commit transactions; repeat those that the cluster aborts."""
        with Producer(self.producing, transactional_id=self.topic) as producer:
            while not is_over():
                try:
                    with producer.transaction():
                        for part in range(PARTITIONS):
                            producer.send(self.topic, b"%d" % self.sent, partition=part)
                except TransactionAborted:
                    continue
                self.sent += 1
                self.done += PARTITIONS

    def check(self) -> None:
        """Every partition has every transaction once, in order."""
        stored_values = stored(self.cluster, self.topic, isolation_level="read_committed")
        assert stored_values == {part: list(range(self.sent)) for part in range(PARTITIONS)}


class AsyncTransactional(Transactional):
    """A transactional producer for asyncio."""

    guarantee = "every transaction of the asyncio producer is visible once and whole"

    def run(self, is_over: IsOver) -> None:
        """Commit transactions; repeat those that the cluster aborts."""
        asyncio.run(self._send(is_over))

    async def _send(self, is_over: IsOver) -> None:
        async with AsyncProducer(self.producing, transactional_id=self.topic) as producer:
            while not is_over():
                try:
                    async with producer.transaction():
                        for part in range(PARTITIONS):
                            await producer.send(self.topic, b"%d" % self.sent, partition=part)
                except TransactionAborted:
                    continue
                self.sent += 1
                self.done += PARTITIONS


class Listener(RebalanceListener):
    """Counts assignments."""

    def __init__(self) -> None:
        self.count = 0

    def on_partitions_assigned(self, partitions: list[TopicPartition]) -> None:
        """Count."""
        self.count += 1


class Reading(Idempotent):
    """A member of a group, with a producer that feeds it."""

    guarantee = "every record is read, and once unless the group has rebalanced"

    def __init__(self, cluster: Cluster) -> None:
        super().__init__(cluster)
        self.seen: Counter[int] = Counter()
        self.listener = Listener()

    def run(self, is_over: IsOver) -> None:
        """Send numbers and read them."""
        consumer = Consumer(
            self.topic, config=self.words, group_id=self.topic, listener=self.listener, **MEMBER
        )
        with Producer(self.producing, linger_ms=0) as producer, consumer:
            while not is_over():
                self.feed(producer)
                self.note(consumer.poll(0.5))
            while len(self.seen) < self.sent:
                self.note(consumer.poll(0.5))
            self.note(consumer.poll(0.2))

    def feed(self, producer: Producer) -> None:
        """Send the next numbers; only reading counts as progress."""
        before = self.done
        super().feed(producer)
        self.done = before

    def note(self, records: list[Any]) -> None:
        """Note what was read."""
        self.seen.update(int(record.value) for record in records)
        self.done = self.seen.total()

    def check(self) -> None:
        """Every number was read."""
        assert sorted(self.seen) == list(range(self.sent))
        assert self.listener.count > 1 or set(self.seen.values()) == {1}


class AsyncReading(Reading):
    """A member of a group for asyncio."""

    guarantee = "every record is read by the asyncio consumer"

    def run(self, is_over: IsOver) -> None:
        """Send numbers and read them."""
        asyncio.run(self._read(is_over))

    async def _read(self, is_over: IsOver) -> None:
        settings = {"group_id": self.topic, **MEMBER, **self.words}
        with Producer(self.producing, linger_ms=0) as producer:
            async with AsyncConsumer(self.topic, listener=self.listener, **settings) as consumer:
                while not is_over():
                    await asyncio.to_thread(self.feed, producer)
                    self.note(await consumer.poll(0.5))
                while len(self.seen) < self.sent:
                    self.note(await consumer.poll(0.5))


class OwnOffsets(Reading):
    """Consumers that store results and offsets in a database, and crash again and again."""

    guarantee = "every record has one result in the database, although consumers crash"

    def run(self, is_over: IsOver) -> None:
        """Send numbers, and read some of them with each consumer."""
        database = sqlite3.connect(":memory:")
        database.execute("CREATE TABLE results (value INTEGER)")
        store = SqliteOffsetStore(database)
        with Producer(self.producing, linger_ms=0) as producer:
            while not is_over():
                for _ in range(4):
                    self.feed(producer)
                # The rest of the last fetch is dropped with the consumer, as by a crash.
                self._read(database, store, self.sent - 5)
        self._read(database, store, self.sent)
        rows = database.execute("SELECT value FROM results").fetchall()
        self.seen = Counter(row[0] for row in rows)
        database.close()

    def _read(self, database: sqlite3.Connection, store: SqliteOffsetStore, limit: int) -> None:
        settings = {"config": self.words, "group_id": self.topic, "offset_store": store, **MEMBER}
        # A consumer that is closed while its coordinator is down stays a member for this time.
        with Consumer(self.topic, session_timeout_ms=2_000, **settings) as consumer:
            for record in consumer:
                with database:
                    database.execute("INSERT INTO results VALUES (?)", (int(record.value),))
                    store.save(record)
                self.done += 1
                if self.done >= limit:
                    return

    def check(self) -> None:
        """Every number has one result."""
        assert sorted(self.seen) == list(range(self.sent))
        assert set(self.seen.values()) == {1}


class Copying(Reading):
    """Read, process, write: input offsets and output in one transaction."""

    guarantee = "every input has one visible output"

    def __init__(self, cluster: Cluster) -> None:
        super().__init__(cluster)
        self.output = create(cluster, "Copies")

    def run(self, is_over: IsOver) -> None:
        """Send numbers and copy them."""
        settings = {"config": self.words, "group_id": self.topic, **MEMBER}
        with (
            Producer(self.producing, linger_ms=0) as feeder,
            Producer(self.producing, transactional_id=self.topic) as producer,
            Consumer(self.topic, enable_auto_commit=False, **settings) as consumer,
        ):
            while not is_over():
                self.feed(feeder)
                self._copy(consumer, producer)
            while self.done < self.sent:
                self._copy(consumer, producer)

    def _copy(self, consumer: Consumer, producer: Producer) -> None:
        records = consumer.poll(0.5)
        try:
            with producer.transaction():
                for record in records:
                    producer.send(self.output, record.value, partition=record.partition)
                producer.send_offsets(consumer)
        except (TransactionAborted, CommitFailed):
            # The transaction has no effect: read the records again.
            committed = consumer.committed()
            for key in consumer.assignment:
                consumer.seek(key, committed[key].offset if key in committed else 0)
            return
        self.done += len(records)

    def check(self) -> None:
        """The output has every number once, in order."""
        stored_values = stored(self.cluster, self.output, isolation_level="read_committed")
        assert stored_values == numbers(self.sent)


LOADS: tuple[type[Load], ...] = (
    Idempotent,
    AtLeastOnce,
    AsyncIdempotent,
    Transactional,
    AsyncTransactional,
    Reading,
    AsyncReading,
    OwnOffsets,
    Copying,
)
