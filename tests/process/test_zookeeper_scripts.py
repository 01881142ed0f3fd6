"""`zookeeper-server-start`, `zookeeper-server-stop` and `zookeeper-shell` with a real ZooKeeper."""

import os
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from ottla.testing.process import COMMAND
from ottla.tools.broker.processes import free_port

pytestmark = [
    pytest.mark.compat,
    pytest.mark.needs("zookeeper"),
    pytest.mark.slow,
]
_SCRIPT = "from ottla_scripts.entry import main; main({!r})"
_START_S = 60
_ROOT = Path(__file__).parents[2]


class _ZooKeeper:
    """The properties file of a server, and scripts that run with a folder of their own."""

    def __init__(self, folder: Path) -> None:
        self.port = free_port(is_any=True)
        self.address = f"127.0.0.1:{self.port}"
        self.file = folder / "zookeeper.properties"
        rows = (
            f"dataDir={folder}/data", f"clientPort={self.port}", "clientPortAddress=127.0.0.1",
            "admin.enableServer=false",
        )  # fmt: skip
        self.file.write_text("\n".join(rows) + "\n")
        # The process ids of servers are in the folder for temporary files.
        self.environment = os.environ | {"TMPDIR": str(folder), "LOG_DIR": str(folder)}

    def command(self, name: str, *words: str) -> list[str]:
        """Return the command line of a script."""
        return [sys.executable, "-c", _SCRIPT.format(name), *words]

    def run(self, name: str, *words: str, lines: str = "") -> tuple[int, str, str]:
        """Run a script; return its exit code and its output."""
        done = subprocess.run(
            self.command(name, *words), input=lines, capture_output=True, text=True, timeout=60,
            env=self.environment,
        )  # fmt: skip
        return done.returncode, done.stdout, done.stderr

    def await_start(self) -> None:
        """Wait until the server accepts connections."""
        deadline, pause = time.monotonic() + _START_S, threading.Event()
        while not self.is_up():
            assert time.monotonic() < deadline, "ZooKeeper did not start in time"
            pause.wait(0.05)

    def is_up(self) -> bool:
        """Return True if the server accepts connections."""
        with socket.socket() as probe:
            return probe.connect_ex(("127.0.0.1", self.port)) == 0


@pytest.fixture(name="zookeeper")
def _zookeeper(tmp_path: Path) -> _ZooKeeper:
    return _ZooKeeper(tmp_path)


def test_server_of_its_own_file_and_the_shell(zookeeper: _ZooKeeper) -> None:
    """The script becomes the server; the shell creates, reads, changes and deletes nodes in it."""
    line = zookeeper.command("zookeeper-server-start.sh", str(zookeeper.file))
    with subprocess.Popen(line, stdout=subprocess.DEVNULL, env=zookeeper.environment) as server:
        try:
            zookeeper.await_start()
            shell = ("zookeeper-shell.sh", zookeeper.address)
            assert zookeeper.run(*shell, "create", "/a", "data") == (0, "Created /a\n", "")
            code, out, errors = zookeeper.run(*shell, lines="set /a new\nget /a\nls /\nquit\n")
            assert (code, errors) == (0, "")
            assert "new" in out.splitlines()
            assert "[a, zookeeper]" in out
            assert zookeeper.run(*shell, "delete", "/a")[0] == 0
            code, _, errors = zookeeper.run(*shell, "get", "/a")
            assert (code, "Node does not exist: /a" in errors) == (1, True)
            # The class of earlier documents, which names the address with an option.
            name = "org.apache.zookeeper.ZooKeeperMain"
            code, out, _ = zookeeper.run(
                "kafka-run-class.sh", name, "-server", zookeeper.address, "ls", "/"
            )
            assert (code, out) == (0, "[zookeeper]\n")
        finally:
            server.terminate()
    assert not zookeeper.is_up()


def test_server_behind_is_stopped_by_its_script(zookeeper: _ZooKeeper) -> None:
    """With -daemon the server runs behind, and zookeeper-server-stop ends it."""
    code, out, errors = zookeeper.run("zookeeper-server-start", "-daemon", str(zookeeper.file))
    assert (code, errors) == (0, "")
    assert out.startswith("ZooKeeper started as process ")
    try:
        zookeeper.await_start()
        created = zookeeper.run("zookeeper-shell", zookeeper.address, "create", "/b", "1")
        assert created[0] == 0, created
    finally:
        stopped = zookeeper.run("zookeeper-server-stop")
        assert stopped[0] == 0, stopped
    deadline, pause = time.monotonic() + _START_S, threading.Event()
    while zookeeper.is_up():
        assert time.monotonic() < deadline, "ZooKeeper did not stop in time"
        pause.wait(0.05)
    assert zookeeper.run("zookeeper-server-stop") == (1, "No zookeeper server to stop\n", "")


def test_server_behind_is_stopped_by_ottla(zookeeper: _ZooKeeper, tmp_path: Path) -> None:
    """`ottla zookeeper stop` without a folder ends the servers of -daemon, and waits for that."""
    assert zookeeper.run("zookeeper-server-start", "-daemon", str(zookeeper.file))[0] == 0

    def stop() -> "subprocess.CompletedProcess[str]":
        # The default folder is below the current directory.
        return subprocess.run(
            [*COMMAND, "zookeeper", "stop"], capture_output=True, text=True, timeout=60,
            cwd=tmp_path, env=zookeeper.environment | {"PYTHONPATH": str(_ROOT)},
        )  # fmt: skip

    try:
        zookeeper.await_start()
    finally:
        stopped = stop()
    assert (stopped.returncode, stopped.stderr) == (0, "")
    assert stopped.stdout.startswith("ZooKeeper (process ")
    assert not zookeeper.is_up()
    assert stop().returncode == 1
