"""Servers in the foreground or, with `-daemon`, behind, and the script that stops them."""

import os
import subprocess
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from ottla.tools.daemons import ServerKind, remember, stop_daemons
from ottla_scripts.printing import out

_POLL_S = 0.005


def start(kind: ServerKind, line: list[str], *, is_daemon: bool) -> int:
    """Run a command line in place of this process, or behind."""
    if not is_daemon:
        # The server is this process.
        remember(kind, os.getpid())
        os.execv(line[0], line)  # noqa: S606 - our own command
    folder = Path(os.environ.get("LOG_DIR", tempfile.gettempdir()))
    folder.mkdir(parents=True, exist_ok=True)
    log = folder / f"ottla-{kind.file_name}-{os.getpid()}.out"
    with log.open("ab") as stream:
        process = subprocess.Popen(  # noqa: S603 - our own command
            line, stdout=stream, stderr=stream, stdin=subprocess.DEVNULL, start_new_session=True
        )
    remember(kind, process.pid)
    # Its command line, by which the other script knows it, is there a moment after the start.
    while process.poll() is None and not kind.is_process(process.pid):
        time.sleep(_POLL_S)
    out(f"{kind.name} started as process {process.pid}; its output is in {log}")
    return 0


def stop(kind: ServerKind, selects: Callable[[list[str]], bool] = lambda _: True) -> int:
    """Stop the servers that scripts have started; return 1 if none runs.

    `selects` returns False for the command line of a server that must continue.
    """
    if stop_daemons(kind, selects):
        return 0
    out(f"No {kind.kafka_name} server to stop")
    return 1
