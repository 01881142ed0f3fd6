"""The output of Spark's processes, without noise and above the progress line."""

import os
import subprocess
import sys

import pytest

from ottla.tools.spark.stderr_filter import filtered_stderr, without_noise


def test_noise_is_filtered() -> None:
    """Empty lines after the noise are removed too, and other output stays."""
    lines = [
        "WARNING: Using incubator modules: jdk.incubator.vector\n",
        "Starting Streaming TransformWithStateInPandas Python worker.\n",
        "\n",
        "Streaming TransformWithStateInPandas Python worker Completed execution of UDF: <x>.\n",
        "\n",
        "20:49:04 ERROR MicroBatchExecution: Query x [id = 1, runId = 2] terminated with error\n",
        '{"ts": "2026", "level": "ERROR", "logger": "SQLQueryContextLogger", "msg": "[DIVIDE_BY_ZERO]"}\n',
        "17:37:17 ERROR Executor: something\n",
        "\n",
        "WARNING: the user's own\n",
    ]
    assert list(without_noise(lines)) == lines[7:]


def test_output_of_child_processes_is_captured_and_restored(
    capfd: pytest.CaptureFixture[str],
) -> None:
    """The output keeps its order across processes, and none is lost at the end."""
    noise = "WARNING: Using incubator modules: x"
    code = f"import sys; print('child', file=sys.stderr); print({noise!r}, file=sys.stderr)"
    with filtered_stderr():
        subprocess.run([sys.executable, "-c", code], check=True)
        os.write(2, b"descriptor 2\n")
        print("not through the pipe", file=sys.stderr)
    print("after", file=sys.stderr)
    lines = capfd.readouterr().err.splitlines()
    assert sorted(lines) == ["after", "child", "descriptor 2", "not through the pipe"]
    assert lines.index("child") < lines.index("descriptor 2")
    assert lines[-1] == "after"
