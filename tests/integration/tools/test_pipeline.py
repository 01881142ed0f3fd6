"""`ottla pipeline check|explain`, and the commands that need Spark, without Spark."""

import importlib.util
from dataclasses import replace
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest

from ottla.client.config.access import ClusterAccess
from ottla.streams.pipelines.model import Pipeline, Security
from ottla.tools import profiles
from ottla.tools.pipeline import files
from ottla.tools.spark import needed
from ottla.tools.spark.tasks import bar

_GOOD = dedent(
    """\
    name: late
    sources:
      flights: {topic: flights, format: json, schema: {origin: string, delay: int}}
    steps:
      late: {from: flights, do: [{where: delay > 15}]}
    sinks:
      alerts: {from: late, topic: alerts, key: origin}
      totals: {from: late, files: out, partition_by: origin}
    """
)

_PIPELINE = Pipeline(
    name="late", bootstrap="", checkpoint="", trigger="", sources={}, steps={}, sinks={}
)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """Return a valid pipeline file."""
    path = tmp_path / "late.yaml"
    path.write_text(_GOOD, encoding="utf-8")
    return path


def test_valid_file_is_accepted(run: Any, file: Path) -> None:
    """The output is one line, with exit code 0."""
    done = run("pipeline", "check", str(file))
    assert (done.code, done.out.decode()) == (0, f"{file}: no problems found.\n")


def test_mistakes_are_printed_in_the_format_of_editors(run: Any, file: Path) -> None:
    """Each mistake is FILE:LINE:COLUMN: severity: sentence, and the exit code is 1."""
    file.write_text(_GOOD.replace("do:", "doo:").replace("key:", "kee:"), encoding="utf-8")
    done = run("pipeline", "check", str(file))
    assert done.code == 1
    assert done.out.decode().splitlines() == [
        f"{file}:5:3: error: step late: do is missing.",
        f"{file}:5:25: error: step late: unknown key doo. Did you mean do?",
        f"{file}:7:39: error: sink alerts: unknown key kee. Did you mean key?",
    ]
    assert done.errors == f"{file} cannot run: 3 errors.\n"


def test_mistakes_are_printed_as_json(run: Any, file: Path) -> None:
    """Each has file, line, column, severity and message; without mistakes the list is empty."""
    assert run("pipeline", "check", str(file), "--output", "json").json == []
    file.write_text(_GOOD.replace("delay > 15", "delay > (15"), encoding="utf-8")
    done = run("pipeline", "check", str(file), "--output", "json")
    assert done.code == 1
    assert done.json == [
        {
            "file": str(file),
            "line": 5,
            "column": 46,
            "severity": "error",
            "message": "step late: ( is not closed.",
        }
    ]


def test_topics_are_checked_in_the_cluster(run: Any, ottla_cluster: Any, file: Path) -> None:
    """A file can be checked without a cluster; with one, its topics are looked up."""
    run("topic", "create", "flight")
    done = run("pipeline", "check", str(file), "--bootstrap", ottla_cluster.bootstrap)
    assert done.code == 1
    first, second = done.out.decode().splitlines()
    assert first.endswith("error: source flights: there is no topic flights. Did you mean flight?")
    assert ":7:31: warning: sink alerts: there is no topic alerts yet" in second
    run("topic", "create", "flights")
    done = run("pipeline", "check", str(file), "--bootstrap", ottla_cluster.bootstrap)
    assert done.code == 0
    assert done.out.decode().splitlines()[-1] == f"{file} can run."


def test_a_pipeline_is_explained(run: Any, file: Path) -> None:
    """The output has the inputs and steps of each part, and the guarantees of sinks."""
    rows = run("pipeline", "explain", str(file), "--output", "json").json
    assert [(row["name"], row["does"], row["promises"]) for row in rows] == [
        ("flights", "json", ""),
        ("late", "where delay > 15", ""),
        ("alerts", "appends to topic alerts", "exactly once"),
        ("totals", "parquet files in out by origin", "exactly once"),
    ]


def test_long_sql_is_shortened_in_the_table(run: Any, file: Path) -> None:
    """The table is shortened, and JSON has the entire text."""
    text = file.read_text()
    assert "where: delay > 15" in text
    file.write_text(
        text.replace("delay > 15", "delay > 15 AND " + " AND ".join(["origin > 'A'"] * 9))
    )
    assert max(map(len, run("pipeline", "explain", str(file)).out.decode().splitlines())) < 100
    rows = run("pipeline", "explain", str(file), "--output", "json").json
    assert rows[1]["does"].endswith("origin > 'A'")


def test_invalid_file_is_not_run(run: Any, file: Path) -> None:
    """The checker's errors are printed before Spark is started."""
    file.write_text(_GOOD.replace("from: late, topic", "from: lat, topic"), encoding="utf-8")
    for verb in ("run", "explain"):
        done = run("pipeline", verb, str(file))
        assert (done.code, done.out) == (1, b"")
        assert "7:18: error: sink alerts: there is no source or step lat." in done.errors
        assert f"ottla: {file} cannot run: 1 error\n" in done.errors


