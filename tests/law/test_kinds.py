"""`tests/unit` holds unit tests only: they start no cluster, no broker and no process.

Such tests are in tests/integration, which mirrors `ottla/` in the same way, or in the folder of
their kind (docs/testing.md). A cluster in the simulation, and a scripted broker, are no brokers.
"""

import ast
import re
from collections.abc import Iterator

from tests.law import source

# Modules that start processes or brokers, and names that other modules have for this purpose.
_MODULES = re.compile(
    r"(subprocess|multiprocessing|pexpect|ottla\.server\.node"
    r"|ottla\.testing\.(cluster|process|fixture|broker_thread|tree_thread|learn\.stage)"
    r"|tests\.(integration|process|compat\.(java_tools|zookeeper|prometheus)))(\.|$)"
)
_NAMES = {"ottla.testing.Cluster", "testing.Cluster"}
_FIXTURES = {"ottla_cluster"}
_CALLS = re.compile(
    r"os\.(fork|forkpty|system|popen|exec\w+|spawn\w+|posix_spawnp?)|pty\.(fork|spawn)"
    r"|asyncio\.create_subprocess_\w+"
)


def _imported(node: ast.AST, package: str) -> Iterator[str]:
    """Yield the full names that a statement imports."""
    if isinstance(node, ast.Import):
        yield from (alias.name for alias in node.names)
    elif isinstance(node, ast.ImportFrom):
        parents = package.split(".")[: len(package.split(".")) - node.level + 1]
        module = ".".join([*parents, node.module or ""]) if node.level else node.module or ""
        yield from (f"{module}.{alias.name}" for alias in node.names)


def _starters(item: source.Source) -> Iterator[tuple[int, str]]:
    """Yield each line of a file that can start a broker or a process, with the name of it."""
    package = item.module.rpartition(".")[0]
    for node in source.nodes(item.tree):
        for name in _imported(node, package):
            if _MODULES.match(name) or name in _NAMES:
                yield node.lineno, name  # type: ignore[attr-defined]
        if isinstance(node, ast.Attribute):
            name = ast.unparse(node)
            if _CALLS.fullmatch(name) or name in _NAMES:
                yield node.lineno, name
        elif isinstance(node, ast.arg) and node.arg in _FIXTURES:
            yield node.lineno, node.arg
        elif isinstance(node, ast.Constant) and node.value in _FIXTURES:
            yield node.lineno, str(node.value)


def test_unit_tests_start_no_broker_and_no_process() -> None:
    """No file below tests/unit imports or uses what starts a cluster, a broker or a process."""
    offences = {
        f"{item.path}:{line}": name
        for item in source.sources("tests/unit")
        for line, name in _starters(item)
    }
    assert source.complaints("unit-tests", offences, "Move these to tests/integration:") == []


def test_each_way_to_start_a_broker_or_a_process_is_recognised() -> None:
    """Imports of every form, fixtures as arguments or by name, and functions of `os`."""
    text = """
import subprocess
import multiprocessing.pool
from subprocess import run
from ottla.testing import Cluster
from ottla.testing.process import BrokerProcess
from ..integration.tools import conftest
os.posix_spawn
asyncio.create_subprocess_exec
def test(ottla_cluster): pass
pytest.mark.usefixtures("ottla_cluster")
"""
    item = source.Source("tests/unit/test_x.py", text, ast.parse(text))
    assert sorted(line for line, _ in _starters(item)) == list(range(2, 12))
    plain = "import os\nfrom ottla.testing.sim.cluster import SimCluster\nos.kill\n"
    assert not list(_starters(source.Source("tests/unit/test_y.py", plain, ast.parse(plain))))
