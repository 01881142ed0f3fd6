"""Spark, stream applications, pipelines and tools on secured listeners of Apache Kafka.

The password must be in no output, no plan and no checkpoint.
"""

import json
import uuid
from collections.abc import Iterator
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest
from pyspark.sql import SparkSession

from ottla.client import Consumer, Producer
from ottla.client.config.properties import write_properties
from ottla.streams import KafkaStreams, Serdes, StreamsBuilder
from ottla.tools import main
from ottla_scripts import entry
from tests.compat.secured import PASSWORD, Secured
from tests.spark.processes import wait_until
from tests.spark.sessions import Shown, shared_session

pytestmark = [
    pytest.mark.compat,
    pytest.mark.spark,
    pytest.mark.slow,
    pytest.mark.timeout(240),
    pytest.mark.needs("java"),
]

# The part of the password that no escape changes.
_SECRET = PASSWORD[2:]
_EXPLAIN_MODE = "spark.sql.ui.explainMode"


@pytest.fixture(scope="module")
def kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Secured]:
    """Apache Kafka 4.3.0 with secured listeners, and a topic with words."""
    node = Secured(tmp_path_factory.mktemp("secured") / "kafka")
    node.start()
    try:
        node.add_users()
        with Producer(node.settings("SASL_SSL", "SCRAM-SHA-512")) as producer:
            for word in ("a", "b", "a"):
                producer.send("t", word.encode(), key=word.encode())
        yield node
    finally:
        node.stop()


@pytest.fixture
def spark(outputs: list[str]) -> Iterator[SparkSession]:
    """The tests' session; the password is in none of the plans and properties that Spark shows."""
    spark_session = shared_session()
    mode = spark_session.conf.get(_EXPLAIN_MODE)
    spark_session.conf.set(_EXPLAIN_MODE, "extended")
    shown = Shown(spark_session)
    yield spark_session
    spark_session.conf.set(_EXPLAIN_MODE, str(mode))
    plans = shown.plans()
    assert plans
    outputs += [*plans, shown.properties()]


@pytest.fixture
def outputs(capfd: pytest.CaptureFixture[str]) -> Iterator[list[str]]:
    """A list of texts that must not have the password, as must all output of the test."""
    texts: list[str] = []
    yield texts
    texts += capfd.readouterr()
    assert [text for text in texts if _SECRET in text] == []


def written(path: Path, settings: dict[str, str]) -> str:
    """Write a properties file, and return its path."""
    path.write_text(write_properties(settings), "utf-8")
    return str(path)


def run_verb(*command_line: str) -> None:
    """Run a command of `ottla`."""
    assert main.run(command_line) == 0


def read(settings: dict[str, str], topic: str, count: int) -> list[tuple[bytes | None, Any]]:
    """Return the first committed records of a topic as keys and values."""
    records: list[tuple[bytes | None, Any]] = []
    config = {**settings, "isolation.level": "read_committed", "auto.offset.reset": "earliest"}

    def poll() -> bool:
        records.extend((record.key, record.value) for record in consumer.poll(1))
        return len(records) >= count

    with Consumer(topic, config=config, group_id=str(uuid.uuid4())) as consumer:
        wait_until(poll, lambda: f"{records}")
    return records


def files_below(folder: Path) -> str:
    """Return the contents of all files in a folder."""
    files = [file for file in folder.rglob("*") if file.is_file()]
    assert files
    return "".join(file.read_bytes().decode("latin-1") for file in files)


def test_source_and_sink(
    kafka: Secured, spark: SparkSession, outputs: list[str], tmp_path: Path
) -> None:
    """A batch is read and written, and a stream with transactions, with the options of clients."""
    users = kafka.settings("SASL_SSL", "SCRAM-SHA-256"), kafka.certified()
    plain, certified = (
        {f"kafka.{name}": value for name, value in settings.items()} for settings in users
    )
    rows = spark.read.format("ottla").options(**plain, subscribe="t").load()
    rows.write.format("ottla").options(**certified, topic="batch").mode("append").save()
    stream = spark.readStream.format("ottla").options(**certified, subscribe="batch")
    sink = stream.option("startingOffsets", "earliest").load().writeStream.format("ottla")
    sink = sink.options(**plain, topic="stream", processingGuarantee="exactly_once")
    sink.trigger(availableNow=True).start(checkpointLocation=str(tmp_path)).awaitTermination()
    expected = sorted([(b"a", b"a"), (b"a", b"a"), (b"b", b"b")])
    assert sorted(read(users[1], "stream", 3)) == expected
    wrong = plain | {
        "kafka.sasl.jaas.config": plain["kafka.sasl.jaas.config"].replace("ann", "bob")
    }
    with pytest.raises(Exception, match="refuses the user") as refused:
        spark.read.format("ottla").options(**wrong, subscribe="t").load().count()
    outputs += [str(refused.value), files_below(tmp_path)]


