"""The performance scripts draw their own run, and show it live."""

import sys
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

from ottla.testing import Cluster
from ottla.tools.measuring import latencies, live
from ottla_scripts import entry
from tests.integration.tools.test_mirror import produce
from tests.unit.scripts.test_plot import LINES, points_of

pytestmark = pytest.mark.slow

_SVG = "{http://www.w3.org/2000/svg}"


def _texts(path: Path) -> list[str]:
    return [element.text or "" for element in ET.parse(path).getroot().iter(f"{_SVG}text")]


@pytest.mark.parametrize("name", list(LINES))
def test_script_draws_what_it_measured(
    name: str, ottla_cluster: Cluster, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """There is a point for each record, or for each tenth of a second of a consumer."""
    ottla_cluster.create_topic("t", partitions=1)
    produce(ottla_cluster, "t", [b"1", b"2", b"3"])
    command_line, least, title = LINES[name]
    path = tmp_path / "plot.svg"
    line = [
        "--bootstrap-server",
        ottla_cluster.bootstrap,
        *command_line.split(),
        "--plot",
        str(path),
    ]
    assert entry.run(name, line) == 0, capsys.readouterr().err
    points = points_of(path)
    assert len(points) >= least
    assert len(points) == least or name == "kafka-consumer-perf-test"
    assert title in _texts(path)


@pytest.mark.parametrize("name", list(LINES))
@pytest.mark.parametrize("is_terminal", [True, False])
def test_live_line_is_for_terminals(
    name: str,
    is_terminal: bool,
    ottla_cluster: Cluster,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Standard error has records and rate while the script runs, and nothing without a terminal."""
    ottla_cluster.create_topic("t", partitions=1)
    produce(ottla_cluster, "t", [b"1", b"2", b"3"])
    monkeypatch.setattr(live, "_INTERVAL_S", 0.0)
    monkeypatch.setattr(latencies, "_LIVE_EVERY", 1)
    monkeypatch.setattr(sys.stderr, "isatty", lambda: is_terminal, raising=False)
    command_line = LINES[name][0].split()
    assert entry.run(name, ["--bootstrap-server", ottla_cluster.bootstrap, *command_line]) == 0
    printed = capsys.readouterr()
    assert ("records/sec" in printed.err) == is_terminal
    # It is erased before the result.
    assert printed.err.endswith("\r\x1b[K" if is_terminal else "")
    assert "\x1b" not in printed.out
