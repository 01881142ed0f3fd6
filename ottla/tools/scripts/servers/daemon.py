"""Servers in the foreground or, with `-daemon`, behind; only the latter are stopped by a script."""

import os
import signal
import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from ottla.tools.scripts.printing import out


class ServerKind(NamedTuple):
    """A server: its name in sentences, in those of Kafka's scripts, and in files.

    `mark` is in the command line of its processes.
    """

    name: str
    kafka_name: str
    file_name: str
    mark: bytes

    @property
    def pid_file(self) -> Path:
        """The file with the process ids of those that `-daemon` started for this user."""
        return Path(tempfile.gettempdir()) / f"ottla-{self.file_name}s-{os.getuid()}.pid"

    def is_process(self, number: int) -> bool:
        """Return True if the process runs and is such a server."""
        try:
            return self.mark in Path(f"/proc/{number}/cmdline").read_bytes()
        except OSError:
            return False


def start(kind: ServerKind, line: list[str], *, is_daemon: bool) -> int:
    """Run a command line in place of this process, or behind."""
    if not is_daemon:
        os.execv(line[0], line)  # noqa: S606 - our own command
    folder = Path(os.environ.get("LOG_DIR", tempfile.gettempdir()))
    log = folder / f"ottla-{kind.file_name}-{os.getpid()}.out"
    with log.open("ab") as stream:
        process = subprocess.Popen(  # noqa: S603 - our own command
            line, stdout=stream, stderr=stream, stdin=subprocess.DEVNULL, start_new_session=True
        )
    with kind.pid_file.open("a", encoding="utf-8") as pids:
        pids.write(f"{process.pid}\n")
    out(f"{kind.name} started as process {process.pid}; its output is in {log}")
    return 0


def stop(kind: ServerKind, selects: Callable[[list[str]], bool] = lambda _: True) -> int:
    """Stop the servers that `-daemon` started; return 1 if none runs.

    `selects` returns False for the command line of a server that must continue.
    """
    path = kind.pid_file
    numbers = path.read_text(encoding="utf-8").split() if path.exists() else []
    running = [int(number) for number in numbers if kind.is_process(int(number))]
    selected = [number for number in running if selects(command_line_of(number))]
    others = [number for number in running if number not in selected]
    if others:
        path.write_text("".join(f"{number}\n" for number in others), encoding="utf-8")
    else:
        path.unlink(missing_ok=True)
    if not selected:
        out(f"No {kind.kafka_name} server to stop")
        return 1
    for number in selected:
        os.kill(number, signal.SIGTERM)
    return 0


def command_line_of(number: int) -> list[str]:
    """Return the command line of a process as a list; it is empty if the process has ended."""
    try:
        text = Path(f"/proc/{number}/cmdline").read_bytes()
    except OSError:
        return []
    return [os.fsdecode(word) for word in text.split(b"\0")[:-1]]
