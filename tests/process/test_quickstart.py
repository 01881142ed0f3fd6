"""The quickstarts of Apache Kafka 4.3 and 3.9 as shell scripts, with the scripts of Ottla.

Only the ports and the folders differ from Apache Kafka's files, and the programs that its page runs
in other terminals run in the background.
"""

import os
import subprocess
from pathlib import Path

import pytest

from ottla.tools.broker.processes import free_port
from ottla.tools.main import run

pytestmark = pytest.mark.slow

# The settings of config/server.properties of 4.3.0, which has further comments.
_KRAFT = """
process.roles=broker,controller
node.id=1
controller.quorum.bootstrap.servers=localhost:9093
listeners=PLAINTEXT://:9092,CONTROLLER://:9093
inter.broker.listener.name=PLAINTEXT
advertised.listeners=PLAINTEXT://localhost:9092,CONTROLLER://localhost:9093
controller.listener.names=CONTROLLER
listener.security.protocol.map=CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,SSL:SSL,\
SASL_PLAINTEXT:SASL_PLAINTEXT,SASL_SSL:SASL_SSL
num.network.threads=3
num.io.threads=8
socket.send.buffer.bytes=102400
socket.receive.buffer.bytes=102400
socket.request.max.bytes=104857600
log.dirs=/tmp/kraft-combined-logs
num.partitions=1
num.recovery.threads.per.data.dir=1
offsets.topic.replication.factor=1
share.coordinator.state.topic.replication.factor=1
share.coordinator.state.topic.min.isr=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
log.retention.hours=168
log.segment.bytes=1073741824
log.retention.check.interval.ms=300000
# Ottla's own: the listeners are open to other machines.
allow.insecure.listeners=true
"""
# The files of 3.9.2.
_ZOOKEEPER = """
dataDir=/tmp/zookeeper
clientPort=2181
maxClientCnxns=0
admin.enableServer=false
"""
_ON_ZOOKEEPER = """
broker.id=0
num.network.threads=3
num.io.threads=8
socket.send.buffer.bytes=102400
socket.receive.buffer.bytes=102400
socket.request.max.bytes=104857600
log.dirs=/tmp/kafka-logs
num.partitions=1
num.recovery.threads.per.data.dir=1
offsets.topic.replication.factor=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
log.retention.hours=168
log.retention.check.interval.ms=300000
zookeeper.connect=localhost:2181
zookeeper.connection.timeout.ms=18000
group.initial.rebalance.delay.ms=0
listeners=PLAINTEXT://localhost:9092
"""
_FORMAT = """
KAFKA_CLUSTER_ID="$(bin/kafka-storage.sh random-uuid)"
bin/kafka-storage.sh format --standalone -t $KAFKA_CLUSTER_ID -c config/server.properties
"""
_START_ZOOKEEPER = """
bin/zookeeper-server-start.sh config/zookeeper.properties >zookeeper.log 2>&1 &
until bin/zookeeper-shell.sh localhost:2181 ls / >/dev/null 2>&1; do sleep 0.2; done
"""
_EVENTS = """
bin/kafka-server-start.sh config/server.properties >server.log 2>&1 &
until grep -q 'is ready' server.log; do kill -0 $! && sleep 0.1; done
bin/kafka-topics.sh --create --topic quickstart-events --bootstrap-server localhost:9092
bin/kafka-topics.sh --describe --topic quickstart-events --bootstrap-server localhost:9092
bin/kafka-console-producer.sh --topic quickstart-events --bootstrap-server localhost:9092 <<END
This is my first event
This is my second event
END
bin/kafka-console-consumer.sh --topic quickstart-events --from-beginning --max-messages 2 \
--bootstrap-server localhost:9092
"""
_CLUSTER_ID = """
test "$(bin/kafka-cluster.sh cluster-id --bootstrap-server localhost:9092)" = \
"Cluster ID: $KAFKA_CLUSTER_ID"
bin/kafka-storage.sh info -c config/server.properties
"""
_STOP = """
bin/kafka-server-stop.sh
wait %bin/kafka-server-start.sh
"""
_STOP_ZOOKEEPER = """
bin/zookeeper-server-stop.sh
wait
"""


