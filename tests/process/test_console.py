"""`ottla up --console` and `ottla console`, as users start them."""

import json
import re
import signal
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from ottla.testing.process import COMMAND, run_command
from ottla.testing.schema_registry import FakeSchemaRegistry
from tests.certificates import self_signed
from tests.console.session import ConsoleSession
from tests.unit.client.schemas.registered import register_avro

pytestmark = pytest.mark.slow

_ADDRESS = re.compile(
    r"The console is on (http://127\.0\.0\.1:\d+): "
    r"log in as admin with the one-time password (\S+)\n"
)
_LINK = re.compile(
    r"The console is on ((http://127\.0\.0\.1:\d+)/login\?token=\S+) \(valid once\)\n"
)
_OWN = "a password of my own"


@contextmanager
def started(*words: str) -> Iterator["subprocess.Popen[str]"]:
    """Run a command and kill it at the end if it still runs."""
    process = subprocess.Popen(
        [*COMMAND, *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    try:
        yield process
    finally:
        process.kill()
        process.communicate(timeout=20)


def read_address(process: "subprocess.Popen[str]") -> tuple[str, str]:
    """Return address and one-time password from the output."""
    address, password = read_line(process, _ADDRESS).groups()
    return address, password


def linked_session(process: "subprocess.Popen[str]") -> ConsoleSession:
    """Return a session that the link in the output has opened."""
    link, url = read_line(process, _LINK).groups()
    session = ConsoleSession(url)
    assert session.get(link.removeprefix(url)).status == 200
    return session


def read_line(process: "subprocess.Popen[str]", pattern: re.Pattern[str]) -> re.Match[str]:
    """Return the first line of the output that matches."""
    assert process.stdout is not None
    for line in process.stdout:
        match = pattern.fullmatch(line)
        if match is not None:
            return match
    assert process.stderr is not None
    raise AssertionError(process.stderr.read())


def test_the_console_starts_beside_the_broker_and_stops_with_it(tmp_path: Path) -> None:
    """On loopback the address logs in once; an admin with a password logs in with it."""
    arguments = ["up", "--port", "0", "--console", "--console-port", "0", "--data", str(tmp_path)]
    with started(*arguments) as process:
        link, url = read_line(process, _LINK).groups()
        session = ConsoleSession(url)
        path = link.removeprefix(url)
        assert "healthy" in session.get(path).text
        assert "has been used" in ConsoleSession(url).get(path).text
        form = {"new": _OWN, "again": _OWN}
        assert "healthy" in session.post("/account", "password", form).text
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=20)
        assert (process.returncode, errors) == (0, "Ottla has stopped.\n")
    with started(*arguments, "--output", "json") as process:
        assert process.stdout is not None
        facts = [json.loads(process.stdout.readline()) for _ in range(2)]
        assert facts[1].keys() == {"console"}
        assert "healthy" in ConsoleSession(facts[1]["console"]).login("admin", _OWN).text


@pytest.mark.slow
def test_the_console_of_several_processes_browses_their_metadata(tmp_path: Path) -> None:
    """With --processes the console runs beside the supervisor, and reads the metadata as ZooKeeper.

    Slow, because two brokers start as processes: only there the metadata has an address.
    """
    arguments = ["up", "--brokers", "2", "--processes", "--port", "0", "--console"]
    with started(*arguments, "--console-port", "0", "--data", str(tmp_path)) as process:
        session = linked_session(process)
        session.post("/account", "password", {"new": _OWN, "again": _OWN})
        assert session.get("/c/local/brokers").text.count("/c/local/brokers/") >= 2
        assert "controller_epoch" in session.get("/c/local/zookeeper").text
        assert "brokerid" in session.get("/c/local/zookeeper?path=/controller").text
        secret = session.get("/c/local/zookeeper?path=/ottla/broker_secret").text
        assert "••••••" in secret
        assert "&#34;secret&#34;" not in secret
        assert session.get("/c/local/zookeeper?path=/nowhere").status == 400
        assert session.get("/c/local/zookeeper?command=kill").status == 400
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=30)
        assert process.returncode == 0


