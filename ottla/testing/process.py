"""A broker as a separate process: `ottla up` for tests that stop, kill and restart it.

Only a separate process shows the state that a crash leaves on disk. Requires an installed Ottla,
because it runs the same command as users.
"""

import json
import os
import re
import select
import signal
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType

from ottla.base.errors import OttlaError
from ottla.base.platform.processes import cpu_seconds_of

# The line of the console script; it does not need PATH.
COMMAND = (sys.executable, "-m", "ottla")
_READY = re.compile(r"Ottla is ready on (\S+:(\d+)) ")
_PATIENCE_S = 30.0


class BrokerProcess:
    """`ottla up` in a directory; a context manager that kills the process if it still runs.

    The first start uses a free port, later starts use the same port. `options` are broker options.
    """

    def __init__(self, data: str | Path, *, options: Mapping[str, str] | None = None) -> None:
        self.data = Path(data)
        self.options = dict(options or {})
        self.port = 0
        self.bootstrap = ""
        self._process: subprocess.Popen[str] | None = None
        # A file, not a pipe: no reader would empty the pipe, and a full one blocks the broker.
        self.errors = self.data.with_name(self.data.name + ".stderr")

    def start(self) -> "BrokerProcess":
        """Return when the broker is ready; raises OttlaError with its output if it fails."""
        arguments = ["up", "--port", str(self.port), "--data", str(self.data)]
        for name, value in self.options.items():
            arguments += ["--option", f"{name}={value}"]
        self.errors.parent.mkdir(parents=True, exist_ok=True)
        with self.errors.open("wb") as errors:
            self._process = subprocess.Popen(  # noqa: S603 - our own command
                [*COMMAND, *arguments],
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
                env={**os.environ, "PYTHONUNBUFFERED": "1"},
            )
        line = self._first_line(self._process)
        match = _READY.match(line)
        if match is None:
            self._process.communicate(timeout=_PATIENCE_S)
            self._process = None
            raise OttlaError(f"The broker failed to start: {line}{self.errors.read_text()}")
        self.bootstrap, self.port = match.group(1), int(match.group(2))
        return self

    @property
    def cpu_seconds(self) -> float:
        """Processor time in seconds that the running broker has used so far."""
        return cpu_seconds_of(self._running().pid)

    def stop(self, number: int = signal.SIGINT) -> tuple[int, str]:
        """Send a signal; return the exit code and the content of standard error."""
        process = self._running()
        process.send_signal(number)
        process.communicate(timeout=_PATIENCE_S)
        self._process = None
        return process.returncode, self.errors.read_text()

    def kill(self) -> None:
        """Kill the process as a crash would: it neither writes nor closes anything."""
        self.stop(signal.SIGKILL)

    def restart(self) -> None:
        """Stop cleanly and start again with the same data on the same port."""
        self.stop()
        self.start()

    @property
    def process_id(self) -> int:
        """The id of the running process."""
        return self._running().pid

    def __enter__(self) -> "BrokerProcess":
        """Start the broker."""
        return self.start()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Kill the broker if it still runs."""
        if self._process is not None:
            self.kill()

    def _running(self) -> "subprocess.Popen[str]":
        if self._process is None:
            raise OttlaError("The broker is not running: call start() first.")
        return self._process

    def _first_line(self, process: "subprocess.Popen[str]") -> str:
        assert process.stdout is not None
        readable, _, _ = select.select([process.stdout], [], [], _PATIENCE_S)
        if not readable:
            process.kill()
            raise OttlaError(f"The broker was not ready within {_PATIENCE_S:g} s.")
        return process.stdout.readline()


class ZooKeeperProcess:
    """`ottla zookeeper start` in a directory; a context manager that stops it if it still runs."""

    def __init__(self, data: str | Path, *, nodes: int = 1) -> None:
        self.data = Path(data)
        self.nodes = nodes
        # The addresses of all servers, for `zookeeper.connect`, and the process id of each.
        self.connect = ""
        self.process_ids: list[int] = []
        self._process: subprocess.Popen[str] | None = None

    def start(self) -> "ZooKeeperProcess":
        """Return when the ensemble serves clients; raises OttlaError with its output if it fails."""
        arguments = ["zookeeper", "start", "--port", "0", "--nodes", str(self.nodes)]
        arguments += ["--data", str(self.data), "--output", "json"]
        self._process = subprocess.Popen(  # noqa: S603 - our own command
            [*COMMAND, *arguments],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise OttlaError(f"ZooKeeper failed to start: {self._process.communicate()[1]}")
        facts = json.loads(line)
        self.connect, self.process_ids = facts["connect"], facts["process_ids"]
        return self

    def stop(self) -> tuple[int, str]:
        """Stop all servers; return the exit code and the content of standard error."""
        assert self._process is not None, "ZooKeeper is not running: call start() first"
        process, self._process = self._process, None
        process.terminate()
        _, errors = process.communicate(timeout=_PATIENCE_S)
        return process.returncode, errors

    def __enter__(self) -> "ZooKeeperProcess":
        """Start the ensemble."""
        return self.start()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Stop the ensemble if it still runs."""
        if self._process is not None:
            self.stop()


def run_command(
    *arguments: str, stdin: bytes = b"", environment: Mapping[str, str] | None = None
) -> "subprocess.CompletedProcess[bytes]":
    """Run one `ottla` command like a user, and return its result."""
    return subprocess.run(  # noqa: S603 - our own command
        [*COMMAND, *arguments],
        input=stdin,
        capture_output=True,
        timeout=_PATIENCE_S,
        check=False,
        env={**os.environ, **(environment or {})},
    )
