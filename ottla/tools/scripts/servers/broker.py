"""`kafka-server-start` and `kafka-server-stop`: a broker of Ottla in front or behind.

`kafka-server-start [-daemon] server.properties [--override name=value]…` is `ottla up --config`.
Only brokers that `-daemon` started are stopped: their process ids are in a file.
"""

import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

from ottla.tools.scripts.printing import err, out

_COMMAND = (sys.executable, "-c", "from ottla.tools.main import main; main()")


def run(name: str, words: list[str]) -> int:
    """Start a broker with a properties file, or stop those that -daemon started."""
    if name == "kafka-server-start":
        return _start(words)
    if words:
        err("USAGE: kafka-server-stop (without arguments)")
        return 1
    return _stop()


def _start(words: list[str]) -> int:
    is_daemon = "-daemon" in words
    rest = [
        word for word in words if word not in ("-daemon", "-loggc") and not word.startswith("-name")
    ]
    if not rest or rest[0].startswith("--"):
        err("USAGE: kafka-server-start [-daemon] server.properties [--override property=value]*")
        return 1
    path = Path(rest[0])
    if not path.is_file():
        err(f"{path} is not a file: name the broker's properties file")
        return 1
    line = [*_COMMAND, "up", "--config", str(path)]
    overrides = rest[1:]
    while overrides:
        flag, *overrides = overrides
        if flag != "--override" or not overrides:
            err(f"{flag} is not an option: known are -daemon and --override property=value")
            return 1
        line += ["--option", overrides.pop(0)]
    if not is_daemon:
        os.execv(line[0], line)  # noqa: S606 - our own command
    log = Path(os.environ.get("LOG_DIR", tempfile.gettempdir())) / f"ottla-server-{os.getpid()}.out"
    with log.open("ab") as stream:
        process = subprocess.Popen(  # noqa: S603 - our own command
            line, stdout=stream, stderr=stream, stdin=subprocess.DEVNULL, start_new_session=True
        )
    with _pid_file().open("a", encoding="utf-8") as pids:
        pids.write(f"{process.pid}\n")
    out(f"Broker started as process {process.pid}; its output is in {log}")
    return 0


def _stop() -> int:
    path = _pid_file()
    numbers = path.read_text(encoding="utf-8").split() if path.exists() else []
    running = [int(number) for number in numbers if _is_ours(int(number))]
    path.unlink(missing_ok=True)
    if not running:
        out("No kafka server to stop")
        return 1
    for number in running:
        os.kill(number, signal.SIGTERM)
    return 0


def _pid_file() -> Path:
    return Path(tempfile.gettempdir()) / f"ottla-servers-{os.getuid()}.pid"


def _is_ours(number: int) -> bool:
    try:
        line = Path(f"/proc/{number}/cmdline").read_bytes()
    except OSError:
        return False
    return b"ottla.tools.main" in line