def test_a_taken_port_stops_the_start_before_the_broker(tmp_path: Path) -> None:
    """The error names the option, and no data directory is left behind."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        arguments = ["up", "--port", "0", "--console", "--console-port", port]
        done = run_command(*arguments, "--data", str(tmp_path / "data"))
    assert done.returncode == 1
    assert "choose another port with --console-port" in done.stderr.decode()
    assert not (tmp_path / "data").exists()


def test_the_console_beside_the_broker_has_a_schema_registry(tmp_path: Path) -> None:
    """The subjects of the registry are a page, and an address that is none is refused."""
    with FakeSchemaRegistry() as registry:
        register_avro(registry, "orders-value")
        address = ("--console-schema-registry", registry.url)
        arguments = ["up", "--port", "0", "--console", "--console-port", "0", *address]
        with started(*arguments, "--data", str(tmp_path / "data")) as process:
            session = linked_session(process)
            session.post("/account", "password", {"new": _OWN, "again": _OWN})
            assert ">orders-value</a>" in session.get("/c/local/schemas").text
    words = ["up", "--port", "0", "--console-schema-registry", "localhost:8081"]
    for refused, reason in ((words, "add --console"), ([*words, "--console"], "is not an address")):
        done = run_command(*refused, "--data", str(tmp_path / "other"))
        assert done.returncode == 1
        assert reason in done.stderr.decode()


def test_the_console_logs_in_to_a_broker_without_a_plain_listener(tmp_path: Path) -> None:
    """It uses the broker's certificate and the user in its login module; passwords stay hidden."""
    certificate = self_signed(tmp_path)
    module = "org.apache.kafka.common.security.plain.PlainLoginModule"
    config = tmp_path / "server.properties"
    config.write_text(
        "listeners=SASL_SSL://127.0.0.1:0\n"
        "sasl.enabled.mechanisms=PLAIN\n"
        "listener.name.sasl_ssl.plain.sasl.jaas.config="
        f'{module} required username="b" password="pw-of-b" user_b="pw-of-b";\n'
        f"ssl.keystore.location={certificate}\n"
    )
    arguments = ["up", "--config", str(config), "--console", "--console-port", "0"]
    with started(*arguments, "--data", str(tmp_path / "data")) as process:
        session = linked_session(process)
        form = {"new": _OWN, "again": _OWN}
        text = session.post("/account", "password", form).text
        assert "healthy" in text
        assert "pw-of-b" not in text
        process.send_signal(signal.SIGINT)
        assert "pw-of-b" not in "".join(process.communicate(timeout=20))


def test_a_console_without_a_user_stops_the_start_before_the_broker(tmp_path: Path) -> None:
    """The error names the option that is missing."""
    config = tmp_path / "server.properties"
    config.write_text(
        "listeners=SASL_PLAINTEXT://127.0.0.1:0\nsasl.enabled.mechanisms=SCRAM-SHA-512\n"
    )
    done = run_command("up", "--config", str(config), "--console", "--data", str(tmp_path / "data"))
    assert done.returncode == 1
    option = "listener.name.sasl_plaintext.scram-sha-512.sasl.jaas.config"
    assert "The console has no user for the listener SASL_PLAINTEXT: add" in done.stderr.decode()
    assert option in done.stderr.decode()
    assert not (tmp_path / "data").exists()


def test_a_console_of_its_own_resets_a_lost_password(tmp_path: Path) -> None:
    """`ottla console` starts although its clusters cannot be reached, and resets a password without
    a start.
    """
    arguments = ["console", "--data", str(tmp_path), "--console-port", "0"]
    with started(*arguments, "--cluster", "test=127.0.0.1:1") as process:
        url, password = read_address(process)
        assert ConsoleSession(url).login("admin", password).status == 200
        process.send_signal(signal.SIGTERM)
        _, errors = process.communicate(timeout=20)
        assert (process.returncode, errors) == (0, "The console has stopped.\n")
    done = run_command(*arguments, "--reset-password", "admin")
    assert done.stdout.decode().startswith("The one-time password of admin is ")
    assert run_command(*arguments, "--reset-password", "nobody").returncode == 1
    assert run_command(*arguments).returncode == 2


@pytest.mark.parametrize(
    "arguments",
    [
        ("up", "--port", "0", "--console", "--console-host", "0.0.0.0"),
        ("console", "--cluster", "local=127.0.0.1:1", "--console-host", "0.0.0.0"),
    ],
    ids=["up", "console"],
)
def test_address_without_encryption_must_be_allowed(
    tmp_path: Path, arguments: tuple[str, ...]
) -> None:
    """The error says what to do; with the option, or in console.toml, each start warns."""
    data = tmp_path / "data"
    words = [*arguments, "--console-port", "0", "--data", str(data)]
    done = run_command(*words)
    assert done.returncode == 1
    assert "passwords and sessions" in done.stderr.decode()
    assert "--insecure" in done.stderr.decode()
    assert not (data / "console.sqlite3").exists()
    option = "--console-insecure" if arguments[0] == "up" else "--insecure"
    with started(*words, option) as process:
        url, _ = read_address(process)
        assert ConsoleSession(url).get("/login").status == 200
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=20)
        assert "Warning: the console does not encrypt: on 0.0.0.0" in errors
    (data / "console.toml").write_text("[server]\nallow_insecure = true\n")
    with started(*words) as process:
        assert process.stderr is not None
        assert any("Warning: the console does not encrypt" in line for line in process.stderr)
