"""Begins the exchanges of clients: the mechanisms of each listener, and the passwords of users."""

import functools
from collections.abc import Callable, Mapping

from ottla.base.rng import Rng
from ottla.cluster.options.security_options import ListenerSecurity
from ottla.cluster.znodes import ConfigNode
from ottla.security.exchanges import PLAIN, PlainExchange, ScramExchange
from ottla.security.scram import ScramCredential, ScramMechanism, parse_credential
from ottla.server.authentication.identity import ClientLogin

_NONCE_BYTES = 24
_PEPPER_BYTES = 32


class Logins:
    """Begins the exchanges of the listeners with SASL.

    `users` returns the settings of users by their path in the tree.
    """

    def __init__(
        self,
        listeners: Mapping[str, ListenerSecurity],
        users: Callable[[], Mapping[str, Mapping[str, str]]],
        rng: Rng,
    ) -> None:
        self._listeners = listeners
        self._users = users
        self._rng = rng

    @functools.cached_property
    def _pepper(self) -> bytes:
        return self._rng.random_bytes(_PEPPER_BYTES)

    def mechanisms(self, listener: str) -> tuple[str, ...]:
        """Return the mechanisms of a listener; empty if it has no SASL."""
        found = self._listeners.get(listener)
        return () if found is None else found.mechanisms

    def begin(self, listener: str, mechanism: str, *, is_raw: bool) -> ClientLogin:
        """Return a new exchange with a mechanism of the listener."""
        if mechanism == PLAIN:
            passwords = self._listeners[listener].passwords
            return ClientLogin(PlainExchange(passwords.get), is_raw=is_raw)
        chosen = ScramMechanism[mechanism.replace("-", "_")]
        nonce = self._rng.random_bytes(_NONCE_BYTES).hex()
        exchange = ScramExchange(
            chosen, lambda user: self._credential(user, chosen), nonce=nonce, pepper=self._pepper
        )
        return ClientLogin(exchange, is_raw=is_raw)

    def _credential(self, user: str, mechanism: ScramMechanism) -> ScramCredential | None:
        settings = self._users().get(ConfigNode.sanitize(user), {})
        text = settings.get(mechanism.mechanism_name)
        try:
            return None if text is None else parse_credential(text)
        except ValueError:
            # Damaged by another program: no password matches it.
            return None
