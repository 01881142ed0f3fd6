"""The identity of a peer: the login of a client, a certificate, or the proof of a broker."""

from typing import NamedTuple

from ottla.net.connection import Connection
from ottla.security.broker_proof import ProofToPeer
from ottla.security.exchanges import AuthenticationFailed, ClientExchange
from ottla.server.quotas.entities import ANONYMOUS


class CertificateUser(NamedTuple):
    """The user of a connection with TLS: the subject of its certificate."""

    user: str


class ClientLogin:
    """An exchange with a client, in the way of one connection."""

    def __init__(self, exchange: ClientExchange, *, is_raw: bool) -> None:
        self.exchange = exchange
        # The messages come without the header of a request.
        self.is_raw = is_raw
        self.has_failed = False

    @property
    def user(self) -> str:
        """The user; empty until the exchange is complete."""
        return self.exchange.user

    def step(self, message: bytes) -> bytes:
        """Return the reply; raises AuthenticationFailed, and so does any later message."""
        if self.has_failed:
            raise AuthenticationFailed("Authentication failed: the exchange is over")
        try:
            return self.exchange.step(message)
        except AuthenticationFailed:
            self.has_failed = True
            raise


def user_of(connection: Connection) -> str:
    """Return the name of the user of a connection, for quotas."""
    identity = connection.identity
    is_client = isinstance(identity, ClientLogin | CertificateUser)
    return (identity.user if is_client else "") or ANONYMOUS


def is_known(connection: Connection) -> bool:
    """Return True once the client or broker of a connection has proven its identity."""
    identity = connection.identity
    if isinstance(identity, ProofToPeer):
        return identity.broker_id >= 0
    return bool(getattr(identity, "user", ""))
