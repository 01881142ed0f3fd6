"""`ottla log format` and `ottla log info`: the owner of log directories."""

import json
from pathlib import Path

import pytest

from ottla.tools.main import run
from tests.folders import contents

_CONFIG = "process.roles=broker,controller\nnode.id=7\nlog.dirs={0}/one,{0}/two\n"


def _config(folder: Path, text: str = _CONFIG) -> str:
    path = folder / "server.properties"
    path.write_text(text.format(folder))
    return str(path)


def test_directories_are_formatted_and_shown(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Each directory belongs to the cluster and the broker of the configuration file."""
    config = _config(tmp_path)
    names = [str(tmp_path / "one"), str(tmp_path / "two")]
    assert run(["log", "format", "--config", config, "--cluster-id", "abc"]) == 0
    assert capsys.readouterr().out == f"Formatted {', '.join(names)} for the cluster abc.\n"
    assert run(["log", "info", "--config", config, "--output", "json"]) == 0
    rows = json.loads(capsys.readouterr().out)
    assert [row["directory"] for row in rows] == names
    assert {(row["cluster_id"], row["node_id"], row["version"]) for row in rows} == {("abc", 7, 1)}
    assert run(["log", "info", "--config", config]) == 0
    table = capsys.readouterr().out.splitlines()
    assert table[0].split() == ["DIRECTORY", "CLUSTER-ID", "NODE-ID", "DIRECTORY-ID", "VERSION"]


def test_formatted_directories_are_not_changed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The error names --ignore-formatted, with which the other directories are formatted."""
    data = str(tmp_path / "data")
    line = ["log", "format", "--data", data, "--cluster-id", "abc"]
    assert run(line) == 0
    before = contents(tmp_path)
    capsys.readouterr()
    assert run(line) == 1
    assert "is already formatted. Use --ignore-formatted" in capsys.readouterr().err
    assert run([*line, "--ignore-formatted"]) == 0
    assert capsys.readouterr().out == "Nothing to format.\n"
    assert run([*line[:-1], "other", "--ignore-formatted"]) == 1
    assert "Expected other, but read abc" in capsys.readouterr().err
    assert contents(tmp_path) == before


def test_problems_of_directories_are_reported(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A directory that is missing or not formatted is named, and the exit code is 1."""
    (tmp_path / "one").mkdir()
    assert run(["log", "info", "--config", _config(tmp_path)]) == 1
    errors = capsys.readouterr().err
    assert f"{tmp_path / 'one'} is not formatted." in errors
    assert f"{tmp_path / 'two'} does not exist" in errors


@pytest.mark.parametrize(
    ("settings", "reason"),
    [
        ("process.roles=broker\n", "process.roles=broker expects the KRaft controllers"),
        ("process.roles=controller\n", "the node would be no broker"),
        ("zookeeper.connect=127.0.0.1:1\n", "no directory needs to be formatted"),
        ("log.dirs\n", "is not of the form name=value"),
    ],
)
def test_configuration_that_cannot_be_formatted_is_a_sentence(
    settings: str, reason: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Nothing is created, and the exit code is 1."""
    config = _config(tmp_path, f"log.dirs={{0}}/data\n{settings}")
    assert run(["log", "format", "--config", config]) == 1
    assert reason in capsys.readouterr().err
    assert not (tmp_path / "data").exists()


def test_folder_of_several_brokers_is_not_formatted(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The folder of `ottla up --brokers` contains the directories of its brokers."""
    (tmp_path / "coordination").mkdir()
    (tmp_path / "broker1").mkdir()
    assert run(["log", "format", "--data", str(tmp_path)]) == 1
    assert "holds a cluster of 1 brokers" in capsys.readouterr().err
    assert not (tmp_path / "meta.properties").exists()