class _Folder:
    """A folder like a release of Apache Kafka, with ports of its own."""

    def __init__(self, folder: Path, files: dict[str, str]) -> None:
        self.folder = folder
        ports = {name: str(free_port(is_any=True)) for name in ("9092", "9093", "2181")}
        self._words = {**ports, "/tmp/": f"{folder}/"}
        (folder / "config").mkdir()
        for name, text in files.items():
            (folder / "config" / name).write_text(self._adapt(text))

    def run(self, *parts: str) -> "subprocess.CompletedProcess[str]":
        """Run a shell script that ends at the first error."""
        lines = "set -e\ntrap 'kill $(jobs -p) 2>/dev/null || true' EXIT\n" + "".join(parts)
        # The process ids of servers are in the folder for temporary files.
        environment = os.environ | {"TMPDIR": str(self.folder)}
        return subprocess.run(
            ["bash", "-c", self._adapt(lines)], capture_output=True, text=True, timeout=120,
            cwd=self.folder, env=environment,
        )  # fmt: skip

    def _adapt(self, text: str) -> str:
        for word, other in self._words.items():
            text = text.replace(word, other)
        return text


def _install(folder: Path) -> None:
    assert run(["scripts", "install", str(folder / "bin")]) == 0


_EXPECTED = (
    "Created topic quickstart-events.\n",
    "Topic: quickstart-events\t",
    "This is my first event\nThis is my second event\n",
)


@pytest.mark.compat
def test_quickstart_of_apache_kafka_4(tmp_path: Path) -> None:
    """The cluster has the id that was generated, and every script succeeds."""
    _install(tmp_path)
    kafka = _Folder(tmp_path, {"server.properties": _KRAFT})
    done = kafka.run(_FORMAT, _EVENTS, _CLUSTER_ID, _STOP)
    assert done.returncode == 0, done.stdout + done.stderr + (tmp_path / "server.log").read_text()
    directory = f"{tmp_path}/kraft-combined-logs"
    expected = (
        f"Formatting dynamic metadata voter directory {directory} with metadata.version 4.3-IV0.\n",
        *_EXPECTED,
        f"Found log directory:\n  {directory}\n",
        "Found metadata: {cluster.id=",
    )
    positions = [done.stdout.find(text) for text in expected]
    assert -1 not in positions, done.stdout
    assert positions == sorted(positions)
    assert "Ottla has stopped" in (tmp_path / "server.log").read_text()


@pytest.mark.compat
@pytest.mark.needs("zookeeper")
def test_quickstart_of_apache_kafka_3_with_zookeeper(tmp_path: Path) -> None:
    """The broker registers in the ZooKeeper; both stop."""
    _install(tmp_path)
    files = {"zookeeper.properties": _ZOOKEEPER, "server.properties": _ON_ZOOKEEPER}
    kafka = _Folder(tmp_path, files)
    done = kafka.run(_START_ZOOKEEPER, _EVENTS, _STOP, _STOP_ZOOKEEPER)
    assert done.returncode == 0, done.stdout + done.stderr + (tmp_path / "server.log").read_text()
    positions = [done.stdout.find(text) for text in _EXPECTED]
    assert -1 not in positions, done.stdout
    assert positions == sorted(positions)


def test_server_in_the_foreground_is_stopped_by_its_script(tmp_path: Path) -> None:
    """`kafka-server-stop` also ends a server that was started without `-daemon`, and no other."""
    _install(tmp_path)
    kafka = _Folder(tmp_path, {"server.properties": _KRAFT})
    start = "bin/kafka-server-start.sh config/server.properties >server.log 2>&1 &\n"
    ready = "until grep -q 'is ready' server.log; do kill -0 $! && sleep 0.1; done\n"
    refused = "bin/kafka-server-stop.sh --node-id=2 && exit 9\nkill -0 $!\n"
    done = kafka.run(start, ready, refused, "bin/kafka-server-stop.sh --node-id=1\nwait $!\n")
    assert done.returncode == 0, done.stdout + done.stderr + (tmp_path / "server.log").read_text()
    assert done.stdout == "No kafka server to stop\n"
