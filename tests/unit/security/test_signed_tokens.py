"""Tokens with a signature."""

import base64
import functools
import json
from typing import Any

import pytest
from joserfc import jwt
from joserfc.jwk import ECKey, KeySet, OctKey, RSAKey

from ottla.security.oauth import Bearer, TokenRefused
from ottla.security.signed_tokens import SignedRules, read_keys, signed
from tests.identity_provider import rsa_key

NOW_MS = 1_000_000_000
NOW = NOW_MS // 1000
RULES = SignedRules(("kafka", "other"), "https://issuer")
EC = ECKey.generate_key("P-256", {"kid": "ec"})


@functools.cache
def keys() -> KeySet:
    """Return the public keys of the issuer."""
    return read_keys(json.dumps(KeySet([rsa_key("rsa"), EC]).as_dict(private=False)).encode())


def token(key: Any = None, algorithm: str = "RS256", **claims: Any) -> str:
    """Return a token of ann for the audience of the rules; by default the RSA key signs it."""
    key = key or rsa_key("rsa")
    body = {
        "sub": "ann",
        "iss": "https://issuer",
        "aud": "kafka",
        "iat": NOW - 5,
        "exp": NOW + 60,
        **claims,
    }
    header = {"alg": algorithm, "kid": key.kid}
    kept = {name: value for name, value in body.items() if value is not None}
    return jwt.encode(header, kept, key, algorithms=[algorithm])


def check(text: str, rules: SignedRules = RULES) -> Bearer:
    """Check a token now."""
    return signed(text, keys(), rules, NOW_MS)


@pytest.mark.parametrize("algorithm", ["RS256", "PS512", "ES256"])
def test_token_of_the_issuer_is_accepted(algorithm: str) -> None:
    """The key is found by its id."""
    key = EC if algorithm == "ES256" else rsa_key("rsa")
    assert check(token(key, algorithm)) == Bearer("ann", NOW_MS + 60_000)
    assert check(token(key, algorithm, aud=["x", "other"])).user == "ann"


@pytest.mark.parametrize(
    "claims",
    [
        {"exp": None},
        {"iat": None},
        {"sub": None},
        {"sub": ""},
        {"sub": 7},
        {"exp": NOW - 31},
        {"exp": "soon"},
        {"exp": 10**400},
        {"iat": NOW + 31},
        {"nbf": NOW + 31},
        {"iss": None},
        {"iss": "https://other"},
        {"aud": None},
        {"aud": "x"},
    ],
)
def test_token_with_wrong_claims_is_refused(claims: dict[str, object]) -> None:
    """It has expired, is not valid yet, or is for another service or from another issuer."""
    with pytest.raises(TokenRefused):
        check(token(**claims))


def test_clocks_may_differ() -> None:
    """By as many seconds as the option says."""
    assert check(token(exp=NOW - 29)).user == "ann"
    with pytest.raises(TokenRefused):
        check(token(exp=NOW - 29), RULES._replace(clock_skew_seconds=10))


def test_signature_of_another_key_is_refused() -> None:
    """So is a token without a signature, one that was changed, and one with a shared secret."""
    secret = OctKey.import_key(json.dumps(rsa_key("rsa").as_dict(private=False)), {"kid": "rsa"})
    parts = token().split(".")
    other = token(sub="bob").split(".")
    for text in (
        token(RSAKey.import_key(rsa_key("foreign").as_dict(private=True), {"kid": "rsa"})),
        token(secret, "HS256"),
        ".".join((parts[0], other[1], parts[2])),
        ".".join((parts[0], parts[1], "")),
        "",
        "a.b.c.d.e",
        base64.urlsafe_b64encode(b"[" * 60_000).decode() + f".{parts[1]}.{parts[2]}",
    ):
        with pytest.raises(TokenRefused):
            check(text)


def test_audience_counts_only_if_it_is_expected() -> None:
    """As in Kafka, a token for an audience is refused by a broker that expects none."""
    rules = SignedRules(principal_claim="name")
    assert check(token(aud=None, name=" bob "), rules).user == "bob"
    with pytest.raises(TokenRefused, match="none is expected"):
        check(token(name="bob"), rules)


@pytest.mark.parametrize("data", [b"", b"[]", b"{}", b'{"keys": []}', b'{"keys": [{"kty": "x"}]}'])
def test_document_without_keys_is_an_error(data: bytes) -> None:
    """The broker does not start with it."""
    with pytest.raises(ValueError, match=r"it (is not|has no)"):
        read_keys(data)
