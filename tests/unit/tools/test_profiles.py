"""`ottla profile …`, and the address that commands use."""

import json
import os
import stat
from pathlib import Path
from typing import Any

import pytest

from ottla.base.errors import ConfigError
from ottla.client.brokers import Brokers
from ottla.client.config.access import ClusterAccess
from ottla.tools import main, profiles
from ottla.tools.connection.client_config import access_of, access_with, configure


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the configuration folder of this test; no variable chooses a cluster."""
    monkeypatch.setenv("OTTLA_CONFIG_DIR", str(tmp_path / "config"))
    monkeypatch.delenv("OTTLA_BOOTSTRAP", raising=False)
    monkeypatch.delenv("OTTLA_PROFILE", raising=False)
    monkeypatch.delenv("OTTLA_COMMAND_CONFIG", raising=False)
    return tmp_path / "config"


def ottla(*command_line: str) -> int:
    """Run a command."""
    return main.run(command_line)


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


@pytest.mark.parametrize(
    "text",
    [
        *("{", "[]", "5", "\0", "[" * 100_000, '{"profiles": []}', '{"profiles": {"a": null}}'),
        '{"profiles": {"a": "h:1"}, "current": 5}',
        '{"profiles": {"a": "h:1"}, "configs": {"a": 5}}',
    ],
)
def test_damaged_file_is_named(text: str, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A command without --bootstrap fails with the remedy; one with it does not read the file."""
    folder.mkdir()
    (folder / "profiles.json").write_text(text)
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


def write_config(folder: Path, text: str) -> str:
    """Write a properties file with options of clients, and return its path."""
    path = folder.parent / "client.properties"
    path.write_text(text)
    return str(path)


def test_deletion_of_the_current_profile_names_the_address_of_later_commands(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Otherwise the next command would surprise with another cluster."""
    ottla("profile", "create", "a", "--bootstrap", "a:1")
    ottla("profile", "create", "b", "--bootstrap", "b:1", "--no-use")
    capsys.readouterr()
    ottla("profile", "delete", "b")
    assert capsys.readouterr().out == "Deleted profile b.\n"
    ottla("profile", "delete", "a")
    assert capsys.readouterr().out == "Deleted profile a; commands use 127.0.0.1:9092 now.\n"


def test_files_of_options_are_listed_and_deleted_with_their_profile(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """`use` keeps them."""
    config = write_config(folder, "client.id=ann\n")
    ottla("profile", "create", "a", "--bootstrap", "a:1", "--command-config", config)
    ottla("profile", "create", "b", "--bootstrap", "b:1")
    ottla("profile", "use", "a")
    capsys.readouterr()
    ottla("profile", "list", "--output", "json")
    assert [row["command_config"] for row in json.loads(capsys.readouterr().out)] == [config, None]
    ottla("profile", "delete", "a")
    assert profiles.read() == profiles.Profiles({"b": "b:1"})


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("security.protocol=TLS\n", "security.protocol=TLS: use PLAINTEXT, SSL"),
        ("security.protocol=SASL_SSL\nsasl.mechanism=GSSAPI\n", "GSSAPI is not supported"),
        ("security.protocol=SASL_PLAINTEXT\nsasl.mechanism=PLAIN\n", "username"),
    ],
)
def test_a_wrong_file_of_options_creates_no_profile(
    folder: Path, text: str, sentence: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """The sentence names the option."""
    config = write_config(folder, text)
    command = ("profile", "create", "a", "--bootstrap", "a:1", "--command-config", config)
    assert ottla(*command) == 1
    assert sentence in capsys.readouterr().err
    assert not folder.exists()


def test_options_of_a_file_reach_every_kind_of_connection(folder: Path) -> None:
    """librdkafka and Spark get what the blocking connections get; other options have no effect."""
    text = (
        "security.protocol=SSL\nssl.endpoint.identification.algorithm=\ngroup.id=g\nclient.id=ann\n"
    )
    path, brokers = write_config(folder, text), Brokers("b:1")
    configure(brokers, path)
    secured = {"security.protocol": "SSL", "ssl.endpoint.identification.algorithm": "none"}
    assert brokers.settings == {**secured, "client.id": "ann"}
    assert access_of(brokers) == ClusterAccess("b:1", secured)
    name = "ssl.endpoint.identification.algorithm"
    assert access_with("b:1", path) == ClusterAccess("b:1", {**secured, name: ""})
    assert access_with("b:1", "") == ClusterAccess("b:1")


def test_a_wrong_file_of_options_is_explained(folder: Path) -> None:
    """Before any connection, for the commands on Spark, too."""
    with pytest.raises(ConfigError, match=r"security\.protocol=TLS"):
        access_with("b:1", write_config(folder, "security.protocol=TLS"))
