"""The options of one listener: those with its prefix before the common ones. Pure."""

from typing import Protocol

from ottla.base.errors import ConfigError
from ottla.base.options import Snapshot

BETWEEN_BROKERS = "sasl.mechanism.inter.broker.protocol"
PREFIX = "listener.name."
"""The beginning of an option of one listener; the listener's name follows in small letters."""


class Named(Protocol):
    """A listener: its name and its security protocol."""

    @property
    def name(self) -> str:
        """The name, in capital letters."""
        ...

    @property
    def protocol(self) -> str:
        """PLAINTEXT, SSL, SASL_PLAINTEXT or SASL_SSL."""
        ...


class ListenerValues:
    """The values of a listener's options, and the errors about them."""

    def __init__(self, options: Snapshot, listener: Named) -> None:
        self.options = options
        self.prefix = prefix_of(listener.name)
        self._listener = listener

    def own(self, name: str) -> str | None:
        """Return the text that is set for this listener alone; None if no such text is set."""
        value = self.options.explicit.get(self.prefix + name)
        return None if value is None else str(value)

    def text(self, name: str) -> str:
        """Return the text of an option; empty if it is not set."""
        own = self.own(name)
        return self.options.text(name) if own is None else own.strip()

    def strings(self, name: str) -> list[str]:
        """Return the items of a list."""
        own = self.own(name)
        if own is None:
            return self.options.strings(name)
        return [part.strip() for part in own.split(",") if part.strip()]

    def refusal(self, name: str, reason: str) -> ConfigError:
        """Return the error for an option with which the listener cannot work."""
        return ConfigError(
            f"The listener {self._listener.name} has the protocol {self._listener.protocol}, but "
            f"{name} {reason}"
        )


def prefix_of(listener_name: str) -> str:
    """Return the prefix of the options of one listener."""
    return f"{PREFIX}{listener_name.lower()}."
