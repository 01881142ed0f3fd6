"""The offer of completion in the user's shell."""

from pathlib import Path

import pytest

from ottla.tools.shell.offer import offer_completion


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("OTTLA_CONFIG_DIR", str(tmp_path / "configuration"))
    return tmp_path / "configuration"


def test_completion_is_offered_once(capsys: pytest.CaptureFixture[str]) -> None:
    """The line is the one of the user's shell."""
    offer_completion({"SHELL": "/usr/bin/zsh"})
    assert 'add this line to ~/.zshrc: eval "$(ottla completion zsh)"' in capsys.readouterr().err
    offer_completion({"SHELL": "/usr/bin/zsh"})
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize("shell", ["", "/bin/dash"])
def test_a_shell_without_completion_gets_no_offer(
    shell: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Nothing is printed or stored."""
    offer_completion({"SHELL": shell})
    assert capsys.readouterr().err == ""
    assert not folder.exists()


def test_a_folder_that_cannot_be_written_gets_no_offer(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The offer would be repeated otherwise."""
    folder.write_text("a file")
    offer_completion({"SHELL": "/bin/bash"})
    assert capsys.readouterr().err == ""
