"""The command line as a whole: commands, exit codes, errors without tracebacks."""

import json
import socket
import sys
import threading
from importlib.abc import MetaPathFinder
from pathlib import Path

import click
import pytest

import ottla
from ottla.base.errors import ApiError, ConfigError, ErrorCode
from ottla.client.errors import NotReachable, TimedOut
from ottla.tools import main
from ottla.tools.lazy import LazyGroup


class _WithoutScripts(MetaPathFinder):
    """Finds no module of the distribution ottla-scripts, as if it were not installed."""

    def find_spec(self, fullname: str, path: object, target: object = None) -> None:
        """Raise for the package, and leave other modules to the finders after this one."""
        if fullname == "ottla_scripts":
            raise ModuleNotFoundError(name=fullname)


@pytest.fixture
def without_scripts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Remove the package of the scripts from this process."""
    for name in [name for name in sys.modules if name.partition(".")[0] == "ottla_scripts"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setattr(sys, "meta_path", [_WithoutScripts(), *sys.meta_path])


@pytest.fixture
def nowhere() -> str:
    """Return an address on which no process listens."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return f"127.0.0.1:{listener.getsockname()[1]}"


def _commands(group: LazyGroup, path: tuple[str, ...] = ()) -> list[tuple[str, ...]]:
    result = []
    for name in group.verbs:
        inner = main.GROUPS.get(name) if group is main.root else None
        result += _commands(inner, (*path, name)) if inner else [(*path, name)]
    return result


