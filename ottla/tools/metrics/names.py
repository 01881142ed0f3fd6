"""The check of names of subscriptions."""

from collections.abc import Collection, Iterable

import click


def check_names(names: Iterable[str], known: Collection[str]) -> None:
    """Raise UsageError if a name is not known."""
    for name in names:
        if name not in known:
            raise click.UsageError(
                f"There is no subscription {name!r}: `ottla metrics list` lists them."
            )
