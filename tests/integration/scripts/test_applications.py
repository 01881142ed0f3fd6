"""The scripts of MirrorMaker and ZooKeeper with running brokers."""

import json
import re
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

from ottla.base.errors import ApiError, ErrorCode
from ottla.client.admin import offsets
from ottla.operations.mirror.copying import Mirror
from ottla.testing import Cluster
from ottla.tools.replica.reading import Content, Replica
from ottla_scripts import entry
from ottla_scripts.replicas import verification
from ottla_scripts.servers import daemon, zookeeper_server
from tests.integration.tools.test_mirror import produce, read_all, records_of

pytestmark = pytest.mark.slow

_WORKER = "bootstrap.servers=broker:9092\nvalue.converter=org.apache.kafka.connect.storage.StringConverter\n"
_SOURCE = "name=in\nconnector.class=FileStreamSource\nfile=input.txt\ntopic=lines\n"
_SINK = "name=out\nconnector.class=org.apache.kafka.connect.file.FileStreamSinkConnector\nfile=output\ntopics=lines, more\n"


@pytest.fixture(name="folder")
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the current folder, which has the configuration of a worker and two connectors."""
    monkeypatch.chdir(tmp_path)
    for name, text in (("worker", _WORKER), ("source", _SOURCE), ("sink", _SINK)):
        (tmp_path / f"{name}.properties").write_text(text)
    return tmp_path


def test_mirror_maker_copies_matching_topics(
    ottla_cluster: Cluster, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """It copies between clusters with the files of Apache Kafka's tool, and shows its position."""
    produce(ottla_cluster, "orders", [b"a", b"b"])
    produce(ottla_cluster, "other", [b"c"])
    consumer, producer = tmp_path / "consumer.properties", tmp_path / "producer.properties"
    with Cluster() as target:
        consumer.write_text(
            f"bootstrap.servers={ottla_cluster.bootstrap}\ngroup.id=mirror\nauto.offset.reset=earliest\n"
        )
        producer.write_text(f"bootstrap.servers={target.bootstrap}\n")
        arguments = ["--consumer.config", str(consumer), "--producer.config", str(producer)]
        assert (
            entry.run("kafka-mirror-maker", [*arguments, "--whitelist", "ord.*", "--until-end"])
            == 0
        )
        assert "use --include instead" in capsys.readouterr().err
        assert read_all(target, "orders") == [b"a", b"b"]
        with target.admin() as brokers:
            assert "other" not in {topic.name for topic in brokers.metadata().topics}
    with ottla_cluster.admin() as brokers:
        assert offsets.committed_offsets(brokers, "mirror")["orders", 0].offset == 2


