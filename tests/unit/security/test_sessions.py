"""The session of a client: its end, and the exchange that renews it."""

import pytest

from ottla.base.errors import ProtocolError
from ottla.security import sessions
from ottla.security.exchanges import AuthenticationFailed
from ottla.security.sessions import RENEWAL_SECONDS, Renewal, Session

NOW_MS = 1_000_000


@pytest.mark.parametrize(
    ("limit_ms", "expiry_ms", "lifetime_ms"),
    [
        (0, None, None),
        (5000, None, 5000),
        (0, NOW_MS + 700, 700),
        (5000, NOW_MS + 700, 700),
        (500, NOW_MS + 700, 500),
        (0, NOW_MS - 1, 0),
        (5000, NOW_MS - 1, 0),
    ],
)
def test_lifetime_is_the_shorter_of_both_limits(
    limit_ms: int, expiry_ms: int | None, lifetime_ms: int | None
) -> None:
    """The one of the mechanism and the credential's own; an expired credential has no time left."""
    assert sessions.lifetime_ms(limit_ms, expiry_ms, NOW_MS) == lifetime_ms


def test_session_ends_after_its_lifetime() -> None:
    """A request at its last moment is served, as in Kafka."""
    session = sessions.begin("ann", "PLAIN", 2000, 10.0)
    assert session == Session("ann", "PLAIN", 12.0, 2000, None)
    assert not session.has_ended(12.0)
    assert session.has_ended(12.001)


def test_session_without_a_limit_neither_ends_nor_is_renewed() -> None:
    """The client is informed of a lifetime of 0."""
    session = sessions.begin("ann", "PLAIN", None, 10.0)
    assert session.lifetime_ms == 0
    assert not session.has_ended(1e12)
    assert not session.may_be_renewed(1e12)


def test_session_is_renewed_at_most_once_in_a_second() -> None:
    """The first time at once, also after its end."""
    first = sessions.begin("ann", "PLAIN", 2000, 10.0)
    assert first.may_be_renewed(10.0)
    assert first.may_be_renewed(99.0)
    second = sessions.begin("ann", "PLAIN", 2000, 11.5, Renewal(first, 11.0))
    assert second == Session("ann", "PLAIN", 13.5, 2000, 11.0)
    assert not second.may_be_renewed(11.0 + RENEWAL_SECONDS / 2)
    assert second.may_be_renewed(11.0 + RENEWAL_SECONDS)


def test_user_and_mechanism_stay_the_same() -> None:
    """Another user is refused with a sentence, another mechanism without a response."""
    renewal = Renewal(Session("ann", "PLAIN", 12.0), 11.0)
    with pytest.raises(AuthenticationFailed, match=r"from User\.ann: User\.bob"):
        sessions.begin("bob", "PLAIN", 2000, 11.0, renewal)
    renewal.check_mechanism("PLAIN")
    with pytest.raises(ProtocolError, match=r"'SCRAM-SHA-256' .* re-authentication of .* 'PLAIN'"):
        renewal.check_mechanism("SCRAM-SHA-256")