def test_spark_is_not_started_without_a_broker(
    run: Any, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The error comes ten seconds earlier than Spark's, and with advice."""
    monkeypatch.setattr(needed, "open_session", lambda *_: pytest.fail("Spark was started"))
    done = run("pipeline", "run", str(file), "--bootstrap", "127.0.0.1:1")
    assert done.code == 1
    assert "nothing listens on 127.0.0.1:1: start a broker with `ottla up`" in done.errors


@pytest.mark.parametrize(
    "command_line",
    [
        ("pipeline", "run", "FILE"),
        ("pipeline", "check", "FILE", "--deep"),
        ("topic", "load", "flights", "x.csv", "--engine", "spark"),
        ("topic", "export", "flights", "out", "--engine", "spark"),
        ("spark", "warm"),
    ],
)
def test_missing_spark_is_an_error_with_advice(
    run: Any, file: Path, command_line: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The error has no traceback, and a command that can be copied."""
    find = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda name: None if name == "pyspark" else find(name)
    )
    done = run(*(str(file) if word == "FILE" else word for word in command_line))
    assert done.code == 1
    assert done.errors == (
        "ottla: This command needs Spark, but pyspark is not installed: pip install 'ottla[spark]'\n"
    )


def test_all_missing_packages_of_spark_are_listed(
    run: Any, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without the extra, several packages are missing."""
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    assert run("spark", "warm").errors == (
        "ottla: This command needs Spark, but pyspark, pyarrow, pandas, numpy are not installed: "
        "pip install 'ottla[spark]'\n"
    )


def test_invalid_arguments_are_reported_before_spark_starts(run: Any, tmp_path: Path) -> None:
    """A missing topic, an unknown format, a directory with files and an invalid position are
    rejected.
    """
    out = str(tmp_path / "out")
    missing = run("topic", "load", "nowhere", "x.csv")
    assert "UNKNOWN_TOPIC_OR_PARTITION" in missing.errors or "topic" in missing.errors
    run("topic", "create", "t")
    (tmp_path / "x.txt").write_text("x", encoding="utf-8")
    assert "--format" in run("topic", "load", "t", str(tmp_path / "x.txt")).errors
    assert "--format" in run("topic", "load", "t", "x.txt", "--engine", "spark").errors
    assert "is not a position" in run("topic", "export", "t", out, "--from", "then").errors
    assert "no partition 7" in run("topic", "export", "t", out, "-p", "7").errors
    assert "omit --bytes" in run("topic", "export", "t", out, "--bytes", "--schema", "a int").errors
    (tmp_path / "old").write_text("x", encoding="utf-8")
    assert "is not empty" in run("topic", "export", "t", str(tmp_path)).errors


def test_bar_shows_the_completed_tasks() -> None:
    """The bar has the width of the terminal."""
    line = bar("Loading t", 3, 4)
    assert line.startswith("Loading t [#")
    assert line.endswith(".] 3 of 4 tasks")


_OWN = Security(options={"security.protocol": "SSL", "ssl.truststore.type": "PEM"})
_FILES = {"security.protocol": "SSL"}


@pytest.mark.parametrize(
    ("option", "own", "config", "address", "security"),
    [
        (None, "", "", "profile:1", {"security.protocol": "PLAINTEXT"}),
        (None, "own:1", "", "own:1", {}),
        (None, "own:1", "config", "own:1", _FILES),
        ("option:1", "", "", "option:1", {}),
        ("option:1", "own:1", "config", "option:1", _FILES),
    ],
)
def test_options_of_one_cluster_are_not_sent_to_another(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    option: str | None,
    own: str,
    config: str,
    address: str,
    security: dict[str, str],
) -> None:
    """The profile's are used with its address only, the file's with its own or a missing one."""
    monkeypatch.setenv("OTTLA_CONFIG_DIR", str(tmp_path))
    monkeypatch.delenv("OTTLA_PROFILE", raising=False)
    (tmp_path / "of_profile").write_text("security.protocol=PLAINTEXT")
    (tmp_path / "config").write_text("security.protocol=SSL")
    of_profile = {"p": str(tmp_path / "of_profile")}
    profiles.write(profiles.Profiles({"p": "profile:1"}, "p", of_profile))
    pipeline = replace(_PIPELINE, bootstrap=own)
    path = str(tmp_path / config) if config else None
    assert files.access(pipeline, option, path) == ClusterAccess(address, security)
    secured = replace(pipeline, security=_OWN)
    if config or (own and option):
        assert files.access(secured, option, path) == ClusterAccess(address, security)
    else:
        assert files.access(secured, option, path) == ClusterAccess(address, _OWN.options)
