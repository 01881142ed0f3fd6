"""An application whose topics have three replicas, while brokers die with kill -9."""

import random
import threading
import time
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType

import confluent_kafka
import pytest
from pyspark.sql import SparkSession

from ottla.base.errors import OttlaError
from ottla.client.admin.offsets import committed_offsets
from ottla.client.arrow_table import read_table
from ottla.client.transaction import list_open
from ottla.streams import Serdes, StreamsBuilder, Topology, TopologyTestDriver
from ottla.streams.kafka_streams import KafkaStreams, State
from tests.process.broker_cluster import TRANSACTION_KEY, BrokerCluster, coordinator
from tests.spark.processes import PATIENCE_S, Reader, dice, reading, wait_until

# Three brokers die while the application runs, which takes 20 s.
pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.timeout(300), pytest.mark.alone]

APPLICATION_ID = "outliving"
TOPICS = ("rates", "orders", "totals")
PARTITIONS = 3
KEYS = 12
RECORDS_PER_BATCH = 200
# The number of further results that the test waits for while a broker is down.
PROGRESS = 100
_RATE = 100
_TICK_S = 0.02
_START = 1_700_000_000_000
_TEXT, _JSON = Serdes.string(), Serdes.json()

Order = tuple[str, int]


def topology() -> Topology:
    """Multiply each order with the rate of its key, and add up the products of each key."""
    builder = StreamsBuilder()
    rates = builder.table("rates", key=_TEXT, value=_JSON)
    orders = builder.stream("orders", key=_TEXT, value=_JSON)
    products = orders.join(rates, lambda amount, rate: amount * rate)
    totals = products.group_by_key().reduce(lambda total, product: total + product)
    totals.to_stream().to("totals", key=_TEXT, value=_JSON)
    return builder.build()


RATES = [(f"key-{number}", number + 2) for number in range(KEYS)]


def write_rates(bootstrap: str) -> None:
    """Write the rate of each key, and return when all are acknowledged."""
    producer = confluent_kafka.Producer(
        {"bootstrap.servers": bootstrap, "partitioner": "murmur2_random"}
    )
    for key, rate in RATES:
        producer.produce("rates", b"%d" % rate, key, timestamp=_START)
    assert producer.flush(PATIENCE_S) == 0