@pytest.mark.parametrize(
    ("extra", "sentence"),
    [
        (["--include", "o", "--message.handler", "a.B"], "Java class"),
        (["--include", "o", "--abort.on.send.failure", "false"], "would lose records"),
        (["--include", "o"], "name another --target-topic"),
        ([], "include must be specified"),
        (
            ["--include", "o", "--num.streams", "many"],
            "Cannot parse argument 'many' of option num.streams",
        ),
        (["--include", "o", "--num.streams", "0"], "--num.streams must be at least 1"),
        (
            ["--include", "o", "--offset.commit.interval.ms", "-1"],
            "--offset.commit.interval.ms must be at least 1",
        ),
        (["--include", "o", "--abort.on.send.failure", "perhaps"], "must be true or false"),
    ],
)
def test_mirror_maker_refuses(
    ottla_cluster: Cluster,
    tmp_path: Path,
    extra: list[str],
    sentence: str,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """The sentence says what is wrong, and nothing is created."""
    produce(ottla_cluster, "o", [b"a"])
    file = tmp_path / "client.properties"
    file.write_text(f"bootstrap.servers={ottla_cluster.bootstrap}\n")
    arguments = ["--consumer.config", str(file), "--producer.config", str(file), *extra]
    assert entry.run("kafka-mirror-maker", arguments) == 1
    assert sentence in capsys.readouterr().err
    with ottla_cluster.admin() as brokers:
        assert [topic.name for topic in brokers.metadata().topics] == ["o"]


@pytest.mark.parametrize(
    ("file", "line", "sentence"),
    [
        ("consumer", "no.such.option=1", "no.such.option"),
        ("producer", "acks=2", "acks"),
        ("consumer", "auto.offset.reset=smallest", "Invalid value smallest"),
        ("consumer", "auto.offset.reset=none", "use earliest or latest"),
    ],
)
def test_mirror_maker_refuses_settings_before_topics_are_created(
    ottla_cluster: Cluster,
    tmp_path: Path,
    file: str,
    line: str,
    sentence: str,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """The sentence names the option, and the target is unchanged."""
    produce(ottla_cluster, "orders", [b"a"])
    with Cluster() as target:
        files = _mirror_files(ottla_cluster, target, tmp_path)
        path = tmp_path / f"{file}.properties"
        path.write_text(path.read_text() + line + "\n")
        assert entry.run("kafka-mirror-maker", [*files, "--include", "orders", "--until-end"]) == 1
        assert sentence in capsys.readouterr().err
        assert target.topics() == []


def test_mirror_maker_reads_files_of_earlier_versions(
    ottla_cluster: Cluster, tmp_path: Path
) -> None:
    """Options of the clients before Kafka 2.0 have no effect, as in later versions of the tool."""
    produce(ottla_cluster, "orders", [b"a"])
    with Cluster() as target:
        former = (
            "zookeeper.connect=zookeeper:2181\nconsumer.timeout.ms=-1\ndual.commit.enabled=false\n"
        )
        files = _mirror_files(ottla_cluster, target, tmp_path, former)
        path = tmp_path / "producer.properties"
        path.write_text(path.read_text() + "producer.type=sync\nblock.on.buffer.full=true\n")
        assert entry.run("kafka-mirror-maker", [*files, "--include", "orders", "--until-end"]) == 0
        assert read_all(target, "orders") == [b"a"]


def test_replica_verification_reports_until_stopped(
    ottla_cluster: Cluster, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The lines are the same as with Apache Kafka's tool, with the offset that was reached."""
    produce(ottla_cluster, "o", [b"a", b"b"])

    def stop(self: verification.Verification) -> None:
        report(self)
        signal.raise_signal(signal.SIGINT)

    report = verification.Verification.report_if_due
    monkeypatch.setattr(verification.Verification, "report_if_due", stop)
    arguments = [
        "--broker-list",
        ottla_cluster.bootstrap,
        "--time",
        "-2",
        "--report-interval-ms",
        "0",
    ]
    assert entry.run("kafka-replica-verification", arguments) == 130
    started, lag = capsys.readouterr().out.splitlines()
    moment = r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d{3}: "
    assert re.fullmatch(f"{moment}verification process is started", started)
    assert re.fullmatch(
        f"{moment}max lag is 0 for partition o-0 at offset 2 among 1 partitions", lag
    )


def test_replica_verification_ends_at_a_difference(
    ottla_cluster: Cluster, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Replicas whose batches end at different offsets end the script with exit code 1."""
    produce(ottla_cluster, "o", [b"a", b"b"])
    produce(ottla_cluster, "o", [b"c"])
    with ottla_cluster.admin() as brokers:
        whole = Replica(brokers, 1, "o", 0).read(0)
        parts = {1: whole, 2: Content(0, whole.high_watermark, whole.batches[1:])}
        monkeypatch.setattr(Replica, "read", lambda self, offset: parts[self.broker])
        # A busy producer sends the first two records one by one.
        first, second = (batch.last_offset for batch in whole.batches[:2])
        sentence = f"replica 1's offset {first} doesn't match replica 2's offset {second}"
        with pytest.raises(verification._Different, match=sentence):
            compared = verification.Verification.__new__(verification.Verification)
            compared._at = {("o", 0): 0}
            compared._replicas = {("o", 0): [Replica(brokers, n, "o", 0) for n in (1, 2)]}
            compared._compare(("o", 0))


def test_replica_verification_waits_for_a_replica_that_cannot_be_read(
    ottla_cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its position stays, and the lag is that to the other replica's high watermark."""
    produce(ottla_cluster, "o", [b"a", b"b"])
    with ottla_cluster.admin() as brokers:
        whole = Replica(brokers, 1, "o", 0).read(0)

        def read(self: Replica, offset: int) -> Content:
            if self.broker == 2:
                raise ApiError(ErrorCode.NOT_LEADER_OR_FOLLOWER)
            return whole

        monkeypatch.setattr(Replica, "read", read)
        compared = verification.Verification.__new__(verification.Verification)
        compared._at = {("o", 0): 0}
        compared._replicas = {("o", 0): [Replica(brokers, n, "o", 0) for n in (1, 2)]}
        assert compared._compare(("o", 0)) == 2
        assert compared._at == {("o", 0): 0}


def test_zookeeper_server_runs_with_its_own_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """-daemon starts the server with the given file, and zookeeper-server-stop ends only that one.

    Its output is in LOG_DIR, which is created as Apache Kafka's scripts create it.
    """
    (tmp_path / "zookeeper.properties").write_text("clientPort=0\n")
    sleeper = (sys.executable, "-c", "import signal; signal.pause()", "QuorumPeerMain")
    monkeypatch.setattr(zookeeper_server, "java_command", lambda: list(sleeper))
    monkeypatch.setattr(daemon.ServerKind, "pid_file", tmp_path / "pids")
    monkeypatch.setenv("LOG_DIR", str(tmp_path / "new" / "logs"))
    started: list[subprocess.Popen[bytes]] = []

    class Remembered(subprocess.Popen[bytes]):
        def __init__(self, *arguments: object, **options: object) -> None:
            super().__init__(*arguments, **options)  # type: ignore[call-overload]
            started.append(self)

    monkeypatch.setattr(daemon.subprocess, "Popen", Remembered)
    arguments = ["-daemon", str(tmp_path / "zookeeper.properties")]
    assert entry.run("zookeeper-server-start", arguments) == 0
    assert "ZooKeeper started as process" in capsys.readouterr().out
    assert len(list((tmp_path / "new" / "logs").iterdir())) == 1
    # Linux shows the command line only once the program has been loaded.
    loaded = threading.Event()
    while not zookeeper_server.ZOOKEEPER.is_process(started[0].pid):
        loaded.wait(0.01)
    assert entry.run("zookeeper-server-stop", []) == 0
    assert started[0].wait(10) == -signal.SIGTERM
    assert entry.run("zookeeper-server-stop", []) == 1
    assert capsys.readouterr().out == "No zookeeper server to stop\n"


@pytest.mark.parametrize("topics", ["one,two", "one|two", "'one, two'"])
def test_replica_verification_of_several_topics(
    topics: str,
    ottla_cluster: Cluster,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A comma in --topics-include separates alternatives, as in Apache Kafka's IncludeList."""
    for name in ("one", "two", "three"):
        produce(ottla_cluster, name, [b"a"])
    report = verification.Verification.report_if_due

    def stop(self: verification.Verification) -> None:
        report(self)
        signal.raise_signal(signal.SIGINT)

    monkeypatch.setattr(verification.Verification, "report_if_due", stop)
    line = ["--broker-list", ottla_cluster.bootstrap, "--report-interval-ms", "0"]
    assert entry.run("kafka-replica-verification", [*line, "--topics-include", topics]) == 130
    assert capsys.readouterr().out.endswith("among 2 partitions\n")


@pytest.mark.parametrize(
    ("name", "words", "sentence"),
    [
        ("kafka-replica-verification", ["--topics-include", "["], "[ is an invalid regex\n"),
        ("kafka-mirror-maker", ["--include", "["], "[ is an invalid regex.\n"),
    ],
)
def test_pattern_of_topics_that_cannot_be_compiled(
    name: str,
    words: list[str],
    sentence: str,
    ottla_cluster: Cluster,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """The sentence names the pattern; only one of Apache Kafka's tools omits the full stop."""
    file = tmp_path / "client.properties"
    file.write_text(f"bootstrap.servers={ottla_cluster.bootstrap}\n")
    addresses = (
        ["--consumer.config", str(file), "--producer.config", str(file)]
        if name == "kafka-mirror-maker"
        else ["--broker-list", ottla_cluster.bootstrap]
    )
    assert entry.run(name, [*addresses, *words]) == 1
    assert sentence in capsys.readouterr().err


def _mirror_files(source: Cluster, target: Cluster, folder: Path, extra: str = "") -> list[str]:
    """Write the files of a mirror, and return its options for them."""
    consumer, producer = folder / "consumer.properties", folder / "producer.properties"
    consumer.write_text(
        f"bootstrap.servers={source.bootstrap}\ngroup.id=mirror\nauto.offset.reset=earliest\n{extra}"
    )
    producer.write_text(f"bootstrap.servers={target.bootstrap}\n")
    return ["--consumer.config", str(consumer), "--producer.config", str(producer)]


def test_mirror_maker_with_transactions_translates_groups(
    ottla_cluster: Cluster, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A second run copies only what is new, and a group continues in the copy where it was."""
    produce(ottla_cluster, "orders", [b"a", b"b"])
    with Cluster() as target, ottla_cluster.admin() as source, target.admin() as copies:
        line = [*_mirror_files(ottla_cluster, target, tmp_path), "--include", "orders", "--until-end",
                "--exactly-once", "--groups", "billing,audit", "--output", "json"]  # fmt: skip
        offsets.commit_offsets(source, "billing", {("orders", 0): offsets.CommittedOffset(2)})
        assert entry.run("kafka-mirror-maker", line) == 0
        assert json.loads(capsys.readouterr().out) == {"records": 2, "groups": {"billing": 1, "audit": 0}}  # fmt: skip
        produce(ottla_cluster, "orders", [b"c"])
        assert entry.run("kafka-mirror-maker", line) == 0
        assert json.loads(capsys.readouterr().out)["records"] == 1
        assert read_all(target, "orders") == [b"a", b"b", b"c"]
        committed = offsets.committed_offsets(copies, "billing")["orders", 0].offset
        later = [row.value for row in records_of(target, "orders") if row.offset >= committed]
        assert later == [b"c"]


def test_mirror_maker_copies_topics_that_match_later(
    ottla_cluster: Cluster,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It starts without a topic; one that is created later is copied from its beginning."""
    step = Mirror._copy_some
    steps: list[int] = []

    def then_create_and_stop(self: Mirror, *arguments: Any) -> None:
        step(self, *arguments)
        if not steps:
            produce(ottla_cluster, "orders-2", [b"a", b"b"])
        steps.append(self.copied)
        if self.copied == 2:
            signal.raise_signal(signal.SIGINT)

    monkeypatch.setattr(Mirror, "_copy_some", then_create_and_stop)
    with Cluster() as target:
        files = _mirror_files(ottla_cluster, target, tmp_path, "metadata.max.age.ms=100\n")
        assert entry.run("kafka-mirror-maker", [*files, "--include", "orders.*"]) == 130
        assert read_all(target, "orders-2") == [b"a", b"b"]
    errors = capsys.readouterr().err
    assert "No topic matches orders.* yet." in errors
    assert "Copying orders-2-0, too, from the beginning." in errors


def test_ctrl_c_ends_a_mirror_whose_target_is_down(
    ottla_cluster: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It does not wait for acknowledgements: the next run copies those records again."""
    produce(ottla_cluster, "orders", [b"a"])
    store = Mirror._store
    with Cluster() as target:

        def then_lose_the_target(self: Mirror, producer: Any) -> None:
            target.kill(1)
            signal.raise_signal(signal.SIGINT)
            store(self, producer)

        monkeypatch.setattr(Mirror, "_store", then_lose_the_target)
        files = _mirror_files(ottla_cluster, target, tmp_path)
        assert entry.run("kafka-mirror-maker", [*files, "--include", "orders"]) == 130
        monkeypatch.undo()
        target.restart(1)
        line = [*files, "--include", "orders", "--until-end"]
        assert entry.run("kafka-mirror-maker", line) == 0
        assert set(read_all(target, "orders")) == {b"a"}


def test_positions_of_other_mirrors_are_not_mirrored(
    ottla_cluster: Cluster, tmp_path: Path
) -> None:
    """In a chain of mirrors, each keeps its own positions; others would mislead it."""
    produce(ottla_cluster, "orders", [b"a", b"b"])
    ottla_cluster.create_topic("orders.mirror-offsets")
    with Cluster() as target:
        files = _mirror_files(ottla_cluster, target, tmp_path)
        line = [*files, "--include", ".*", "--until-end"]
        assert entry.run("kafka-mirror-maker", line) == 0
        assert target.topics() == ["orders", "orders.mirror-offsets"]
        assert read_all(target, "orders") == [b"a", b"b"]


@pytest.mark.parametrize("extra", [[], ["--exactly-once"]])
def test_two_clusters_are_mirrored_into_one_topic(
    ottla_cluster: Cluster, tmp_path: Path, capsys: pytest.CaptureFixture[str], extra: list[str]
) -> None:
    """Positions and transactions belong to one source: no record is skipped or repeated."""
    with Cluster() as other, Cluster() as target:
        for values in ([b"1", b"2"], [b"3"]):
            for number, cluster in enumerate((ottla_cluster, other)):
                produce(cluster, "orders", [b"%d-%s" % (number, value) for value in values])
                files = _mirror_files(cluster, target, tmp_path)
                line = [*files, "--include", "orders", "--until-end", *extra]
                assert entry.run("kafka-mirror-maker", line) == 0
        copied = read_all(target, "orders")
    assert copied == [b"0-1", b"0-2", b"1-1", b"1-2", b"0-3", b"1-3"]
    assert "records are copied twice" not in capsys.readouterr().err