@pytest.mark.parametrize("command_line", _commands(main.root), ids=" ".join)
def test_every_command_has_help(
    command_line: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    """With `--help` each command of the table is imported; each example is on a line of its own."""
    assert main.run([*command_line, "--help"]) == 0
    text = capsys.readouterr().out
    assert f"Usage: ottla {' '.join(command_line)}" in text
    assert not [
        line for line in text.splitlines() if line.count(f"ottla {' '.join(command_line)}") > 1
    ]


@pytest.mark.parametrize("words", [[], ["list"], ["run", "kafka-topics", "--list"], ["--help"]])
def test_scripts_that_are_not_installed_are_a_sentence_with_the_remedy(
    words: list[str], without_scripts: None, capsys: pytest.CaptureFixture[str]
) -> None:
    """`ottla scripts` names the extra that installs the scripts; the list of commands has it."""
    assert main.run(["scripts", *words]) == 1
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err == (
        "ottla: Apache Kafka's scripts are a package of their own: "
        'install it with `pip install "ottla[scripts]"`\n'
    )
    assert main.run(["--help"]) == 0
    assert "scripts" in capsys.readouterr().out


def test_a_shell_completes_no_words_of_scripts_that_are_not_installed(
    without_scripts: None, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The completion prints neither a word nor an error."""
    monkeypatch.setenv("_OTTLA_COMPLETE", "bash_complete")
    monkeypatch.setenv("COMP_WORDS", "ottla scripts r")
    monkeypatch.setenv("COMP_CWORD", "2")
    assert main.run([]) == 0
    assert capsys.readouterr() == ("\n", "")


@pytest.mark.parametrize("noun", ["", *main.GROUPS, "scripts"])
def test_list_of_commands_has_whole_sentences(
    noun: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """click cuts the first sentence of a long help off, unless the command has a short one."""
    assert main.run([*filter(None, [noun]), "--help"]) == 0
    _, _, listed = capsys.readouterr().out.partition("\nCommands:\n")
    assert listed
    assert "..." not in listed


def test_help_names_the_first_steps(capsys: pytest.CaptureFixture[str]) -> None:
    """A newcomer can start a broker, and write and read a record."""
    assert main.run(["--help"]) == 0
    text = capsys.readouterr().out
    assert "ottla up\n  echo hello | ottla produce greetings\n  ottla consume greetings\n" in text


def test_version_is_that_of_the_package(capsys: pytest.CaptureFixture[str]) -> None:
    """The version is defined in one place."""
    assert main.run(["--version"]) == 0
    assert capsys.readouterr().out == f"ottla {ottla.__version__}\n"


@pytest.mark.parametrize(
    ("command_line", "sentence"),
    [
        (["topc"], "Commands: up, broker, produce"),
        (["topic", "lst"], "Commands: create, list"),
        (["topic", "create"], "Missing argument 'NAME'"),
        (["topic", "create", "t", "--partitions", "0"], "0 is not in the range"),
        (["topic", "create", "t", "-c", "x"], "of the form name=value"),
        (["group", "reset", "g"], "exactly one of --to-earliest"),
        (["group", "reset", "g", "--to-latest", "--shift-by", "1"], "exactly one of"),
        (["group", "reset", "g", "--by-duration", "soon"], "use a form like 90s"),
        (["consume", "t", "-f", "%x"], "not a format token"),
        (["consume", "t", "-o", "first"], "use beginning, end"),
        (["produce", "t", "-H", "=x"], "of the form name=value"),
        (["completion", "powershell"], "is not one of 'bash', 'fish', 'zsh'"),
    ],
)
def test_wrong_usage_exits_with_2(
    command_line: list[str], sentence: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """The error says what would be right, before the command connects to a cluster."""
    assert main.run(command_line) == 2
    assert sentence in capsys.readouterr().err


@pytest.mark.parametrize(
    "command_line",
    [
        ["topic", "list"],
        ["topic", "create", "t"],
        ["topic", "delete", "t", "--yes"],
        ["group", "list"],
        ["group", "reset", "g", "--to-latest"],
        ["produce", "t"],
        ["consume", "t"],
        ["consume", "t", "--group", "g"],
    ],
)
def test_unreachable_cluster_is_an_error_with_advice(
    command_line: list[str], nowhere: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """The error is one sentence without a traceback, with exit code 1, and without delay."""
    assert main.run([*command_line, "--bootstrap", nowhere]) == 1
    assert capsys.readouterr() == (
        "",
        f"ottla: nothing listens on {nowhere}: start a broker with `ottla up`, "
        "or name another with --bootstrap HOST:PORT\n",
    )


def test_cluster_address_comes_from_the_environment(
    nowhere: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The variable OTTLA_BOOTSTRAP replaces --bootstrap."""
    monkeypatch.setenv("OTTLA_BOOTSTRAP", nowhere)
    assert main.run(["topic", "list"]) == 1
    assert nowhere in capsys.readouterr().err


@pytest.mark.parametrize(
    ("error", "sentence"),
    [
        (NotReachable("x"), "x: start a broker with `ottla up`"),
        (TimedOut("x"), "x: look at the broker's log"),
        (ApiError(ErrorCode.INVALID_CONFIG, "Bad value."), "Bad value: docs/options.md and"),
        (ApiError(ErrorCode.INVALID_PARTITIONS, "Too few."), "Too few"),
        (ConfigError("Unknown configuration x"), "Unknown configuration x"),
        (PermissionError(13, "Permission denied", "/f"), "/f: Permission denied: change its owner"),
        (OSError(28, "No space left on device", "/f"), "/f: No space left on device: free some"),
    ],
)
def test_each_kind_of_error_has_a_sentence(error: Exception, sentence: str) -> None:
    """The advice comes after the colon."""
    assert main.explain(error).startswith(sentence)


def test_a_listener_that_closes_the_connection_may_need_tls(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Something listens there, so the advice is not to start a broker."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        closer = threading.Thread(target=lambda: server.accept()[0].close())
        closer.start()
        port = server.getsockname()[1]
        assert main.run(["topic", "list", "--bootstrap", f"127.0.0.1:{port}"]) == 1
        closer.join()
    printed = capsys.readouterr().err
    assert "TLS or SASL needs its options (--command-config FILE)" in printed
    assert "start a broker" not in printed


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_is_a_script_of_the_shell(
    shell: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """The script calls `ottla` with the words typed so far."""
    assert main.run(["completion", shell]) == 0
    assert "_OTTLA_COMPLETE" in capsys.readouterr().out


def test_empty_results_are_empty_lists_in_json(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A script never has to distinguish a sentence from a result."""
    (tmp_path / "00000000000000000000.index").touch()
    assert main.run(["log", "dump", str(tmp_path / "00000000000000000000.index"),
                     "--output", "json"]) == 0  # fmt: skip
    assert json.loads(capsys.readouterr().out) == []


@pytest.mark.parametrize(
    ("error", "code"), [(KeyboardInterrupt(), 130), (EOFError(), 1), (click.Abort(), 1)]
)
def test_interrupted_command_has_the_exit_code_of_shells(
    error: BaseException,
    code: int,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """A script can distinguish Ctrl-C from a failure; the reply no is a failure."""

    def fail(**option_values: object) -> None:
        raise error

    command = main.root.get_command(click.Context(main.root), "consume")
    monkeypatch.setattr(command, "callback", fail)
    assert main.run(["consume", "t"]) == code
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err.strip() == "ottla: interrupted before it was complete"
