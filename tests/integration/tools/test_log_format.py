"""`ottla log format`: a broker runs with the cluster id that was generated."""

import json
from pathlib import Path

import pytest

from ottla.tools.main import run
from tests.integration.server.test_coordination_formatted_cluster import run_broker


def test_cluster_id_is_generated(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Without --cluster-id the command prints a new id; the broker's cluster has it."""
    data = str(tmp_path / "data")
    assert run(["log", "format", "--data", data, "--output", "json"]) == 0
    result = json.loads(capsys.readouterr().out)
    assert result["directories"] == [data]
    assert len(result["cluster_id"]) == 22
    assert run(["log", "info", "--data", data]) == 0
    settings = {"log.dirs": data, "listeners": "PLAINTEXT://127.0.0.1:0"}
    assert run_broker(settings) == result["cluster_id"]
