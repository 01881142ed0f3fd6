"""`ottla zookeeper secure` and `unsecure`, and the script of the same job, refuse wrong input."""

import socket
from pathlib import Path
from typing import Any, NoReturn

import pytest

from ottla.tools import main
from tests.compat import java

JAAS = 'Client { DigestLoginModule required username="kafka" password="secret"; };'
VERBS = ("secure", "unsecure")


def refused(
    verb: str, capsys: pytest.CaptureFixture[str], connect: str = "127.0.0.1:1", *words: str
) -> str:
    """Run a verb that must fail; return its sentence."""
    assert main.run(["zookeeper", verb, "--connect", connect, *words]) != 0
    printed = capsys.readouterr()
    assert printed.out == ""
    return printed.err


@pytest.fixture
def _login(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "client.conf").write_text(JAAS)
    option = f"-Djava.security.auth.login.config={tmp_path}/client.conf"
    monkeypatch.setenv("KAFKA_OPTS", option)


@pytest.mark.parametrize("verb", VERBS)
@pytest.mark.parametrize(
    ("java_options", "sentence"),
    [
        ("", "set KAFKA_OPTS=-Djava.security.auth.login.config=FILE, a JAAS file"),
        ("-Djava.security.auth.login.config=/none.conf", "'/none.conf' cannot be read (No such"),
        ("-Dname='1", "KAFKA_OPTS cannot be read: No closing quotation"),
    ],
)
def test_user_is_required(
    verb: str,
    java_options: str,
    sentence: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """The sentence says how the user is set."""
    monkeypatch.setenv("KAFKA_OPTS", java_options)
    assert sentence in refused(verb, capsys)


@pytest.mark.usefixtures("_login")
@pytest.mark.parametrize("verb", VERBS)
def test_address_that_is_malformed_is_refused(
    verb: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """The sentence shows the form of an address."""
    assert "'127.0.0.1:x' is not of the form HOST:PORT" in refused(verb, capsys, "127.0.0.1:x")


@pytest.mark.usefixtures("_login")
@pytest.mark.parametrize("verb", [*VERBS, "shell"])
def test_file_of_tls_that_cannot_be_used_is_refused(
    verb: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The file itself, or a key store that it names."""
    path = tmp_path / "tls.properties"
    words = ("--tls-config", str(path))
    assert "tls.properties: No such file or directory" in refused(
        verb, capsys, "127.0.0.1:1", *words
    )
    path.write_text("zookeeper.ssl.client.enable=true\nzookeeper.ssl.keystore.location=/a.jks\n")
    sentence = refused(verb, capsys, "127.0.0.1:1", *words)
    assert "zookeeper.ssl.keystore.location=/a.jks is a Java key store" in sentence


@pytest.mark.usefixtures("_login")
@pytest.mark.parametrize("verb", VERBS)
def test_ensemble_that_does_not_answer_is_a_sentence(
    verb: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """It names the address, and what to do."""
    (port,) = java.free_ports(1)
    address = f"127.0.0.1:{port}"
    monkeypatch.setattr("ottla.tools.zookeeper.securing.CONNECT_MS", 200)
    sentence = refused(verb, capsys, address, "--output", "json")
    assert f"{address} does not respond within 0.2 s: start it, or name another" in sentence


@pytest.mark.usefixtures("_login")
@pytest.mark.parametrize("connect", ["nohost:1", "nohost:1,nowhere/kafka"])
@pytest.mark.parametrize("verb", [*VERBS, "shell", "import"])
def test_unknown_host_is_reported_at_once(
    verb: str,
    connect: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """A mistyped name does not look like a server that is down."""

    def resolve(*_: Any, **__: Any) -> NoReturn:
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    monkeypatch.setattr(socket, "getaddrinfo", resolve)
    words = ["--data", str(tmp_path)] if verb == "import" else []
    sentence = refused(verb, capsys, connect, *words)
    assert f"ZooKeeper's host is not known: {connect.partition('/')[0]}" in sentence
    assert "Correct the name" in sentence
