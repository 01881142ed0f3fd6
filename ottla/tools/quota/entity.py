"""The options that name the entity of a quota."""

from collections.abc import Callable
from typing import Any

import click

DEFAULT = "<default>"
_OPTIONS = (
    click.option("--user", metavar="NAME", help="A user; <default> for all others."),
    click.option("--client-id", metavar="NAME", help="A client id; <default> for all others."),
    click.option("--ip", metavar="ADDRESS", help="An address; <default> for all others."),
)
_NAMES = {"user": "user", "client_id": "client-id", "ip": "ip"}


def named(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add --user, --client-id and --ip to a command; `entity_of` reads them."""
    for option in reversed(_OPTIONS):
        function = option(function)
    return function


def entity_of(options: dict[str, Any]) -> dict[str, str | None]:
    """Return the entity; empty if none is named. UsageError for an address with something else."""
    entity = {
        kind: None if options[name] == DEFAULT else str(options[name])
        for name, kind in _NAMES.items()
        if options[name] is not None
    }
    if "ip" in entity and len(entity) > 1:
        raise click.UsageError("--ip cannot be combined with --user or --client-id.")
    return entity


def name_of(entity: dict[str, str | None]) -> str:
    """Return an entity as text."""
    return ", ".join(f"{kind}={DEFAULT if name is None else name}" for kind, name in entity.items())
