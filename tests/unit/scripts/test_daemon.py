"""Servers behind: when the script that starts one ends."""

import subprocess
from pathlib import Path
from types import SimpleNamespace

import pytest

from ottla.tools.daemons import ServerKind
from ottla_scripts.servers import daemon


def test_script_ends_when_the_command_line_of_its_server_can_be_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A process that is between fork and exec is not known to the script that stops servers."""
    views = iter([False, False, True])
    process = SimpleNamespace(pid=7, poll=lambda: None)
    monkeypatch.setenv("LOG_DIR", str(tmp_path))
    monkeypatch.setattr(subprocess, "Popen", lambda *_, **__: process)
    monkeypatch.setattr(ServerKind, "pid_file", tmp_path / "pids")
    monkeypatch.setattr(ServerKind, "is_process", lambda _, number: number == 7 and next(views))
    assert daemon.start(ServerKind("Sleeper", "", "sleeper", "mark"), ["-"], is_daemon=True) == 0
    assert next(views, None) is None
    assert capsys.readouterr().out.startswith("Sleeper started as process 7")
