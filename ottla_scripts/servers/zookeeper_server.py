"""`zookeeper-server-start` and `zookeeper-server-stop`: Apache ZooKeeper from the jars inside
PySpark.

`zookeeper-server-start [-daemon] zookeeper.properties` reads ZooKeeper's own file. Only servers
that the script started are stopped: their process ids are in a file.
"""

from pathlib import Path

from ottla.tools.daemons import ZOOKEEPER
from ottla.tools.zookeeper.java_server import java_command
from ottla_scripts.printing import err
from ottla_scripts.servers import daemon


def run(name: str, command_line: list[str]) -> int:
    """Start a ZooKeeper with its properties file, or stop those that were started."""
    if name == "zookeeper-server-start":
        return _start(command_line)
    if command_line:
        err("USAGE: zookeeper-server-stop (without arguments)")
        return 1
    return daemon.stop(ZOOKEEPER)


def _start(command_line: list[str]) -> int:
    is_daemon = "-daemon" in command_line
    files = [word for word in command_line if not word.startswith("-")]
    if len(files) != 1 or any(word.startswith("--") for word in command_line):
        err("USAGE: zookeeper-server-start [-daemon] zookeeper.properties")
        return 1
    if not Path(files[0]).is_file():
        err(f"{files[0]} is not a file: name ZooKeeper's properties file")
        return 1
    line = [*java_command(), files[0]]
    return daemon.start(ZOOKEEPER, line, is_daemon=is_daemon)
