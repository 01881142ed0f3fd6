"""The exchange of a client: its failures are counted once, also if the client leaves early."""

import pytest

from ottla.base.clock import RealClock
from ottla.security.exchanges import OAUTHBEARER, AuthenticationFailed
from ottla.security.oauth import Bearer, OAuthExchange, TokenRefused
from ottla.server.authentication.identity import ClientLogin, FailedLogin, LoginCounts, Terms

REASON = '{"status":"invalid_token"}'


def refuse(_token: str) -> Bearer:
    """Refuse every token."""
    raise TokenRefused("expired")


def test_refused_token_is_a_failure_before_the_client_confirms_it() -> None:
    """The client aiokafka never does. The confirmation is no further failure; another token is."""
    counts = LoginCounts()
    login = ClientLogin(OAuthExchange(refuse), Terms(OAUTHBEARER), RealClock(), counts)
    token = b"n,,\x01auth=Bearer a.b.c\x01\x01"
    for number in (1, 2):
        assert login.step(token) == REASON.encode()
        assert counts.failed == number
        assert login.unreported == FailedLogin(OAUTHBEARER, "", REASON)
        assert login.is_reported
    with pytest.raises(AuthenticationFailed, match="invalid_token"):
        login.step(b"\x01")
    assert counts.failed == 2
