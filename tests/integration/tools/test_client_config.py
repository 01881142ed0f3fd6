"""The properties file of a command: a wrong one is an error, and never a connection in plain text."""

from pathlib import Path
from typing import Any

import pytest

from ottla.base.errors import ConfigError
from ottla.tools.connection.client_config import read_options
from ottla.tools.console.running import clusters_of
from tests.unit.tools.test_every_verb import COMMANDS, WORDS

_NAMES = [
    (name, option)
    for name, command in COMMANDS.items()
    for row in command.params
    for option in row.opts
    if option in ("--command-config", "--to-config") and name != "console"
]
_MORE = {
    "profile create": "x -b h:1",
    "streams run": "a:b",
    "pipeline check": "FILE",
    "pipeline run": "FILE",
    "topic copy": "t u --to h:1",
}


@pytest.mark.parametrize(("name", "option"), _NAMES)
@pytest.mark.parametrize("value", ["", "missing", "."])
def test_file_that_is_none_is_a_usage_error(
    name: str,
    option: str,
    value: str,
    run_alone: Any,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The sentence has the option and the value; no command connects without the file."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("OTTLA_CONFIG_DIR", str(tmp_path / "config"))
    (tmp_path / "FILE").touch()
    words = _MORE.get(name, " ".join(WORDS.get(name, []))).split()
    done = run_alone(*name.split(), *words, option, value)
    assert (done.code, done.out) == (2, b"")
    assert option in done.errors
    sentences = {"missing": "does not exist", ".": "is a directory", "": "must not be blank"}
    assert sentences[value] in done.errors
    assert [path.name for path in tmp_path.iterdir()] == ["FILE"]


@pytest.mark.parametrize(
    ("name", "near"),
    [
        ("security.protocl", "security.protocol"),
        ("sasl_mechanism", "sasl.mechanism"),
        ("sasl.mechansim", "sasl.mechanism"),
        ("ssl.trustore.location", "ssl.truststore.location"),
        ("Security.Protocol", "security.protocol"),
        ("sasl.jaas.conf", "sasl.jaas.config"),
    ],
)
@pytest.mark.parametrize("line", ["topic list", "doctor", "streams reset --application-id a"])
def test_misspelled_option_is_an_error(
    name: str, near: str, line: str, run_alone: Any, tmp_path: Path
) -> None:
    """The sentence has the file, the name and the option that it resembles."""
    file = tmp_path / "client.properties"
    file.write_text(f"{name}=x\n")
    done = run_alone(*line.split(), "--command-config", str(file))
    assert (done.code, done.out) == (1, b"")
    assert f"{file}: {name!r} is not an option of clients: did you mean {near!r}?" in done.errors


@pytest.mark.parametrize("text", ['{"a": 1}', "[1, 2]", "\0", "😀=1", "=x"])
def test_file_of_another_format_is_an_error(text: str, run_alone: Any, tmp_path: Path) -> None:
    """The sentence has the file and what it must contain; no profile gets it."""
    file = tmp_path / "client.properties"
    file.write_text(text)
    for line in ("topic list", "profile create x --bootstrap h:1"):
        done = run_alone(*line.split(), "--command-config", str(file))
        assert (done.code, done.out) == (1, b"")
        assert f"{file}: " in done.errors
        assert "is not the name of an option: name a properties file" in done.errors


def test_other_options_of_clients_are_accepted(tmp_path: Path) -> None:
    """Options of applications and of librdkafka are in the same file."""
    file = tmp_path / "client.properties"
    names = (
        *("acks", "group.id", "my.own", "ssl.crl.location", "ssl.protocol", "ssl.cipher.suites"),
        *("sasl.login.class", "sasl.kerberos.service.name", "security.providers", "sasl.username"),
    )
    file.write_text("".join(f"{name}=x\n" for name in names))
    assert list(read_options(str(file))) == list(names)


def test_file_of_a_profile_that_is_gone_is_an_error(
    run_alone: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The sentence has the file, and what to do."""
    monkeypatch.setenv("OTTLA_CONFIG_DIR", str(tmp_path))
    monkeypatch.delenv("OTTLA_BOOTSTRAP")
    file = tmp_path / "client.properties"
    file.touch()
    assert run_alone("profile", "create", "x", "-b", "h:1", "--command-config", str(file)).code == 0
    file.unlink()
    done = run_alone("topic", "list")
    assert done.code == 1
    assert f"{str(file)!r} cannot be read: No such file or directory: name a" in done.errors


def test_console_does_not_connect_without_its_file() -> None:
    """An empty name of a file is not the same as none."""
    with pytest.raises(ConfigError, match="'' cannot be read"):
        clusters_of(("local=h:1",), {}, {}, {"local": ""})
