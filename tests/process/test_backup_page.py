"""The commands of docs/backup.md save a data directory and restore it, in their order."""

import re
import shutil
import subprocess
from pathlib import Path

from ottla.testing.process import COMMAND, BrokerProcess
from tests.law import source

_PATIENCE_S = 60.0


def _lines() -> list[str]:
    page = (source.ROOT / "docs/backup.md").read_text(encoding="utf-8")
    section = page.partition("## One data directory")[2].partition("## Topics of")[0]
    blocks = re.findall(r"```sh\n(.*?)```", section, re.DOTALL)
    return "".join(blocks).splitlines()


def _ottla(broker: BrokerProcess, *words: str, text: str = "") -> str:
    done = subprocess.run(
        [*COMMAND, *words, "--bootstrap", broker.bootstrap],
        input=text,
        capture_output=True,
        text=True,
        timeout=_PATIENCE_S,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_a_restored_data_directory_has_the_records_of_the_backup(tmp_path: Path) -> None:
    """A record that is written after the backup is only in the original."""
    assert [line.split()[:2] for line in _lines()] == [
        ["ottla", "broker"], ["cp", "-a"], ["ottla", "up"], ["cp", "-a"], ["ottla", "up"]
    ]  # fmt: skip
    data = tmp_path / "ottla-data"
    with BrokerProcess(data) as broker:
        _ottla(broker, "produce", "orders", text="before\n")
        broker.stop()
        for line in (_lines()[1], _lines()[3]):
            words = line.split()
            shutil.copytree(tmp_path / words[-2], tmp_path / words[-1])
            if words[-1].endswith(".backup"):
                broker.start()
                _ottla(broker, "produce", "orders", text="after\n")
                broker.stop()
    with BrokerProcess(tmp_path / "restored") as restored:
        read = _ottla(restored, "consume", "orders", "-o", "beginning", "-e", "--quiet")
    assert read.split() == ["before"]
