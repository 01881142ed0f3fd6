"""Tokens of OAUTHBEARER (KIP-255, KIP-768): from an identity provider, or without a signature.

The options are librdkafka's; `sasl.jaas.config` of Java's clients is understood, too. A token of a
provider is used until four fifths of its life are over.
"""

import base64
import json
import re
import threading
import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from ottla.base.errors import ApiError, ConfigError, ErrorCode
from ottla.base.loading import deferred_module
from ottla.base.options import is_digits

# Scripts start faster without them.
if TYPE_CHECKING:
    import ssl
    from urllib import parse

    from ottla.net import web_requests
else:
    ssl = deferred_module("ssl")
    parse = deferred_module("urllib.parse")
    web_requests = deferred_module("ottla.net.web_requests")

MECHANISM = "OAUTHBEARER"
URL = "sasl.oauthbearer.token.endpoint.url"
METHOD = "sasl.oauthbearer.method"
UNSECURED = "enable.sasl.oauthbearer.unsecure.jwt"
CLAIMS = "sasl.oauthbearer.config"
EXTENSIONS = "sasl.oauthbearer.extensions"
CALLBACK = "oauth_cb"
HANDLER = "sasl.login.callback.handler.class"
_ID, _SECRET = "sasl.oauthbearer.client.id", "sasl.oauthbearer.client.secret"
_SCOPE, _AUTHORITY = "sasl.oauthbearer.scope", "https.ca.location"
_CREDENTIALS = "sasl.oauthbearer.client.credentials.client."
# The options of the login module of Java's clients, by librdkafka's names.
_OF_JAAS = {"clientId": _ID, "clientSecret": _SECRET, "scope": _SCOPE}
_OF_KAFKA = ".OAuthBearerLoginCallbackHandler"
_JAAS_OPTION = re.compile(r'\b(\w+)\s*=\s*"((?:[^"\\]|\\.)*)"')
_CLAIM = "unsecuredLoginStringClaim_"
_TIMEOUT_S = 10.0
_OK = 200
# The part of its life after which a token is replaced, as in Kafka's and librdkafka's clients.
_RENEWED_AT = 0.8
_UNSECURED_SECONDS = 3600

Options = Mapping[str, Any]
Token = Callable[[], str]
"""Returns a valid token; ApiError SASL_AUTHENTICATION_FAILED if the provider issues none."""


def librdkafka_bearer(text: str) -> dict[str, str]:
    """Return sasl.jaas.config with OAuthBearerLoginModule as settings of librdkafka."""
    rows = {name: re.sub(r"\\(.)", r"\1", value) for name, value in _JAAS_OPTION.findall(text)}
    settings = {_OF_JAAS[name]: value for name, value in rows.items() if name in _OF_JAAS}
    extensions = [
        f"{name.removeprefix('extension_')}={value}"
        for name, value in rows.items()
        if name.startswith("extension_")
    ]
    if extensions:
        settings[EXTENSIONS] = ",".join(extensions)
    if _CLAIM + "sub" in rows:
        settings[UNSECURED] = "true"
        claims = [f"principal={rows[_CLAIM + 'sub']}"]
        if _CLAIM + "scope" in rows:
            claims.append(f"scope={rows[_CLAIM + 'scope']}")
        settings[CLAIMS] = " ".join(claims)
    elif _ID in settings:
        settings[METHOD] = "oidc"
    return settings


def check_handler(name: object) -> None:
    """Raise ConfigError unless a login handler of Java is Kafka's own, which uses a provider."""
    if not str(name).endswith(_OF_KAFKA):
        raise ConfigError(
            f"{HANDLER}={name} is a class of Java: set {METHOD}=oidc and {URL}, or pass {CALLBACK}"
        )


def first_message(options: Options) -> Callable[[], bytes]:
    """Return the function that returns the client's message; ConfigError for a missing option."""
    settings: dict[str, Any] = {
        **librdkafka_bearer(str(options.get("sasl.jaas.config", ""))),
        **options,
    }
    for name, alias in ((_ID, f"{_CREDENTIALS}id"), (_SECRET, f"{_CREDENTIALS}secret")):
        settings.setdefault(name, options.get(alias))
    token = _token_of(settings)
    pairs = [pair.strip() for pair in str(settings.get(EXTENSIONS) or "").split(",")]
    extensions = "".join(f"{pair}\x01" for pair in pairs if pair)

    def message() -> bytes:
        # RFC 7628: no authorization identity; the pairs end with an empty one.
        return f"n,,\x01auth=Bearer {token()}\x01{extensions}\x01".encode()

    return message


