"""Listeners of Ottla with TLS and SASL: foreign clients, and what they may not do."""

import asyncio
import signal
import socket
import ssl
import struct
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import aiokafka
import confluent_kafka
import kafka
import pytest

from ottla.base.errors import ApiError, ErrorCode
from ottla.client import AdminClient, Consumer, Producer
from ottla.client.admin.scram import ScramMechanism, ScramUpsertion
from ottla.client.errors import NotReachable
from ottla.testing import Cluster
from ottla.testing.process import COMMAND
from tests.certificates import self_signed
from tests.compat import java

pytestmark = [
    pytest.mark.compat,
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.slow,
]

PASSWORD = "a,b=c"
NAMES = ("PLAINTEXT", "SASL_PLAINTEXT", "SASL_SSL", "SSL")
_JAAS = "org.apache.kafka.common.security.plain.PlainLoginModule required"
WAYS = [
    ("SASL_PLAINTEXT", "PLAIN"),
    ("SASL_PLAINTEXT", "SCRAM-SHA-512"),
    ("SASL_SSL", "PLAIN"),
    ("SASL_SSL", "SCRAM-SHA-256"),
    ("SSL", ""),
]
each_way = pytest.mark.parametrize(("protocol", "mechanism"), WAYS)
PREFIX = struct.Struct(">i")


class Secured:
    """A broker process with a listener of each protocol; ann has the same password everywhere."""

    def __init__(self, folder: Path) -> None:
        self.ports = dict(zip(NAMES, java.free_ports(len(NAMES)), strict=True))
        self.server, self.client = self_signed(folder), self_signed(folder, name="client")
        rows = {
            "listeners": ",".join(
                f"{name}://127.0.0.1:{port}" for name, port in self.ports.items()
            ),
            "log.dirs": str(folder / "data"),
            "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256,SCRAM-SHA-512",
            "ssl.keystore.location": str(self.server),
            "ssl.truststore.location": str(self.client.with_suffix(".crt")),
            "listener.name.ssl.ssl.client.auth": "required",
        }
        for name in ("sasl_plaintext", "sasl_ssl"):
            key = f"listener.name.{name}.plain.sasl.jaas.config"
            rows[key] = f'{_JAAS} user_ann="{PASSWORD}";'
        self.config = folder / "server.properties"
        self.config.write_text("".join(f"{name}={text}\n" for name, text in rows.items()))

    def address(self, protocol: str) -> str:
        """Return the address of a listener."""
        return f"127.0.0.1:{self.ports[protocol]}"

    def settings(
        self, protocol: str, mechanism: str, *, user: str = "ann", password: str = PASSWORD
    ) -> dict[str, str]:
        """Return the options of librdkafka."""
        settings = {"bootstrap.servers": self.address(protocol), "security.protocol": protocol}
        if protocol.endswith("SSL"):
            settings["ssl.ca.location"] = str(self.server.with_suffix(".crt"))
        if protocol == "SSL":
            settings["ssl.certificate.location"] = settings["ssl.key.location"] = str(self.client)
        if mechanism:
            settings |= {"sasl.mechanism": mechanism, "sasl.username": user}
            settings["sasl.password"] = password
        return settings

    def tls(self) -> ssl.SSLContext:
        """Return the context of a client with a certificate."""
        context = ssl.create_default_context(cafile=str(self.server.with_suffix(".crt")))
        context.load_cert_chain(self.client)
        return context

    def of_python(self, protocol: str, mechanism: str) -> dict[str, Any]:
        """Return the arguments of kafka-python and aiokafka."""
        settings: dict[str, Any] = {
            "bootstrap_servers": self.address(protocol),
            "security_protocol": protocol,
        }
        if protocol.endswith("SSL"):
            settings["ssl_context"] = self.tls()
        if mechanism:
            settings |= {"sasl_mechanism": mechanism, "sasl_plain_username": "ann"}
            settings["sasl_plain_password"] = PASSWORD
        return settings


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Secured]:
    """Return a broker as its command runs it, with the event loop of production."""
    secured = Secured(tmp_path_factory.mktemp("secured"))
    command = [*COMMAND, "broker", "start", "--config", str(secured.config)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        assert "ready" in process.stdout.readline()
        with AdminClient(bootstrap_servers=secured.address("PLAINTEXT")) as admin:
            for mechanism in ScramMechanism:
                upsertion = ScramUpsertion("ann", mechanism, PASSWORD)
                admin.alter_user_scram_credentials([upsertion])
        yield secured
    finally:
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=30)


