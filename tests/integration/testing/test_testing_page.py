"""The examples of docs/testing-with-ottla.md run as shown."""

import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import yaml

from ottla.testing import Cluster
from ottla.testing.sim.cluster.scenario import KINDS
from tests.law import source

PAGE = "docs/testing-with-ottla.md"


def _page() -> str:
    return (source.ROOT / PAGE).read_text(encoding="utf-8")


def _examples(language: str = "python") -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", _page(), re.DOTALL)


def _run(text: str) -> dict[str, Any]:
    """Execute the example of the page with this text, and return its names."""
    names: dict[str, Any] = {}
    (example,) = (example for example in _examples() if text in example)
    exec(compile(example, PAGE, "exec"), names)
    return names


def test_first_test_of_the_page_passes(ottla_cluster: Cluster) -> None:
    """It sends a record through the fixture, and receives it."""
    _run("def test_an_order_is_delivered")["test_an_order_is_delivered"](ottla_cluster)
    assert [record.value for record in ottla_cluster.records("orders")] == [b"4 apples"]


def test_fixtures_of_the_page_have_values_that_a_cluster_accepts() -> None:
    """Their names are fixtures of the plugin, and their options are known."""
    names = _run("def ottla_brokers")
    # The functions below the decorator of pytest.
    count, options = (names[name].__wrapped__() for name in ("ottla_brokers", "ottla_options"))
    with Cluster(count, options=options) as cluster:
        assert cluster.live_brokers == (1, 2, 3)


def test_a_cluster_of_the_page_survives_its_faults() -> None:
    """A leader is killed and another one acknowledges; then it is paused and cut off."""
    assert _run("cluster.kill(leader)")["leader"] in (1, 2, 3)


def test_simulation_of_the_page_finds_no_problem_and_repeats_a_seed() -> None:
    """Five seeds of a scenario with full disks; its faults happen and records are acknowledged."""
    result = _run("simulate(scenario, seed)")["result"]
    assert result.applied and result.acknowledged > 0


def test_faults_of_the_page_are_retried_by_the_producer() -> None:
    """The record arrives once, after two errors."""
    assert _run("cluster.faults.errors(")["fault"].hits == 2


def test_tests_of_the_page_pass(tmp_path: Path) -> None:
    """Each is a file of a project: with the fixtures of the session, asyncio and unittest."""
    tests = [
        example for example in _examples() if re.search(r"^ *(async )?def test_", example, re.M)
    ]
    assert len(tests) == 5
    for number, example in enumerate(tests):
        (tmp_path / f"test_{number}.py").write_text(example, "utf-8")
    plugins = ["no:cacheprovider", "ottla.testing.fixture", "pytest_asyncio.plugin"]
    options = [word for plugin in plugins for word in ("-p", plugin)]
    run = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", *options, str(tmp_path)],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(source.ROOT), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
        timeout=300,
    )
    assert "5 passed" in run.stdout, run.stdout + run.stderr


def test_workflows_of_the_page_run_pytest() -> None:
    """They are YAML, and install what the tests import."""
    github, gitlab = map(yaml.safe_load, _examples("yaml"))
    commands = [step["run"] for step in github["jobs"]["tests"]["steps"] if "run" in step]
    assert commands == gitlab["tests"]["script"]
    assert commands[-1] == "pytest"


def test_command_of_the_page_prints_the_address(tmp_path: Path) -> None:
    """Another program reads it from the first line."""
    (command,) = _examples("sh")
    words = [sys.executable, "-m", *shlex.split(command), "--data", str(tmp_path)]
    process = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    try:
        assert process.stdout is not None
        facts = json.loads(process.stdout.readline())
    finally:
        process.terminate()
        process.communicate(timeout=30)
    assert facts["bootstrap"].startswith("127.0.0.1:")


def test_the_page_lists_every_kind_of_simulated_fault() -> None:
    """A tester finds the names that a scenario may have."""
    listed = _page().partition("* The kinds are ")[2].partition(".\n")[0]
    assert sorted(re.findall(r"`(\w+)`", listed)) == sorted(KINDS)
