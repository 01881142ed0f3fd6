"""Scripts as processes and against a cluster: their imports, their installation, ZooKeeper."""

import json
import os
import re
import select
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from ottla.testing import Cluster
from ottla.tools import main
from ottla_scripts import entry
from ottla_scripts.servers import zookeeper_lookup
from ottla_scripts.table import SCRIPTS
from tests.forks import Forks
from tests.integration.tools.test_mirror import produce

pytestmark = pytest.mark.slow

_PROGRAM = "from ottla_scripts.entry import main; main({!r})"


@pytest.fixture(scope="module")
def forks() -> Iterator[Forks]:
    """Return a process that has imported what each script imports."""
    with Forks("import ottla_scripts.entry, ottla_scripts.table") as running:
        yield running


@pytest.mark.parametrize("name", list(SCRIPTS))
def test_script_imports_only_its_own_modules(name: str, forks: Forks) -> None:
    """Neither click nor an event loop, nor librdkafka without need: each takes as long as the rest."""
    code = (
        "import sys\n"
        "from ottla_scripts import entry\n"
        "from ottla_scripts.table import SCRIPTS\n"
        "from ottla.base.loading import load_module\n"
        f"module = load_module(SCRIPTS[{name!r}].module)\n"
        "print([m for m in ('click', 'asyncio', 'rich', 'numpy', 'ottla.wire.api_keys',\n"
        "       'ottla.server', 'kazoo', 'confluent_kafka') if m in sys.modules])\n"
    )
    # confluent_kafka itself imports asyncio.
    expected = "['asyncio', 'confluent_kafka']" if SCRIPTS[name].moves_records else "[]"
    assert forks.run(code).strip() == expected