@each_way
def test_librdkafka_writes_and_reads(broker: Secured, protocol: str, mechanism: str) -> None:
    """Small and large records arrive: a megabyte is sent in many pieces."""
    settings, topic = broker.settings(protocol, mechanism), f"c-{protocol}-{mechanism}"
    values = [b"x" * size for size in (1, 100_000, 900_000)]
    producer = confluent_kafka.Producer(settings)
    for value in values:
        producer.produce(topic, value)
    assert producer.flush(20) == 0
    consumer = confluent_kafka.Consumer(
        {**settings, "group.id": topic, "auto.offset.reset": "earliest"}
    )
    consumer.subscribe([topic])
    messages = [consumer.poll(20) for _ in values]
    consumer.close()
    assert [message.value() for message in messages if message is not None] == values


@each_way
def test_clients_in_python_write_and_read(broker: Secured, protocol: str, mechanism: str) -> None:
    """kafka-python writes, aiokafka reads."""
    settings, topic = broker.of_python(protocol, mechanism), f"p-{protocol}-{mechanism}"
    producer = kafka.KafkaProducer(**settings)
    producer.send(topic, b"x" * 300_000).get(20)
    producer.close()

    async def read() -> bytes:
        consumer = aiokafka.AIOKafkaConsumer(topic, auto_offset_reset="earliest", **settings)
        async with consumer, asyncio.timeout(20):
            return bytes((await consumer.getone()).value)

    assert asyncio.run(read()) == b"x" * 300_000


@each_way
def test_clients_of_ottla_write_and_read(broker: Secured, protocol: str, mechanism: str) -> None:
    """Producer, consumer and AdminClient take the same options."""
    settings, topic = broker.settings(protocol, mechanism), f"o-{protocol}-{mechanism}"
    with AdminClient(settings) as admin:
        admin.create_topic(topic)
        assert topic in {row.name for row in admin.list_topics()}
    with Producer(settings) as producer:
        producer.send(topic, b"value").result(20)
    with Consumer(config=settings, auto_offset_reset="earliest") as consumer:
        consumer.assign([(topic, 0)])
        assert [record.value for record in consumer.poll(20)] == [b"value"]


@pytest.mark.needs("kcat")
@each_way
def test_kcat_lists_the_cluster_at_the_same_listener(
    broker: Secured, protocol: str, mechanism: str
) -> None:
    """A client stays on the listener that it has chosen."""
    options = [f"-X{name}={text}" for name, text in broker.settings(protocol, mechanism).items()]
    done = subprocess.run(["kcat", "-L", *options], capture_output=True, timeout=30, check=False)
    assert f"broker 1 at {broker.address(protocol)}" in done.stdout.decode(), done.stderr


@pytest.mark.slow
@pytest.mark.needs("java")
@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-512"])
def test_tools_of_apache_kafka_log_in(broker: Secured, tmp_path: Path, mechanism: str) -> None:
    """The Java client authenticates over TLS."""
    module = "plain.Plain" if mechanism == "PLAIN" else "scram.Scram"
    config = tmp_path / "client.properties"
    config.write_text(
        f"security.protocol=SASL_SSL\nsasl.mechanism={mechanism}\nssl.truststore.type=PEM\n"
        f"ssl.truststore.location={broker.server.with_suffix('.crt')}\n"
        f"sasl.jaas.config=org.apache.kafka.common.security.{module}LoginModule required "
        f'username="ann" password="{PASSWORD}";\n'
    )
    command = java.command(
        java.client_class_path("4.3.0"),
        "org.apache.kafka.tools.TopicCommand",
        *("--bootstrap-server", broker.address("SASL_SSL"), "--command-config", str(config)),
        *("--create", "--topic", f"java-{mechanism}"),
    )
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert f"Created topic java-{mechanism}." in done.stdout, done.stderr


@pytest.mark.parametrize(
    ("user", "password"), [("ann", "wrong"), ("eve", PASSWORD), ("ann", PASSWORD.upper())]
)
@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"])
def test_wrong_password_is_refused(
    broker: Secured, mechanism: str, user: str, password: str
) -> None:
    """The sentence is the same for an unknown user."""
    settings = broker.settings("SASL_PLAINTEXT", mechanism, user=user, password=password)
    sentence = (
        "Authentication failed: Invalid username or password"
        if mechanism == "PLAIN"
        else f"invalid credentials with SASL mechanism {mechanism}"
    )
    with pytest.raises(ApiError, match=sentence) as caught:
        AdminClient(settings).list_topics()
    assert caught.value.code is ErrorCode.SASL_AUTHENTICATION_FAILED


