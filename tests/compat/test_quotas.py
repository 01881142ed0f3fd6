"""Quotas with foreign clients: Apache Kafka's own tools set them, librdkafka is throttled."""

import time
from collections.abc import Callable, Iterator

import pytest
from confluent_kafka import Consumer, Message, Producer
from confluent_kafka.admin import AdminClient, NewTopic
from kafka.admin import KafkaAdminClient
from kafka.admin import NewTopic as PythonTopic
from kafka.errors import ThrottlingQuotaExceededError

from ottla.testing.cluster import Cluster
from ottla.wire.messages.alter_client_quotas import (
    AlterClientQuotasRequest,
    AlterClientQuotasRequestEntryData,
    AlterClientQuotasResponse,
    EntityData,
    OpData,
)
from tests.compat import java

pytestmark = [pytest.mark.compat, pytest.mark.slow, pytest.mark.alone]

MEGABYTE = 1_000_000
# Two samples: the burst at the start is one second's worth, not ten.
OPTIONS = {
    "quota.window.num": "2",
    "controller.quota.window.num": "1",
    "controller.quota.window.size.seconds": "10",
}


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    """Return a broker for this file; every test uses its own clients and topics."""
    with Cluster(options=OPTIONS) as running:
        yield running


def limit(cluster: Cluster, names: dict[str, str | None], **values: float) -> None:
    """Set quotas of an entity."""
    entry = AlterClientQuotasRequestEntryData(
        entity=[EntityData(entity_type=kind, entity_name=name) for kind, name in names.items()],
        ops=[OpData(key=key, value=value) for key, value in values.items()],
    )
    with cluster.admin() as brokers:
        request = AlterClientQuotasRequest(entries=[entry])
        response = brokers.ask(request, AlterClientQuotasResponse)
    assert [item.error_code for item in response.entries] == [0]


class Rate:
    """Delivered bytes by time since the start."""

    def __init__(self) -> None:
        self._began = time.monotonic()
        self._began_ms = time.time() * 1000
        self._delivered: list[tuple[float, int]] = []

    @property
    def elapsed(self) -> float:
        """Return the seconds since the start."""
        return time.monotonic() - self._began

    def note(self, message: Message) -> None:
        """Count a message."""
        self._note(message, self.elapsed)

    def note_acknowledged(self, message: Message) -> None:
        """Count a message when it was acknowledged, which its producer may notice later."""
        _, created_ms = message.timestamp()
        self._note(message, (created_ms - self._began_ms) / 1000 + message.latency())

    def _note(self, message: Message, at: float) -> None:
        value = message.value()
        assert value is not None
        self._delivered.append((at, len(value)))

    def between(self, start: float, end: float) -> float:
        """Return the bytes per second in this period."""
        return sum(size for at, size in self._delivered if start <= at < end) / (end - start)


@pytest.mark.slow
def test_producer_is_throttled_to_its_byte_rate(cluster: Cluster) -> None:
    """librdkafka stays within a tenth of 1 MB/s, and every record is delivered in the end."""
    cluster.create_topic("produced")
    limit(cluster, {"client-id": "slow-producer"}, producer_byte_rate=MEGABYTE)
    producer = Producer(
        {
            "bootstrap.servers": cluster.bootstrap,
            "client.id": "slow-producer",
            "batch.size": 65_536,
            "queue.buffering.max.kbytes": 1_000,
        }
    )
    rate, failures, value = Rate(), [], bytes(1000)

    def delivered(error: object, message: Message) -> None:
        if error is not None:
            failures.append(error)
        else:
            rate.note_acknowledged(message)

    while rate.elapsed < 8:
        try:
            producer.produce("produced", value, on_delivery=delivered)
        except BufferError:
            producer.poll(0.01)
        producer.poll(0)
    assert producer.flush(10) == 0
    assert failures == []
    assert rate.between(2, 8) == pytest.approx(MEGABYTE, rel=0.1)


@pytest.mark.slow
def test_consumer_is_throttled_to_its_byte_rate_and_misses_no_record(cluster: Cluster) -> None:
    """Throttled fetches return no records; the records follow later, in order."""
    cluster.create_topic("consumed")
    # A batch is read completely: one of a megabyte would use up the quota of a second.
    settings = {"bootstrap.servers": cluster.bootstrap, "client.id": "fast", "batch.size": 65_536}
    producer = Producer(settings)
    count = 8_000
    for number in range(count):
        producer.produce("consumed", number.to_bytes(1000, "big"))
        producer.poll(0)
    assert producer.flush(10) == 0
    limit(cluster, {"client-id": "slow-consumer"}, consumer_byte_rate=MEGABYTE)
    consumer = Consumer(
        {
            "bootstrap.servers": cluster.bootstrap,
            "client.id": "slow-consumer",
            "group.id": "slow",
            "auto.offset.reset": "earliest",
            "fetch.message.max.bytes": 100_000,
        }
    )
    consumer.subscribe(["consumed"])
    rate, seen = Rate(), []
    while len(seen) < count and rate.elapsed < 30:
        message = consumer.poll(1)
        if message is not None and message.error() is None:
            if not seen:
                rate = Rate()
            rate.note(message)
            seen.append(int.from_bytes(message.value() or b"", "big"))
    seconds = rate.elapsed
    consumer.close()
    assert seen == list(range(count))
    # The first second's share may come at once.
    assert rate.between(0, seconds) == pytest.approx(MEGABYTE, rel=0.35)


