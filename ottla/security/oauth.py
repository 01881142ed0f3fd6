"""The server's part of OAUTHBEARER (RFC 7628), and tokens without a signature (KIP-255). Pure.

The response to a refused token is the reason as JSON; the client confirms that with one byte,
and only then the exchange has failed. Follows Kafka's OAuthBearerSaslServer and
OAuthBearerUnsecuredValidatorCallbackHandler.
"""

import base64
import binascii
import json
import re
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from ottla.security.exchanges import AuthenticationFailed

_TEXT_MAX = 1 << 17
_CONFIRMATION = b"\x01"
_FIRST = re.compile(
    r"n,(?:a=(?P<asked>(?:[\x01-\x2b\x2d-\x3c\x3e-\x7f]|=2C|=3D)+))?,"
    r"\x01(?P<pairs>(?:[A-Za-z]+=[\x21-\x7e \t\r\n]+\x01)*)\x01"
)
_AUTH = re.compile(r"(?P<scheme>\w+) +(?P<token>[-_~+/.a-zA-Z0-9]+=*)")
_PARTS = 3
# As many as fit into the milliseconds of the protocol; a NaN is not less.
SECONDS_MAX = 2**53 // 1000


class Bearer(NamedTuple):
    """The user of a token, and when the token expires, in milliseconds since the epoch."""

    user: str
    expiry_ms: int


class TokenRefused(Exception):
    """A token is not valid, or lacks a `scope`. The text is for the broker's log."""

    def __init__(self, reason: str, scope: str | None = None) -> None:
        super().__init__(reason)
        self.scope = scope

    def response(self) -> bytes:
        """Return the reason for the client."""
        if self.scope is None:
            return b'{"status":"invalid_token"}'
        return f'{{"status":"insufficient_scope", "scope":"{self.scope}"}}'.encode()


class UnsecuredRules(NamedTuple):
    """The options of the login module for tokens without a signature."""

    principal_claim: str = "sub"
    scope_claim: str = "scope"
    required_scope: tuple[str, ...] = ()
    clock_skew_ms: int = 0


Validate = Callable[[str], Bearer]
"""Returns the bearer of a token; raises TokenRefused."""


class OAuthExchange:
    """One message with a token."""

    def __init__(self, validate: Validate) -> None:
        # A token that is refused proves no name.
        self.user = self.claimed = self.refusal = ""
        self.expiry_ms: int | None = None
        self.is_by_token = False
        self._validate = validate

    def slow_part(self, message: bytes) -> None:
        """Return None: the check of a token takes a part of a millisecond."""

    def step(self, message: bytes) -> bytes:
        """Accept the token, or return why it is refused."""
        if self.refusal and message == _CONFIRMATION:
            raise AuthenticationFailed(self.refusal)
        self.refusal = ""
        if self.user:
            raise AuthenticationFailed("Authentication failed: the exchange is over")
        token, asked = _first_message(message)
        try:
            bearer = self._validate(token)
        except TokenRefused as error:
            reply = error.response()
            self.refusal = reply.decode()
            return reply
        if asked not in ("", bearer.user):
            raise AuthenticationFailed(
                f"Authentication failed: Client requested an authorization id ({asked}) that is "
                f"different from the token's principal name ({bearer.user})"
            )
        self.user, self.expiry_ms = bearer
        self.claimed = self.user
        return b""


def _first_message(message: bytes) -> tuple[str, str]:
    """Return the token and the authorization identity that a client asks for."""
    if len(message) > _TEXT_MAX:
        raise AuthenticationFailed("Authentication failed: the message is too long")
    found = _FIRST.fullmatch(message.decode(errors="replace"))
    if found is None:
        raise AuthenticationFailed("Invalid OAUTHBEARER client first message")
    pairs = dict(pair.partition("=")[::2] for pair in found["pairs"].split("\x01") if pair)
    auth = _AUTH.fullmatch(pairs.get("auth", ""))
    if auth is None or auth["scheme"].lower() != "bearer":
        raise AuthenticationFailed(
            "Invalid OAUTHBEARER client first message: invalid 'auth' format"
        )
    return auth["token"], found["asked"] or ""


def unsecured(token: str, rules: UnsecuredRules, now_ms: int) -> Bearer:
    """Return the bearer of a token without a signature; raises TokenRefused.

    Everyone can write such a token: it is for tests and for development only.
    """
    parts = token.split(".")
    if len(parts) != _PARTS:
        raise TokenRefused("a token has three parts, with a dot between them")
    if _json(parts[0]).get("alg") != "none" or parts[2]:
        raise TokenRefused("a token without a signature has the algorithm none")
    claims = _json(parts[1])
    user = claims.get(rules.principal_claim)
    if not isinstance(user, str) or not user.strip():
        raise TokenRefused(f"the claim {rules.principal_claim} is not a name")
    expiry, issued = _seconds(claims, "exp"), _seconds(claims, "iat")
    if expiry is None:
        raise TokenRefused("the claim exp is missing")
    if now_ms - rules.clock_skew_ms >= 1000 * expiry:
        raise TokenRefused("the token has expired")
    if issued is not None and (1000 * issued > now_ms + rules.clock_skew_ms or expiry <= issued):
        raise TokenRefused("the token was issued later than now, or than it expires")
    if not set(rules.required_scope) <= _scope(claims.get(rules.scope_claim)):
        listed = ", ".join(rules.required_scope)
        raise TokenRefused(f"the token lacks a scope of {listed}", f"[{listed}]")
    return Bearer(user, round(1000 * expiry))


def header_of(token: str) -> Mapping[str, Any]:
    """Return the header of a token, which nothing has checked; raises TokenRefused."""
    return _json(token.partition(".")[0])


def _json(part: str) -> Mapping[str, Any]:
    try:
        data = part.replace("+", "-").replace("/", "_").rstrip("=")
        value = json.loads(base64.urlsafe_b64decode(data + "=" * (-len(data) % 4)))
    except (binascii.Error, ValueError, RecursionError) as error:
        raise TokenRefused(f"a part of the token is not JSON in base64: {error}") from error
    if not isinstance(value, dict):
        raise TokenRefused("a part of the token is not a JSON object")
    return value


def _seconds(claims: Mapping[str, Any], name: str) -> float | None:
    value = claims.get(name)
    if value is None:
        return None
    # Neither true, nor NaN and Infinity, which Python's JSON has.
    if type(value) not in (int, float) or not 0 <= value <= SECONDS_MAX:
        raise TokenRefused(f"the claim {name} is not a time in seconds")
    return float(value)


def _scope(claim: object) -> set[str]:
    values = claim if isinstance(claim, list) else [claim]
    return {value.strip() for value in values if isinstance(value, str)}
