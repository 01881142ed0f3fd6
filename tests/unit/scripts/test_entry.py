"""Scripts are found by their names, installed on request, and have Kafka's help and exit codes."""

import contextlib
import io
import json
import os
import re
import socket
from pathlib import Path

import pytest

from ottla.base.errors import OttlaError
from ottla.base.loading import load_module
from ottla.tools import main
from ottla_scripts import entry
from ottla_scripts.refused import REASONS
from ottla_scripts.servers import zookeeper_lookup
from ottla_scripts.table import SCRIPTS

pytestmark = pytest.mark.slow


@pytest.fixture(name="nowhere")
def _nowhere() -> str:
    """Return an address at which nothing listens."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return f"127.0.0.1:{probe.getsockname()[1]}"


@pytest.mark.parametrize("name", ["kafka-topics", "kafka-topics.sh", "kafka-topics.bat"])
def test_name_may_have_the_suffix_of_a_shell(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    """`--version` prints the version of Apache Kafka that is followed."""
    assert entry.run(name, ["--version"]) == 0
    assert capsys.readouterr().out == "4.3.0\n"


def test_unknown_script_is_an_error(capsys: pytest.CaptureFixture[str]) -> None:
    """The error names the command that lists the scripts."""
    assert entry.run("kafka-nonsense", []) == 1
    assert "`ottla scripts list`" in capsys.readouterr().err


# The last one is a shell script in Apache Kafka.
_SUCCESSFUL_HELP = ("kafka-features", "kafka-storage", "kafka-metadata-quorum", "trogdor")


@pytest.mark.parametrize("name", list(SCRIPTS))
def test_help_is_printed_where_apache_kafka_prints_it(
    name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """joptsimple's is a usage error; argparse4j's is on standard output, with other exit codes."""
    assert entry.run(name, ["--help"]) == (0 if name in _SUCCESSFUL_HELP else 1)
    printed = capsys.readouterr()
    texts = [printed.err, printed.out]
    shown, empty = reversed(texts) if name in (*_ARGPARSE4J, "trogdor") else texts
    assert empty == ""
    assert shown


# The exit code without any word: with a subcommand missing it is 1.
_ARGPARSE4J = {
    "kafka-cluster": 1, "kafka-features": 1, "kafka-transactions": 1, "kafka-storage": 1,
    "kafka-metadata-quorum": 1,
    "kafka-producer-perf-test": 0, "kafka-verifiable-producer": 0, "kafka-verifiable-consumer": 0,
}  # fmt: skip


@pytest.mark.parametrize("name", list(_ARGPARSE4J))
def test_tools_of_argparse4j_have_its_exit_codes(
    name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Without any word, tools with a subcommand report that it is missing, the others print help."""
    assert entry.run(name, []) == _ARGPARSE4J[name]
    printed = capsys.readouterr()
    if _ARGPARSE4J[name]:
        assert "error: too few arguments" in printed.err
    else:
        assert printed.out.startswith("usage: ")
    assert entry.run(name, ["-h"]) == entry.run(name, ["--help"])
    assert entry.run(name, ["-v"]) == 0
    assert capsys.readouterr().out.endswith("4.3.0\n")