def _token_of(settings: Options) -> Token:
    callback = settings.get(CALLBACK)
    if callable(callback):
        return lambda: str(callback(settings.get(CLAIMS))[0])
    if str(settings.get(UNSECURED, "false")).lower() == "true":
        claims = _claims(str(settings.get(CLAIMS) or ""))
        return lambda: unsecured(claims, time.time())
    if settings.get(HANDLER):
        check_handler(settings[HANDLER])
    if settings.get(METHOD) != "oidc" and not settings.get(HANDLER):
        raise ConfigError(
            f"sasl.mechanism={MECHANISM} needs a token: set {METHOD}=oidc, {URL}, {_ID} and "
            f"{_SECRET}; or, for tests, {UNSECURED}=true and {CLAIMS}=principal=NAME"
        )
    missing = [name for name in (URL, _ID, _SECRET) if not settings.get(name)]
    if missing:
        raise ConfigError(f"{METHOD}=oidc needs {' and '.join(missing)}")
    return ClientCredentials(settings)


def _claims(text: str) -> dict[str, Any]:
    """Return the claims of librdkafka's option; ConfigError if it is wrong."""
    rows = dict(pair.partition("=")[::2] for pair in text.split())
    user = rows.get("principal", "")
    if not user:
        raise ConfigError(f"{CLAIMS}={text!r} has no principal: write principal=NAME")
    life = rows.get("lifeSeconds", str(_UNSECURED_SECONDS))
    if not is_digits(life, 12):
        raise ConfigError(f"{CLAIMS}={text!r}: lifeSeconds is not a number")
    claims: dict[str, Any] = {rows.get("principalClaimName", "sub"): user, "exp": int(life)}
    if "scope" in rows:
        claims[rows.get("scopeClaimName", "scope")] = rows["scope"].split(",")
    return claims


def unsecured(claims: Mapping[str, Any], now: float) -> str:
    """Return a token without a signature; `exp` of the claims is its life in seconds."""
    # Rounded down: a broker of the same millisecond must not find it issued in the future.
    issued = int(now)
    body = {**claims, "iat": issued, "exp": issued + claims["exp"]}
    parts = (
        base64.urlsafe_b64encode(json.dumps(part).encode()).decode().rstrip("=")
        for part in ({"alg": "none"}, body)
    )
    return ".".join((*parts, ""))


class ClientCredentials:
    """Fetches tokens with the id and the secret of a client (RFC 6749, section 4.4)."""

    def __init__(self, settings: Options) -> None:
        self._url = str(settings[URL])
        if not self._url.lower().startswith(("http://", "https://")):
            raise ConfigError(f"{URL}={self._url} must begin with https:// or http://")
        self._client = str(settings[_ID]), str(settings[_SECRET])
        self._scope = settings.get(_SCOPE)
        self._authority = settings.get(_AUTHORITY)
        # Connections of several threads use one source.
        self._lock = threading.Lock()
        self._token = ""
        # By the monotonic clock in seconds.
        self._renew_at = 0.0

    def __call__(self) -> str:
        """Return the token; fetch a new one if the last one is old."""
        with self._lock:
            if not self._token or time.monotonic() >= self._renew_at:
                started = time.monotonic()
                answer = self._fetch()
                life = answer.get("expires_in")
                self._token = str(answer["access_token"])
                is_number = isinstance(life, int | float) and not isinstance(life, bool)
                self._renew_at = started + (_RENEWED_AT * life if is_number and life else 0.0)
            return self._token

    def _fetch(self) -> dict[str, Any]:
        fields = {"grant_type": "client_credentials"}
        if self._scope:
            fields["scope"] = str(self._scope)
        secret = base64.b64encode(":".join(self._client).encode()).decode()
        request = web_requests.WebRequest(
            self._url,
            parse.urlencode(fields).encode(),
            {"Authorization": f"Basic {secret}", "Accept": "application/json"},
        )
        try:
            context = ssl.create_default_context(cafile=self._authority)
            response = web_requests.send(request, timeout_s=_TIMEOUT_S, context=context)
            if response.status != _OK:
                raise OSError(f"HTTP {response.status} {response.reason}")
            answer = json.loads(response.body)
            if not isinstance(answer, dict) or not answer.get("access_token"):
                raise ValueError("the response has no access_token")
        except (OSError, ValueError) as error:
            reason = getattr(error, "reason", None) or error
            raise ApiError(
                ErrorCode.SASL_AUTHENTICATION_FAILED,
                f"no token from {URL}={self._url}: {reason}",
            ) from error
        return answer