class Orders:
    """librdkafka, which writes orders at a fixed rate until the end of the block.

    Amounts are positive: each result of a key is larger than the one before, so that a loss, a
    duplicate and a change of order can each be seen.
    """

    def __init__(self, bootstrap: str, seed: int) -> None:
        self.sent: list[Order] = []
        self.failures: list[str] = []
        self._chance = random.Random(seed)
        self._producer = confluent_kafka.Producer(
            {
                "bootstrap.servers": bootstrap,
                "enable.idempotence": True,
                "acks": "all",
                "partitioner": "murmur2_random",
                "log_level": 0,
            }
        )
        self._is_stopped = threading.Event()
        self._thread = threading.Thread(target=self._run)

    def __enter__(self) -> "Orders":
        """Begin to write."""
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Stop, and wait until all orders are acknowledged."""
        self._is_stopped.set()
        self._thread.join()
        left = self._producer.flush(PATIENCE_S if error is None else 0)
        assert error is not None or (left, self.failures) == (0, [])

    def _run(self) -> None:
        started = time.monotonic()
        while not self._is_stopped.is_set():
            for _ in range(int((time.monotonic() - started) * _RATE) - len(self.sent)):
                order = f"key-{self._chance.randrange(KEYS)}", self._chance.randint(1, 9)
                self._write(*order)
                self.sent.append(order)
            self._producer.poll(_TICK_S)

    def _write(self, key: str, amount: int) -> None:
        time_ms = _START + 1 + len(self.sent)
        self._producer.produce(
            "orders", b"%d" % amount, key, timestamp=time_ms, on_delivery=self._delivered
        )

    def _delivered(
        self, error: confluent_kafka.KafkaError | None, message: confluent_kafka.Message
    ) -> None:
        if error is not None:
            self.failures.append(str(error))


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[BrokerCluster]:
    """Three brokers; every topic has three replicas and min.insync.replicas=2."""
    with BrokerCluster(tmp_path) as running:
        for topic in TOPICS:
            running.create_topic(topic, partitions=PARTITIONS, config={"retention.ms": "-1"})
        yield running


class Observer:
    """Waits for results, and fails as soon as the application does."""

    def __init__(self, app: KafkaStreams, reader: Reader) -> None:
        self._app = app
        self._reader = reader

    def wait_for(self, count: int) -> None:
        """Wait until there are `count` different results."""

        def are_there() -> bool:
            self._reader.read(0.05)
            return self._app.state.is_final or len(self._reader.seen) >= count

        wait_until(are_there, lambda: f"{len(self._reader.seen)} of {count} results")
        if self._app.error is not None:
            raise self._app.error

    def wait_for_more(self) -> None:
        """Wait for a number of further results."""
        self.wait_for(len(self._reader.seen) + PROGRESS)


def coordinator_of_open_transaction(cluster: BrokerCluster) -> int:
    """Return the broker that coordinates a transaction in which the application is writing."""

    def names() -> list[str]:
        try:
            with cluster.admin() as brokers:
                return list_open(brokers, "ottla-sink-")
        except (OttlaError, OSError):
            return []

    return coordinator(cluster, wait_until(names)[0], TRANSACTION_KEY)


def records_read(cluster: BrokerCluster) -> int:
    """Return the number of records that the application has read and committed."""
    with cluster.admin() as brokers:
        committed = committed_offsets(brokers, APPLICATION_ID)
    return sum(item.offset for item in committed.values())


def expected_totals(orders: list[Order]) -> dict[str, list[int]]:
    """Return the results of each key, as the test driver computes them."""
    totals: dict[str, list[int]] = defaultdict(list)
    with TopologyTestDriver(topology()) as driver:
        driver.create_input_topic("rates", key=_TEXT, value=_JSON).pipe_key_value_list(RATES)
        driver.create_input_topic("orders", key=_TEXT, value=_JSON).pipe_key_value_list(orders)
        output = driver.create_output_topic("totals", key=_TEXT, value=_JSON)
        for key, total in output.read_key_values_to_list():
            totals[str(key)].append(total)
    return totals


def committed_totals(bootstrap: str) -> dict[str, list[int]]:
    """Return the committed results of each key in the order of their offsets."""
    table = read_table(
        "totals", bootstrap=bootstrap, columns=["key", "value"], isolation="read_committed"
    )
    totals: dict[str, list[int]] = defaultdict(list)
    for row in table.to_pylist():
        totals[row["key"].decode()].append(int(row["value"]))
    return totals


def test_an_application_loses_and_doubles_nothing_when_brokers_die(
    spark: SparkSession, cluster: BrokerCluster, tmp_path: Path
) -> None:
    """Leaders of its input and its output and the coordinator of an open transaction are killed
    with kill -9; the committed results are the same as the test driver's, in the same order.
    """
    chance = dice()
    states: list[State] = []
    app = KafkaStreams(
        topology(),
        application_id=APPLICATION_ID,
        bootstrap_servers=cluster.bootstrap,
        spark=spark,
        state_dir=str(tmp_path / "state"),
        processing_guarantee="exactly_once_v2",
        max_records=RECORDS_PER_BATCH,
        heartbeat_interval_ms=200,
    )
    app.set_state_listener(lambda new, old: states.append(new))
    victims = (
        lambda: cluster.leader("orders", chance.randrange(PARTITIONS)),
        lambda: cluster.leader("totals", chance.randrange(PARTITIONS)),
        lambda: coordinator_of_open_transaction(cluster),
    )
    write_rates(cluster.bootstrap)
    with app, reading(cluster.bootstrap, "totals", PARTITIONS) as reader:
        observer = Observer(app, reader)
        # Otherwise an order may be in an earlier micro-batch than its rate.
        wait_until(lambda: records_read(cluster) == KEYS)
        with Orders(cluster.bootstrap, chance.getrandbits(32)) as orders:
            for choose in victims:
                observer.wait_for_more()
                # At a random moment within the next batches.
                reader.read(chance.random() / 2)
                victim = choose()
                cluster.kill(victim)
                observer.wait_for_more()
                cluster.start(victim)
                for topic in TOPICS:
                    cluster.wait_in_sync(topic)
        observer.wait_for(len(orders.sent))
        wait_until(lambda: records_read(cluster) == KEYS + len(orders.sent))
    with cluster.admin() as brokers:
        assert list_open(brokers, "ottla-sink-") == []
    assert State.ERROR not in states
    assert committed_totals(cluster.bootstrap) == expected_totals(orders.sent)
    cluster.verify(*TOPICS, "__transaction_state", "__consumer_offsets")
