"""References to secrets in options of the command line."""

from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from ottla.base.errors import ConfigError
from ottla.client.security.private_files import write_private
from ottla.tools import options
from ottla.tools.connection.references import is_exposed, resolve


def test_references_are_replaced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also several of them inside of a value; other texts stay as they are."""
    monkeypatch.setenv("OTTLA_TEST_PASSWORD", "from env")
    file = tmp_path / "secrets.properties"
    file.write_text("password=from file\n")
    (tmp_path / "token").write_text("from a file of its own\n")
    assert resolve("x", "${env:OTTLA_TEST_PASSWORD}") == "from env"
    assert resolve("x", f"${{file:{file}:password}}") == "from file"
    assert resolve("x", f"${{directory:{tmp_path}:token}}") == "from a file of its own"
    jaas = 'Module required username="a" password="${env:OTTLA_TEST_PASSWORD}";'
    assert resolve("x", jaas) == 'Module required username="a" password="from env";'
    assert resolve("x", "${other:a:b} $x ${") == "${other:a:b} $x ${"


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("${env:OTTLA_TEST_ABSENT}", "no variable 'OTTLA_TEST_ABSENT'"),
        ("${file:/absent:key}", "/absent cannot be read: No such file"),
        ("${file:nothing}", r"not of the form \$\{file:PATH:KEY\}"),
        ("${directory:/etc:../passwd}", "not the name of a file in /etc"),
    ],
)
def test_wrong_reference_is_named(text: str, reason: str) -> None:
    """A secret that is missing is not an empty one."""
    with pytest.raises(ConfigError, match=f"ssl.key.password: .*{reason}"):
        resolve("ssl.key.password", text)


@pytest.mark.parametrize(
    ("name", "is_secret"),
    [
        *[(name, True) for name in (
            "ssl.key.password", "sasl.password", "sasl.jaas.config", "ssl.keystore.key",
            "listener.name.a.plain.sasl.jaas.config", "delegation.token.secret.key",
            "sasl.oauthbearer.client.secret", "zookeeper.ssl.keystore.password",
            "basic.auth.user.info",
        )],
        *[(name, False) for name in (
            "num.partitions", "ssl.keystore.location", "delegation.token.max.lifetime.ms",
            "sasl.oauthbearer.token.endpoint.url", "key.serializer", "linger.ms",
        )],
    ],
)  # fmt: skip
def test_secret_options_are_known_by_their_names(name: str, is_secret: bool) -> None:
    """An empty value and a reference expose nothing."""
    assert is_exposed(name, "x") is is_secret
    assert not is_exposed(name, "")
    assert not is_exposed(name, "${env:X}")


@click.command
@click.option("-o", "settings", multiple=True, callback=options.parse_settings)
def show(settings: dict[str, str]) -> None:
    """Print the options."""
    click.echo(settings)


def test_exposed_secret_is_used_with_a_warning(monkeypatch: pytest.MonkeyPatch) -> None:
    """The warning says where the secret can be read, and how to write the option."""
    monkeypatch.setenv("OTTLA_TEST_PASSWORD", "hidden")
    arguments = ["-o", "ssl.key.password=visible", "-o", "a=b"]
    done = CliRunner().invoke(show, arguments)
    assert "{'ssl.key.password': 'visible', 'a': 'b'}" in done.stdout
    assert "can read ssl.key.password in the list of processes" in done.stderr
    assert "visible" not in done.stderr
    done = CliRunner().invoke(show, ["-o", "ssl.key.password=${env:OTTLA_TEST_PASSWORD}"])
    assert "{'ssl.key.password': 'hidden'}" in done.stdout
    assert done.stderr == ""


def test_private_file_is_readable_by_its_owner_only(tmp_path: Path) -> None:
    """Also one that others could read before."""
    path = tmp_path / "broker1.properties"
    path.write_text("old")
    path.chmod(0o644)
    write_private(path, "new")
    assert path.read_text() == "new"
    assert path.stat().st_mode & 0o777 == 0o600
    assert list(tmp_path.iterdir()) == [path]
