"""Delegation tokens: their times, and who may change them."""

import base64
import hashlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ottla.base.errors import ApiError, ErrorCode
from ottla.client.security.options import Credentials
from ottla.client.security.sasl import exchange
from ottla.security import tokens
from ottla.security.exchanges import AuthenticationFailed, ScramExchange, ScramLogin
from ottla.security.mock_credentials import mock
from ottla.security.principal import Principal
from ottla.security.scram import ITERATIONS_MIN, ScramMechanism
from ottla.security.tokens import Lifetimes, Token

ANN, BEN, EVE = (Principal("User", name) for name in ("ann", "ben", "eve"))
LIFETIMES = Lifetimes(max_ms=1000, expiry_ms=300)
NOW = 50_000
KEY, TOKEN_ID = "secret", "an-id"


def issued(asked_ms: int = -1, lifetimes: Lifetimes = LIFETIMES) -> Token:
    """Return a token of ann that ben may renew."""
    return tokens.issued(TOKEN_ID, ANN, EVE, [BEN], asked_ms, lifetimes, NOW)


@pytest.mark.parametrize(
    ("asked_ms", "max_ms", "expiry_ms"),
    [(-1, 1000, 300), (0, 1000, 300), (600, 600, 300), (200, 200, 200), (5000, 1000, 300)],
)
def test_token_lives_as_long_as_asked_for_at_most_the_longest_life(
    asked_ms: int, max_ms: int, expiry_ms: int
) -> None:
    """A time that is not positive is the default."""
    token = issued(asked_ms)
    times = (token.issue_ms, token.max_ms, token.expiry_ms)
    assert times == (NOW, NOW + max_ms, NOW + expiry_ms)


@pytest.mark.parametrize("kind", ["", "Group", "user", "User:team"])
def test_owner_and_renewers_are_users(kind: str) -> None:
    """Principals of other types never authenticate."""
    other = Principal(kind, "ann")
    for owner, renewers in ((other, [BEN]), (ANN, [BEN, other])):
        with pytest.raises(ApiError) as caught:
            tokens.issued(TOKEN_ID, owner, EVE, renewers, -1, LIFETIMES, NOW)
        assert caught.value.code is ErrorCode.INVALID_PRINCIPAL_TYPE


@pytest.mark.parametrize(
    ("period_ms", "expiry_ms"), [(-1, 400), (-9, 400), (0, 100), (50, 150), (5000, 1000)]
)
def test_renewal_postpones_the_expiry_up_to_the_longest_life(
    period_ms: int, expiry_ms: int
) -> None:
    """A negative period is the default."""
    for principal in (ANN, BEN):
        token = tokens.renewed(issued(), principal, period_ms, LIFETIMES, NOW + 100)
        assert token == issued()._replace(expiry_ms=NOW + expiry_ms)


@pytest.mark.parametrize(("period_ms", "expiry_ms"), [(0, 100), (50, 150), (5000, 1000)])
def test_expiry_is_changed_or_at_once(period_ms: int, expiry_ms: int) -> None:
    """A negative period deletes the token, also an expired one."""
    token = tokens.expired(issued(), BEN, period_ms, NOW + 100)
    assert token == issued()._replace(expiry_ms=NOW + expiry_ms)
    assert tokens.expired(issued(), ANN, -1, NOW + 9999) is None


def test_only_owner_and_renewers_change_a_token() -> None:
    """The requester of another owner's token may not, nor a principal of another type."""
    for principal in (EVE, Principal("Group", "ann")):
        for period_ms in (-1, 0, 1):
            with pytest.raises(ApiError) as caught:
                tokens.renewed(issued(), principal, period_ms, LIFETIMES, NOW)
            assert caught.value.code is ErrorCode.DELEGATION_TOKEN_OWNER_MISMATCH
            with pytest.raises(ApiError) as caught:
                tokens.expired(issued(), principal, period_ms, NOW)
            assert caught.value.code is ErrorCode.DELEGATION_TOKEN_OWNER_MISMATCH


@pytest.mark.parametrize("now_ms", [NOW + 301, NOW + 1001])
def test_expired_token_is_not_renewed(now_ms: int) -> None:
    """Its last moment counts as before."""
    assert not issued().has_expired(NOW + 300)
    with pytest.raises(ApiError) as caught:
        tokens.renewed(issued(), ANN, -1, LIFETIMES, now_ms)
    assert caught.value.code is ErrorCode.DELEGATION_TOKEN_EXPIRED
    with pytest.raises(ApiError) as caught:
        tokens.expired(issued(), ANN, 0, now_ms)
    assert caught.value.code is ErrorCode.DELEGATION_TOKEN_EXPIRED


