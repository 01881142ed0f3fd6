"""The report of a running pipeline: `ottla pipeline list|status`, and /metrics, without Spark."""

import json
import os
import subprocess
import sys
import urllib.request
from collections import Counter
from pathlib import Path
from textwrap import dedent
from types import SimpleNamespace
from typing import Any

import pytest

from ottla.base.errors import ConfigError
from ottla.streams.application.progress import Progress
from ottla.streams.pipelines import check
from ottla.streams.pipelines.model import Pipeline
from ottla.tools.pipeline.reporting import PipelineReporter
from ottla.tools.pipeline.state_files import folder, read_all
from ottla.tools.spark import needed

_FILE = dedent(
    """\
    name: late
    sources:
      flights: {topic: flights, format: json, schema: {n: int}, bad_records: skip}
      trains: {topic: trains, format: json, schema: {n: int}, bad_records: {topic: letters}}
    sinks:
      out: {from: flights, topic: out}
      rest: {from: trains, topic: rest}
    """
)


@pytest.fixture(autouse=True)
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Keep the reports in a folder of the test."""
    monkeypatch.setenv("OTTLA_STATE_DIR", str(tmp_path / "state"))
    return tmp_path / "state"


def pipeline_of(text: str = _FILE) -> Pipeline:
    """Return the pipeline of a file."""
    result = check(text).pipeline
    assert result is not None
    return result


def sinks() -> dict[str, Any]:
    """Return runs of two sinks, as Spark reports them."""
    first, second = Progress(batch=4, lag=70, batch_ms=250), Progress(batch=2, lag=1, batch_ms=10)
    bad, letters = Counter(flights=3), Counter(trains=2)
    return {
        "out": SimpleNamespace(
            rows=100, progress=first, bad_by_source=bad, batch_ended_ms=1_767_225_600_000
        ),
        "rest": SimpleNamespace(rows=5, progress=second, bad_by_source=letters, batch_ended_ms=0),
    }


def test_a_running_pipeline_is_listed_with_its_sinks(run_alone: Any) -> None:
    """Lag, skipped records and dead letters are those of each sink."""
    with PipelineReporter(pipeline_of(), "checkpoints/late", None) as reporter:
        assert [row["state"] for row in run_alone("pipeline", "list", "--output", "json").json] == [
            "starting"
        ]
        reporter.start(sinks)
        (row,) = run_alone("pipeline", "list", "--output", "json").json
        facts = ("pipeline", "state", "lag", "skipped", "dead_letters", "last_batch", "process")
        assert [row[name] for name in facts] == [
            "late", "running", 71, 3, 2, "2026-01-01T00:00:00Z", os.getpid(),
        ]  # fmt: skip
        rows = run_alone("pipeline", "status", "late", "--output", "json").json
        counts = ("sink", "records", "lag", "skipped", "dead_letters", "batch", "batch_ms")
        assert [[row[name] for name in counts] for row in rows] == [
            ["out", 100, 70, 3, 0, 4, 250],
            ["rest", 5, 1, 0, 2, 2, 10],
        ]
        assert b"out" in run_alone("pipeline", "status", "late").out
    (row,) = run_alone("pipeline", "list", "--output", "json").json
    assert (row["state"], row["lag"]) == ("stopped", 71)


def test_a_failed_pipeline_says_why(run_alone: Any) -> None:
    """The last status has the sentence of the error."""
    with (
        pytest.raises(ConfigError),
        PipelineReporter(pipeline_of(), "checkpoints/late", None) as reporter,
    ):
        reporter.start(sinks)
        raise ConfigError("Sink out: the topic is gone")
    done = run_alone("pipeline", "status", "late")
    assert "late has failed: Sink out: the topic is gone" in done.errors
    assert [row["state"] for row in run_alone("pipeline", "list", "--output", "json").json] == [
        "failed"
    ]


def test_a_pipeline_whose_process_was_killed_is_lost(run_alone: Any, state: Path) -> None:
    """The report of a process that has ended without a last word; damaged files are ignored."""
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait(30)
    reporter = PipelineReporter(pipeline_of(), "checkpoints/late", None, ended.pid)
    reporter.__enter__()
    (folder() / "damaged.json").write_text("{")
    (row,) = run_alone("pipeline", "list", "--output", "json").json
    assert row["state"] == "lost"
    # The process of another machine with the same number is another one.
    (path,) = (path for path in folder().iterdir() if path.name != "damaged.json")
    path.write_text(json.dumps({**json.loads(path.read_text()), "host": "elsewhere"}))
    (row,) = run_alone("pipeline", "list", "--output", "json").json
    assert (row["state"], row["host"]) == ("starting", "elsewhere")
    missing = run_alone("pipeline", "status", "early")
    assert missing.code == 1
    assert "no run of 'early' is known on this machine (known: late)" in missing.errors
    assert state in folder().parents


def test_metrics_have_the_counts_of_each_sink() -> None:
    """Prometheus reads rates, lag, bad records and the last micro-batch."""
    with PipelineReporter(pipeline_of(), "checkpoints/late", "127.0.0.1:0") as reporter:
        reporter.start(sinks)
        (path,) = folder().glob("*.json")
        address = json.loads(path.read_text())["metrics"]
        with urllib.request.urlopen(f"http://{address}/metrics", timeout=10) as response:
            text = response.read().decode()
    own = 'pipeline="late",sink="out"'
    for line in (
        'ottla_pipeline_up{pipeline="late"} 1',
        f"ottla_pipeline_records_total{{{own}}} 100",
        f"ottla_pipeline_records_per_second{{{own}}} 0.0",
        f"ottla_pipeline_lag{{{own}}} 70",
        f"ottla_pipeline_skipped_total{{{own}}} 3",
        'ottla_pipeline_dead_letters_total{pipeline="late",sink="rest"} 2',
        f"ottla_pipeline_batch{{{own}}} 4",
        f"ottla_pipeline_batch_seconds{{{own}}} 0.25",
        f"ottla_pipeline_last_batch_timestamp_seconds{{{own}}} 1767225600.0",
    ):
        assert line in text.splitlines()


def test_a_pipeline_runs_although_its_status_cannot_be_written(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A folder that is none is reported once."""
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("OTTLA_STATE_DIR", str(tmp_path / "file"))
    with PipelineReporter(pipeline_of(), "checkpoints/late", None) as reporter:
        reporter.start(sinks)
    assert capsys.readouterr().err.count("set OTTLA_STATE_DIR") == 1
    assert read_all() == []


@pytest.mark.parametrize(
    "sink",
    [
        "{from: flights, jdbc: 'jdbc:h2:mem:a', table: t, password_variable: ABSENT}",
        "{from: flights, topic: out, bootstrap: 'b:9093', security: {security.protocol: SASL_SSL, "
        "sasl.mechanism: PLAIN, sasl.username: u, password_variable: ABSENT}}",
    ],
)
def test_a_missing_password_is_reported_before_spark_starts(
    run: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, sink: str
) -> None:
    """The sentence names the sink and the variable."""
    monkeypatch.setattr(needed, "open_session", lambda *_: pytest.fail("Spark was started"))
    monkeypatch.delenv("ABSENT", raising=False)
    file = tmp_path / "late.yaml"
    source = "flights: {topic: flights, format: json, schema: {n: int}}"
    file.write_text(f"name: late\nsources: {{{source}}}\nsinks: {{away: {sink}}}\n")
    done = run("pipeline", "run", str(file))
    assert done.code == 1
    assert "ink away: the environment variable ABSENT, which holds the password" in done.errors
