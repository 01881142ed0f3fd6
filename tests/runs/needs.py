"""Programs that some tests need: `@pytest.mark.needs("kcat")`, with one or more names of `TOOLS`.

A test whose tool is missing is skipped here: pytest's summary has one line for each tool, with the
number of tests and the command that installs it. OTTLA_TESTS_NEED lists the tools whose tests fail
instead: `OTTLA_TESTS_NEED=strace,chromium`.
"""

import os
import shutil
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import NoReturn

import pytest

from ottla.base.errors import ConfigError
from ottla.tools.zookeeper.java_server import java_command

MARKER = "needs"
REQUIRED = "OTTLA_TESTS_NEED"
_PRIVILEGES = "run the tests as root, in a container with --privileged"


@dataclass(frozen=True)
class Tool:
    """How a tool is found (the reason why not, or None), and the command that installs it."""

    why_not: Callable[[], str | None]
    install: str


def programs(*names: str) -> Callable[[], str | None]:
    """Return a function that searches the PATH for programs and reports the first missing one."""

    def why_not() -> str | None:
        missing = [name for name in names if shutil.which(name) is None]
        return f"{missing[0]} is not installed" if missing else None

    return why_not


def _zookeeper() -> str | None:
    try:
        java_command()
    except ConfigError as error:
        return str(error).partition(":")[0]
    return None


TOOLS: Mapping[str, Tool] = {
    "bash": Tool(programs("bash"), "apt-get install bash"),
    "cc": Tool(programs("cc"), "apt-get install gcc libc6-dev"),
    "chromium": Tool(programs("chromium"), "apt-get install chromium"),
    "fish": Tool(programs("fish"), "apt-get install fish"),
    # Apache Kafka and its ZooKeeper, with jars that Maven fetches.
    "java": Tool(programs("java", "javac", "mvn"), "apt-get install openjdk-17-jdk-headless maven"),
    "kcat": Tool(programs("kcat"), "apt-get install kcat"),
    "mount": Tool(programs("mount", "umount"), "apt-get install mount"),
    # Machines with addresses of their own, which can be cut off from each other.
    "namespaces": Tool(programs("ip", "iptables"), "apt-get install iproute2 iptables"),
    # The identity provider oidc-provider, which npm fetches.
    "node": Tool(programs("node", "npm"), "apt-get install nodejs npm"),
    "prometheus": Tool(programs("prometheus"), "apt-get install prometheus"),
    "promtool": Tool(programs("promtool"), "apt-get install prometheus"),
    "strace": Tool(programs("strace"), "apt-get install strace"),
    "systemd-analyze": Tool(programs("systemd-analyze"), "apt-get install systemd"),
    # The jars inside PySpark.
    "zookeeper": Tool(
        _zookeeper, "apt-get install openjdk-17-jre-headless; pip install 'ottla[spark]'"
    ),
    "zsh": Tool(programs("zsh"), "apt-get install zsh"),
}


def require(name: str) -> None:
    """Skip or fail the current test if a tool is missing."""
    tool = TOOLS[name]
    reason = tool.why_not()
    if reason is not None:
        give_up(name, f"{reason}: {tool.install}")


def not_permitted(name: str, error: str) -> NoReturn:
    """Skip or fail the current test, which has a tool but may not use it.

    Only the end of the error counts: paths and process ids before it differ from test to test.
    """
    reason = error.strip().rpartition(": ")[2]
    give_up(name, f"{name} is not permitted here ({reason}): {_PRIVILEGES}")


def give_up(name: str, reason: str) -> NoReturn:
    """Skip the current test, which cannot use a tool; fail it if OTTLA_TESTS_NEED has the tool."""
    if name in required():
        pytest.fail(f"{REQUIRED} has '{name}', but {reason}", pytrace=False)
    pytest.skip(reason)


def required() -> frozenset[str]:
    """Return the tools of OTTLA_TESTS_NEED."""
    names = (name.strip() for name in os.environ.get(REQUIRED, "").split(","))
    return frozenset(name for name in names if name)


def check_tools(items: Iterable[pytest.Item]) -> None:
    """Raise pytest.UsageError if a marker or OTTLA_TESTS_NEED has a name that no tool has."""
    wrong = [f"{REQUIRED}: '{name}' is no tool" for name in sorted(required() - TOOLS.keys())]
    for item in items:
        wrong += (f"{item.nodeid}: '{name}' is no tool" for name in _tools_of(item) - TOOLS.keys())
        if any(not marker.args for marker in item.iter_markers(MARKER)):
            wrong.append(f'{item.nodeid}: name a tool: `needs("kcat")`')
    if wrong:
        raise pytest.UsageError("\n".join([*wrong, f"The tools are {', '.join(TOOLS)}."]))


def require_tools(item: pytest.Item) -> None:
    """Skip or fail a test that is marked with a tool that is missing."""
    for name in sorted(_tools_of(item)):
        require(name)


def _tools_of(item: pytest.Item) -> set[str]:
    return {name for marker in item.iter_markers(MARKER) for name in marker.args}