def test_other_clients_are_not_slowed_down(cluster: Cluster) -> None:
    """The quota of one client id does not affect another one."""
    limit(cluster, {"client-id": "somebody"}, producer_byte_rate=1.0, request_percentage=0.01)
    cluster.create_topic("others")
    producer = Producer({"bootstrap.servers": cluster.bootstrap, "client.id": "else"})
    rate = Rate()
    for _ in range(3000):
        producer.produce("others", bytes(1000), on_delivery=lambda _, message: rate.note(message))
        producer.poll(0)
    assert producer.flush(10) == 0
    assert rate.elapsed < 3


def test_older_admin_client_is_throttled_by_mutation_quota(cluster: Cluster) -> None:
    """librdkafka's version of CreateTopics cannot be rejected: it is executed, and then throttled."""
    limit(cluster, {"client-id": "careless"}, controller_mutation_rate=1.0)
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap, "client.id": "careless"})
    admin.create_topics([NewTopic("many", 12, 1)])["many"].result()
    rate = Rate()
    admin.create_topics([NewTopic("more", 1, 1)])["more"].result()
    assert rate.elapsed > 1.5


def test_newer_admin_client_gets_throttling_error(cluster: Cluster) -> None:
    """kafka-python gets THROTTLING_QUOTA_EXCEEDED for each topic, and can retry."""
    limit(cluster, {"client-id": "hasty"}, controller_mutation_rate=1.0)
    admin = KafkaAdminClient(bootstrap_servers=cluster.bootstrap, client_id="hasty")
    admin.create_topics([PythonTopic("python-many", 12, 1)])
    with pytest.raises(ThrottlingQuotaExceededError):
        admin.create_topics([PythonTopic("python-more", 1, 1)])
    admin.close()


@pytest.mark.slow
def test_connections_of_an_address_are_limited() -> None:
    """A connection above the limit is closed after a while, and the client connects again."""
    with Cluster() as cluster:
        limit(cluster, {"ip": "127.0.0.1"}, connection_creation_rate=1)
        connected = 0
        for _ in range(30):
            client = AdminClient(
                {"bootstrap.servers": cluster.bootstrap, "socket.timeout.ms": 1000, "log_level": 0}
            )
            try:
                client.list_topics(timeout=0.2)
            except Exception:  # noqa: BLE001 - librdkafka says only that it timed out
                break
            connected += 1
        assert 3 <= connected <= 10


def test_quotas_survive_a_restart() -> None:
    """Quotas are stored in the coordination tree, and apply from the first request on."""
    with Cluster() as cluster:
        limit(cluster, {"user": None, "client-id": "app"}, producer_byte_rate=5.0)
        cluster.restart()
        quotas = cluster.node(cluster.live_brokers[0]).broker.quotas
        actual = quotas.client("ANONYMOUS", "app")
        assert actual is not None and actual.produce is not None
        assert actual.produce.limit == 5


Configs = Callable[..., str]


@pytest.fixture(params=java.VERSIONS)
def configs(cluster: Cluster, request: pytest.FixtureRequest) -> Configs:
    """Return kafka-configs of one version."""

    def run(*arguments: str) -> str:
        bootstrap = ("--bootstrap-server", cluster.bootstrap)
        class_path = java.kafka_class_path(request.param)
        return java.run(class_path, "kafka.admin.ConfigCommand", *bootstrap, *arguments)

    return run


@pytest.mark.slow
@pytest.mark.needs("java")
def test_kafkas_own_tool_sets_shows_and_removes_quotas(configs: Configs) -> None:
    """The tool works for client ids, users, both, defaults, and addresses."""
    client = ("--entity-type", "clients", "--entity-name", "tool client")
    added = configs("--alter", "--add-config", "producer_byte_rate=1024", *client)
    assert "Completed updating config" in added
    assert "producer_byte_rate=1024.0" in configs("--describe", *client)
    both = ("--entity-type", "users", "--entity-name", "alice", "--entity-type", "clients",
            "--entity-default")  # fmt: skip
    configs("--alter", "--add-config", "request_percentage=12.5,consumer_byte_rate=7", *both)
    output = configs("--describe", *both)
    assert "request_percentage=12.5" in output and "consumer_byte_rate=7.0" in output
    address = ("--entity-type", "ips", "--entity-default")
    configs("--alter", "--add-config", "connection_creation_rate=1000", *address)
    assert "connection_creation_rate=1000.0" in configs("--describe", *address)
    configs("--alter", "--delete-config", "producer_byte_rate", *client)
    assert "producer_byte_rate" not in configs("--describe", *client)
    configs("--alter", "--delete-config", "connection_creation_rate", *address)
