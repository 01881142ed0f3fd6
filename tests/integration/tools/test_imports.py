"""The imports of each command, which are most of the time it takes: counted, not timed."""

import ast
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import ottla.tools
from ottla.tools import lazy, main
from tests.forks import Forks

pytestmark = pytest.mark.slow

_SOURCES = Path(ottla.tools.__file__).parent
_CLIENTS = {
    *("produce", "consume", "perf produce", "perf consume", "perf latency"),
    *("perf verifiable-produce", "perf verifiable-consume"),
}
_OF_ZOOKEEPER = {
    f"zookeeper {verb}" for verb in ("export", "import", "shell", "secure", "unsecure")
}
# Libraries and parts of Ottla that take long to import, and the commands whose help imports them.
_HEAVY = {
    "asyncio": {
        *(*_CLIENTS, "log dump", "broker stop"),
        *("zookeeper start", "zookeeper stop"),
        *_OF_ZOOKEEPER,
    },
    "confluent_kafka": _CLIENTS,
    "kazoo": _OF_ZOOKEEPER,
    "cramjam": {"log dump"},
    "yaml": {"pipeline check", "pipeline explain", "pipeline run", "streams run"},
    "ottla.server": set(),
    "ottla.controller": set(),
    "ottla.coordinators": set(),
    "ottla.replication": set(),
    "ottla.streams.names": set(),
    "msgspec": _CLIENTS,
    "numpy": set(),
    "pandas": set(),
    "pyarrow": set(),
    "pyspark": set(),
    "rich": set(),
}
# Modules of Ottla that a command may import; a listed one resets the state of topologies, or
# checks their serdes, each of which is a module of the client. The tree of ZooKeeper's transfers
# reads files, by the calls of the operating system.
_MODULES_MAX = 65
_MODULES_OF = {
    "streams reset": 91,
    "pipeline check": 72,
    "pipeline run": 67,
    "pipeline explain": 66,
}
_MODULES_OF |= dict.fromkeys(("zookeeper export", "zookeeper import"), 67)


def _verbs() -> list[str]:
    verbs = [name for name, verb in main.root.verbs.items() if verb.module]
    return verbs + [f"{noun} {name}" for noun, group in main.GROUPS.items() for name in group.verbs]


@pytest.fixture(scope="module")
def forks() -> Iterator[Forks]:
    """Return a process that has imported what each command imports."""
    with Forks("import ottla.tools.main") as running:
        yield running


def _imported(forks: Forks, line: str) -> set[str]:
    code = (
        f"import json, sys; from ottla.tools.main import run; run({line.split()!r});"
        "print(json.dumps(list(sys.modules)))"
    )
    return set(json.loads(forks.run(code).splitlines()[-1]))


@pytest.mark.parametrize("verb", _verbs())
def test_a_command_imports_only_what_it_uses(verb: str, forks: Forks) -> None:
    """The help of a command imports few modules, and no large library that the command does not
    use.
    """
    modules = _imported(forks, f"{verb} --help")
    heavy = {name for name in _HEAVY if name in modules}
    assert heavy <= {name for name, verbs in _HEAVY.items() if verb in verbs}
    count = sum(name.startswith("ottla") for name in modules)
    assert count <= _MODULES_OF.get(verb, _MODULES_MAX)


def test_list_of_lessons_imports_no_broker_and_no_client_of_records(forks: Forks) -> None:
    """Only a lesson that runs needs them, and rich."""
    modules = _imported(forks, "learn --list")
    assert "ottla.learn.course" in modules
    assert not {"ottla.server", "ottla.storage", "confluent_kafka", "rich", "asyncio"} & modules


def test_deferred_imports_name_functions_that_exist() -> None:
    """`deferred(module, name)` is resolved when it is called, so each one is resolved here."""
    calls = [
        [word.value for word in node.args if isinstance(word, ast.Constant)]
        for path in sorted(_SOURCES.rglob("*.py"))
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and node.func.id == "deferred"
    ]
    assert len(calls) >= 2
    for module, name in calls:
        assert callable(lazy.load(module, name))


def test_an_import_of_a_command_leaves_the_garbage_collector_as_it_was() -> None:
    """Collections are suspended only while a module is imported, also if the import fails."""
    code = (
        "import gc; from ottla.base.loading import load\n"
        "load('ottla.tools.topic.list', 'command'); assert gc.isenabled()\n"
        "try: load('ottla.tools.none', 'command')\n"
        "except ModuleNotFoundError: print(gc.isenabled())"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "True\n"
