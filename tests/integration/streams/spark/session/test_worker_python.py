"""The program that starts Spark's workers, without Spark."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pyspark
import pytest

from ottla.streams.spark.session.worker_python import worker_python

_LIBRARY = Path(pyspark.__file__).parent / "python" / "lib"
_PRINTS = "import json, sys; print(json.dumps([sys.executable, sys.path[1:]]))"


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Write the program into a folder of the test."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "a cache"))
    monkeypatch.delenv("SPARK_HOME", raising=False)


def _run(*words: str, path: str) -> str:
    environment = {**os.environ, "PYTHONPATH": path}
    return subprocess.run(
        [worker_python(), *words], env=environment, capture_output=True, text=True, check=True
    ).stdout


def test_a_worker_does_not_import_from_zips(tmp_path: Path) -> None:
    """It is the current Python, with its own folders and the installed package."""
    zips = [str(path) for path in _LIBRARY.glob("*.zip")]
    assert len(zips) == 2
    own = str(tmp_path / "a folder")
    python, path = json.loads(_run("-c", _PRINTS, path=os.pathsep.join((*zips, own))))
    assert python == sys.executable
    assert path[0] == own
    assert not set(zips) & set(path)
    assert json.loads(_run("-c", _PRINTS, path=""))[0] == sys.executable


def test_the_steps_of_a_worker_are_not_printed(tmp_path: Path) -> None:
    """PySpark's worker of stateful stages prints each step; other workers print as they like."""
    folder = tmp_path / "modules"
    folder.mkdir()
    for name in ("transform_with_state_driver_worker", "daemon"):
        (folder / f"{name}.py").write_text("print('Starting execution of UDF')")
    assert _run("-m", "transform_with_state_driver_worker", path=str(folder)) == ""
    assert _run("-m", "daemon", path=str(folder)) == "Starting execution of UDF\n"


def test_another_distribution_of_spark_starts_its_own_workers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its modules may have another version than the installed package."""
    monkeypatch.setenv("SPARK_HOME", str(tmp_path))
    assert worker_python() == sys.executable


def test_workers_start_without_a_folder_for_the_program(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """A warning says that they start later."""
    (tmp_path / "file").touch()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    assert worker_python() == sys.executable
    assert "Spark's workers start later" in caplog.text
