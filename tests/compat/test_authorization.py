"""A broker with an authorizer: the errors that foreign clients and tools see, and a shared tree."""

import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import confluent_kafka
import kafka
import pytest
from confluent_kafka import KafkaError
from confluent_kafka.admin import AdminClient

from ottla.client import Consumer
from ottla.client.errors import RecordsDenied
from ottla.cluster.zk import tree_login
from ottla.testing import Cluster
from ottla.testing.process import COMMAND, BrokerProcess, run_command
from ottla.tools.broker.processes import free_port
from tests.certificates import self_signed
from tests.compat import java, zookeeper

pytestmark = [
    pytest.mark.compat,
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.slow,
]

AUTHORIZER = "kafka.security.authorizer.AclAuthorizer"
_LOGIN = "org.apache.kafka.common.security.plain.PlainLoginModule required"
# Each round of waiting is a request.
_PATIENCE_S = 20.0


class Guarded:
    """A broker with users; the one without a name, on the plain listener, is a super user."""

    def __init__(self, folder: Path) -> None:
        plain, sasl, tls = (f"127.0.0.1:{port}" for port in java.free_ports(3))
        self.address, self.sasl, self.tls = plain, sasl, tls
        self.server, self.client = self_signed(folder), self_signed(folder, name="client")
        rows = {
            "listeners": f"PLAINTEXT://{plain},SASL_PLAINTEXT://{sasl},SSL://{tls}",
            "log.dirs": str(folder / "data"),
            "sasl.enabled.mechanisms": "PLAIN",
            "listener.name.sasl_plaintext.plain.sasl.jaas.config": (
                f'{_LOGIN} user_ann="a" user_ben="b";'
            ),
            "ssl.keystore.location": str(self.server),
            "ssl.truststore.location": str(self.client.with_suffix(".crt")),
            "ssl.client.auth": "required",
            "ssl.principal.mapping.rules": "RULE:^CN=(.*)$/$1/U,DEFAULT",
            "authorizer.class.name": AUTHORIZER,
            "super.users": "User:ANONYMOUS",
            # A member of a group receives what it may read at its next heartbeat.
            "group.consumer.min.heartbeat.interval.ms": "200",
            "group.consumer.heartbeat.interval.ms": "200",
        }
        self.config = folder / "server.properties"
        self.config.write_text("".join(f"{name}={text}\n" for name, text in rows.items()))

    def settings(self, user: str = "ann") -> dict[str, str]:
        """Return the options of librdkafka."""
        return {
            "bootstrap.servers": self.sasl,
            "security.protocol": "SASL_PLAINTEXT",
            "sasl.mechanism": "PLAIN",
            "sasl.username": user,
            "sasl.password": user[0],
        }

    def certified(self) -> dict[str, str]:
        """Return the options of a client with a certificate."""
        return {
            "bootstrap.servers": self.tls,
            "security.protocol": "SSL",
            "ssl.ca.location": str(self.server.with_suffix(".crt")),
            "ssl.certificate.location": str(self.client),
            "ssl.key.location": str(self.client),
        }

    def acl(self, *arguments: str) -> subprocess.CompletedProcess[bytes]:
        """Run `ottla acl` as the super user."""
        return run_command("acl", *arguments, "-b", self.address)


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Guarded]:
    """Return a broker with the topic orders and no access control list."""
    guarded = Guarded(tmp_path_factory.mktemp("guarded"))
    command = [*COMMAND, "broker", "start", "--config", str(guarded.config)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        assert "ready" in process.stdout.readline()
        run_command("topic", "create", "orders", "-b", guarded.address)
        yield guarded
    finally:
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=30)


def delivery(settings: dict[str, str], topic: str, **options: Any) -> KafkaError | None:
    """Return the error of a record; None if it was written."""
    errors: list[KafkaError | None] = []
    producer = confluent_kafka.Producer({**settings, **options, "message.timeout.ms": "15000"})
    producer.produce(topic, b"x", on_delivery=lambda error, _: errors.append(error))
    assert producer.flush(20) == 0
    return errors[0]


def eventually(is_true: Callable[[], bool]) -> bool:
    """Return True as soon as it is true, False after a while."""
    deadline = time.monotonic() + _PATIENCE_S
    while not is_true():
        if time.monotonic() > deadline:
            return False
    return True


