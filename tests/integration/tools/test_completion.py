"""`ottla completion`: the scripts, run by their shells."""

import os
import pty
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from ottla.testing.process import COMMAND

# A line as it is typed, and the only completion of its last word.
_LINES = {
    "ottla top": "topic",
    "ottla topic desc": "describe",
    "ottla topic create --par": "--partitions",
    "ottla learn acks-1-": "acks-1-duplicates",
    "ottla topic list --output j": "json",
    "ottla topic list --output=j": "--output=json",
    "ottla up --config serv": "server.properties",
    "ottla up --config=serv": "--config=server.properties",
    "ottla up --data fold": "folder/",
}
_BASH = """
eval "$(ottla completion bash)"
compopt() { COMPREPLY+=("$2"); }
COMP_WORDS=("$@")
COMP_CWORD=$(($# - 1))
_ottla_completion ottla
printf '%s\\n' "${COMPREPLY[@]}"
"""
_ZSHRC = """
PROMPT=
autoload -Uz compinit
compinit -D -u
eval "$(ottla completion zsh)"
bindkey '^I' complete-word
zle-line-init() { print READY }
zle -N zle-line-init
save() { print -r -- "$BUFFER" > result; exit }
zle -N save
bindkey '^X' save
"""


@pytest.fixture(name="environment")
def _environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """Return an environment whose `ottla` is this one; the current folder has a file and a folder."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "bin").mkdir()
    program = tmp_path / "bin" / "ottla"
    program.write_text(f'#!/bin/sh\nexec {shlex.join(COMMAND)} "$@"\n')
    program.chmod(0o755)
    (tmp_path / "server.properties").touch()
    (tmp_path / "folder").mkdir()
    path = f"{program.parent}{os.pathsep}{os.environ['PATH']}"
    return os.environ | {
        "PATH": path,
        "PYTHONPATH": os.pathsep.join(filter(None, sys.path)),
        "HOME": str(tmp_path),
        "ZDOTDIR": str(tmp_path),
        "TERM": "dumb",
    }


def _run(command: list[str], environment: dict[str, str]) -> list[str]:
    done = subprocess.run(
        command, env=environment, capture_output=True, text=True, timeout=60, check=True
    )
    assert done.stderr == ""
    return done.stdout.splitlines()


@pytest.mark.needs("fish")
@pytest.mark.parametrize("line", _LINES)
def test_fish_completes_a_line(line: str, environment: dict[str, str]) -> None:
    """An option with its value is one word, whose completions begin with the option."""
    program = f"ottla completion fish | source; complete -C {shlex.quote(line)}"
    lines = _run(["fish", "--no-config", "-c", program], environment)
    assert [row.partition("\t")[0] for row in lines] == [_LINES[line]]


@pytest.mark.needs("fish")
def test_fish_shows_whole_descriptions(environment: dict[str, str]) -> None:
    """A description may contain commas."""
    program = "ottla completion fish | source; complete -C 'ottla brok'"
    lines = _run(["fish", "--no-config", "-c", program], environment)
    assert lines == ["broker\tRun and stop brokers, and show their APIs and metrics."]


@pytest.mark.needs("zsh")
@pytest.mark.parametrize("line", _LINES)
def test_zsh_completes_a_line(line: str, environment: dict[str, str], tmp_path: Path) -> None:
    """The Tab key completes the last word on the command line."""
    (tmp_path / ".zshrc").write_text(_ZSHRC)
    process, terminal = pty.fork()
    if process == 0:
        os.execvpe("zsh", ["zsh", "-d", "-i"], environment)
    shown = b""
    while b"READY" not in shown:
        shown += os.read(terminal, 4096)
    os.write(terminal, line.encode() + b"\t\x18")
    try:
        while os.read(terminal, 4096):
            pass
    except OSError:
        # The shell has ended.
        pass
    os.waitpid(process, 0)
    os.close(terminal)
    before = line.rpartition(" ")[0]
    assert (tmp_path / "result").read_text().strip() == f"{before} {_LINES[line]}"


@pytest.mark.needs("bash")
@pytest.mark.parametrize("line", _LINES)
def test_bash_completes_a_line(line: str, environment: dict[str, str]) -> None:
    """Bash splits an option with its value in three words, and completes files itself."""
    words = line.replace("=", " = ").split()
    lines = _run(["bash", "--norc", "-c", _BASH, "bash", *words], environment)
    expected = _LINES[line].rpartition("=")[2]
    assert lines == [
        {"server.properties": "default", "folder/": "dirnames"}.get(expected, expected)
    ]
