"""Functions of the program that are called, and not awaited: they must not be async."""

import inspect
from collections.abc import Iterable
from typing import Any

from ottla.base.errors import ConfigError


def check_plain(function: Any, name: str, remedy: str) -> None:
    """Raise ConfigError for an async function, whose body would never run.

    `name` names the parameter or method, and `remedy` says what to do instead.
    """
    if any(map(inspect.iscoroutinefunction, (function, getattr(function, "__call__", None)))):  # noqa: B004
        raise ConfigError(f"{name} is an async function, which nothing would await: {remedy}")


def check_plain_methods(value: Any, names: Iterable[str], remedy: str) -> None:
    """Raise ConfigError if one of these methods of an object is async; it need not have them."""
    for name in names:
        check_plain(getattr(value, name, None), f"{name} of {value!r}", remedy)
