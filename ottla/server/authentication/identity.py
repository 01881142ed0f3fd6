"""The identity of a peer: the login of a client, a certificate, or the proof of a broker."""

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

from ottla.base.clock import Clock
from ottla.base.errors import ProtocolError
from ottla.net.connection import Connection
from ottla.security import sessions
from ottla.security.broker_proof import ProofToPeer
from ottla.security.exchanges import AuthenticationFailed, ClientExchange
from ottla.security.principal import USER, Principal
from ottla.security.sessions import Renewal, Session
from ottla.server.quotas.entities import ANONYMOUS

if TYPE_CHECKING:
    from ottla.server.authentication.password_checks import PasswordChecks

# Kafka's metrics have two windows of this time.
_WINDOW_SECONDS = 30.0
_NO_VALUES = (0, 0.0, 0.0)


class CertificateUser(NamedTuple):
    """The user of a connection with TLS: the subject of its certificate."""

    user: str


class FailedLogin(NamedTuple):
    """A login that has failed: its mechanism, the user that the client claims, and the reason."""

    mechanism: str
    user: str
    reason: str


class Terms(NamedTuple):
    """The mechanism of an exchange, and the longest session in milliseconds; 0 without a limit.

    The messages come without the header of a request if `is_raw`. The user with the name `broker`
    is a broker of the cluster; empty for none.
    """

    mechanism: str
    limit_ms: int = 0
    is_raw: bool = False
    broker: str = ""


class Latency:
    """Average and maximum of the values of the last half minute or minute, as in Kafka's metrics."""

    __slots__ = ("_begun_at", "_former", "_window")

    def __init__(self) -> None:
        self._begun_at = 0.0
        # Count, sum and maximum.
        self._former = self._window = _NO_VALUES

    def record(self, value: float, now: float) -> None:
        """Record a value at a time of the monotonic clock in seconds."""
        self._turn(now)
        count, total, largest = self._window
        self._window = count + 1, total + value, max(largest, value)

    def recent(self, now: float) -> tuple[float, float]:
        """Return the average and the maximum; NaN without values."""
        self._turn(now)
        (former, former_sum, _), (count, total, _) = self._former, self._window
        if not former + count:
            return math.nan, math.nan
        largest = max(self._former[2], self._window[2])
        return (former_sum + total) / (former + count), largest

    def _turn(self, now: float) -> None:
        if now - self._begun_at >= _WINDOW_SECONDS:
            is_next = now - self._begun_at < 2 * _WINDOW_SECONDS
            self._former = self._window if is_next else _NO_VALUES
            self._window = _NO_VALUES
            self._begun_at = now


class LoginCounts:
    """The logins of a listener since the start: Kafka's metrics of its Selector and SocketServer."""

    __slots__ = (
        *("delayed", "expired", "failed", "failed_renewals", "latency_ms", "refused", "renewed"),
        "succeeded",
    )

    def __init__(self) -> None:
        self.succeeded = self.failed = 0
        # Passwords that were checked late because of earlier failures, and not checked at all.
        self.delayed = self.refused = 0
        self.renewed = self.failed_renewals = 0
        # Connections that were closed because their session had ended.
        self.expired = 0
        self.latency_ms = Latency()

    def fail(self, *, is_renewal: bool) -> None:
        """Count an exchange that has failed."""
        if is_renewal:
            self.failed_renewals += 1
        else:
            self.failed += 1

    def succeed(self, renewal: Renewal | None, now: float) -> None:
        """Count an exchange that is complete."""
        if renewal is None:
            self.succeeded += 1
            return
        self.renewed += 1
        # As in Kafka, at least 1 ms.
        self.latency_ms.record(max(1.0, round(1000 * (now - renewal.begun_at))), now)