def consumed(settings: dict[str, str], group: str) -> Any:
    """Return the first message or error of a consumer of the topic orders."""
    consumer = confluent_kafka.Consumer(
        {**settings, "group.id": group, "auto.offset.reset": "earliest"}
    )
    consumer.subscribe(["orders"])
    try:
        return consumer.poll(20)
    finally:
        consumer.close()


def test_producer_needs_write(broker: Guarded) -> None:
    """WRITE of the topic is enough for an idempotent producer (KIP-679); other users are refused."""
    error = delivery(broker.settings(), "orders")
    assert error is not None
    assert error.code() == KafkaError.TOPIC_AUTHORIZATION_FAILED
    principal = ("--allow-principal", "User:ann")
    done = broker.acl("add", "--topic", "orders", "--operation", "Write", *principal)
    assert done.returncode == 0, done.stderr
    for is_idempotent in (True, False, False, False):
        options = {"enable.idempotence": is_idempotent}
        assert delivery(broker.settings(), "orders", **options) is None
    error = delivery(broker.settings("ben"), "orders")
    assert error is not None
    assert error.code() == KafkaError.TOPIC_AUTHORIZATION_FAILED
    listed = broker.acl("list", "--topic", "orders")
    assert b"User:ann" in listed.stdout
    assert b"User:ben" not in listed.stdout


def test_consumer_needs_the_topic_and_the_group(broker: Guarded) -> None:
    """A consumer needs READ of the topic and of the group; each refusal has its own error."""
    delivery({"bootstrap.servers": broker.address}, "orders")
    reader = ("--allow-principal", "User:ben")
    assert consumed(broker.settings("ben"), "g").error().code() in (
        KafkaError.GROUP_AUTHORIZATION_FAILED,
        KafkaError.TOPIC_AUTHORIZATION_FAILED,
    )
    broker.acl("add", "--topic", "orders", "--operation", "Read", *reader)
    refused = consumed(broker.settings("ben"), "g")
    assert refused.error().code() == KafkaError.GROUP_AUTHORIZATION_FAILED
    broker.acl("add", "--topic", "orders", "--group", "g", "--consumer", *reader)
    assert consumed(broker.settings("ben"), "g").value() == b"x"
    consumer = confluent_kafka.Consumer({**broker.settings("ben"), "group.id": "g"})
    consumer.assign([confluent_kafka.TopicPartition("orders", 0, 0)])
    assert consumer.poll(20).value() == b"x"
    broker.acl("remove", "--topic", "orders", "--operation", "Read", "--yes", *reader)
    assert eventually(
        lambda: (
            (message := consumer.poll(1)) is not None
            and message.error() is not None
            and message.error().code() == KafkaError.TOPIC_AUTHORIZATION_FAILED
        )
    )
    consumer.close()


def test_consumer_without_group_needs_the_topic_only(broker: Guarded) -> None:
    """The group that librdkafka needs is not used: its refusal is no error. Topics are named."""
    run_command("topic", "create", "events", "-b", broker.address)
    delivery({"bootstrap.servers": broker.address}, "events")
    with Consumer(config=broker.settings("ben"), auto_offset_reset="earliest") as consumer:
        consumer.assign([("events", 0)])
        with pytest.raises(RecordsDenied, match=r"Topic 'events'.* Read") as caught:
            consumer.poll(20)
        assert (caught.value.topic, caught.value.operation) == ("events", "Read")
        reader = ("--allow-principal", "User:ben", "--operation", "Read")
        assert broker.acl("add", "--topic", "events", *reader).returncode == 0
    with Consumer(config=broker.settings("ben"), auto_offset_reset="earliest") as consumer:
        consumer.assign([("events", 0)])
        assert [record.value for record in consumer.poll(20)] == [b"x"]
        # A second request for the coordinator is refused, too.
        assert consumer.poll(1) == []


def test_transaction_needs_its_id(broker: Guarded) -> None:
    """A producer without WRITE of its transactional id cannot begin a transaction."""
    producer = confluent_kafka.Producer({**broker.settings(), "transactional.id": "tx"})
    with pytest.raises(confluent_kafka.KafkaException) as caught:
        producer.init_transactions(10)
    assert caught.value.args[0].code() == KafkaError.TRANSACTIONAL_ID_AUTHORIZATION_FAILED


