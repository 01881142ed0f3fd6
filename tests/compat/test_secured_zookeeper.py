"""Brokers on a real ZooKeeper with users, and the migration of its nodes, as by Apache Kafka."""

import asyncio
import json
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from ottla.client import AdminClient
from ottla.cluster.zk import acls
from ottla.cluster.zk.acls import NodeAcl
from ottla.cluster.zk.live import NO_OPTIONS, LiveSession
from ottla.cluster.zk.port import NoAuth
from ottla.testing.process import BrokerProcess
from ottla.tools import main
from tests.certificates import self_signed
from tests.compat import java, zookeeper
from tests.compat.scripts.test_replay import Done, run_script

pytestmark = [
    pytest.mark.compat,
    pytest.mark.slow,
    pytest.mark.needs("java"),
]
Lists = dict[str, list[NodeAcl]]
OPEN = [NodeAcl(acls.ALL, "world", "anyone")]
OWN = [NodeAcl(acls.ALL, "sasl", "kafka")]
READABLE = [*OWN, NodeAcl(acls.READ, "world", "anyone")]
SCRIPT = "zookeeper-security-migration"
MIGRATOR = "kafka.admin.ZkSecurityMigrator"


class Ensemble:
    """A ZooKeeper with the user `kafka`; `login` is the option of Java for it.

    Each test has paths of its own.
    """

    def __init__(self, address: str, folder: Path) -> None:
        self.address = address
        self.login = zookeeper.login_options(folder, "kafka", "secret")

    def migrate_with_kafka(self, direction: str, path: str) -> tuple[int, str]:
        """Run Apache Kafka's tool; return its exit code and its output."""
        words = ("--zookeeper.acl", direction, "--zookeeper.connect", f"{self.address}{path}")
        return run_migrator(*words, java_options=(self.login,))

    def migrate(
        self, direction: str, path: str, monkeypatch: pytest.MonkeyPatch
    ) -> tuple[int, str]:
        """Run our script as the user; return its exit code and its output."""
        with monkeypatch.context() as patch:
            patch.setenv("KAFKA_OPTS", self.login)
            words = ("--zookeeper.acl", direction, "--zookeeper.connect", f"{self.address}{path}")
            done = run_script([SCRIPT, *words], b"", patch)
        return done.code, done.out

    def lists(self, path: str, monkeypatch: pytest.MonkeyPatch) -> Lists:
        """Return the lists of all nodes below a path, as their owner sees them."""
        with monkeypatch.context() as patch:
            patch.setenv("KAFKA_OPTS", self.login)
            return asyncio.run(_lists(f"{self.address}{path}"))


def run_migrator(*words: str, java_options: tuple[str, ...] = ()) -> tuple[int, str]:
    """Run Apache Kafka's tool; return its exit code and its output."""
    done = java.tool(java.kafka_class_path(), MIGRATOR, *words, java_options=java_options)
    return done.code, done.output


def run(capsys: pytest.CaptureFixture[str], *words: str) -> Done:
    """Run one `ottla` command in this process."""
    capsys.readouterr()
    code = main.run(words)
    return Done(code, *capsys.readouterr())


async def _lists(connect: str, options: Mapping[str, str] = NO_OPTIONS) -> Lists:
    session = await LiveSession.begin(connect, tls_options=options)
    found: Lists = {}
    waiting = ["/"]
    for path in waiting:
        found[path] = await session.acl(path)
        below = await session.children(path)
        waiting += [f"{path.rstrip('/')}/{name}" for name in below if name != "zookeeper"]
    await session.close()
    return found


@pytest.fixture(scope="module")
def ensemble(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ensemble]:
    """A ZooKeeper with a user."""
    folder = tmp_path_factory.mktemp("zookeeper")
    with zookeeper.running(folder / "server", {"kafka": "secret"}) as address:
        yield Ensemble(address, folder)


@pytest.fixture(autouse=True)
def _no_user(monkeypatch: pytest.MonkeyPatch) -> None:
    """This process does not connect as the user."""
    monkeypatch.delenv("KAFKA_OPTS", raising=False)


def create_topic(broker: BrokerProcess, name: str) -> None:
    """Create a topic with one partition."""
    with AdminClient(bootstrap_servers=broker.bootstrap) as admin:
        admin.create_topic(name, partitions=1)


