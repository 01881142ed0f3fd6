"""An identity provider: its metadata, its keys, and the exchange of a code for an identity.

The metadata is read at the first login, and again after an hour; keys also when a token names an
unknown one, but not more often than once in ten seconds.
"""

import base64
import json
import threading
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import quote, urlencode

from ottla.base.clock import Clock
from ottla.base.errors import OttlaError
from ottla.base.loading import deferred_module
from ottla.console.oidc.settings import OidcSettings, check_url
from ottla.net.web_requests import WebRequest, send
from ottla.security.oauth import TokenRefused

# Only consoles with an identity provider need joserfc.
if TYPE_CHECKING:
    from ottla.security import signed_tokens
else:
    signed_tokens = deferred_module("ottla.security.signed_tokens")

_DISCOVERY = "/.well-known/openid-configuration"
_TIMEOUT_S = 10.0
_METADATA_S = 3600.0
_KEYS_S = 10.0
_OK = 200
_FORM = "application/x-www-form-urlencoded"
_ENDPOINTS = ("authorization_endpoint", "token_endpoint", "jwks_uri")


class LoginFailed(OttlaError):
    """The provider does not respond, or what it returns is not valid; the message says why."""


class PendingLogin(NamedTuple):
    """The secrets of a login that has begun: they bind the response to this browser and request."""

    nonce: str
    verifier: str


class ProviderUser(NamedTuple):
    """A user of the provider; `subject` never changes, `claims` are those of the id token."""

    issuer: str
    subject: str
    claims: Mapping[str, Any]


class IdentityProvider:
    """The provider of the settings. For any thread; requests block."""

    def __init__(self, settings: OidcSettings, clock: Clock) -> None:
        self.settings = settings
        self._clock = clock
        self._lock = threading.Lock()
        self._metadata: dict[str, Any] = {}
        self._keys: Any = None
        self._metadata_at = self._keys_at = float("-inf")

    def authorization_url(self, state: str, pending: PendingLogin, challenge: str) -> str:
        """Return the address to which the browser is sent; LoginFailed."""
        settings = self.settings
        query = {
            "response_type": "code",
            "client_id": settings.client_id,
            "redirect_uri": settings.redirect_uri,
            "scope": " ".join(settings.scopes),
            "state": state,
            "nonce": pending.nonce,
            "code_challenge": challenge,
            "code_challenge_method": "S256",
        }
        endpoint = str(self._read_metadata()["authorization_endpoint"])
        return f"{endpoint}{'&' if '?' in endpoint else '?'}{urlencode(query)}"

    def identity(self, code: str, pending: PendingLogin) -> ProviderUser:
        """Return the user for whom the provider has issued a code; LoginFailed."""
        response = self._post_code(code, pending.verifier)
        token = response.get("id_token")
        if not isinstance(token, str):
            raise LoginFailed(
                "the identity provider returned no id token: the scope openid is needed"
            )
        settings, now_ms = self.settings, self._clock.time_ms()
        rules = signed_tokens.SignedRules((settings.client_id,), settings.issuer)
        try:
            claims = signed_tokens.claims_of(token, self._keys_for(token), rules, now_ms)
        except TokenRefused as error:
            raise LoginFailed(f"the id token is refused: {error}") from error
        if claims.get("nonce") != pending.nonce:
            raise LoginFailed("the id token is for another login: log in again")
        authorized = claims.get("azp", settings.client_id)
        if authorized != settings.client_id:
            raise LoginFailed(f"the id token is for the client {authorized!r}")
        return ProviderUser(settings.issuer, str(claims["sub"]), claims)

    def _post_code(self, code: str, verifier: str) -> dict[str, Any]:
        settings = self.settings
        form = {
            "grant_type": "authorization_code",
            "code": code,
            "redirect_uri": settings.redirect_uri,
            "client_id": settings.client_id,
            "code_verifier": verifier,
        }
        headers = {"Content-Type": _FORM, "Accept": "application/json"}
        if settings.client_secret:
            # RFC 6749: both are form-encoded before they are joined.
            pair = ":".join(
                quote(text, safe="") for text in (settings.client_id, settings.client_secret)
            )
            headers["Authorization"] = f"Basic {base64.b64encode(pair.encode()).decode()}"
        endpoint = str(self._read_metadata()["token_endpoint"])
        return _document(WebRequest(endpoint, urlencode(form).encode(), headers))

    def _keys_for(self, token: str) -> Any:
        with self._lock:
            now = self._clock.monotonic()
            is_known = self._keys is not None and signed_tokens.has_key_of(token, self._keys)
            if not is_known and now - self._keys_at >= _KEYS_S:
                uri = str(self._metadata["jwks_uri"])
                try:
                    self._keys = signed_tokens.read_keys(
                        json.dumps(_document(WebRequest(uri))).encode()
                    )
                except ValueError as error:
                    raise LoginFailed(f"the keys at {uri} cannot be read: {error}") from error
                self._keys_at = now
            if self._keys is None:
                raise LoginFailed("the keys of the identity provider are unknown: log in again")
            return self._keys

    def _read_metadata(self) -> dict[str, Any]:
        with self._lock:
            now = self._clock.monotonic()
            if now - self._metadata_at >= _METADATA_S:
                issuer = self.settings.issuer
                metadata = _document(WebRequest(issuer.rstrip("/") + _DISCOVERY))
                if metadata.get("issuer") != issuer:
                    raise LoginFailed(
                        f"the issuer of the identity provider is {metadata.get('issuer')!r}, but "
                        f"oidc.issuer is {issuer!r}"
                    )
                for name in _ENDPOINTS:
                    check_url(name, str(metadata.get(name, "")))
                self._metadata, self._metadata_at = metadata, now
            return self._metadata


def _document(request: WebRequest) -> dict[str, Any]:
    """Return the JSON object that a server returns; LoginFailed without secrets of the request."""
    try:
        response = send(request, timeout_s=_TIMEOUT_S)
        body = json.loads(response.body)
    except (OSError, ValueError, RecursionError) as error:
        raise LoginFailed(f"the identity provider does not respond: {error}") from error
    if not isinstance(body, dict):
        raise LoginFailed(f"{request.url} does not return a JSON object")
    if response.status != _OK:
        reason = body.get("error_description") or body.get("error") or response.reason
        raise LoginFailed(f"{request.url} responds {response.status}: {str(reason)[:200]}")
    return body