def test_install_writes_programs_with_both_names(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The files run with this Python, without PATH."""
    assert main.run(["scripts", "install", str(tmp_path / "bin")]) == 0
    for name in ("kafka-topics", "kafka-topics.sh"):
        done = subprocess.run(
            [tmp_path / "bin" / name, "--version"], capture_output=True, text=True, check=True
        )
        assert done.stdout == "4.3.0\n"
    assert len(os.listdir(tmp_path / "bin")) == 2 * len(SCRIPTS)
    assert main.run(["scripts", "install", str(tmp_path / "bin")]) == 0


@pytest.mark.parametrize("name", ["kafka-topics", "kafka-topics.sh", "kafka.admin.TopicCommand"])
def test_script_is_run_without_being_installed(
    name: str, ottla_cluster: Cluster, capsys: pytest.CaptureFixture[str]
) -> None:
    """`ottla scripts run` passes all words to the script, and returns its exit code."""
    ottla_cluster.create_topic("a")
    words = ["--bootstrap-server", ottla_cluster.bootstrap, "--list"]
    assert main.run(["scripts", "run", name, *words]) == 0
    assert capsys.readouterr().out == "a\n"
    assert main.run(["scripts", "run", name, *words, "--output", "json"]) == 0
    assert json.loads(capsys.readouterr().out) == ["a"]
    # A `--` may separate them.
    assert main.run(["scripts", "run", name, "--", *words]) == 0
    assert capsys.readouterr().out == "a\n"
    assert main.run(["scripts", "run", name, "--help"]) == 1
    assert "--partitions" in capsys.readouterr().err


def test_deletion_through_zookeeper_prints_what_it_printed(
    ottla_cluster: Cluster, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The two lines of Apache Kafka 2.8 and before; with --bootstrap-server nothing is printed."""
    monkeypatch.setattr(zookeeper_lookup, "find_brokers", lambda *connect: ottla_cluster.bootstrap)
    for name in ("first", "second"):
        ottla_cluster.create_topic(name)
    arguments = ["--bootstrap-server", ottla_cluster.bootstrap, "--delete", "--topic", "second"]
    assert entry.run("kafka-topics", arguments) == 0
    assert capsys.readouterr().out == ""
    assert (
        entry.run("kafka-topics", ["--zookeeper", "zk:2181", "--delete", "--topic", "first"]) == 0
    )
    assert capsys.readouterr().out == (
        "Topic first is marked for deletion.\n"
        "Note: This will have no impact if delete.topic.enable is not set to true.\n"
    )


@pytest.mark.parametrize("words", [["--output", "json"], ["--output=json"]])
def test_notice_of_a_former_script_is_no_json(
    words: list[str], ottla_cluster: Cluster, capsys: pytest.CaptureFixture[str]
) -> None:
    """The standard output of kafka-preferred-replica-election has JSON only."""
    arguments = ["--bootstrap-server", ottla_cluster.bootstrap, *words]
    assert entry.run("kafka-preferred-replica-election", arguments) == 0
    (line,) = capsys.readouterr().out.splitlines()
    assert set(json.loads(line)) == {"elected", "not_needed", "failed"}


def test_configurations_are_altered_through_zookeeper(
    ottla_cluster: Cluster, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """As in Apache Kafka 2.8 and before; standard error has the command line of today."""
    monkeypatch.setattr(zookeeper_lookup, "find_brokers", lambda *connect: ottla_cluster.bootstrap)
    ottla_cluster.create_topic("altered")
    arguments = ["--alter", "--topic", "altered", "--config", "retention.ms=1000",
                 "--config", "cleanup.policy=compact,delete"]  # fmt: skip
    assert entry.run("kafka-topics", ["--zookeeper", "zk:2181", *arguments]) == 0
    printed = capsys.readouterr()
    assert printed.out.endswith("\nUpdated config for topic altered.\n")
    modern = printed.err.splitlines()[-1].partition(": kafka-configs ")[2]
    assert modern == (
        f"--bootstrap-server {ottla_cluster.bootstrap} --alter --topic altered "
        "--add-config 'retention.ms=1000,cleanup.policy=[compact,delete]'"
    )
    assert entry.run("kafka-configs", shlex.split(modern)) == 0
    describe = ["--bootstrap-server", ottla_cluster.bootstrap, "--describe", "--topic", "altered"]
    capsys.readouterr()
    assert entry.run("kafka-configs", describe) == 0
    printed = capsys.readouterr()
    assert "retention.ms=1000 " in printed.out
    assert "cleanup.policy=compact,delete " in printed.out
    arguments = ["--alter", "--topic", "altered", "--delete-config", "retention.ms"]
    assert entry.run("kafka-topics", ["--zookeeper", "zk:2181", *arguments]) == 0
    capsys.readouterr()
    assert entry.run("kafka-configs", describe) == 0
    assert "retention.ms" not in capsys.readouterr().out


@pytest.mark.parametrize("selection", [["--node-id=7"], ["--node-id", "7"], []])
def test_daemon_is_started_and_stopped(tmp_path: Path, selection: list[str]) -> None:
    """`kafka-server-stop` ends the broker that `kafka-server-start -daemon` started, and no other."""
    (tmp_path / "server.properties").write_text(
        f"listeners=PLAINTEXT://127.0.0.1:0\nlog.dirs={tmp_path / 'data'}\nnode.id=7\n"
    )

    def run(name: str, *command_line: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-c", _PROGRAM.format(name), *command_line],
            capture_output=True,
            text=True,
            check=False,
            env={**os.environ, "TMPDIR": str(tmp_path)},
        )

    assert run("kafka-server-stop").returncode == 1
    started = run("kafka-server-start", "-daemon", str(tmp_path / "server.properties"),
                  "--override", "num.partitions=2")  # fmt: skip
    assert started.returncode == 0, started.stderr
    number = int(started.stdout.rpartition("process ")[2].split(";")[0])
    descriptor = os.pidfd_open(number)
    try:
        for other in ("--node-id=8", "--process-role=controller"):
            refused = run("kafka-server-stop", other)
            assert (refused.returncode, refused.stdout) == (1, "No kafka server to stop\n")
        stopped = run("kafka-server-stop", *selection)
        assert stopped.returncode == 0, stopped.stdout + stopped.stderr
        # Readable once the process has ended.
        assert select.select([descriptor], [], [], 30)[0]
    finally:
        os.close(descriptor)


def test_console_consumer_ends_with_its_reader(ottla_cluster: Cluster) -> None:
    """The consumer of `kafka-console-consumer … | head -1` says why it ends, and is successful."""
    ottla_cluster.create_topic("lines")
    produce(ottla_cluster, "lines", [b"a", b"b", b"c"])
    reading, writing = os.pipe()
    os.close(reading)
    arguments = ["--bootstrap-server", ottla_cluster.bootstrap, "--topic", "lines",
                 "--from-beginning", "--enable-systest-events"]  # fmt: skip
    try:
        done = subprocess.run(
            [sys.executable, "-c", _PROGRAM.format("kafka-console-consumer"), *arguments],
            stdout=writing,
            stderr=subprocess.PIPE,
            text=True,
            check=True,
        )
    finally:
        os.close(writing)
    first, second = done.stderr.splitlines()
    assert first == "Unable to write to standard out, closing consumer."
    assert re.fullmatch("Processed a total of [1-3] messages", second)


def test_closed_pipe_is_no_error() -> None:
    """The pipeline `kafka-topics … | head -1` ends without a message."""
    program = f'{sys.executable} -c "{_PROGRAM.format("kafka-topics")}"'
    done = subprocess.run(
        f"{program} --version | true", shell=True, capture_output=True, text=True, check=True
    )
    assert done.stderr == ""


def test_access_control_through_zookeeper(
    ottla_cluster: Cluster, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The form of Apache Kafka before 4.0, `--authorizer-properties zookeeper.connect=…`."""
    looked_up: list[object] = []

    def find(*arguments: object) -> str:
        looked_up.append(arguments)
        return ottla_cluster.bootstrap

    monkeypatch.setattr(zookeeper_lookup, "find_brokers", find)
    name = "--authorizer-properties"
    for words in ([f"{name}=zookeeper.connect=zk:1/a"], [name, "zookeeper.connect=zk:1/a"]):
        words += ["--authorizer", "kafka.security.auth.SimpleAclAuthorizer"]
        words += ["--authorizer-properties", "zookeeper.ssl.client.enable=true"]
        # The cluster has no authorizer.
        assert entry.run("kafka-acls", [*words, "--list"]) == 1
        assert "SecurityDisabledException" in capsys.readouterr().out
    assert looked_up == [("zk:1/a", "PLAINTEXT", None)] * 2


def test_features_are_described_by_an_option(
    ottla_cluster: Cluster, capsys: pytest.CaptureFixture[str]
) -> None:
    """The form of Apache Kafka 2.7 to 3.2."""
    at = ["--bootstrap-server", ottla_cluster.bootstrap]
    assert entry.run("kafka-features", [*at, "--describe"]) == 0
    printed = capsys.readouterr()
    assert "use the command describe instead" in printed.err
    assert entry.run("kafka-features", [*at, "describe"]) == 0
    assert capsys.readouterr().out == printed.out
