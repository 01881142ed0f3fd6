"""The Makefile and the pre-commit hooks run the same checks, and arguments reach pytest."""

import subprocess
from pathlib import Path

import pytest
import yaml

from tests.law import source


def _commands(*words: str) -> list[str]:
    """Return the commands that make would run."""
    done = subprocess.run(
        ["make", "--no-print-directory", "--dry-run", *words],
        cwd=source.ROOT, capture_output=True, text=True, check=True,
    )  # fmt: skip
    return done.stdout.splitlines()


@pytest.mark.parametrize("target", ["test", "quick"])
def test_arguments_reach_pytest(target: str) -> None:
    """ARGS are the last arguments, TESTS the selected files."""
    command = _commands(target, "TESTS=tests/unit", "ARGS=-x -k word")[-1]
    assert "-m tests.run " in command
    assert command.endswith(" tests/unit -x -k word")


def test_the_hooks_run_what_make_check_runs() -> None:
    """A commit that passes the hooks passes `make check`, which names the files one by one."""
    text = (Path(source.ROOT) / ".pre-commit-config.yaml").read_text(encoding="utf-8")
    hooks = yaml.safe_load(text)["repos"][0]["hooks"]
    entries = [hook["entry"].replace(" --force-exclude", "") for hook in hooks]
    checks = [
        line.removesuffix(" .") for line in _commands("check") if line.startswith(".venv/bin/")
    ]
    setup = (" install", "pip", "compileall")
    assert entries == [line for line in checks if not any(word in line for word in setup)]
