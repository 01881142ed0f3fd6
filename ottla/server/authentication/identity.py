"""The identity of a peer: the login of a client, a certificate, or the proof of a broker."""

from typing import NamedTuple

from ottla.base.clock import Clock
from ottla.net.connection import Connection
from ottla.security import sessions
from ottla.security.broker_proof import ProofToPeer
from ottla.security.exchanges import AuthenticationFailed, ClientExchange
from ottla.security.principal import USER, Principal
from ottla.security.sessions import Renewal, Session
from ottla.server.quotas.entities import ANONYMOUS


class CertificateUser(NamedTuple):
    """The user of a connection with TLS: the subject of its certificate."""

    user: str


class Terms(NamedTuple):
    """The mechanism of an exchange, and the longest session in milliseconds; 0 without a limit.

    The messages come without the header of a request if `is_raw`.
    """

    mechanism: str
    limit_ms: int = 0
    is_raw: bool = False


class ClientLogin:
    """An exchange with a client, in the way of one connection.

    `session` is None until the exchange is complete. An exchange with a `renewal` takes the place
    of the login whose session it renews.
    """

    def __init__(
        self, exchange: ClientExchange, terms: Terms, clock: Clock, renewal: Renewal | None = None
    ) -> None:
        self.exchange = exchange
        self.is_raw = terms.is_raw
        self.renewal = renewal
        self.session: Session | None = None
        self.has_failed = False
        self._terms = terms
        self._clock = clock

    @property
    def user(self) -> str:
        """The user, also while its session is renewed; empty before the first exchange is over."""
        if self.session is not None:
            return self.session.user
        return "" if self.renewal is None else self.renewal.session.user

    def step(self, message: bytes) -> bytes:
        """Return the reply; raises AuthenticationFailed, and so does any later message."""
        if self.has_failed:
            raise AuthenticationFailed("Authentication failed: the exchange is over")
        try:
            return self._step(message)
        except AuthenticationFailed:
            self.has_failed = True
            raise

    def _step(self, message: bytes) -> bytes:
        terms, exchange, clock = self._terms, self.exchange, self._clock
        if self.renewal is not None:
            self.renewal.check_mechanism(terms.mechanism)
        reply = exchange.step(message)
        if exchange.user:
            lifetime = sessions.lifetime_ms(terms.limit_ms, exchange.expiry_ms, clock.time_ms())
            self.session = sessions.begin(
                exchange.user, terms.mechanism, lifetime, clock.monotonic(), self.renewal
            )
        return reply


def certificate_user(connection: Connection) -> CertificateUser | None:
    """Return the user of the peer's certificate, also after a claim to be a broker."""
    identity = connection.identity
    if isinstance(identity, ProofToPeer):
        identity = identity.former
    return identity if isinstance(identity, CertificateUser) else None


def user_of(connection: Connection) -> str:
    """Return the name of the user of a connection.

    A certificate counts until the peer has proven to be a broker: a client cannot choose to be
    ANONYMOUS, which may have other rights and quotas.
    """
    identity = connection.identity
    if isinstance(identity, ProofToPeer) and identity.broker_id < 0:
        identity = identity.former
    is_client = isinstance(identity, ClientLogin | CertificateUser)
    return (identity.user if is_client else "") or ANONYMOUS


def principal_of(connection: Connection) -> Principal:
    """Return the principal of a connection."""
    return Principal(USER, user_of(connection))


def may_request_tokens(connection: Connection) -> bool:
    """Return True for a client that has authenticated, but not with a delegation token (KIP-48)."""
    identity = connection.identity
    if isinstance(identity, ClientLogin):
        return not identity.exchange.is_by_token
    return isinstance(identity, CertificateUser) and identity.user != ANONYMOUS


def session_of(connection: Connection) -> Session | None:
    """Return the session of a client that has logged in; None for any other peer."""
    identity = connection.identity
    return identity.session if isinstance(identity, ClientLogin) else None


def is_known(connection: Connection) -> bool:
    """Return True once the client or broker of a connection has proven its identity."""
    identity = connection.identity
    if isinstance(identity, ClientLogin):
        return identity.session is not None
    if isinstance(identity, ProofToPeer):
        return identity.broker_id >= 0
    return bool(getattr(identity, "user", ""))
