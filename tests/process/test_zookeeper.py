"""`ottla zookeeper start` and `shell`: a real ZooKeeper from the jars inside PySpark."""

import asyncio
import json
import os
import signal
import socket
import struct
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from ottla.cluster.zk import tree_login
from ottla.cluster.zk.live import LiveSession
from ottla.cluster.zk.port import SessionState
from ottla.testing.process import BrokerProcess, ZooKeeperProcess, run_command
from ottla.tools.broker.processes import free_port
from ottla.tools.daemons import ZOOKEEPER
from ottla.tools.zookeeper.java_server import java_command
from tests.process import zookeeper_servers as servers

# ConnectRequest: protocol version, last zxid, timeout, session id, password with its length.
_CONNECT_REQUEST = struct.Struct(">iqiqi16s")


pytestmark = [
    pytest.mark.compat,
    pytest.mark.needs("zookeeper"),
    pytest.mark.slow,
]


@pytest.fixture
def zookeeper(tmp_path: Path) -> Iterator[ZooKeeperProcess]:
    """One ZooKeeper."""
    with ZooKeeperProcess(tmp_path / "zookeeper") as running:
        yield running


@pytest.fixture(name="shared", scope="module")
def _shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ZooKeeperProcess]:
    """One ZooKeeper for the tests that do not stop it."""
    with ZooKeeperProcess(tmp_path_factory.mktemp("shared") / "zookeeper") as running:
        yield running


def _shell(address: str, *words: str, lines: str = "") -> tuple[int, str, str]:
    done = run_command("zookeeper", "shell", "--connect", address, *words, stdin=lines.encode())
    return done.returncode, done.stdout.decode(), done.stderr.decode()


def test_zookeeper_starts_and_stops_cleanly(zookeeper: ZooKeeperProcess) -> None:
    """The data survives a stop by SIGTERM, which ends with exit code 0."""
    assert _shell(zookeeper.connect, "create", "/a", "kept") == (0, "Created /a\n", "")
    assert zookeeper.stop() == (0, "ZooKeeper has stopped.\n")
    zookeeper.start()
    assert _shell(zookeeper.connect, "get", "/a") == (0, "kept\n", "")


def test_zookeeper_is_stopped_by_its_folder(zookeeper: ZooKeeperProcess, tmp_path: Path) -> None:
    """`ottla zookeeper stop` ends the servers and the process that runs them, and waits for that."""
    words = ("zookeeper", "stop", "--data", str(zookeeper.data))
    elsewhere = run_command(*words[:3], str(tmp_path / "other"))
    assert (elsewhere.returncode, elsewhere.stdout) == (1, b"")
    assert b"no ZooKeeper runs in" in elsewhere.stderr
    stopped = run_command(*words, "--output", "json")
    assert (stopped.returncode, stopped.stderr) == (0, b"")
    process = zookeeper._process
    assert process is not None
    assert json.loads(stopped.stdout) == {"process_ids": [process.pid]}
    assert not any(ZOOKEEPER.is_process(number) for number in zookeeper.process_ids)
    assert zookeeper.stop() == (0, "ZooKeeper has stopped.\n")
    assert run_command(*words).returncode == 1


def test_folder_is_used_by_one_zookeeper(shared: ZooKeeperProcess) -> None:
    """A second start in the same folder is refused, and the first one continues."""
    words = ("--port", "0", "--data", str(shared.data))
    second = run_command("zookeeper", "start", *words)
    assert (second.returncode, second.stdout) == (1, b"")
    assert b"stop that ZooKeeper with `ottla zookeeper stop --data" in second.stderr
    assert _shell(shared.connect, "ls", "/zookeeper") == (0, "[config, quota]\n", "")


def test_shell_reads_commands_and_continues_after_errors(shared: ZooKeeperProcess) -> None:
    """Commands come from standard input; a failed one is reported and the next one runs."""
    code, output, errors = _shell(
        shared.connect, lines='create /a "two words"\nget /none\nget /a\nquit\nget /a\n'
    )
    assert (code, output) == (0, "Created /a\ntwo words\n")
    assert errors == "Node does not exist: /none\n"