def test_kafka_python_raises_the_error_of_the_topic(broker: Guarded) -> None:
    """A refused topic is an error at once, not a wait for metadata."""
    producer = kafka.KafkaProducer(
        bootstrap_servers=broker.sasl,
        security_protocol="SASL_PLAINTEXT",
        sasl_mechanism="PLAIN",
        sasl_plain_username="ben",
        sasl_plain_password="b",
        max_block_ms=5000,
    )
    with pytest.raises(kafka.errors.TopicAuthorizationFailedError):
        producer.send("secret", b"x").get(10)
    producer.close()


def test_user_without_rights_sees_no_topics(broker: Guarded) -> None:
    """A list of all topics has only those that may be described."""
    admin = AdminClient(broker.settings("ben"))
    broker.acl("add", "--deny-principal", "User:ben", "--topic", "hidden")
    run_command("topic", "create", "hidden", "-b", broker.address)
    assert "hidden" not in admin.list_topics(timeout=10).topics


def test_expression_of_a_member_leaves_out_hidden_topics(broker: Guarded) -> None:
    """Groups of the consumer protocol with the same expression read the topics that their members
    may describe, as in Kafka: others for ann than for ben.
    """
    topics = {"ann": "shown-1", "ben": "shown-2"}
    for user, name in topics.items():
        run_command("topic", "create", name, "-b", broker.address)
        delivery({"bootstrap.servers": broker.address}, name)
        reader = ("--consumer", "--allow-principal", f"User:{user}")
        broker.acl("add", "--topic", name, "--group", f"expression-{user}", *reader)
    for user, name in topics.items():
        consumer = confluent_kafka.Consumer(
            {
                **broker.settings(user),
                "group.id": f"expression-{user}",
                "group.protocol": "consumer",
                "auto.offset.reset": "earliest",
            }
        )
        consumer.subscribe(["^shown-.*"])
        try:
            message = consumer.poll(20)
            assert (message.error(), message.topic()) == (None, name)
            assert {partition.topic for partition in consumer.assignment()} == {name}
        finally:
            consumer.close()


def test_rules_return_the_principal_of_a_certificate(broker: Guarded) -> None:
    """Lists name the user that ssl.principal.mapping.rules makes of CN=client."""
    run_command("topic", "create", "certified", "-b", broker.address)
    error = delivery(broker.certified(), "certified")
    assert error is not None
    assert error.code() == KafkaError.TOPIC_AUTHORIZATION_FAILED
    right = ("--allow-principal", "User:CLIENT", "--operation", "Write")
    broker.acl("add", "--topic", "certified", *right)
    assert delivery(broker.certified(), "certified") is None


def test_change_reaches_every_broker() -> None:
    """A list that one broker has written is enforced by another."""
    options = {"authorizer.class.name": AUTHORIZER, "allow.everyone.if.no.acl.found": "true"}
    with Cluster(brokers=3, options=options) as cluster:
        cluster.create_topic("t", partitions=3, replication_factor=1)
        settings = {"bootstrap.servers": cluster.bootstrap}
        assert delivery(settings, "t") is None
        deny = ("acl", "add", "--deny-principal", "User:*", "--operation", "Write")
        run_command(*deny, "--topic", "t", "-b", cluster.bootstrap)

        def all_refuse() -> bool:
            errors = [delivery(settings, "t", partitioner="random") for _ in range(3)]
            return all(errors)

        assert eventually(all_refuse)


def test_brokers_need_no_entry() -> None:
    """They have proven to belong to the cluster, so that a new cluster works without super users."""
    options = {"authorizer.class.name": AUTHORIZER}
    with Cluster(brokers=3, options=options) as cluster:
        metadata = AdminClient({"bootstrap.servers": cluster.bootstrap}).list_topics(timeout=10)
        assert len(metadata.brokers) == 3
        error = delivery({"bootstrap.servers": cluster.bootstrap}, "t")
        assert error is not None
        assert error.code() == KafkaError.TOPIC_AUTHORIZATION_FAILED


@pytest.mark.needs("java")
def test_java_tools_see_the_errors(broker: Guarded, tmp_path: Path) -> None:
    """`kafka-consumer-groups` and `kafka-topics` report the refusal of the broker."""
    config = tmp_path / "client.properties"
    config.write_text(
        "security.protocol=SASL_PLAINTEXT\nsasl.mechanism=PLAIN\n"
        f'sasl.jaas.config={_LOGIN} username="ben" password="b";\n'
    )
    class_path = java.kafka_class_path("4.3.0")
    groups = ("--bootstrap-server", broker.sasl, "--command-config", str(config), "--describe")
    command = "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand"
    done = java.tool(class_path, command, *groups, "--group", "other")
    assert "GroupAuthorizationException" in done.output + done.errors
    topics = ("--bootstrap-server", broker.sasl, "--command-config", str(config), "--create")
    done = java.tool(class_path, "org.apache.kafka.tools.TopicCommand", *topics, "--topic", "new")
    assert "Authorization failed" in done.output + done.errors