def test_password_that_was_changed_counts_for_new_connections(broker: Secured) -> None:
    """So does a credential that was deleted."""
    with AdminClient(bootstrap_servers=broker.address("PLAINTEXT")) as admin:
        for password in ("first", "second"):
            row = ScramUpsertion("carl", ScramMechanism.SCRAM_SHA_256, password)
            admin.alter_user_scram_credentials([row])
            settings = broker.settings(
                "SASL_PLAINTEXT", "SCRAM-SHA-256", user="carl", password=password
            )
            with AdminClient(settings) as carl:
                assert carl.describe_cluster().cluster_id
    old = broker.settings("SASL_PLAINTEXT", "SCRAM-SHA-256", user="carl", password="first")
    with pytest.raises(ApiError, match="invalid credentials with SASL mechanism"):
        AdminClient(old).list_topics()


def test_quota_of_a_user_counts_where_the_user_logs_in(broker: Secured) -> None:
    """The user of a certificate is its subject."""
    with AdminClient(bootstrap_servers=broker.address("PLAINTEXT")) as admin:
        admin.alter_client_quotas({"user": "ann"}, {"producer_byte_rate": 1000.0})
        admin.alter_client_quotas({"user": "CN=client"}, {"producer_byte_rate": 1000.0})
        try:
            for protocol, mechanism, is_slow in (
                ("PLAINTEXT", "", False),
                ("SASL_PLAINTEXT", "SCRAM-SHA-256", True),
                ("SASL_PLAINTEXT", "PLAIN", True),
                ("SSL", "", True),
            ):
                settings = broker.settings(protocol, mechanism)
                assert (throttled_ms(settings) > 0) is is_slow
        finally:
            for user in ("ann", "CN=client"):
                admin.alter_client_quotas({"user": user}, delete=["producer_byte_rate"])


def throttled_ms(settings: dict[str, str]) -> int:
    """Return for how long a producer of a few kilobytes is throttled."""
    times: list[int] = []
    producer = confluent_kafka.Producer(
        {**settings, "throttle_cb": lambda event: times.append(int(event.throttle_time * 1000))}
    )
    producer.produce("throttled", b"x" * 20_000)
    producer.flush(20)
    producer.poll(0.3)
    return max(times, default=0)


# -- a client that is not authenticated -----------------------------------------------------------


def frame(key: int, version: int, body: bytes) -> bytes:
    """Return a request with a header of version 1."""
    header = struct.pack(">hhih", key, version, 7, 1) + b"x"
    return PREFIX.pack(len(header) + len(body)) + header + body


def answered(line: socket.socket) -> bytes:
    """Return the next response; empty if the connection is closed."""
    try:
        size = line.recv(4, socket.MSG_WAITALL)
        return line.recv(*PREFIX.unpack(size), socket.MSG_WAITALL) if size else b""
    except ConnectionResetError:
        return b""


def connected(broker: Secured) -> socket.socket:
    """Return a connection to the listener with SASL."""
    return socket.create_connection(("127.0.0.1", broker.ports["SASL_PLAINTEXT"]), 20)


HANDSHAKE_0 = frame(17, 0, b"\0\x05PLAIN")
GOOD = b"\0ann\0" + PASSWORD.encode()


def test_request_before_authentication_closes_the_connection(broker: Secured) -> None:
    """Metadata would name the topics."""
    for begin in (b"", HANDSHAKE_0):
        with connected(broker) as line:
            line.sendall(begin)
            assert not begin or answered(line)
            line.sendall(frame(3, 1, b"\xff\xff\xff\xff"))
            assert answered(line) == b""


def test_clients_of_before_kafka_1_0_log_in(broker: Secured) -> None:
    """After version 0 of the handshake, the messages come without a header (KIP-152)."""
    with connected(broker) as line:
        line.sendall(HANDSHAKE_0)
        assert answered(line)[4:6] == b"\0\0"
        line.sendall(PREFIX.pack(len(GOOD)) + GOOD)
        assert line.recv(4, socket.MSG_WAITALL) == b"\0\0\0\0"
        line.sendall(frame(3, 1, b"\0\0\0\0"))
        assert answered(line)[:4] == b"\0\0\0\x07"
    with connected(broker) as line:
        line.sendall(HANDSHAKE_0)
        answered(line)
        line.sendall(PREFIX.pack(len(GOOD) + 1) + GOOD + b"!")
        assert answered(line) == b""


def test_large_request_before_authentication_closes_the_connection(broker: Secured) -> None:
    """A stranger cannot make the broker keep memory; an authenticated client sends large ones."""
    with connected(broker) as line:
        line.sendall(PREFIX.pack(524_289) + b"\0" * 100)
        assert answered(line) == b""


def test_mechanism_that_the_listener_lacks_is_refused(broker: Secured) -> None:
    """The error lists those that it has; the connection is closed after it, as in Kafka."""
    with connected(broker) as line:
        line.sendall(frame(17, 1, b"\0\x06GSSAPI"))
        response = answered(line)
        assert answered(line) == b""
    assert response[4:6] == struct.pack(">h", ErrorCode.UNSUPPORTED_SASL_MECHANISM)
    assert b"SCRAM-SHA-512" in response