@given(
    st.lists(st.tuples(st.sampled_from((ANN, BEN)), st.integers(-5, 2000), st.integers(0, 400))),
    st.integers(-5, 3000),
)
def test_no_change_lets_a_token_live_longer_than_its_longest_life(
    changes: list[tuple[Principal, int, int]], asked_ms: int
) -> None:
    """The expiry is never after the longest life, however often it is renewed."""
    token, now_ms = issued(asked_ms), NOW
    for principal, period_ms, pause_ms in changes:
        now_ms += pause_ms
        if token.has_expired(now_ms):
            break
        token = tokens.renewed(token, principal, period_ms, LIFETIMES, now_ms)
        assert token.expiry_ms <= token.max_ms <= NOW + LIFETIMES.max_ms


def test_token_concerns_owner_requester_and_renewers() -> None:
    """They describe it."""
    assert [issued().concerns(principal) for principal in (ANN, BEN, EVE)] == [True] * 3
    assert not issued().concerns(Principal("User", "cid"))


@given(st.text(max_size=30), st.sampled_from(ScramMechanism))
def test_salt_of_a_token_is_no_part_of_an_hmac(token_id: str, mechanism: ScramMechanism) -> None:
    """A client may ask for the salt of any id; it is the same on every broker."""
    salt = tokens.salt_of(KEY, mechanism, token_id)
    assert salt == tokens.salt_of(KEY, mechanism, token_id)
    assert len(salt) == 16
    for text in (token_id, f"{mechanism.mechanism_name} {token_id}"):
        assert salt not in tokens.hmac_of(KEY, text)
    assert salt != tokens.salt_of("other", mechanism, token_id)


def test_hmac_is_that_of_apache_kafka() -> None:
    """HmacSHA512 of the id, as DelegationTokenManager computes it."""
    digest = hashlib.sha512
    block = KEY.encode().ljust(128, b"\0")
    inner = digest(bytes(byte ^ 0x36 for byte in block) + TOKEN_ID.encode()).digest()
    expected = digest(bytes(byte ^ 0x5C for byte in block) + inner).digest()
    assert tokens.hmac_of(KEY, TOKEN_ID) == expected


def run(mechanism: ScramMechanism, password: str, *, is_token: bool = True) -> ScramExchange:
    """Log in with the token; a user has its id as name, too."""
    hmac = tokens.hmac_of(KEY, TOKEN_ID)
    login = ScramLogin("ann", tokens.scram_credential(mechanism, hmac, b"salt"), 777)
    unknown = ScramLogin("", mock(mechanism, b"salt", ITERATIONS_MIN))
    server = ScramExchange(
        mechanism,
        lambda _: unknown,
        nonce="n",
        find_token=lambda token_id: login if token_id == TOKEN_ID else unknown,
    )
    credentials = Credentials(mechanism.mechanism_name, TOKEN_ID, password, is_token)
    client = exchange(credentials, "x")
    message = next(client)
    while True:
        try:
            message = client.send(server.step(message))
        except StopIteration:
            return server


@pytest.mark.parametrize("mechanism", ScramMechanism)
def test_client_logs_in_with_a_token_as_its_owner(mechanism: ScramMechanism) -> None:
    """The password is the HMAC in base64."""
    password = base64.b64encode(tokens.hmac_of(KEY, TOKEN_ID)).decode()
    server = run(mechanism, password)
    assert (server.user, server.expiry_ms, server.is_by_token) == ("ann", 777, True)
    with pytest.raises(AuthenticationFailed, match="invalid credentials with SASL mechanism SCRAM"):
        run(mechanism, password[:-2] + "A=")
    with pytest.raises(AuthenticationFailed, match="invalid credentials with SASL mechanism SCRAM"):
        run(mechanism, password, is_token=False)


def test_unknown_token_is_refused_as_an_unknown_user() -> None:
    """The first message gets a response; one without `tokenauth=true` asks for a user."""
    unknown = ScramLogin("", mock(ScramMechanism.SCRAM_SHA_256, b"salt", ITERATIONS_MIN))
    server = ScramExchange(
        ScramMechanism.SCRAM_SHA_256, lambda _: unknown, nonce="n", find_token=lambda _: unknown
    )
    reply = server.step(b"n,,n=nobody,r=x,tokenauth=TRUE")
    assert reply.endswith(f",i={ITERATIONS_MIN}".encode())
    with pytest.raises(AuthenticationFailed, match="invalid credentials with SASL mechanism SCRAM"):
        server.step(b"c=biws,r=xn,p=" + base64.b64encode(bytes(32)))
    assert server.user == ""
