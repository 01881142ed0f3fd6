"""OAUTHBEARER: the messages of the exchange, and tokens without a signature."""

import base64
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ottla.security import oauth
from ottla.security.exchanges import AuthenticationFailed
from ottla.security.oauth import Bearer, OAuthExchange, TokenRefused, UnsecuredRules

NOW_MS = 1_000_000_000
NOW = NOW_MS // 1000
RULES = UnsecuredRules()


def part(value: object) -> str:
    """Return a part of a token."""
    return base64.urlsafe_b64encode(json.dumps(value).encode()).decode().rstrip("=")


def token(**claims: Any) -> str:
    """Return a token of ann that expires in a minute."""
    body = {"sub": "ann", "exp": NOW + 60, **claims}
    return f"{part({'alg': 'none'})}.{part(body)}."


def first(text: str, asked: str = "", extensions: str = "") -> bytes:
    """Return the first message of a client."""
    return f"n,{asked},\x01auth=Bearer {text}\x01{extensions}\x01".encode()


def validate(text: str) -> Bearer:
    """Check a token as a broker with the default options does."""
    return oauth.unsecured(text, RULES, NOW_MS)


@pytest.mark.parametrize("message", [first(token()), first(token(), "a=ann", "k=v\x01")])
def test_client_with_a_token_is_its_user(message: bytes) -> None:
    """The session ends with the token; extensions are ignored."""
    exchange = OAuthExchange(validate)
    assert exchange.step(message) == b""
    assert (exchange.user, exchange.expiry_ms) == ("ann", NOW_MS + 60_000)
    with pytest.raises(AuthenticationFailed, match="over"):
        exchange.step(message)


def test_refused_token_is_answered_before_the_exchange_fails() -> None:
    """The client confirms the reason, as RFC 7628 demands; another token may follow instead."""
    exchange = OAuthExchange(validate)
    reason = b'{"status":"invalid_token"}'
    assert exchange.step(first(token(exp=NOW))) == reason
    assert exchange.user == ""
    with pytest.raises(AuthenticationFailed, match="invalid_token"):
        exchange.step(b"\x01")


@pytest.mark.parametrize(
    "message",
    [
        b"",
        b"\x01",
        b"n,,\x01\x01",
        b"y,,\x01auth=Bearer a\x01\x01",
        b"n,,\x01auth=Basic a\x01\x01",
        b"n,,\x01auth=Bearer a b\x01\x01",
        b"n,,\x01auth=Bearer \xff\x01\x01",
        first(token(), "a=bob"),
        first("a" * 200_000),
    ],
)
def test_wrong_first_message_is_refused(message: bytes) -> None:
    """Also one that asks for another user's rights."""
    exchange = OAuthExchange(validate)
    with pytest.raises(AuthenticationFailed):
        exchange.step(message)
    assert exchange.user == ""


@pytest.mark.parametrize(
    "text",
    [
        "a.b",
        "a.b.c.d",
        f"{part({'alg': 'none'})}.!.",
        base64.b64encode(b"[" * 60_000).decode().rstrip("=") + ".a.",
        f"{part([])}.{part({})}.",
        token() + "c2lnbmF0dXJl",
        f"{part({'alg': 'HS256'})}.{part({'sub': 'ann', 'exp': NOW + 60})}.",
        token(sub=""),
        token(sub=7),
        token(exp=None),
        token(exp="soon"),
        token(exp=True),
        token(exp=NOW),
        token(exp=float("nan")),
        token(exp=float("inf")),
        token(exp=10**400),
        token(exp=-1),
        token(iat=NOW + 1),
        token(iat=NOW, exp=NOW),
    ],
)
def test_wrong_token_is_refused(text: str) -> None:
    """It is damaged, has a signature, has expired, or was issued in the future."""
    with pytest.raises(TokenRefused) as caught:
        validate(text)
    assert caught.value.response() == b'{"status":"invalid_token"}'


def test_options_of_the_login_module_change_the_checks() -> None:
    """The claims have other names, clocks may differ, and a scope is required."""
    rules = UnsecuredRules("name", "roles", ("write", "read"), 5000)
    claims = {"name": "bob", "roles": ["read", "write", "more"], "exp": NOW - 4, "iat": NOW - 60}
    assert oauth.unsecured(token(**claims), rules, NOW_MS).user == "bob"
    with pytest.raises(TokenRefused) as caught:
        oauth.unsecured(token(**claims | {"roles": "read"}), rules, NOW_MS)
    expected = b'{"status":"insufficient_scope", "scope":"[write, read]"}'
    assert caught.value.response() == expected


_JSON = st.recursive(
    st.none() | st.booleans() | st.floats() | st.text() | st.integers(), lambda c: st.lists(c)
)


@given(st.dictionaries(st.sampled_from(("sub", "exp", "iat", "scope")), _JSON), st.text())
def test_any_claims_are_accepted_or_refused(claims: dict[str, object], text: str) -> None:
    """No claim causes another error than a refusal."""
    header = part({"alg": "none"})
    for written in (f"{header}.{part(claims)}.", f"{header}.{text}.", text):
        try:
            bearer = validate(written)
        except TokenRefused:
            continue
        assert bearer.expiry_ms > NOW_MS
