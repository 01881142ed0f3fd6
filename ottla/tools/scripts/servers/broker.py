"""`kafka-server-start` and `kafka-server-stop`: a broker of Ottla in front or behind.

`kafka-server-start [-daemon] server.properties [--override name=value]…` is `ottla up --config`.
Only brokers that `-daemon` started are stopped: their process ids are in a file.
"""

import sys
from pathlib import Path

from ottla.tools.scripts.printing import err
from ottla.tools.scripts.servers import daemon
from ottla.tools.scripts.servers.daemon import ServerKind

_COMMAND = (sys.executable, "-c", "from ottla.tools.main import main; main()")

BROKER = ServerKind("Broker", "kafka", "server", b"ottla.tools.main")


def run(name: str, words: list[str]) -> int:
    """Start a broker with a properties file, or stop those that -daemon started."""
    if name == "kafka-server-start":
        return _start(words)
    if words:
        err("USAGE: kafka-server-stop (without arguments)")
        return 1
    return daemon.stop(BROKER)


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
    return daemon.start(BROKER, line, is_daemon=is_daemon)
