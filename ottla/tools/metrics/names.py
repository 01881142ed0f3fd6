"""The check of names of subscriptions."""

from collections.abc import Collection, Iterable

from ottla.base.errors import ConfigError


def check_names(names: Iterable[str], known: Collection[str]) -> None:
    """Raise ConfigError if a name is not known."""
    for name in names:
        if name not in known:
            raise ConfigError(
                f"There is no subscription {name!r}: `ottla metrics list` lists them."
            )