class ClientLogin:
    """An exchange with a client, in the way of one connection.

    `session` is None until the exchange is complete. An exchange with a `renewal` takes the place
    of the login whose session it renews.
    """

    def __init__(
        self,
        exchange: ClientExchange,
        terms: Terms,
        clock: Clock,
        counts: LoginCounts,
        renewal: Renewal | None = None,
    ) -> None:
        self.exchange = exchange
        self.is_raw = terms.is_raw
        self.renewal = renewal
        self.session: Session | None = None
        self.has_failed = False
        # The user that the client claims to be; None before its first message.
        self.claimed: str | None = None
        # True if its password may be checked: it has waited for its turn.
        self.has_turn = False
        # Why the client is refused, whatever its password is.
        self.refusal = ""
        # A failure that its exchange has not ended with; it is to be audited once.
        self.unreported: FailedLogin | None = None
        # Does the slow part of a step in another thread; None if no step has such a part.
        self.checks: PasswordChecks | None = None
        self._terms = terms
        self._clock = clock
        self._counts = counts

    @property
    def mechanism(self) -> str:
        """The SASL mechanism of the exchange."""
        return self._terms.mechanism

    @property
    def is_broker(self) -> bool:
        """True if the peer has logged in as the user of the brokers, by its password.

        Its delegation token is not enough: without an authorizer, clients create them for others.
        """
        session, name = self.session, self._terms.broker
        return (
            session is not None
            and bool(name)
            and session.user == name
            and not self.exchange.is_by_token
        )

    @property
    def user(self) -> str:
        """The user, also while its session is renewed; empty before the first exchange is over."""
        if self.session is not None:
            return self.session.user
        return "" if self.renewal is None else self.renewal.session.user

    @property
    def is_reported(self) -> bool:
        """True if the failure of the exchange was counted, and audited, at an earlier step."""
        return bool(self.exchange.refusal)

    def failure(self, error: Exception) -> FailedLogin:
        """Return the failure of the exchange, for the audit log."""
        # The exchange has not seen a password that is refused whatever it is.
        claimed = self.exchange.claimed or self.claimed or ""
        return FailedLogin(self._terms.mechanism, claimed, str(error))

    def slow_part(self, message: bytes) -> Callable[[], None] | None:
        """Return the part of the next step that takes milliseconds and was not done yet."""
        is_refused = self.has_failed or self.refusal
        return None if is_refused else self.exchange.slow_part(message)

    def step(self, message: bytes) -> bytes:
        """Return the reply; raises AuthenticationFailed, and so does any later message."""
        if self.has_failed:
            raise AuthenticationFailed("Authentication failed: the exchange is over")
        try:
            return self._step(message)
        except (AuthenticationFailed, ProtocolError):
            self.has_failed = True
            if not self.is_reported:
                self._counts.fail(is_renewal=self.renewal is not None)
            raise

    def _step(self, message: bytes) -> bytes:
        terms, exchange, clock = self._terms, self.exchange, self._clock
        if self.refusal:
            raise AuthenticationFailed(self.refusal)
        if self.renewal is not None:
            self.renewal.check_mechanism(terms.mechanism)
        reply = exchange.step(message)
        if exchange.refusal:
            # The client may leave now, or try the next token.
            self._counts.fail(is_renewal=self.renewal is not None)
            self.unreported = FailedLogin(terms.mechanism, exchange.claimed, exchange.refusal)
        if exchange.user:
            lifetime = sessions.lifetime_ms(terms.limit_ms, exchange.expiry_ms, clock.time_ms())
            now = clock.monotonic()
            self.session = sessions.begin(
                exchange.user, terms.mechanism, lifetime, now, self.renewal
            )
            self._counts.succeed(self.renewal, now)
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


def is_broker(connection: Connection) -> bool:
    """Return True if the peer has proven to be a broker of the cluster."""
    identity = connection.identity
    if isinstance(identity, ClientLogin):
        return identity.is_broker
    return isinstance(identity, ProofToPeer) and identity.broker_id >= 0


def has_proven_id(connection: Connection) -> bool:
    """Return True if the peer has proven which broker it is: by the secret, which no client has."""
    return isinstance(connection.identity, ProofToPeer) and is_broker(connection)


def is_this_broker(connection: Connection, broker_id: int) -> bool:
    """Return True if the peer has proven to be a broker, and not another one than `broker_id`.

    A login of SCRAM does not prove which broker it is, as in Kafka.
    """
    identity = connection.identity
    is_another = isinstance(identity, ProofToPeer) and identity.broker_id != broker_id
    return is_broker(connection) and not is_another


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
