"""Properties of all commands: JSON, sentences for bad input, help, completion."""

import json
import socket
from collections.abc import Iterator
from typing import Any

import click
import pytest

from ottla.tools import main

# Words that make a complete command line; FILE is an existing file, NEW one that does not exist.
WORDS = {
    "produce": ["t"],
    "consume": ["t", "-e"],
    "topic create": ["t"],
    "topic describe": ["t"],
    "topic config": ["t"],
    "topic add-partitions": ["t", "--total", "2"],
    "topic delete": ["t", "--yes"],
    "topic load": ["t", "FILE"],
    "topic export": ["t", "NEW"],
    "topic search": ["t"],
    "topic copy": ["t", "u"],
    "topic trim": ["t", "--to", "end", "--yes"],
    "group describe": ["g"],
    "group reset": ["g", "--to-latest", "--topic", "t"],
    "group delete": ["g", "--yes"],
    "cluster move": ["t", "--to", "1"],
    "cluster elect": ["t"],
    "acl add": ["--topic", "t", "--allow-principal", "User:u"],
    "acl remove": ["--topic", "t", "--yes"],
    "token renew": ["id"],
    "security certificates": ["--to", "NEW"],
    "token expire": ["id", "--yes"],
    "quota set": ["--user", "u", "--set", "request_percentage=5"],
    "transaction describe": ["x"],
    "transaction producers": ["t"],
    "transaction abort": ["x", "--yes"],
    "metrics set": ["s", "--interval", "30s"],
    "metrics delete": ["s", "--yes"],
    "debug bundle": ["NEW"],
    **{f"perf {verb}": ["t"] for verb in ("produce", "consume", "latency", "verifiable-produce")},
    "perf verifiable-consume": ["t", "--group", "g"],
    "streams describe": ["app"],
    "streams reset": ["--application-id", "app"],
}
# Verbs for clusters that have no --explain. The first sends nothing. The requests of the next two
# come from Spark's source and sink, and the console sends requests until it is stopped.
WITHOUT_EXPLAIN = {"profile create", "streams run", "pipeline run", "console"}


def _commands() -> Iterator[tuple[str, click.Command]]:
    context = click.Context(main.root)
    for name, verb in main.root.verbs.items():
        command = main.root.get_command(context, name)
        assert command is not None
        nested = getattr(command, "verbs", None) or getattr(command, "commands", None)
        if verb.module and nested is None:
            yield name, command
        for below in nested or ():
            result = command.get_command(context, below)  # type: ignore[attr-defined]
            yield f"{name} {below}", result


COMMANDS = dict(_commands())
CONNECTED = [
    name
    for name, command in COMMANDS.items()
    if any(parameter.name == "bootstrap" for parameter in command.params)
    # doctor examines the machine as well, and these read a file first.
    and name not in ("doctor", "profile create", "streams run", "pipeline check", "pipeline run")
]


def test_words_are_complete() -> None:
    """A command that needs words has an entry in WORDS."""
    missing = [
        name
        for name in CONNECTED
        if name not in WORDS and any(parameter.required for parameter in COMMANDS[name].params)
    ]
    assert missing == []


@pytest.fixture(name="nowhere")
def _nowhere() -> str:
    """Return an address at which nothing listens."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return f"127.0.0.1:{probe.getsockname()[1]}"


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_json(name: str) -> None:
    """Every command has the option --output json."""
    (option,) = (row for row in COMMANDS[name].params if "--output" in row.opts)
    assert isinstance(option.type, click.Choice)
    assert "json" in option.type.choices


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_for_clusters_explains_its_requests(name: str) -> None:
    """Every command that sends requests to brokers has the option --explain, and no other has it."""
    names = {word for parameter in COMMANDS[name].params for word in parameter.opts}
    is_for_clusters = bool(names & {"--bootstrap", "--command-config"})
    assert ("--explain" in names) == (is_for_clusters and name not in WITHOUT_EXPLAIN)


@pytest.mark.parametrize("name", COMMANDS)
def test_unknown_option_is_a_usage_error(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    """The exit code is not 0, a sentence has the option, and standard output is empty."""
    assert main.run([*name.split(), "--no-such-option"]) in (1, 2)
    printed = capsys.readouterr()
    assert printed.out == ""
    assert "--no-such-option" in printed.err


@pytest.mark.parametrize("name", COMMANDS)
def test_help_has_a_sentence(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    """The first sentence of the help says what the command does, without a traceback."""
    assert main.run([*name.split(), "--help"]) == 0
    text = capsys.readouterr().out
    assert "Usage: ottla" in text
    assert (COMMANDS[name].help or "").strip()


@pytest.mark.parametrize("name", CONNECTED)
def test_cluster_that_does_not_answer_is_a_sentence(
    name: str, nowhere: str, tmp_path: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    """One line on standard error names the address and the remedy; nothing is written."""
    (tmp_path / "file").write_text("{}")
    arguments = [
        word.replace("FILE", str(tmp_path / "file")).replace("NEW", str(tmp_path / "new"))
        for word in WORDS.get(name, [])
    ]
    code = main.run([*name.split(), *arguments, "--bootstrap", nowhere])
    printed = capsys.readouterr()
    assert code == 1, printed
    assert printed.out == ""
    assert nowhere in printed.err
    assert "Traceback" not in printed.err
    assert "--bootstrap" in printed.err or "start a broker" in printed.err
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


@pytest.mark.parametrize("name", CONNECTED)
def test_wrong_address_is_a_sentence(
    name: str, tmp_path: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    """The invalid part of --bootstrap is quoted."""
    (tmp_path / "file").write_text("{}")
    arguments = [
        word.replace("FILE", str(tmp_path / "file")).replace("NEW", str(tmp_path / "new"))
        for word in WORDS.get(name, [])
    ]
    assert main.run([*name.split(), *arguments, "--bootstrap", "host:port"]) == 1
    printed = capsys.readouterr()
    assert "'port' is not a port from 1 to 65535" in printed.err
    assert printed.out == ""


def test_commands_are_completed(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The shell gets nouns, verbs and options, with their help."""

    def complete(line: str) -> list[str]:
        monkeypatch.setenv("_OTTLA_COMPLETE", "bash_complete")
        monkeypatch.setenv("COMP_WORDS", line)
        monkeypatch.setenv("COMP_CWORD", str(len(line.split()) - (not line.endswith(" "))))
        main.run([])
        return [row.partition(",")[2] for row in capsys.readouterr().out.splitlines()]

    assert complete("ottla clus") == ["cluster"]
    verbs = ["info", "health", "move", "elect", "features", "quorum", "rotate-secret"]
    assert complete("ottla cluster ") == verbs
    assert complete("ottla topic tr") == ["trim"]
    assert "--exactly-once" in complete("ottla topic copy --ex")


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_script_names_the_command(
    shell: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """The script defines a completion for `ottla`."""
    assert main.run(["completion", shell]) == 0
    script = capsys.readouterr().out
    assert "_OTTLA_COMPLETE" in script
    assert main.run(["completion", shell, "--output", "json"]) == 0
    expected = {"shell": shell, "script": script.removesuffix("\n")}
    assert json.loads(capsys.readouterr().out) == expected


@pytest.mark.parametrize("line", ["--output json kafka-topics", "kafka-topics --output json"])
def test_script_is_run_with_json(
    line: str, nowhere: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """`--output json` is accepted before the script's name and among its options."""
    arguments = [*line.split(), "--bootstrap-server", nowhere, "--list"]
    assert main.run(["scripts", "run", *arguments]) == 1
    assert nowhere in json.loads(capsys.readouterr().out)["messages"][0]
