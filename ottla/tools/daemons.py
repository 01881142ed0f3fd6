"""Servers that Apache Kafka's scripts have started: their process ids are in a file."""

import os
import signal
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from ottla.base.platform.processes import command_line_of


class ServerKind(NamedTuple):
    """A server: its name in our sentences, in the sentences of Kafka's scripts, and in files.

    `mark` is in the command line of its processes, whose words are separated by NUL.
    """

    name: str
    kafka_name: str
    file_name: str
    mark: str

    @property
    def pid_file(self) -> Path:
        """The file with the process ids of those that scripts have started for this user."""
        return Path(tempfile.gettempdir()) / f"ottla-{self.file_name}s-{os.getuid()}.pid"

    def is_process(self, number: int) -> bool:
        """Return True if the process runs and is such a server."""
        return self.mark in "\0".join(command_line_of(number))


ZOOKEEPER = ServerKind("ZooKeeper", "zookeeper", "zookeeper", "QuorumPeerMain")


def remember(kind: ServerKind, number: int) -> None:
    """Add a process to the servers that scripts have started."""
    with kind.pid_file.open("a", encoding="utf-8") as pids:
        pids.write(f"{number}\n")


def stop_daemons(
    kind: ServerKind, selects: Callable[[list[str]], bool] = lambda line: True
) -> list[int]:
    """Ask the servers of this kind to stop, and return their process ids.

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
    for number in selected:
        os.kill(number, signal.SIGTERM)
    return selected