def test_one_command_that_fails_ends_with_1(shared: ZooKeeperProcess) -> None:
    """The exit code 1 of a failed command lets scripts test for a node."""
    expected = (1, "", "ottla: Node does not exist: /none\n")
    assert _shell(shared.connect, "stat", "/none") == expected


def test_shell_does_not_create_the_path_of_its_address(shared: ZooKeeperProcess) -> None:
    """A mistyped one has no nodes, as in ZooKeeper's own shell."""
    expected = (1, "", "ottla: Node does not exist: /\n")
    assert _shell(f"{shared.connect}/mistyped", "ls", "/") == expected
    assert "mistyped" not in _shell(shared.connect, "ls", "/")[1]


def _granted_ms(address: str, timeout_ms: int) -> int:
    """Return the session timeout that a server grants to a client that asks for `timeout_ms`."""
    host, _, port = address.partition(":")
    request = _CONNECT_REQUEST.pack(0, 0, timeout_ms, 0, 16, bytes(16))
    with socket.create_connection((host, int(port)), 10) as connection:
        connection.sendall(len(request).to_bytes(4, "big") + request)
        # The length and the version of the protocol are before the timeout.
        response = connection.recv(12, socket.MSG_WAITALL)
    return int.from_bytes(response[8:12], "big")


def test_sessions_are_as_long_as_clients_request(shared: ZooKeeperProcess, tmp_path: Path) -> None:
    """Sessions of 18 s, the default of brokers, and of 30 s are granted in full."""
    with servers.zookeeper(tmp_path / "other") as other:
        granted = [
            _granted_ms(address, timeout_ms)
            for address in (shared.connect, other.address)
            for timeout_ms in (18_000, 30_000)
        ]
    assert granted == [18_000, 30_000] * 2


async def _is_leader(address: str) -> bool:
    host, _, port = address.partition(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    writer.write(b"srvr")
    response = await reader.read()
    writer.close()
    return b"Mode: leader" in response


async def test_sessions_survive_the_death_of_the_leader(tmp_path: Path) -> None:
    """After kill -9 of one of three servers a session continues with its id and its ephemeral node."""
    with ZooKeeperProcess(tmp_path / "zookeeper", nodes=3) as ensemble:
        session = await LiveSession.begin(ensemble.connect)
        session_id = session.session_id
        states: asyncio.Queue[SessionState] = asyncio.Queue()
        session.on_session(states.put_nowait)
        await session.create("/mine", b"data", ephemeral=True)
        addresses = ensemble.connect.split(",")
        leaders = [await _is_leader(address) for address in addresses]
        number = leaders.index(True)
        os.kill(ensemble.process_ids[number], signal.SIGKILL)
        async with asyncio.timeout(30):
            assert await states.get() is SessionState.SUSPENDED
            assert await states.get() is SessionState.CONNECTED
        await session.set("/mine", b"new")
        data, stat = await session.get("/mine")
        assert (data, stat.ephemeral_owner, session.session_id) == (b"new", session_id, session_id)
        await session.close()
        code, errors = ensemble.stop()
        assert code == 0
        assert f"ZooKeeper server {number + 1} has ended (exit code -9); 2 of 3" in errors


def test_zookeepers_own_shell_works_on_the_brokers_tree(tmp_path: Path) -> None:
    """Java's client reads, writes and watches the tree that brokers share without a ZooKeeper."""
    address = f"127.0.0.1:{free_port(is_any=True)}"
    options = {"coordination.listener": address}
    lines = ["ls /brokers/ids", "create /a data", "get -w /a", "set /a new", "get -s /a", "quit"]
    program, *words = java_command()[:-1]
    # From ZooKeeper 3.9 on, Java's clients have DIGEST-MD5 without FIPS mode only.
    login = tree_login.java_options(f"{tmp_path}/data"), "-Dzookeeper.fips-mode=false"
    shell = [program, *login, *words, "org.apache.zookeeper.ZooKeeperMain", "-server", address]
    with BrokerProcess(tmp_path / "data", options=options):
        done = subprocess.run(
            shell, input="\n".join(lines) + "\n", capture_output=True, text=True, timeout=60
        )
    assert "[1]" in done.stdout, done.stdout + done.stderr
    assert "Created /a" in done.stderr
    assert "type:NodeDataChanged path:/a" in done.stdout
    assert "dataVersion = 1" in done.stdout
