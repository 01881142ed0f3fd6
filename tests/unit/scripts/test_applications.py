"""The scripts of Kafka Connect, and of ZooKeeper without its file."""

import re
from pathlib import Path

import pytest

from ottla.streams.pipelines import check
from ottla_scripts import entry

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


def test_file_connectors_become_pipelines(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The files can run, name topics, file and brokers, and the script names the command."""
    arguments = ["worker.properties", "source.properties", "sink.properties"]
    assert entry.run("connect-standalone", arguments) == 1
    assert capsys.readouterr().out == "ottla pipeline run in.yaml\nottla pipeline run out.yaml\n"
    for name, facts in (("in", ["[i]nput.txt", "lines"]), ("out", ["output", "lines", "more"])):
        text = (folder / f"{name}.yaml").read_text()
        checked = check(text)
        assert checked.pipeline is not None
        assert not checked.problems
        assert all(f'"{fact}"' in text for fact in [*facts, "broker:9092"])


def test_connector_as_json(folder: Path) -> None:
    """Connect's own JSON has the same result as its properties."""
    (folder / "source.json").write_text(
        '{"name": "in", "config": {"connector.class": "FileStreamSource", "file": "a", "topic": "b"}}'
    )
    assert entry.run("connect-standalone", ["worker.properties", "source.json"]) == 1
    assert check((folder / "in.yaml").read_text()).pipeline is not None


@pytest.mark.parametrize(
    ("line", "sentence"),
    [
        ("connector.class=io.example.S3Sink\n", "class=io.example.S3Sink cannot be translated"),
        ("connector.class=io.example.JdbcSource\n", "begin with examples/pipelines/database.yaml"),
        (
            "connector.class=org.apache.kafka.connect.mirror.MirrorSourceConnector\n",
            "examples/pipelines/mirror.yaml",
        ),
        ("transforms=Hoist\n", "transforms=Hoist cannot be translated: remove it, and add steps"),
        ("predicates=IsFoo\n", "predicates=IsFoo cannot be translated"),
        ("topics.regex=a.*\n", "topics.regex=a.* cannot be translated: name the topics"),
        ("name=out\n", "two connectors have the name out"),
        ("file=\n", "has no file"),
        ("topic=\n", "has no topic"),
        ("name=a/b\n", "remove the '/'"),
    ],
)
def test_connector_that_cannot_be_translated(
    folder: Path, line: str, sentence: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """One bad connector is an error that names its file, and no pipeline is written."""
    (folder / "bad.properties").write_text(_SOURCE + line)
    arguments = ["worker.properties", "sink.properties", "bad.properties"]
    assert entry.run("connect-standalone", arguments) == 1
    errors = capsys.readouterr().err
    assert sentence in errors
    assert "bad.properties" in errors or "two connectors" in errors
    assert not list(folder.glob("*.yaml"))


def test_security_of_the_worker_is_kept(folder: Path) -> None:
    """The pipeline reads TLS and SASL from the worker's file: its passwords are copied nowhere."""
    with (folder / "worker.properties").open("a") as file:
        file.write(
            'security.protocol=SASL_SSL\nsasl.mechanism=PLAIN\nsasl.jaas.config=x password="s3cr3t";\n'
        )
    assert entry.run("connect-standalone", ["worker.properties", "source.properties"]) == 1
    text = (folder / "in.yaml").read_text()
    assert 'security: {config: "worker.properties"}' in text
    assert "s3cr3t" not in text
    pipeline = check(text).pipeline
    assert pipeline is not None
    assert pipeline.security is not None


def test_pipeline_file_is_not_overwritten(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A file with other contents is kept."""
    (folder / "in.yaml").write_text("name: mine\n")
    assert entry.run("connect-standalone", ["worker.properties", "source.properties"]) == 1
    assert "nothing was written" in capsys.readouterr().err
    assert (folder / "in.yaml").read_text() == "name: mine\n"


@pytest.mark.parametrize(
    "name",
    [
        "connect-distributed",
        "connect-mirror-maker",
        "connect-plugin-path",
        "connect-internal-topics",
    ],
)
def test_other_scripts_of_connect_name_what_replaces_them(
    name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """The sentence contains the alternative."""
    assert entry.run(name, ["x.properties"]) == 1
    assert re.search("pipeline", capsys.readouterr().err)


@pytest.mark.parametrize("command_line", [[], ["missing.properties"], ["--no-such-option"]])
def test_zookeeper_server_needs_a_file(
    command_line: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    """Without a properties file nothing is started."""
    assert entry.run("zookeeper-server-start", command_line) == 1
    assert (
        "properties file" in capsys.readouterr().err
        or not command_line
        or command_line[0].startswith("--")
    )
