"""A broker as a process of its own: `ottla up` for tests that stop, kill and start it again.

What happens inside one process cannot show what a crash leaves behind; this can. Needs an installed
Ottla, because it runs the command that people run.
"""

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

# The console script's own line; it needs no PATH.
COMMAND = (sys.executable, "-c", "from ottla.tools.main import main; main()")
_READY = re.compile(r"Ottla is ready on (\S+:(\d+)) ")
_PATIENCE_S = 30.0


class BrokerProcess:
    """`ottla up` in a folder; a context manager that kills what still runs.

    The first start takes any free port, every later one the same. `options` are broker options.
    """

    def __init__(self, data: str | Path, *, options: Mapping[str, str] | None = None) -> None:
        self.data = Path(data)
        self.options = dict(options or {})
        self.port = 0
        self.bootstrap = ""
        self._process: subprocess.Popen[str] | None = None
        # A file, not a pipe: nobody reads along, and a full pipe would stop the broker.
        self.errors = self.data.with_name(self.data.name + ".stderr")

    def start(self) -> "BrokerProcess":
        """Return once it is ready; OttlaError holds what it said instead."""
        words = ["up", "--port", str(self.port), "--data", str(self.data)]
        for name, value in self.options.items():
            words += ["--option", f"{name}={value}"]
        self.errors.parent.mkdir(parents=True, exist_ok=True)
        with self.errors.open("wb") as errors:
            self._process = subprocess.Popen(  # noqa: S603 - our own command
                [*COMMAND, *words],
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
                env={**os.environ, "PYTHONUNBUFFERED": "1"},
            )
        line = self._first_line(self._process)
        found = _READY.match(line)
        if found is None:
            self._process.communicate(timeout=_PATIENCE_S)
            self._process = None
            raise OttlaError(f"The broker did not get ready: {line}{self.errors.read_text()}")
        self.bootstrap, self.port = found.group(1), int(found.group(2))
        return self

    @property
    def cpu_seconds(self) -> float:
        """Processor time that the running broker has used so far, as Linux tells it."""
        text = Path(f"/proc/{self._running().pid}/stat").read_text()
        # The name of the program, in brackets, may hold anything.
        fields = text.rpartition(")")[2].split()
        user, system = fields[11:13]
        return (int(user) + int(system)) / os.sysconf("SC_CLK_TCK")

    def stop(self, number: int = signal.SIGINT) -> tuple[int, str]:
        """Send a signal; return the exit code and what was written to standard error."""
        process = self._running()
        process.send_signal(number)
        process.communicate(timeout=_PATIENCE_S)
        self._process = None
        return process.returncode, self.errors.read_text()

    def kill(self) -> None:
        """End it as a crash would: nothing is written, nobody is told."""
        self.stop(signal.SIGKILL)

    def restart(self) -> None:
        """Stop cleanly and start again: same data, same port."""
        self.stop()
        self.start()

    @property
    def process_id(self) -> int:
        """The id of the running process."""
        return self._running().pid

    def __enter__(self) -> "BrokerProcess":
        """Start."""
        return self.start()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Kill it if it still runs."""
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


def run_command(
    *words: str, stdin: bytes = b"", environment: Mapping[str, str] | None = None
) -> "subprocess.CompletedProcess[bytes]":
    """Run one `ottla` command as people do, and return how it ended."""
    return subprocess.run(  # noqa: S603 - our own command
        [*COMMAND, *words],
        input=stdin,
        capture_output=True,
        timeout=_PATIENCE_S,
        check=False,
        env={**os.environ, **(environment or {})},
    )
