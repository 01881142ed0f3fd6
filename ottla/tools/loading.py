"""Import a module by its name: a command imports only the module of the verb that was called."""

import importlib
from types import ModuleType


def load(name: str) -> ModuleType:
    """Import and return a module of a table of commands."""
    return importlib.import_module(name)
