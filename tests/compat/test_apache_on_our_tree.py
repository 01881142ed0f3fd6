"""An Apache Kafka 3.9.2 broker that uses Ottla's tree instead of a ZooKeeper."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from ottla.cluster.zk import tree_login
from ottla.testing.process import BrokerProcess, run_command
from ottla.tools.broker.processes import free_port
from tests.compat import java, zookeeper

pytestmark = [
    pytest.mark.compat,
    pytest.mark.needs("java"),
    pytest.mark.slow,
]


def _login(folder: Path) -> str:
    return tree_login.java_options(f"{folder}/ours")


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The address of a tree that one of our brokers serves; its broker has the id 7."""
    monkeypatch.setenv("KAFKA_OPTS", _login(tmp_path))
    address = f"127.0.0.1:{free_port(is_any=True)}"
    options = {"coordination.listener": address, "node.id": "7"}
    with BrokerProcess(tmp_path / "ours", options=options):
        yield address


def test_apache_kafka_runs_on_our_tree(tree: str, tmp_path: Path) -> None:
    """It registers, becomes controller, creates a topic, and leaves when it stops."""
    broker = zookeeper.Broker(tmp_path / "theirs", f"{tree}/apache")
    broker.java_options = (_login(tmp_path),)
    broker.start()
    try:
        where = ("--bootstrap-server", broker.bootstrap)
        topic_command = "org.apache.kafka.tools.TopicCommand"
        java.run(
            broker.class_path,
            topic_command,
            *where,
            "--create",
            "--topic",
            "t",
            "--partitions",
            "3",
        )
        output = java.run(broker.class_path, topic_command, *where, "--describe", "--topic", "t")
        assert output.count("Leader: 1") == 3
    finally:
        broker.stop()
    shell = ("zookeeper", "shell", "--connect", f"{tree}/apache")
    assert run_command(*shell, "ls", "/brokers/topics").stdout == b"[t]\n"
    assert run_command(*shell, "ls", "/brokers/ids").stdout == b"[]\n"
