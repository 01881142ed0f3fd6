"""The five minutes of README.md and the first page run in their order, in an empty folder."""

import os
import re
import shlex
import subprocess
from pathlib import Path

import pytest

from ottla.testing.process import COMMAND, BrokerProcess
from tests.law import source

pytestmark = pytest.mark.slow

_PATIENCE_S = 60.0


def _section() -> str:
    readme = (source.ROOT / "README.md").read_text(encoding="utf-8")
    return readme.partition("## Five minutes\n")[2].partition("## Three doors")[0]


def test_commands_of_the_first_page_run_in_order(tmp_path: Path) -> None:
    """All succeed beside the broker of the first block, and the records are printed as shown."""
    blocks = re.findall(r"```sh\n(.*?)```(?:\n\n```text\n(.*?)```)?", _section(), re.DOTALL)
    (start, _), *others = blocks
    assert shlex.split(start, comments=True) == ["ottla", "up"]
    with BrokerProcess(tmp_path / "data") as broker:
        environment = {**os.environ, "OTTLA_BOOTSTRAP": broker.bootstrap}
        for commands, shown in others:
            done = subprocess.run(
                commands.replace("ottla ", f"{shlex.join(COMMAND)} "),
                shell=True,
                capture_output=True,
                text=True,
                cwd=tmp_path,
                env=environment,
                timeout=_PATIENCE_S,
                check=False,
            )
            assert done.returncode == 0, done.stderr
            if shown:
                lines = done.stdout.splitlines()
                assert [line for line in lines if line.startswith("hello")] == shown.splitlines()
