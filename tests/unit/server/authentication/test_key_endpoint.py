"""The keys of an identity provider that a broker fetches over HTTP."""

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable
from pathlib import Path

import pytest
from joserfc import jwt
from joserfc.jwk import ECKey, KeySet

from ottla.base.clock import RealClock
from ottla.base.errors import ConfigError
from ottla.base.files import RealFileSystem
from ottla.base.tasks import Tasks
from ottla.cluster.options.security_options import BearerOptions, ListenerSecurity
from ottla.net.tls.files import Store
from ottla.security.oauth import TokenRefused
from ottla.server.authentication import key_endpoint
from ottla.server.authentication.bearers import Bearers
from ottla.server.authentication.key_endpoint import KeyEndpoint
from tests.certificates import self_signed
from tests.identity_provider import IdentityProvider

OLD, NEW = (ECKey.generate_key("P-256", {"kid": name}) for name in ("old", "new"))


class Clock(RealClock):
    """Virtual time: a sleep is over at once, and is noted."""

    def __init__(self) -> None:
        self.now = 0.0
        self.sleeps: list[float] = []

    def monotonic(self) -> float:
        return self.now

    async def sleep(self, seconds: float) -> None:
        self.sleeps.append(seconds)
        await asyncio.sleep(0)


class Provider:
    """Returns the public part of `keys`, or fails with `error`."""

    def __init__(self) -> None:
        self.keys = [OLD]
        self.error: OSError | ValueError | None = None
        self.fetches_count = 0

    async def fetch(self) -> bytes:
        self.fetches_count += 1
        if self.error is not None:
            raise self.error
        return json.dumps(KeySet(list(self.keys)).as_dict(private=False)).encode()


class Keys:
    """An endpoint that runs."""

    def __init__(self, error: OSError | None = None) -> None:
        self.clock, self.provider = Clock(), Provider()
        self.provider.error = error
        self.endpoint = KeyEndpoint("https://issuer/keys", 3600, self.fetch, self.clock)
        self.tasks = Tasks()
        self.tasks.spawn(self.endpoint.run(), "keys")

    def fetch(self) -> Awaitable[bytes]:
        return self.provider.fetch()

    async def until_fetched(self, count: int) -> None:
        async with asyncio.timeout(20):
            while self.provider.fetches_count < count:
                await asyncio.sleep(0)
            await asyncio.sleep(0)

    def ids(self, key: ECKey) -> set[str | None]:
        """Return the ids of the keys with which a token is checked."""
        text = jwt.encode({"alg": "ES256", "kid": key.kid}, {}, key, algorithms=["ES256"])
        return {found.kid for found in self.endpoint.keys_for(text).keys}


@pytest.fixture
async def keys() -> AsyncIterator[Keys]:
    """Return an endpoint with the key `old`."""
    running = Keys()
    yield running
    await running.tasks.close()


async def test_tokens_are_refused_until_the_keys_are_fetched() -> None:
    """A provider that cannot be reached delays no start; attempts become rarer."""
    keys = Keys(OSError("no route"))
    with pytest.raises(TokenRefused, match="https://issuer/keys have not been fetched yet"):
        keys.ids(OLD)
    await keys.until_fetched(10)
    assert keys.clock.sleeps[:3] == [0.1, 0.2, 0.4]
    assert max(keys.clock.sleeps) == 10.0
    keys.provider.error = None
    await keys.until_fetched(keys.provider.fetches_count + 1)
    assert keys.ids(OLD) == {"old"}
    await keys.tasks.close()


async def test_unknown_key_causes_an_early_fetch(keys: Keys) -> None:
    """Not more than one in ten seconds: everyone can write such a token."""
    await keys.until_fetched(1)
    keys.provider.keys = [OLD, NEW]
    assert keys.ids(NEW) == {"old"}
    await asyncio.sleep(0)
    assert keys.provider.fetches_count == 1
    keys.clock.now += 10.0
    keys.ids(OLD)
    await asyncio.sleep(0)
    assert keys.provider.fetches_count == 1
    keys.ids(NEW)
    await keys.until_fetched(2)
    assert keys.ids(NEW) == {"old", "new"}


@pytest.mark.parametrize("error", [OSError("no route"), ValueError("no keys")])
async def test_last_keys_are_used_while_the_provider_fails(
    keys: Keys, error: OSError | ValueError
) -> None:
    """Tokens of known keys are accepted."""
    await keys.until_fetched(1)
    keys.provider.error = error
    keys.clock.now += 10.0
    keys.ids(NEW)
    await keys.until_fetched(3)
    assert keys.ids(OLD) == {"old"}


async def test_keys_are_fetched_regularly() -> None:
    """The interval is sasl.oauthbearer.jwks.endpoint.refresh.ms."""
    provider, tasks = Provider(), Tasks()
    endpoint = KeyEndpoint("https://issuer/keys", 0.001, provider.fetch, Clock())
    tasks.spawn(endpoint.run(), "keys")
    async with asyncio.timeout(20):
        while provider.fetches_count < 3:
            await asyncio.sleep(0)
    await tasks.close()
    assert provider.fetches_count >= 3


async def test_listener_checks_tokens_by_fetched_keys() -> None:
    """They come over HTTP, in a thread."""
    tasks = Tasks()
    with IdentityProvider() as provider:
        options = BearerOptions(keys_url=provider.url, refresh_ms=3_600_000, principal_claim="sub")
        listeners = {"A": ListenerSecurity(bearer=options)}
        checks = Bearers(listeners, RealFileSystem(), RealClock(), tasks)
        message = f"n,,\x01auth=Bearer {provider.token()}\x01\x01".encode()
        async with asyncio.timeout(20):
            exchange = checks.begin("A")
            while exchange.step(message):
                exchange = checks.begin("A")
                await asyncio.sleep(0)
        assert exchange.user == "ann"
        assert provider.keys_requests_count == 1
        with pytest.raises(OSError, match="unknown url type"):
            key_endpoint.get("x:y")
    await tasks.close()


def test_only_the_trust_store_of_the_login_module_counts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An authority of the system could have signed the certificate of a forged provider."""
    own, other = self_signed(tmp_path), self_signed(tmp_path, name="other")
    # OpenSSL takes the authorities of the system from there.
    monkeypatch.setenv("SSL_CERT_FILE", str(own.with_suffix(".crt")))
    with IdentityProvider(own) as provider:
        assert json.loads(key_endpoint.get(provider.url))["keys"]
        assert key_endpoint.get(provider.url, Store(str(own.with_suffix(".crt"))))
        with pytest.raises(OSError, match="certificate verify failed"):
            key_endpoint.get(provider.url, Store(str(other.with_suffix(".crt"))))


def test_keys_are_not_fetched_from_an_address_without_https(tmp_path: Path) -> None:
    """A redirect could lead there."""
    with (
        IdentityProvider() as provider,
        pytest.raises(OSError, match=r"redirects to http://.*, which is not encrypted"),
    ):
        key_endpoint.get(f"{provider.url}moved")


async def test_trust_store_of_the_keys_is_read_at_the_start(tmp_path: Path) -> None:
    """A broker without it would never get the keys."""
    options = BearerOptions(keys_url="https://issuer/keys", trusted=Store(f"{tmp_path}/none.pem"))
    listeners = {"A": ListenerSecurity(bearer=options)}
    with pytest.raises(
        ConfigError, match=r"ssl\.truststore\.location in oauthbearer\.sasl\.jaas\.c"
    ):
        Bearers(listeners, RealFileSystem(), RealClock(), Tasks())
