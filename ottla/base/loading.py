"""Imports that wait until a part is used: start-up time and memory.

Commands use `load` and `deferred`. A module of the broker that only some brokers
need is imported like this:

    if TYPE_CHECKING:
        from ottla.coordinators.groups import commits
    else:
        commits = deferred_module("ottla.coordinators.groups.commits")

Type checkers and import-linter read the first branch, so layers, cycles and door modules are
checked as for any other import. `tests/law/test_packages.py` compares both branches. All other
names of modules in texts count as imports, too (`tests/law/test_layers.py`).
"""

import gc
import importlib
from collections.abc import Callable
from types import ModuleType
from typing import Any


def load_module(module: str) -> ModuleType:
    """Import a module without garbage collections: an import creates little garbage."""
    is_enabled = gc.isenabled()
    gc.disable()
    try:
        return importlib.import_module(module)
    finally:
        if is_enabled:
            gc.enable()


def load_users_module(module: str) -> ModuleType:
    """Import a module that a user names, such as one with a topology."""
    return importlib.import_module(module)


def load(module: str, name: str) -> Any:
    """Import `name` from `module`."""
    return getattr(load_module(module), name)


def deferred(module: str, name: str) -> Callable[..., Any]:
    """Return a function that imports the function `name` of `module` when it is called."""

    def call(*arguments: Any, **options: Any) -> Any:
        return load(module, name)(*arguments, **options)

    return call


def deferred_module(module: str) -> Any:
    """Return a module that is imported when one of its attributes is first read."""
    return _DeferredModule(module)


class _DeferredModule(ModuleType):
    """Looks up each attribute once: later reads cost as much as reads of the module."""

    def __getattr__(self, name: str) -> Any:
        value = load(self.__name__, name)
        setattr(self, name, value)
        return value
