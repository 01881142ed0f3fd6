"""The start of a ZooKeeper server: Java, the jars inside PySpark, and its configuration file.

PySpark's wheel contains a whole ZooKeeper (3.9.5 in PySpark 4.3), which needs eight of its jars.
"""

import importlib.util
import os
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from ottla.base.errors import ConfigError

_MAIN_CLASS = "org.apache.zookeeper.server.quorum.QuorumPeerMain"
_JARS = (
    "zookeeper-[0-9]*.jar",
    "zookeeper-jute-*.jar",
    "slf4j-api-*.jar",
    "log4j-slf4j2-impl-*.jar",
    "log4j-api-*.jar",
    "log4j-core-*.jar",
    "metrics-core-*.jar",
    "snappy-java-*.jar",
    "netty-*.jar",
    "commons-cli-*.jar",
    "commons-io-*.jar",
    "audience-annotations-*.jar",
)
# A small server starts fastest with these, and needs 70 MB.
_JVM = (
    "-Xmx128m",
    "-XX:+UseSerialGC",
    "-XX:TieredStopAtLevel=1",
    "-Dorg.apache.logging.log4j.level=WARN",
    "-Dzookeeper.admin.enableServer=false",
)
HOST = "127.0.0.1"
DEFAULT_DATA = "./zookeeper-data"
TICK_MS = 1_000
# As with the usual tickTime of 2 000; by default, the limit is 20 ticks.
LONGEST_SESSION_MS = 40_000


class Ports(NamedTuple):
    """The ports of one server: for clients, for followers, and for elections."""

    client: int
    quorum: int
    election: int


def java_command() -> list[str]:
    """Return the start of a command line that runs a server; ConfigError if Java or jars are
    missing.
    """
    home = os.environ.get("JAVA_HOME")
    java = shutil.which("java", path=f"{home}/bin") if home else shutil.which("java")
    if java is None:
        raise ConfigError(
            "ZooKeeper needs Java 11 or newer, and there is no `java`: install it (Debian: "
            "apt install default-jre-headless), or set JAVA_HOME"
        )
    return [java, *_JVM, "-cp", _class_path(), _MAIN_CLASS]


def _class_path() -> str:
    spec = importlib.util.find_spec("pyspark")
    folders = spec.submodule_search_locations if spec is not None else None
    jars = Path(folders[0], "jars") if folders else None
    if jars is None or not list(jars.glob(_JARS[0])):
        raise ConfigError(
            "ZooKeeper's jars come with PySpark, which is not installed: pip install "
            "'ottla[spark]', or start a ZooKeeper of your own (Debian: apt install zookeeperd)"
        )
    return os.pathsep.join(str(path) for pattern in _JARS for path in sorted(jars.glob(pattern)))


def write_config(folder: Path, number: int, ensemble: Sequence[Ports]) -> Path:
    """Write the configuration of server `number` (from 1) of an ensemble; return the file."""
    folder.mkdir(parents=True, exist_ok=True)
    rows = [
        f"tickTime={TICK_MS}",
        f"maxSessionTimeout={LONGEST_SESSION_MS}",
        "initLimit=20",
        "syncLimit=5",
        f"dataDir={folder.absolute()}",
        f"clientPort={ensemble[number - 1].client}",
        f"clientPortAddress={HOST}",
        "maxClientCnxns=0",
        "autopurge.purgeInterval=24",
        "4lw.commands.whitelist=ruok,srvr,mntr,stat",
    ]
    if len(ensemble) > 1:
        (folder / "myid").write_text(f"{number}\n")
        rows += [
            f"server.{index}={HOST}:{ports.quorum}:{ports.election}"
            for index, ports in enumerate(ensemble, 1)
        ]
    path = folder / "zoo.cfg"
    path.write_text("\n".join(rows) + "\n")
    return path