def test_an_application_with_state_is_run_and_reset(
    kafka: Secured, spark: SparkSession, outputs: list[str], tmp_path: Path
) -> None:
    """Source, sink, changelog, store, election and progress use the options; so does the reset."""
    settings = kafka.settings("SASL_SSL", "PLAIN")
    builder = StreamsBuilder()
    words = builder.stream("t", key=Serdes.string(), value=Serdes.string())
    words.group_by_key().count("counts").to_stream().to("counted")
    config = {**settings, "application.id": "counter", "state.dir": str(tmp_path / "state")}
    run_verb("topic", "create", "counted", "-b", kafka.bootstrap)
    topology = builder.build()
    with KafkaStreams(topology, config, spark=spark, num_stream_threads=2) as app:
        counts = app.store("counts")
        assert len(read(settings, "counted", 3)) == 3
        wait_until(lambda: [counts.get("a"), counts.get("b")] == [2, 1])
        outputs += [f"{app.progress()} {app.metadata()} {topology.describe()}"]
    file = written(tmp_path / "client.properties", settings)
    reset = ("streams", "reset", "--application-id", "counter", "--command-config", file)
    outputs.append(files_below(tmp_path / "state"))
    run_verb(*reset, "--state-dir", str(tmp_path / "state"), "--execute")
    assert not (tmp_path / "state" / "counter").exists()
    assert entry.run("kafka-streams-application-reset", [
        *("--application-id", "counter", "--input-topics", "t", "--command-config", file),
        *("--bootstrap-server", settings["bootstrap.servers"]),
    ]) == 0  # fmt: skip


def test_a_pipeline_and_the_commands_on_spark(
    kafka: Secured,
    spark: SparkSession,
    outputs: list[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The password is in an environment variable, the options of the target in a file."""
    monkeypatch.setenv("HUSH", PASSWORD)
    users, target = kafka.settings("SASL_SSL", "SCRAM-SHA-512"), kafka.certified()
    file = tmp_path / "mirror.yaml"
    file.write_text(
        dedent(f"""\
        name: secured
        bootstrap: {users["bootstrap.servers"]}
        checkpoint: {tmp_path / "checkpoint"}
        security:
          security.protocol: SASL_SSL
          sasl.mechanism: SCRAM-SHA-512
          sasl.username: ann
          password_variable: HUSH
          ssl.truststore.location: {users["ssl.truststore.location"]}
        sources:
          words: {{topic: t}}
        sinks:
          copies:
            from: words
            mirror: mirrored
            bootstrap: {target["bootstrap.servers"]}
            security: {{config: {written(tmp_path / "target.properties", target)}}}
          values: {{from: words, topic: piped, format: json}}
        """)
    )
    run_verb("pipeline", "check", str(file), "--deep")
    run_verb("pipeline", "explain", str(file), "--plan")
    run_verb("pipeline", "run", str(file), "--once")
    assert sorted(read(target, "mirrored", 3))[0] == (b"a", b"a")
    assert json.loads(sorted(read(target, "piped", 3))[0][1])["value"] == "a"
    there = ("-b", target["bootstrap.servers"])
    there += ("--command-config", str(tmp_path / "target.properties"))
    folder = tmp_path / "exported"
    run_verb("topic", "export", "mirrored", str(folder), "--format", "json", *there)
    run_verb("topic", "load", "piped", str(folder), "--format", "json", "--records", *there)
    assert len(read(target, "piped", 6)) == 6
    outputs.append(files_below(tmp_path / "checkpoint"))


@pytest.mark.parametrize("protocol", ["SSL", "SASL_SSL", "SASL_PLAINTEXT"])
def test_the_doctor_examines_a_secured_cluster(
    kafka: Secured,
    protocol: str,
    outputs: list[str],
    tmp_path: Path,
    capfd: pytest.CaptureFixture[str],
) -> None:
    """Without the options it reports what is missing."""
    settings = kafka.certified() if protocol == "SSL" else kafka.settings(protocol, "PLAIN")
    address = ("-b", settings["bootstrap.servers"])
    file = written(tmp_path / "client.properties", settings)
    assert main.run(["doctor", *address, "--command-config", file, "--write"]) == 0
    text = capfd.readouterr().out
    assert "the address that you used" in text
    assert main.run(["doctor", *address]) == 1
    failed = capfd.readouterr().out
    assert "--command-config" in failed
    outputs += [text, failed]


def test_a_mirror_between_differently_secured_listeners(
    kafka: Secured, outputs: list[str], tmp_path: Path
) -> None:
    """kafka-mirror-maker and `ottla topic copy` continue at the positions in the target."""
    source = kafka.settings("SASL_PLAINTEXT", "SCRAM-SHA-256") | {"auto.offset.reset": "earliest"}
    target = kafka.certified()
    files = [written(tmp_path / "source", source), written(tmp_path / "target", target)]
    words = ["--consumer.config", files[0], "--producer.config", files[1], "--include", "t"]
    for _ in range(2):
        extended = ["--target-topic", "made", "--until-end"]
        assert entry.run("kafka-mirror-maker", [*words, *extended]) == 0
    copy = ("topic", "copy", "t", "copied", "-b", source["bootstrap.servers"])
    there = ("--to", target["bootstrap.servers"], "--to-config", files[1])
    for _ in range(2):
        run_verb(*copy, "--command-config", files[0], *there)
    for topic in ("made", "copied"):
        assert len(read(target, topic, 3)) == 3
    assert outputs == []
