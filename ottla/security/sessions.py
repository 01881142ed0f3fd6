"""The session of an authenticated client: when it ends, and when it may be renewed (KIP-368). Pure.

A session ends with the credential of its client, or after `connections.max.reauth.ms`. Before that
the client authenticates again on the same connection, as the same user with the same mechanism.
Times are seconds of the monotonic clock. Follows KafkaChannel and SaslServerAuthenticator.
"""

from typing import NamedTuple

from ottla.base.errors import ProtocolError
from ottla.security.exchanges import AuthenticationFailed

# A client that renews its session more often than this is refused.
RENEWAL_SECONDS = 1.0


class Session(NamedTuple):
    """The user of a client, and the time until which it is known.

    `ends_at` is None if the session does not end. `lifetime_ms` is the time that the client is
    informed of: 0 if it is unlimited, or over already. `renewed_at` is the time of the last
    renewal, None before the first one.
    """

    user: str
    mechanism: str
    ends_at: float | None = None
    lifetime_ms: int = 0
    renewed_at: float | None = None

    def has_ended(self, now: float) -> bool:
        """Return True if the client may only authenticate again."""
        return self.ends_at is not None and now > self.ends_at

    def may_be_renewed(self, now: float) -> bool:
        """Return True if the client may authenticate again: a session that does not end stays."""
        if self.ends_at is None:
            return False
        return self.renewed_at is None or now - self.renewed_at >= RENEWAL_SECONDS


class Renewal(NamedTuple):
    """An exchange that renews a session, and when it began."""

    session: Session
    begun_at: float

    def check_mechanism(self, mechanism: str) -> None:
        """Raise ProtocolError for another mechanism: as in Kafka, the client gets no response."""
        former = self.session.mechanism
        if mechanism != former:
            raise ProtocolError(
                f"SASL mechanism '{mechanism}' requested by client is not supported for "
                f"re-authentication of mechanism '{former}'"
            )

    def check_user(self, user: str) -> None:
        """Raise AuthenticationFailed for another user."""
        former = self.session.user
        if user != former:
            raise AuthenticationFailed(
                f"Cannot change principals during re-authentication from User.{former}: User.{user}"
            )


def lifetime_ms(limit_ms: int, expiry_ms: int | None, now_ms: int) -> int | None:
    """Return how long a session lasts that begins now; None if it does not end.

    `limit_ms` is the mechanism's limit, 0 without one; `expiry_ms` is when the credential expires,
    in milliseconds of the wall clock.
    """
    limits = [limit_ms] if limit_ms > 0 else []
    if expiry_ms is not None:
        limits.append(expiry_ms - now_ms)
    return max(min(limits), 0) if limits else None


def begin(
    user: str, mechanism: str, lifetime: int | None, now: float, renewal: Renewal | None = None
) -> Session:
    """Return the session of a client that has authenticated, with its lifetime in milliseconds.

    Raises AuthenticationFailed if it renews the session of another user.
    """
    renewed_at = None
    if renewal is not None:
        renewal.check_user(user)
        renewed_at = renewal.begun_at
    ends_at = None if lifetime is None else now + lifetime / 1000
    return Session(user, mechanism, ends_at, lifetime or 0, renewed_at)