@pytest.mark.needs("java")
def test_kafka_acls_of_apache_kafka_changes_the_tree(tmp_path: Path) -> None:
    """`kafka-acls` of version 3.9.2 writes into the tree itself; the broker enforces that, and the
    tool lists the entries that the broker has written.
    """
    tree = f"127.0.0.1:{free_port(is_any=True)}"
    options = {
        "coordination.listener": tree,
        "authorizer.class.name": AUTHORIZER,
        "allow.everyone.if.no.acl.found": "true",
    }
    with BrokerProcess(tmp_path / "data", options=options) as ours:
        settings = {"bootstrap.servers": ours.bootstrap}
        run_command("topic", "create", "t", "-b", ours.bootstrap)
        assert delivery(settings, "t") is None
        login = tree_login.java_options(f"{tmp_path}/data")
        where = ("--authorizer-properties", f"zookeeper.connect={tree}")
        who = ("--deny-principal", "User:ANONYMOUS", "--operation", "Write")
        _run_acl_command(login, *where, "--add", *who, "--topic", "t")
        assert eventually(lambda: delivery(settings, "t") is not None)
        prefixed = ("--group", "team-", "--pattern-type", "prefixed", "--operation", "Read")
        run_command("acl", "add", *prefixed, "--allow-principal", "User:ann", "-b", ours.bootstrap)
        output = _run_acl_command(login, *where, "--list")
        assert "name=t, patternType=LITERAL" in output
        assert "name=team-, patternType=PREFIXED" in output
        _run_acl_command(login, *where, "--remove", "--force", "--topic", "t")
        assert eventually(lambda: delivery(settings, "t") is None)


def _run_acl_command(java_option: str, *words: str) -> str:
    """Run Apache Kafka's tool in a JVM with an option; return its output."""
    program, *line = java.command(java.kafka_class_path(), "kafka.admin.AclCommand", *words)
    done = subprocess.run(
        [program, java_option, *line], capture_output=True, text=True, timeout=60, check=True
    )
    return done.stdout


@pytest.mark.needs("java")
def test_apache_kafka_beside_ours_enforces_the_same_lists(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A broker of version 3.9.2 in the same tree reads what ours has written, and the reverse."""
    login = tree_login.java_options(f"{tmp_path}/tree")
    monkeypatch.setenv("KAFKA_OPTS", login)
    address = f"127.0.0.1:{free_port(is_any=True)}"
    rules = {"authorizer.class.name": AUTHORIZER, "allow.everyone.if.no.acl.found": "true"}
    rows = [f"{name}={value}" for name, value in rules.items()]
    tree = f"{address}/shared"
    theirs = zookeeper.Broker(tmp_path / "theirs", tree, options=rows)
    theirs.java_options = (login,)
    options = {**rules, "zookeeper.connect": tree, "node.id": "7"}
    options |= {"inter.broker.authentication": "none", "offsets.topic.replication.factor": "1"}
    server = BrokerProcess(tmp_path / "tree", options={"coordination.listener": address})
    ours = BrokerProcess(tmp_path / "ours", options=options)
    try:
        with server:
            # The first one: it stops if a feature of the tree is unknown to it.
            theirs.start()
            with ours:
                for number, (writer, reader) in enumerate(
                    [(ours.bootstrap, theirs.bootstrap), (theirs.bootstrap, ours.bootstrap)]
                ):
                    pattern = ("--topic", f"t{number}-", "--pattern-type", "prefixed")
                    done = run_command(
                        "acl", "add", *pattern, "--deny-principal", "User:ann", "-b", writer
                    )
                    assert done.returncode == 0, done.stderr

                    def is_listed(name: str = f"t{number}-", reader: str = reader) -> bool:
                        listed = run_command("acl", "list", "-b", reader).stdout
                        return name.encode() in listed

                    assert eventually(is_listed)
    finally:
        theirs.kill()
