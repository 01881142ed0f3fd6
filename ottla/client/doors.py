"""Optional libraries: the module that uses one is imported on first use."""

from typing import Any

from ottla.base.loading import load_module


def open_door(module: str, library: str, install: str) -> Any:
    """Import the module that uses a library; if it is missing, ImportError says what to install."""
    try:
        return load_module(module)
    except ModuleNotFoundError as error:
        missing = (error.name or "").partition(".")[0]
        if missing.startswith("ottla"):
            raise
        raise ImportError(
            f"this needs {library}, which is not installed: pip install '{install}'"
        ) from error
