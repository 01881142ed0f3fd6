"""Test clusters with TLS and users, and the settings that they offer to clients."""

import asyncio
from pathlib import Path
from typing import Any

import aiokafka
import confluent_kafka
import kafka
import kafka.errors
import pytest

from ottla.client import AdminClient
from ottla.client.config.properties import write_properties
from ottla.testing import Cluster
from ottla.testing.process import run_command
from ottla.testing.secured import PROTOCOLS, ClientSettings

pytestmark = [
    pytest.mark.compat,
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
]
AUTHORIZER = {
    "authorizer.class.name": "kafka.security.authorizer.AclAuthorizer",
    # The user of the listener without security, which the cluster's own functions use.
    "super.users": "User:ANONYMOUS;User:admin",
}


@pytest.fixture(params=PROTOCOLS)
def ottla_security(request: pytest.FixtureRequest) -> str:
    """Run each test with each protocol."""
    return str(request.param)


@pytest.fixture
def settings(ottla_cluster: Cluster) -> ClientSettings:
    """Return the settings of anna, in a cluster with the topic t."""
    ottla_cluster.create_topic("t")
    return ottla_cluster.client_settings("anna")


def test_confluent_kafka_writes_and_reads(settings: ClientSettings) -> None:
    """With the certificate of the cluster's authority, and the user's certificate or password."""
    producer = confluent_kafka.Producer(settings.librdkafka)
    producer.produce("t", b"value", b"key")
    assert producer.flush(10) == 0
    consumer = confluent_kafka.Consumer(
        settings.librdkafka | {"group.id": "g", "auto.offset.reset": "earliest"}
    )
    try:
        consumer.subscribe(["t"])
        message = consumer.poll(20)
        assert message is not None
        assert (message.error(), message.value()) == (None, b"value")
    finally:
        consumer.close()


def test_kafka_python_writes_and_reads(settings: ClientSettings) -> None:
    """The host name of the certificate is checked."""
    producer = kafka.KafkaProducer(**settings.kafka_python)
    producer.send("t", b"value").get(timeout=10)
    producer.close()
    consumer = kafka.KafkaConsumer(
        "t",
        auto_offset_reset="earliest",
        group_id="g",
        consumer_timeout_ms=20_000,
        **settings.kafka_python,
    )
    assert next(consumer).value == b"value"
    consumer.close()


def test_aiokafka_writes(settings: ClientSettings) -> None:
    """It takes a context of TLS in place of files."""

    async def send() -> Any:
        producer = aiokafka.AIOKafkaProducer(**settings.aiokafka)
        await producer.start()
        try:
            return await producer.send_and_wait("t", b"value")
        finally:
            await producer.stop()

    assert asyncio.run(send()).offset == 0


def test_ottlas_clients_and_commands_connect(settings: ClientSettings, tmp_path: Path) -> None:
    """With the settings of librdkafka, and with a properties file as Java's clients have it."""
    for options in (settings.librdkafka, settings.properties):
        with AdminClient(options) as admin:
            assert [topic.name for topic in admin.list_topics()] == ["t"]
    file = tmp_path / "client.properties"
    file.write_text(write_properties(settings.properties))
    done = run_command(*("topic", "list", "-b", settings.bootstrap, "--command-config", str(file)))
    assert done.returncode == 0, done.stderr
    assert b"t" in done.stdout


def test_client_without_these_settings_is_refused(settings: ClientSettings) -> None:
    """Neither without TLS, nor with another password, nor without the user's certificate."""
    arguments = settings.kafka_python
    wrong: dict[str, Any] = {"bootstrap_servers": settings.bootstrap}
    if settings.password:
        wrong = arguments | {"sasl_plain_password": "wrong"}
    elif settings.certificate is not None:
        wrong = {
            name: value
            for name, value in arguments.items()
            if name not in ("ssl_certfile", "ssl_keyfile")
        }
    with pytest.raises(kafka.errors.KafkaError):
        kafka.KafkaAdminClient(**wrong, bootstrap_timeout_ms=3000, request_timeout_ms=3000)


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_users_have_their_names_for_the_authorizer(protocol: str) -> None:
    """The user of a certificate is its common name; each has its own rights."""
    with Cluster(options=AUTHORIZER, security=protocol) as cluster:
        cluster.create_topic("t")
        with AdminClient(cluster.client_settings("admin").librdkafka) as admin:
            assert [topic.name for topic in admin.list_topics()] == ["t"]
        with AdminClient(cluster.client_settings("anna").librdkafka) as anna:
            assert anna.list_topics() == []


def test_three_brokers_know_a_new_user_at_once() -> None:
    """A client may connect to any of them, also after a restart."""
    with Cluster(brokers=3, security="sasl_ssl") as cluster:
        first = cluster.client_settings("anna")
        for _ in range(2):
            for address in first.bootstrap.split(","):
                settings = first.librdkafka | {"bootstrap.servers": address}
                with AdminClient(settings) as admin:
                    assert admin.list_topics() == []
            cluster.restart()
        assert cluster.client_settings("anna") == first
        assert cluster.client_settings("ben").password != first.password
