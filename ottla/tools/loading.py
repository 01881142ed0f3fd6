"""Imports by name, which wait until a command needs a module."""

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


def load(module: str, name: str) -> Any:
    """Import `name` from `module`."""
    return getattr(load_module(module), name)


def deferred(module: str, name: str) -> Callable[..., Any]:
    """Return a function that imports the function `name` of `module` when it is called."""

    def call(*arguments: Any, **options: Any) -> Any:
        return load(module, name)(*arguments, **options)

    return call
