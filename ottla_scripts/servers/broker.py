"""`kafka-server-start` and `kafka-server-stop`: a broker of Ottla in front or behind.

`kafka-server-start [-daemon] server.properties [--override name=value]…` is `ottla up --config`.
JMX_PORT opens the HTTP port with the JMX beans on that port of 127.0.0.1, for `kafka-jmx`.
Only brokers that `kafka-server-start` started are stopped: their process ids are in a file.
`--node-id` selects the broker with this id; as in Apache Kafka, `--process-role` is then ignored.
"""

import os
import sys
from itertools import pairwise
from pathlib import Path

from ottla.tools.daemons import ServerKind
from ottla_scripts.printing import err
from ottla_scripts.servers import daemon
from ottla_scripts.session import read_properties

_HTTP_OPTION = "metrics.listener"
_ARGUMENTS = ("-m", "ottla", "up")

BROKER = ServerKind("Broker", "kafka", "server", "\0".join(_ARGUMENTS))


def run(name: str, command_line: list[str]) -> int:
    """Start a broker with a properties file, or stop those that were started."""
    if name == "kafka-server-start":
        return _start(command_line)
    try:
        wanted = _read_selection(command_line)
    except ValueError as error:
        err(f"{error} is not an option: known are --node-id=NUMBER and --process-role=ROLE")
        return 1
    return daemon.stop(BROKER, lambda line: _is_selected(line, wanted))


def _read_selection(command_line: list[str]) -> dict[str, str]:
    """Return the values of --node-id and --process-role (KIP-979); ValueError for other words."""
    wanted: dict[str, str] = {}
    words = iter(command_line)
    for word in words:
        name, has_value, value = word.partition("=")
        value = value if has_value else next(words, "")
        if name not in ("--node-id", "--process-role") or not value:
            raise ValueError(word)
        wanted[name[2:]] = value
    return wanted


def _is_selected(line: list[str], wanted: dict[str, str]) -> bool:
    """Return True if the command line of a broker has the wanted id. All have the role broker."""
    if "node-id" not in wanted:
        return wanted.get("process-role", "broker") == "broker"
    properties: dict[str, str] = {}
    for flag, word in pairwise(line):
        if flag == "--config":
            properties |= read_properties(word)
        elif flag == "--option":
            name, _, value = word.partition("=")
            properties[name] = value
    return wanted["node-id"] in (properties.get("broker.id"), properties.get("node.id"))


def _start(command_line: list[str]) -> int:
    is_daemon = "-daemon" in command_line
    rest = [
        word
        for word in command_line
        if word not in ("-daemon", "-loggc") and not word.startswith("-name")
    ]
    if not rest or rest[0].startswith("--"):
        err("USAGE: kafka-server-start [-daemon] server.properties [--override property=value]*")
        return 1
    path = Path(rest[0])
    if not path.is_file():
        err(f"{path} is not a file: name the broker's properties file")
        return 1
    line = [sys.executable, *_ARGUMENTS, "--config", str(path.absolute())]
    overrides = rest[1:]
    while overrides:
        flag, *overrides = overrides
        if flag != "--override" or not overrides:
            err(f"{flag} is not an option: known are -daemon and --override property=value")
            return 1
        line += ["--option", overrides.pop(0)]
    line += _jmx_options(path, line)
    return daemon.start(BROKER, line, is_daemon=is_daemon)


def _jmx_options(path: Path, line: list[str]) -> list[str]:
    """Return the option for JMX_PORT, unless the broker has an HTTP port of its own."""
    port = os.environ.get("JMX_PORT", "")
    is_set = any(word.startswith(f"{_HTTP_OPTION}=") for word in line)
    if not port or is_set or _HTTP_OPTION in read_properties(str(path)):
        return []
    err(f"JMX_PORT={port}: JMX beans are on http://127.0.0.1:{port}/jmx (kafka-jmx reads them)")
    return ["--option", f"{_HTTP_OPTION}=127.0.0.1:{port}"]
