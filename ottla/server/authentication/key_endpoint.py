"""The public keys of an identity provider, fetched over HTTP (KIP-768).

As in Kafka's RefreshingHttpsJwks, they are fetched regularly, and soon after a token whose key is
not known. Otherwise than there, the broker starts without them, and refuses tokens until then.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable

from ottla.base.clock import Clock
from ottla.net.tls.contexts import peer_context
from ottla.net.tls.files import Store
from ottla.net.web_requests import WebRequest, send
from ottla.security import signed_tokens
from ottla.security.oauth import TokenRefused

_log = logging.getLogger(__name__)

TRUST_STORE = "ssl.truststore.location in oauthbearer.sasl.jaas.config"
_TIMEOUT_SECONDS = 10.0
_OK = 200
# Between two attempts after a failure: doubled each time.
_RETRY_SECONDS_MIN, _RETRY_SECONDS_MAX = 0.1, 10.0
# Clients without a valid token can cause one fetch in this time.
_EARLY_SECONDS = 10.0

Fetch = Callable[[], Awaitable[bytes]]
"""Returns the document; raises OSError or ValueError."""


def get(url: str, trusted: Store | None = None) -> bytes:
    """Return the document at an address, in a thread; raises OSError or ConfigError.

    The certificates of `trusted` count, and no others; without it, the system's. Redirects
    lead to addresses with https only: others could replace the keys on the way.
    """
    response = send(
        WebRequest(url, redirects_need_https=True),
        timeout_s=_TIMEOUT_SECONDS,
        context=peer_context(trusted, TRUST_STORE),
    )
    if response.status != _OK:
        raise OSError(f"{url} returned {response.status}")
    return response.body


class KeyEndpoint:
    """The keys at one address; `run` fetches them until it is cancelled."""

    def __init__(self, url: str, refresh_seconds: float, fetch: Fetch, clock: Clock) -> None:
        self._url = url
        self._refresh_seconds = refresh_seconds
        self._fetch = fetch
        self._clock = clock
        self._keys: signed_tokens.KeySet | None = None
        self._is_wanted = asyncio.Event()
        self._fetched_at = float("-inf")

    def keys_for(self, token: str) -> signed_tokens.KeySet:
        """Return the last keys; TokenRefused if no keys were fetched yet."""
        if self._keys is None:
            raise TokenRefused(f"the keys of {self._url} have not been fetched yet")
        if not signed_tokens.has_key_of(token, self._keys) and (
            self._clock.monotonic() - self._fetched_at >= _EARLY_SECONDS
        ):
            self._is_wanted.set()
        return self._keys

    async def run(self) -> None:
        """Fetch the keys now, and again and again."""
        retry_seconds = _RETRY_SECONDS_MIN
        while True:
            try:
                self._keys = signed_tokens.read_keys(await self._fetch())
            except (OSError, ValueError) as error:
                _log.warning("keys not fetched url=%s error=%s", self._url, error)
                await self._clock.sleep(retry_seconds)
                retry_seconds = min(2 * retry_seconds, _RETRY_SECONDS_MAX)
                continue
            retry_seconds = _RETRY_SECONDS_MIN
            self._fetched_at = self._clock.monotonic()
            self._is_wanted.clear()
            try:
                async with asyncio.timeout(self._refresh_seconds):
                    await self._is_wanted.wait()
            except TimeoutError:
                continue
