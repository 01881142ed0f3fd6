"""`zookeeper-server-start` and `zookeeper-server-stop`: Apache ZooKeeper from the jars inside PySpark.

`zookeeper-server-start [-daemon] zookeeper.properties` reads ZooKeeper's own file. Only servers that `-daemon` started are
stopped: their process ids are in a file.
"""

import os
import signal
import subprocess
import tempfile
from pathlib import Path

from ottla.tools.scripts.printing import err, out
from ottla.tools.zookeeper.java_server import java_command

_MAIN_CLASS = b"QuorumPeerMain"


def run(name: str, words: list[str]) -> int:
    """Start a ZooKeeper with its properties file, or stop those that -daemon started."""
    if name == "zookeeper-server-start":
        return _start(words)
    if words:
        err("USAGE: zookeeper-server-stop (without arguments)")
        return 1
    return _stop()


def _start(words: list[str]) -> int:
    is_daemon = "-daemon" in words
    rest = [word for word in words if not word.startswith("-")]
    if len(rest) != 1 or any(word.startswith("--") for word in words):
        err("USAGE: zookeeper-server-start [-daemon] zookeeper.properties")
        return 1
    if not Path(rest[0]).is_file():
        err(f"{rest[0]} is not a file: name ZooKeeper's properties file")
        return 1
    line = [*java_command(), rest[0]]
    if not is_daemon:
        os.execv(line[0], line)  # noqa: S606 - our own command
    folder = Path(os.environ.get("LOG_DIR", tempfile.gettempdir()))
    log = folder / f"ottla-zookeeper-{os.getpid()}.out"
    with log.open("ab") as stream:
        process = subprocess.Popen(  # noqa: S603 - our own command
            line, stdout=stream, stderr=stream, stdin=subprocess.DEVNULL, start_new_session=True
        )
    with _pid_file().open("a", encoding="utf-8") as pids:
        pids.write(f"{process.pid}\n")
    out(f"ZooKeeper started as process {process.pid}; its output is in {log}")
    return 0


def _stop() -> int:
    path = _pid_file()
    numbers = path.read_text(encoding="utf-8").split() if path.exists() else []
    running = [int(number) for number in numbers if _is_ours(int(number))]
    path.unlink(missing_ok=True)
    if not running:
        out("No zookeeper server to stop")
        return 1
    for number in running:
        os.kill(number, signal.SIGTERM)
    return 0


def _pid_file() -> Path:
    return Path(tempfile.gettempdir()) / f"ottla-zookeepers-{os.getuid()}.pid"


def _is_ours(number: int) -> bool:
    try:
        return _MAIN_CLASS in Path(f"/proc/{number}/cmdline").read_bytes()
    except OSError:
        return False
