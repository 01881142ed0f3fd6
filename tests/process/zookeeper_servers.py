"""A real ZooKeeper for brokers in processes: killed, restarted, or on a machine of its own."""

import contextlib
import socket
import subprocess
import threading
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from ottla.tools.broker.processes import free_port
from ottla.tools.zookeeper.java_server import LONGEST_SESSION_MS, java_command

_START_S = 100.0
_PAUSE = threading.Event()


class ZooKeeper:
    """One server that can be killed and restarted with its data, at the same address."""

    def __init__(self, folder: Path, host: str = "127.0.0.1", prefix: Sequence[str] = ()) -> None:
        folder.mkdir(parents=True)
        self._host, self._port = host, free_port(is_any=True)
        self._folder = folder
        self._prefix = prefix
        self._process: subprocess.Popen[bytes] | None = None
        rows = (
            "tickTime=500",
            f"dataDir={folder}",
            f"clientPort={self._port}",
            f"clientPortAddress={host}",
            "maxClientCnxns=0",
            "minSessionTimeout=1000",
            # More than the 18 s of Apache Kafka's default; by default, the limit is 20 ticks.
            f"maxSessionTimeout={LONGEST_SESSION_MS}",
            "4lw.commands.whitelist=*",
        )
        (folder / "zoo.cfg").write_text("\n".join(rows) + "\n")

    @property
    def address(self) -> str:
        """The address for zookeeper.connect."""
        return f"{self._host}:{self._port}"

    def start(self) -> None:
        """Return when it serves clients."""
        command = [*self._prefix, *java_command(), str(self._folder / "zoo.cfg")]
        with (self._folder / "out").open("ab") as out:
            self._process = subprocess.Popen(command, stdout=out, stderr=out)
        deadline = time.monotonic() + _START_S
        while not self._answers():
            assert self._process.poll() is None, (self._folder / "out").read_text()[-3000:]
            assert time.monotonic() < deadline, "ZooKeeper did not start in time"
            _PAUSE.wait(0.05)

    def _answers(self) -> bool:
        try:
            with socket.create_connection((self._host, self._port), 1) as connection:
                connection.sendall(b"srvr")
                return b"Mode: standalone" in connection.makefile("rb").read()
        except OSError:
            return False

    def kill(self) -> None:
        """Kill it, if it runs."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None


@contextlib.contextmanager
def zookeeper(
    folder: Path, host: str = "127.0.0.1", prefix: Sequence[str] = ()
) -> Iterator[ZooKeeper]:
    """Run a ZooKeeper until the end of the block."""
    server = ZooKeeper(folder, host, prefix)
    try:
        server.start()
        yield server
    finally:
        server.kill()
