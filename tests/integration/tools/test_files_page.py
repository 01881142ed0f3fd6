"""The commands of docs/files.md run as shown."""

import re
import shlex
from pathlib import Path

import pytest

from ottla.testing import Cluster
from tests.integration.tools.conftest import Run
from tests.law import source

pytestmark = pytest.mark.slow

_PAGE = (source.ROOT / "docs/files.md").read_text(encoding="utf-8")
_BLOCKS = re.findall(r"```sh\n(.*?)```", _PAGE, re.DOTALL)


def _commands(block: str) -> list[list[str]]:
    return [shlex.split(line, comments=True)[1:] for line in block.splitlines()]


def test_commands_of_the_page_run_as_shown(
    run: Run, ottla_cluster: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A refused row is reported in the words of the page, and a backup restores each record."""
    monkeypatch.chdir(tmp_path)
    Path("flights.csv").write_text('carrier,dep_delay,note\nUA,5,"a\nb"\nAA,,""\n')
    Path("more.csv").write_text("carrier,dep_delay\nUA,1\nDL,late\nAA,2\n")
    tour, refusing = _BLOCKS
    for words in _commands(tour):
        done = run(*words)
        assert done.code == 0, done.errors
    assert Path("today").is_dir()
    original, copied = (
        sorted(run("consume", topic, "-e", "-q", "-J").out.splitlines())
        for topic in ("flights", "flights-2")
    )
    assert [line.replace(b'"flights"', b'"flights-2"') for line in original] == copied
    assert len(copied) == 2
    (words,) = _commands(refusing)
    done = run(*words)
    shown = re.findall(r"```text\n(.*?)```", _PAGE, re.DOTALL)
    assert [done.errors + done.out.decode()] == shown
    assert Path("refused.csv").read_text() == "carrier,dep_delay\nDL,late\n"