def test_failed_login_is_answered_late_and_ends_the_connection(broker: Secured) -> None:
    """So that passwords cannot be tried quickly; a second attempt needs another connection."""
    with connected(broker) as line:
        line.sendall(frame(17, 1, b"\0\x05PLAIN"))
        answered(line)
        wrong = b"\0ann\0wrong"
        step = frame(36, 0, PREFIX.pack(len(wrong)) + wrong)
        good = frame(36, 0, PREFIX.pack(len(GOOD)) + GOOD)
        line.settimeout(0.05)
        line.sendall(step + good)
        with pytest.raises(TimeoutError):
            line.recv(1)
        line.settimeout(20)
        response = answered(line)
        assert response[4:6] == struct.pack(">h", ErrorCode.SASL_AUTHENTICATION_FAILED)
        assert answered(line) == b""


def test_client_without_a_certificate_is_refused(broker: Secured) -> None:
    """ssl.client.auth=required: the handshake of TLS fails, or the first request."""
    settings = {
        "bootstrap.servers": broker.address("SSL"),
        "security.protocol": "SSL",
        "ssl.ca.location": str(broker.server.with_suffix(".crt")),
    }
    with pytest.raises((NotReachable, ApiError)):
        AdminClient(settings, default_api_timeout_ms=3000).list_topics()


def test_plain_text_on_a_listener_with_tls_is_refused(broker: Secured) -> None:
    """The connection is closed, and others are served."""
    with socket.create_connection(("127.0.0.1", broker.ports["SASL_SSL"]), 20) as line:
        line.sendall(frame(3, 1, b"\xff\xff\xff\xff"))
        while line.recv(1000):
            # An alert of TLS.
            continue
    with AdminClient(broker.settings("SASL_SSL", "PLAIN")) as admin:
        assert admin.describe_cluster().cluster_id


@pytest.mark.parametrize("protocol", ["SASL_PLAINTEXT", "SSL", "SASL_SSL"])
def test_brokers_replicate_over_a_secured_listener(tmp_path: Path, protocol: str) -> None:
    """Brokers prove their identity by the secret of the cluster, on any listener."""
    chain = self_signed(tmp_path)
    options = {
        "listeners": f"PLAINTEXT://127.0.0.1:0,{protocol}://127.0.0.1:0",
        "security.inter.broker.protocol": protocol,
        "sasl.enabled.mechanisms": "SCRAM-SHA-256",
        "ssl.keystore.location": str(chain),
        "ssl.truststore.location": str(chain.with_suffix(".crt")),
    }
    with Cluster(brokers=3, options=options) as cluster:
        cluster.create_topic("replicated", partitions=3, replication_factor=3)
        with Producer(bootstrap_servers=cluster.bootstrap, acks="all") as producer:
            for number in range(3):
                producer.send("replicated", b"value", partition=number).result(30)
        cluster.wait_in_sync("replicated")
        cluster.kill(cluster.leader("replicated", 0))
        with Producer(bootstrap_servers=cluster.bootstrap, acks="all") as producer:
            assert producer.send("replicated", b"value", partition=0).result(30).offset == 1


@pytest.mark.needs("java")
def test_kafka_configs_renews_the_certificate_of_a_listener(broker: Secured) -> None:
    """The other listener keeps its own; a file that cannot be used is refused with the reason."""
    option = "listener.name.sasl_ssl.ssl.keystore.location"
    folder = broker.server.parent
    new = self_signed(folder, name="renewed")
    words = ("--bootstrap-server", broker.address("PLAINTEXT"), "--entity-type", "brokers")

    def alter(*changes: str) -> str:
        done = java.tool(
            java.kafka_class_path(),
            "kafka.admin.ConfigCommand",
            *(*words, "--entity-name", "1", "--alter", *changes),
        )
        return done.output + done.errors

    def shown(protocol: str) -> str:
        return ssl.get_server_certificate(("127.0.0.1", broker.ports[protocol]))

    former = broker.server.with_suffix(".crt").read_text()
    refused = alter("--add-config", f"{option}={folder}/none.pem")
    assert f"{folder}/none.pem cannot be read: No such file or directory" in refused
    for change, certificate in (
        (("--add-config", f"{option}={new}"), new.with_suffix(".crt").read_text()),
        (("--delete-config", option), former),
    ):
        assert "Completed updating config for broker 1." in alter(*change)
        deadline = time.monotonic() + 10
        while shown("SASL_SSL") != certificate:
            assert time.monotonic() < deadline
