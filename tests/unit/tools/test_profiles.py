"""`ottla profile …`, and the address that commands use."""

import os
import stat
from pathlib import Path
from typing import Any

import pytest

from ottla.testing import Cluster
from ottla.tools import main, profiles


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the configuration folder of this test; no variable chooses a cluster."""
    monkeypatch.setenv("OTTLA_CONFIG_DIR", str(tmp_path / "config"))
    monkeypatch.delenv("OTTLA_BOOTSTRAP", raising=False)
    monkeypatch.delenv("OTTLA_PROFILE", raising=False)
    return tmp_path / "config"


def ottla(*command_line: str) -> int:
    """Run a command."""
    return main.run(command_line)


def test_commands_use_the_current_profile(
    ottla_cluster: Cluster, capsys: pytest.CaptureFixture[str]
) -> None:
    """The first profile is the current one; no other option is needed."""
    assert ottla("profile", "create", "dev", "--bootstrap", ottla_cluster.bootstrap) == 0
    assert ottla("topic", "create", "orders") == 0
    capsys.readouterr()
    assert ottla("topic", "list") == 0
    assert "orders" in capsys.readouterr().out


def test_variable_and_option_have_precedence(monkeypatch: pytest.MonkeyPatch) -> None:
    """--bootstrap before OTTLA_BOOTSTRAP before OTTLA_PROFILE before the current profile."""
    ottla("profile", "create", "one", "--bootstrap", "one:1")
    ottla("profile", "create", "two", "--bootstrap", "two:2", "--no-use")
    assert profiles.default_bootstrap() == "one:1"
    monkeypatch.setenv("OTTLA_PROFILE", "two")
    assert profiles.default_bootstrap() == "two:2"


def test_profiles_are_listed_used_and_deleted(capsys: pytest.CaptureFixture[str]) -> None:
    """A deleted current profile leaves none."""
    ottla("profile", "create", "a", "--bootstrap", "a:1")
    ottla("profile", "create", "b", "--bootstrap", "b:1")
    ottla("profile", "use", "a")
    capsys.readouterr()
    ottla("profile", "list", "--output", "json")
    assert '"current": "*",\n    "profile": "a"' in capsys.readouterr().out
    ottla("profile", "delete", "a")
    assert profiles.read() == profiles.Profiles({"b": "b:1"}, "")
    assert profiles.default_bootstrap() == "127.0.0.1:9092"
    ottla("profile", "use", "b")
    ottla("profile", "use", "--none")
    assert profiles.read().current == ""


def test_file_is_private(folder: Path) -> None:
    """Only the owner can read it."""
    ottla("profile", "create", "a", "--bootstrap", "a:1")
    assert stat.S_IMODE((folder / "profiles.json").stat().st_mode) == 0o600
    assert os.listdir(folder) == ["profiles.json"]


@pytest.mark.parametrize(
    ("command_line", "sentence"),
    [
        (["create", "a", "--bootstrap", "a:x"], "'x' is not a port"),
        (["create", "a/b", "--bootstrap", "a:1"], "is not a name for a profile"),
        (["create", "known", "--bootstrap", "a:1"], "add --force"),
        (["use", "other"], "there is no profile 'other' (there are: known)"),
        (["use"], "Name a profile, or give --none"),
        (["delete", "other"], "there is no profile 'other'"),
    ],
)
def test_wrong_profile_changes_nothing(
    folder: Path, command_line: list[str], sentence: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """The file is as before, and the sentence says what to do."""
    ottla("profile", "create", "known", "--bootstrap", "k:1")
    before = (folder / "profiles.json").read_bytes()
    capsys.readouterr()
    assert ottla("profile", *command_line) != 0
    assert sentence in capsys.readouterr().err
    assert (folder / "profiles.json").read_bytes() == before


def test_damaged_file_is_named(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A command without --bootstrap fails with the remedy; one with it does not read the file."""
    folder.mkdir()
    (folder / "profiles.json").write_text("{")
    assert ottla("topic", "list") == 1
    assert "is damaged: remove it" in capsys.readouterr().err
    assert ottla("topic", "list", "--bootstrap", "127.0.0.1:1") == 1
    assert "nothing listens" in capsys.readouterr().err


def test_profile_that_was_removed_is_named(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """OTTLA_PROFILE with an unknown name is an error, not the default cluster."""
    monkeypatch.setenv("OTTLA_PROFILE", "gone")
    assert ottla("topic", "list") == 1
    assert "there is no profile 'gone'" in capsys.readouterr().err


def test_names_of_profiles_are_completed() -> None:
    """Completion reads the file only."""
    ottla("profile", "create", "production", "--bootstrap", "a:1")
    command: Any = main.root.get_command(None, "profile").get_command(None, "use")  # type: ignore[arg-type,union-attr]
    context = command.make_context("use", ["--none"])
    (item,) = command.params[0].shell_complete(context, "prod")
    assert item.value == "production"
