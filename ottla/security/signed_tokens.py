"""Tokens with a signature (RFC 7519), by the public keys of their issuer (RFC 7517; KIP-768).

The door module of joserfc. Only signatures with a pair of keys count: a broker must not be able to
issue tokens. Follows Kafka's ValidatorAccessTokenValidator: `exp` and `iat` are required, and an
audience only counts if it is expected.
"""

import json
from typing import Any, NamedTuple

from joserfc import jwt
from joserfc.errors import JoseError
from joserfc.jwk import KeySet

from ottla.security.oauth import SECONDS_MAX, Bearer, TokenRefused, header_of

__all__ = ["ALGORITHMS", "KeySet", "SignedRules", "claims_of", "has_key_of", "read_keys", "signed"]

ALGORITHMS = (
    *("RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512"),
    *("EdDSA", "Ed25519"),
)


class SignedRules(NamedTuple):
    """The claims that a token must have: the options `sasl.oauthbearer.*`."""

    audiences: tuple[str, ...] = ()
    issuer: str = ""
    clock_skew_seconds: int = 30
    principal_claim: str = "sub"


def read_keys(data: bytes) -> KeySet:
    """Return the keys of a JWKS document; ValueError if it has no keys."""
    try:
        keys = KeySet.import_key_set(json.loads(data))
    except (JoseError, KeyError, TypeError, ValueError, AttributeError) as error:
        raise ValueError(f"it is not a JSON Web Key Set: {error}") from error
    if not keys.keys:
        raise ValueError("it has no keys")
    return keys


def has_key_of(token: str, keys: KeySet) -> bool:
    """Return False if a token names a key that is not among the keys."""
    try:
        key_id = header_of(token).get("kid")
    except TokenRefused:
        return True
    return key_id is None or key_id in {key.kid for key in keys.keys}


def claims_of(token: str, keys: KeySet, rules: SignedRules, now_ms: int) -> dict[str, Any]:
    """Return the claims of a token whose signature, issuer, audience and times are right; raises
    TokenRefused.
    """
    try:
        claims = jwt.decode(token, keys, algorithms=ALGORITHMS).claims
        _registry(rules, now_ms).validate(claims)
    except (JoseError, ValueError, TypeError, KeyError, RecursionError) as error:
        raise TokenRefused(f"the token is not valid: {error}") from error
    return dict(claims)


def signed(token: str, keys: KeySet, rules: SignedRules, now_ms: int) -> Bearer:
    """Return the bearer of a token; raises TokenRefused."""
    claims = claims_of(token, keys, rules, now_ms)
    if "aud" in claims and not rules.audiences:
        raise TokenRefused("the token is for an audience, but none is expected")
    if not 0 <= claims["exp"] <= SECONDS_MAX:
        raise TokenRefused("the claim exp is not a time in seconds")
    user = claims[rules.principal_claim]
    if not isinstance(user, str) or not user.strip():
        raise TokenRefused(f"the claim {rules.principal_claim} is not a name")
    return Bearer(user.strip(), round(1000 * claims["exp"]))


def _registry(rules: SignedRules, now_ms: int) -> jwt.JWTClaimsRegistry:
    expected: dict[str, Any] = {name: {"essential": True} for name in ("exp", "iat")}
    expected.setdefault(rules.principal_claim, {"essential": True})
    if rules.issuer:
        expected["iss"] = {"essential": True, "value": rules.issuer}
    if rules.audiences:
        expected["aud"] = {"essential": True, "values": list(rules.audiences)}
    return jwt.JWTClaimsRegistry(now_ms // 1000, rules.clock_skew_seconds, **expected)