@pytest.mark.parametrize("name", list(SCRIPTS))
def test_unknown_option_fails(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    """The exit code is not 0, and standard error has the reason."""
    assert entry.run(name, ["--no-such-option"]) != 0
    assert capsys.readouterr().err


def test_install_prints_its_result_before_its_advice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both are in one stream, as on a terminal."""
    monkeypatch.setenv("PATH", "")
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(printed):
        assert main.run(["scripts", "install", str(tmp_path / "bin")]) == 0
    result, advice = printed.getvalue().splitlines()
    assert result == f"{len(SCRIPTS)} scripts are in {tmp_path / 'bin'}."
    assert advice.startswith("To use them: export PATH=")


def test_install_never_replaces_a_foreign_file(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Nothing is written if one of the names is taken."""
    (tmp_path / "kafka-topics.sh").write_text("#!/bin/bash\n")
    assert main.run(["scripts", "install", str(tmp_path)]) == 1
    assert "kafka-topics.sh is not from this command" in capsys.readouterr().err
    assert os.listdir(tmp_path) == ["kafka-topics.sh"]


@pytest.mark.parametrize("name", ["kafka-nonsense", "com.example.Tool"])
def test_script_that_does_not_exist_is_a_sentence(
    name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """The exit code is 1, and standard error says which there are."""
    assert main.run(["scripts", "run", name]) == 1
    printed = capsys.readouterr()
    assert printed.out == ""
    assert "is not a script of Apache Kafka" in printed.err or "known: " in printed.err


def test_list_names_the_command_of_each_script(capsys: pytest.CaptureFixture[str]) -> None:
    """Every command in the table exists."""
    assert main.run(["scripts", "list", "--output", "json"]) == 0
    rows = json.loads(capsys.readouterr().out)
    assert [row["script"] for row in rows] == list(SCRIPTS)
    for row in rows:
        if row["command"]:
            assert main.run([*row["command"].split()[1:], "--help"]) == 0


@pytest.mark.parametrize("option", ["-help", "--help"])
def test_help_may_have_one_dash(option: str, capsys: pytest.CaptureFixture[str]) -> None:
    """As every option of these tools."""
    assert entry.run("kafka-topics", [option]) == 1
    assert "--partitions" in capsys.readouterr().err
    assert entry.run("kafka-topics", ["-version"]) == 0


@pytest.mark.parametrize(
    "command_line",
    [["--zookeeper", "zk:2181"], ["--zookeeper=zk:2181"], ["-zookeeper", "zk:2181"]],
)
def test_zookeeper_is_asked_for_the_brokers(
    command_line: list[str],
    nowhere: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """The option of old scripts works, and standard error has the modern one."""
    monkeypatch.setattr(zookeeper_lookup, "find_brokers", lambda *connect: nowhere)
    assert entry.run("kafka-topics", [*command_line, "--list"]) == 1
    printed = capsys.readouterr()
    assert f"use --bootstrap-server {nowhere} instead" in printed.err
    assert f"nothing listens on {nowhere}" in printed.out


def test_bootstrap_server_wins_over_zookeeper(
    nowhere: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """A ZooKeeper that is named as well is not looked up."""
    for words in (["--bootstrap-server", nowhere], [f"--bootstrap-server={nowhere}"]):
        assert entry.run("kafka-topics", ["--zookeeper", "zk:2181", *words, "--list"]) == 1
        assert "--zookeeper is ignored" in capsys.readouterr().err


@pytest.mark.parametrize("name", list(REASONS))
def test_unavailable_script_says_so(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    """The sentence names the command to use, if there is one, and the exit code is 1."""
    assert entry.run(f"{name}.sh", []) == 1
    printed = capsys.readouterr().err
    assert printed.startswith(f"{name} is not available: ")
    verb = SCRIPTS[name].verb
    assert printed.endswith(f". Use `ottla {verb}`.\n" if verb else ".\n")


def test_class_name_of_a_tool_runs_its_script(capsys: pytest.CaptureFixture[str]) -> None:
    """`kafka-run-class kafka.tools.GetOffsetShell` is a form of old documents."""
    assert entry.run("kafka-run-class", ["kafka.tools.GetOffsetShell", "--version"]) == 0
    printed = capsys.readouterr()
    assert printed.out == "4.3.0\n"
    assert "is kafka-get-offsets today" in printed.err
    assert entry.run("kafka-run-class", ["com.example.Tool"]) == 1


@pytest.mark.parametrize(
    "command_line", [[], ["missing.properties"], ["--override", "a=b"], ["-daemon"]]
)
def test_server_needs_a_properties_file(
    command_line: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    """Nothing is started without one."""
    assert entry.run("kafka-server-start", command_line) == 1
    assert capsys.readouterr().err


def test_zookeeper_of_a_secured_cluster(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The listeners have the client's protocol, and ZooKeeper may need TLS."""
    looked_up: list[object] = []

    def find(*arguments: object) -> str:
        looked_up.append(arguments)
        raise OttlaError("none")

    monkeypatch.setattr(zookeeper_lookup, "find_brokers", find)
    file = tmp_path / "client.properties"
    file.write_text("security.protocol=SASL_SSL\n")
    words = ["--zookeeper=zk:1", "--zk-tls-config-file", "tls", "--command-config", str(file)]
    assert entry.run("kafka-configs", [*words, "--describe", "--topic", "a"]) == 1
    assert looked_up == [("zk:1", "SASL_SSL", "tls")]
    assert capsys.readouterr().err == "kafka-configs: none\n"


def test_help_has_the_options_of_earlier_versions(capsys: pytest.CaptureFixture[str]) -> None:
    """Every option that works is in the help, with the modern one."""
    for name, script in SCRIPTS.items():
        spec = getattr(load_module(script.module), "SPEC", None)
        if spec is None:
            continue
        entry.run(name, ["--help"])
        printed = capsys.readouterr()
        options = {line.split()[0] for line in (printed.out + printed.err).splitlines() if line}
        assert {f"--{option}" for option in spec.old} <= options
    entry.run("kafka-console-producer", ["--help"])
    assert re.search(
        r"^--broker-list +Of an earlier version: use --bootstrap-server instead\.$",
        capsys.readouterr().err,
        re.MULTILINE,
    )
