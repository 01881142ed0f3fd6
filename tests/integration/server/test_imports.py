"""The modules that a broker imports until it serves clients: each one costs start time and memory."""

import gc
import json
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

from ottla.coordinators.groups import service
from ottla.server import loop

_PROGRAM = """
import asyncio, json, sys
import ottla.tools.broker.launch
from ottla.server.node import Node

async def main():
    node = Node({"log.dirs": sys.argv[1], "listeners": "PLAINTEXT://127.0.0.1:0"})
    await node.start()
    print(json.dumps(list(sys.modules)))
    await node.stop()

asyncio.run(main())
"""
# Packages and libraries that a broker needs only for some requests or settings.
_UNUSED = (
    "ottla.coordinators.classic.machine",
    "ottla.coordinators.classic.events",
    "ottla.coordinators.consumer.assignment",
    "ottla.coordinators.consumer.groups",
    "ottla.coordinators.consumer.requests",
    "ottla.coordinators.consumer.state",
    "ottla.coordinators.groups.shard",
    "ottla.server.monitoring.service",
    "ottla.server.search.searching",
    "ottla.cluster.token_znodes",
    "ottla.cluster.zk.live",
    "ottla.security.oauth",
    "ottla.security.signed_tokens",
    "ottla.security.tokens",
    "ottla.server.authentication.bearers",
    "ottla.server.authentication.tokens",
    "ottla.console",
    "ottla.streams",
    "ottla.testing",
    "re2",
    "cramjam",
    "lz4",
    "zstandard",
    "ctypes",
    "shutil",
    "decimal",
    "difflib",
    "rich",
    "kazoo",
    "joserfc",
    "confluent_kafka",
    "msgspec",
)
_MODULES_MAX = 452


def _imported(folder: Path) -> frozenset[str]:
    command = [sys.executable, "-c", _PROGRAM, str(folder)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return frozenset(json.loads(done.stdout))


def test_a_broker_without_groups_imports_only_what_it_uses(tmp_path: Path) -> None:
    """A broker that serves no groups, compressed batches or regular expressions yet has imported
    none of their modules, and few modules in all.
    """
    modules = _imported(tmp_path)
    assert not modules.intersection(_UNUSED)
    assert sum(name.startswith("ottla") for name in modules) <= _MODULES_MAX


class _Pauses:
    """A clock that notes the number of imports before each pause."""

    def __init__(self, modules: list[str]) -> None:
        self.modules = modules
        self.counts: list[int] = []

    async def sleep(self, seconds: float) -> None:
        assert seconds > 0
        self.counts.append(len(self.modules))


async def test_the_modules_of_groups_are_imported_one_at_a_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """After the start, the loop serves clients between two imports, and no collection stops it."""
    imported: list[str] = []
    collections: list[int] = []
    monkeypatch.setattr(loop, "load_module", imported.append)
    monkeypatch.setattr(gc, "collect", collections.append)
    clock = _Pauses(imported)
    await loop.import_deferred(clock)  # type: ignore[arg-type]
    assert clock.counts == list(range(len(imported) + 1))
    assert not collections
    names = {part.__name__ for part in vars(service).values() if isinstance(part, ModuleType)}
    deferred = {name for name in names if name.startswith("ottla.coordinators.")}
    assert deferred <= set(imported)
    assert len(deferred) >= 5
