"""The progress of a reader: the lessons and exercises that are done, in the user's state folder."""

import json
from collections.abc import Iterable
from pathlib import Path

from ottla.base.user_folders import state_folder
from ottla.client.security.private_files import write_private


def path() -> Path:
    """Return the file of the progress."""
    return state_folder() / "learn.json"


def done() -> frozenset[str]:
    """Return the names that are done; none if the file is missing, damaged or not readable."""
    try:
        names = json.loads(path().read_text(encoding="utf-8"))["done"]
        return frozenset(name for name in names if isinstance(name, str))
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return frozenset()


def mark(name: str) -> None:
    """Note that a lesson or an exercise is done; OSError if the file cannot be written."""
    known = done()
    if name not in known:
        file = path()
        file.parent.mkdir(parents=True, exist_ok=True)
        write_private(file, json.dumps({"done": sorted({*known, name})}) + "\n")


def first_open(names: Iterable[str]) -> str | None:
    """Return the first of these names that is not done; None if all are."""
    known = done()
    return next((name for name in names if name not in known), None)
