"""Begins the exchanges of clients: the mechanisms of each listener, and the passwords of users."""

import functools
from collections.abc import Awaitable, Callable, Collection, Mapping
from typing import TYPE_CHECKING

from ottla.base.clock import Clock
from ottla.base.errors import ApiError, ErrorCode
from ottla.base.rng import Rng
from ottla.cluster.options.security_options import ListenerSecurity
from ottla.net.connection import Connection
from ottla.security.exchanges import (
    OAUTHBEARER,
    PLAIN,
    ClientExchange,
    PlainExchange,
    ScramExchange,
    check_of,
)
from ottla.security.principal import Principal
from ottla.security.scram import ScramMechanism
from ottla.security.sessions import Renewal
from ottla.server.authentication.identity import (
    ClientLogin,
    LoginCounts,
    Terms,
    may_request_tokens,
    principal_of,
)

if TYPE_CHECKING:
    from ottla.cluster.options.security.broker_login import BrokerLogin
    from ottla.server.authentication.bearers import Bearers
    from ottla.server.authentication.plain_users import PlainUsers
    from ottla.server.authentication.scram_users import ScramUsers
    from ottla.server.authentication.tokens import DelegationTokens

_NONCE_BYTES = 24
_NO_TIME = -1


class Logins:
    """Begins the exchanges of the listeners with SASL.

    `users` are the SCRAM users; None if no listener has it. `tokens` is None if the broker issues
    no delegation tokens, `bearers` if no listener has OAUTHBEARER. `counts` has the listeners'
    counts by name. On the listeners `for_brokers`, the user of `broker` is a broker.
    `plain_users` has the PLAIN users by listener, for listeners whose users are in a file.
    """

    def __init__(
        self,
        listeners: Mapping[str, ListenerSecurity],
        users: "ScramUsers | None",
        rng: Rng,
        clock: Clock,
        tokens: "DelegationTokens | None" = None,
        bearers: "Bearers | None" = None,
        counts: Mapping[str, LoginCounts] | None = None,
    ) -> None:
        self.broker: BrokerLogin | None = None
        self.for_brokers: Collection[str] = ()
        self.plain_users: Mapping[str, PlainUsers] = {}
        self.tokens = tokens
        self._bearers = bearers
        self._counts = counts or {name: LoginCounts() for name in listeners}
        self._listeners = listeners
        self._users = users
        self._rng = rng
        self._clock = clock

    def tokens_for(self, connection: Connection) -> "DelegationTokens":
        """Return the tokens; ApiError if the client may not request them, or none are issued."""
        if not may_request_tokens(connection):
            raise ApiError(ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED)
        if self.tokens is None:
            raise ApiError(ErrorCode.DELEGATION_TOKEN_AUTH_DISABLED)
        return self.tokens

    async def change_expiry(
        self,
        connection: Connection,
        change: "Callable[[DelegationTokens, Principal], Awaitable[int]]",
    ) -> tuple[ErrorCode, int]:
        """Let the client of a connection change a token; return the error and the expiry (ms)."""
        try:
            expiry_ms = await change(self.tokens_for(connection), principal_of(connection))
        except ApiError as error:
            return error.code, _NO_TIME
        return ErrorCode.NONE, expiry_ms

    def mechanisms(self, listener: str) -> tuple[str, ...]:
        """Return the mechanisms of a listener; empty if it has no SASL."""
        found = self._listeners.get(listener)
        return () if found is None else found.mechanisms

    def begin(
        self, listener: str, mechanism: str, *, is_raw: bool, renewal: Renewal | None = None
    ) -> ClientLogin:
        """Return a new exchange with a mechanism of the listener, which may renew a session."""
        security = self._listeners[listener]
        limit_ms = security.session_ms.get(mechanism, 0)
        terms = Terms(mechanism, limit_ms, is_raw, self._broker_user(listener, mechanism))
        exchange = self._exchange(listener, mechanism)
        login = ClientLogin(exchange, terms, self._clock, self._counts[listener], renewal)
        if mechanism == PLAIN and listener in self.plain_users:
            login.checks = self.plain_users[listener].checks
        return login

    def _broker_user(self, listener: str, mechanism: str) -> str:
        broker = self.broker
        if broker is None or listener not in self.for_brokers or mechanism != broker.mechanism:
            return ""
        return broker.user

    def refuse(self, listener: str) -> None:
        """Count an exchange that cannot begin, because the listener lacks its mechanism."""
        self._counts[listener].fail(is_renewal=False)

    def _exchange(self, listener: str, mechanism: str) -> ClientExchange:
        if mechanism == PLAIN:
            file = self.plain_users.get(listener)
            if file is not None:
                return PlainExchange(file.check, file.slow_check)
            return PlainExchange(check_of(self._listeners[listener].passwords))
        if mechanism == OAUTHBEARER:
            assert self._bearers is not None, "a listener has OAUTHBEARER"
            return self._bearers.begin(listener)
        chosen = ScramMechanism.of_name(mechanism)
        nonce = self._rng.random_bytes(_NONCE_BYTES).hex()
        users, tokens = self._users, self.tokens
        assert users is not None, "a listener has SCRAM"
        return ScramExchange(
            chosen,
            functools.partial(users.find, chosen),
            nonce=nonce,
            find_token=None if tokens is None else functools.partial(tokens.login, chosen),
        )