async def _stranger(connect: str) -> None:
    """Assert that a session without a user reads all but secrets, and writes nothing."""
    session = await LiveSession.begin(connect)
    await session.get("/config/topics/first")
    for path in ("/config/users", "/config/brokers", "/ottla/broker_secret"):
        with pytest.raises(NoAuth):
            await session.get(path)
    for path in ("/config", "/brokers/topics/first", "/controller_epoch"):
        with pytest.raises(NoAuth):
            await session.set(path, b"changed")
    with pytest.raises(NoAuth):
        await session.create("/brokers/topics/mine")
    await session.close()


def test_cluster_is_secured_and_opened_again(
    ensemble: Ensemble,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """The migration secures what the broker has created before; the broker continues to work."""
    connect = f"{ensemble.address}/kafka"
    broker = BrokerProcess(tmp_path / "data", options={"zookeeper.connect": connect})
    with broker:
        create_topic(broker, "first")
        assert all(entries == OPEN for entries in ensemble.lists("/kafka", monkeypatch).values())
        broker.stop()
        monkeypatch.setenv("KAFKA_OPTS", ensemble.login)
        broker.options["zookeeper.set.acl"] = "true"
        broker.start()
        create_topic(broker, "second")
        lists = ensemble.lists("/kafka", monkeypatch)
        assert (lists["/brokers/topics/first"], lists["/brokers/topics/second"]) == (OPEN, READABLE)
        assert lists["/brokers/topics/second/partitions/0/state"] == READABLE
        secured = run(capsys, "zookeeper", "secure", "--connect", connect, "--output", "json")
        assert (secured.code, secured.errors) == (0, "")
        lists = ensemble.lists("/kafka", monkeypatch)
        assert json.loads(secured.out) == {"nodes": len(lists), "target": connect}
        assert all(entries in (OWN, READABLE) for entries in lists.values())
        assert lists["/ottla/broker_secret"] == OWN
        monkeypatch.delenv("KAFKA_OPTS")
        asyncio.run(_stranger(connect))
        refused = run(capsys, "zookeeper", "shell", "--connect", connect, "set", "/config", "x")
        assert refused.errors == "ottla: Insufficient permission : /config\n"
        create_topic(broker, "third")
        monkeypatch.setenv("KAFKA_OPTS", ensemble.login)
        broker.restart()
        create_topic(broker, "fourth")
        broker.stop()
        del broker.options["zookeeper.set.acl"]
        broker.start()
        opened = run(capsys, "zookeeper", "unsecure", "--connect", connect)
        assert (opened.code, opened.errors) == (0, "")
        assert opened.out.startswith("Opened ")
        assert all(entries == OPEN for entries in ensemble.lists("/kafka", monkeypatch).values())
        broker.stop()
        monkeypatch.delenv("KAFKA_OPTS")
        broker.start()
        create_topic(broker, "fifth")


def test_broker_without_the_user_does_not_start_on_a_secured_tree(
    ensemble: Ensemble, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The error names the node and the variable to set."""
    options = {"zookeeper.connect": f"{ensemble.address}/user", "zookeeper.set.acl": "true"}
    monkeypatch.setenv("KAFKA_OPTS", ensemble.login)
    with BrokerProcess(tmp_path / "first", options=options) as broker:
        broker.stop()
    monkeypatch.delenv("KAFKA_OPTS")
    del options["zookeeper.set.acl"]
    with pytest.raises(Exception, match=r"NoAuth: /.*: ZooKeeper denies access.*set.*KAFKA_OPTS"):
        BrokerProcess(tmp_path / "first", options=options).start()


def test_lists_are_those_of_apache_kafka(
    ensemble: Ensemble, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both tools set the same lists and print the same, on a tree of either broker."""
    theirs = zookeeper.Broker(
        tmp_path / "theirs", f"{ensemble.address}/theirs", options=["zookeeper.set.acl=true"]
    )
    theirs.java_options = (ensemble.login,)
    theirs.start()
    topic_command = "org.apache.kafka.tools.TopicCommand"
    words = ("--bootstrap-server", theirs.bootstrap, "--create", "--topic", "first")
    java.run(theirs.class_path, topic_command, *words)
    theirs.stop()
    monkeypatch.setenv("KAFKA_OPTS", ensemble.login)
    options = {"zookeeper.connect": f"{ensemble.address}/ours", "zookeeper.set.acl": "true"}
    with BrokerProcess(tmp_path / "ours", options=options) as broker:
        create_topic(broker, "first")
        broker.stop()
    of_kafka, of_ottla = (ensemble.lists(path, monkeypatch) for path in ("/theirs", "/ours"))
    common = of_kafka.keys() & of_ottla.keys()
    assert {path: of_ottla[path] for path in common} == {path: of_kafka[path] for path in common}
    assert "/brokers/topics/first/partitions/0/state" in common
    for path in ("/theirs", "/ours"):
        assert ensemble.migrate_with_kafka("unsecure", path)[0] == 0
        for direction in ("secure", "unsecure"):
            expected = ensemble.migrate_with_kafka(direction, path)
            lists = ensemble.lists(path, monkeypatch)
            other = "unsecure" if direction == "secure" else "secure"
            assert ensemble.migrate_with_kafka(other, path)[0] == 0
            assert ensemble.migrate(direction, path, monkeypatch) == expected
            # Apache Kafka does not know Ottla's own nodes.
            found = ensemble.lists(path, monkeypatch)
            own = [name for name in lists if name.startswith("/ottla")]
            assert [found.pop(name) for name in own] == [
                OWN if direction == "secure" else OPEN for _ in own
            ]
            assert found == {name: lists[name] for name in lists if name not in own}


def test_secured_nodes_need_a_cluster_at_the_path(
    ensemble: Ensemble, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A wrong path is refused, and nothing is created there."""
    monkeypatch.setenv("KAFKA_OPTS", ensemble.login)
    before = ensemble.lists("", monkeypatch)
    for verb in ("secure", "unsecure"):
        done = run(capsys, "zookeeper", verb, "--connect", f"{ensemble.address}/none")
        assert (done.code, done.out) == (1, "")
        assert "/none contains no cluster: name the path of" in done.errors
    assert ensemble.lists("", monkeypatch) == before
    assert "/none" not in before


@pytest.mark.filterwarnings("ignore:ssl.OP_NO_SSL:DeprecationWarning")
def test_certificates_replace_the_login(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """With TLS, broker and script need no JAAS file; the script reads Apache Kafka's file."""
    own, client = self_signed(tmp_path), self_signed(tmp_path, name="client")
    # ZooKeeper recognizes the format by the name.
    trusted = own.with_suffix(".crt").rename(tmp_path / "trusted.pem")
    server = zookeeper.Server(tmp_path / "zookeeper", certificates=(own, client))
    options = {
        "zookeeper.ssl.client.enable": "true",
        "zookeeper.clientCnxnSocket": "org.apache.zookeeper.ClientCnxnSocketNetty",
        "zookeeper.ssl.keystore.location": str(client),
        "zookeeper.ssl.truststore.location": str(trusted),
    }
    file = tmp_path / "tls.properties"
    file.write_text("".join(f"{name}={value}\n" for name, value in options.items()))
    connect = f"{server.secure_address}/kafka"
    secured = {"zookeeper.connect": connect, "zookeeper.set.acl": "true", **options}
    server.start()
    try:
        server.await_start()
        with BrokerProcess(tmp_path / "data", options=secured) as broker:
            create_topic(broker, "first")
            words = ("--zookeeper.connect", connect, "--zk-tls-config-file", str(file))
            # Creates the roots that are missing, of which both tools warn otherwise.
            assert run_migrator("--zookeeper.acl", "secure", *words)[0] == 0
            for direction in ("unsecure", "secure"):
                line = ("--zookeeper.acl", direction, *words)
                done = run_script([SCRIPT, *line], b"", monkeypatch)
                lists = asyncio.run(_lists(connect, options))
                assert (done.code, done.out) == run_migrator(*line)
                assert asyncio.run(_lists(connect, options)) == lists
            assert lists["/config/users"] == [NodeAcl(acls.ALL, "x509", "CN=client")]
            create_topic(broker, "second")
            verb = ("zookeeper", "secure", "--connect", connect, "--tls-config", str(file))
            assert run(capsys, *verb).code == 0
            shell = ("zookeeper-shell", connect, "-zk-tls-config-file", str(file))
            shown = run_script([*shell, "getAcl", "/config/users"], b"", monkeypatch)
            assert shown.out == "'x509,'CN=client\n: cdrwa\n"
    finally:
        server.kill()
