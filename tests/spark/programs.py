"""Programs of pages and of the demo, run in the tests' Spark session or as their readers run them.

A start of Spark takes longer than most programs. `make test` runs them in the session of all tests;
`make nightly` also runs each of them in a process of its own.
"""

import os
import runpy
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from pyspark import SparkContext
from pyspark.sql import SparkSession

from tests.spark.processes import ROOT

# Runs a module or a file with arguments in a folder, and returns its standard output.
Run = Callable[..., str]
WAYS = ("session", pytest.param("program", marks=pytest.mark.nightly("[session]")))
_SHUFFLE_PARTITIONS = "spark.sql.shuffle.partitions"
_TIMEOUT_S = 500


def run_alone(program: str, *arguments: str, folder: Path) -> str:
    """Run a program in a process of its own, which ends without an error."""
    is_file = program.endswith(".py")
    words = [program] if is_file else ["-m", program]
    # A file needs no more than the package that is installed.
    environment = {} if is_file else {"PYTHONPATH": ROOT}
    done = subprocess.run(
        [sys.executable, *words, *arguments],
        cwd=folder,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=False,
        timeout=_TIMEOUT_S,
    )
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    return done.stdout


def in_session(spark: SparkSession, capsys: pytest.CaptureFixture[str]) -> Run:
    """Return a function that runs programs in this process.

    A program that opens a session has the session of the tests, which it neither stops nor changes.
    """

    def run(program: str, *arguments: str, folder: Path) -> str:
        partitions = spark.conf.get(_SHUFFLE_PARTITIONS)
        modules = set(sys.modules)
        capsys.readouterr()
        with pytest.MonkeyPatch.context() as patch:
            patch.chdir(folder)
            patch.syspath_prepend(folder)
            patch.setattr(sys, "argv", [program, *arguments])
            patch.setattr(SparkSession, "stop", lambda _: None)
            patch.setattr(SparkContext, "addPyFile", _add_of_this_folder(SparkContext.addPyFile))
            try:
                _run(program, folder)
            finally:
                spark.conf.set(_SHUFFLE_PARTITIONS, str(partitions))
                _forget(folder, modules)
        return capsys.readouterr().out

    return run


def _run(program: str, folder: Path) -> None:
    try:
        if program.endswith(".py"):
            runpy.run_path(str(folder / program), run_name="__main__")
        else:
            runpy.run_module(program, run_name="__main__", alter_sys=True)
    except SystemExit as end:
        assert not end.code, end.code


def _add_of_this_folder(
    add: Callable[[SparkContext, str], None],
) -> Callable[[SparkContext, str], None]:
    # The JVM has started in another folder.
    return lambda context, path: add(context, os.path.abspath(path))


def _forget(folder: Path, known: set[str]) -> None:
    """Unload the modules that a program has loaded from its folder."""
    for name in set(sys.modules) - known:
        file = getattr(sys.modules[name], "__file__", None)
        if file is not None and Path(file).parent == folder:
            del sys.modules[name]
