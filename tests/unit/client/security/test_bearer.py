"""Tokens of OAUTHBEARER: from an identity provider, and without a signature."""

from collections.abc import Iterator
from typing import Any

import pytest

from ottla.base.errors import ApiError, ConfigError, ErrorCode
from ottla.client.config.librdkafka import librdkafka_settings
from ottla.client.config.names import Role
from ottla.client.config.settings import read_settings
from ottla.client.security import bearer
from ottla.client.security.options import Credentials, security_of
from ottla.client.security.sasl import AuthenticationFailed, exchange
from ottla.security.oauth import OAuthExchange, UnsecuredRules
from ottla.security.oauth import unsecured as validate
from tests.identity_provider import CLIENT, SECRET, IdentityProvider

MODULE = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule required"
HANDLER = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginCallbackHandler"
COMMON = {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "OAUTHBEARER"}
UNSECURED = {"enable.sasl.oauthbearer.unsecure.jwt": "true"}
NOW_MS = 1_767_225_600_000


@pytest.fixture
def provider() -> Iterator[IdentityProvider]:
    """Run an identity provider."""
    with IdentityProvider() as running:
        yield running


def credentials(**options: Any) -> Credentials:
    """Return the credentials of options, with underscores in place of dots."""
    names = {name.replace("_", "."): value for name, value in options.items()}
    security = security_of({**COMMON, **names})
    assert security is not None
    assert security.credentials is not None
    return security.credentials


def message(**options: Any) -> bytes:
    """Return the first message of a client."""
    return next(exchange(credentials(**options), "n"))


def oidc(provider: IdentityProvider, **options: Any) -> Credentials:
    """Return the credentials of a client of the provider."""
    return credentials(
        sasl_oauthbearer_method="oidc",
        sasl_oauthbearer_token_endpoint_url=provider.url,
        sasl_oauthbearer_client_id=CLIENT,
        **{"sasl_oauthbearer_client_secret": SECRET, **options},
    )


@pytest.mark.parametrize(
    "options",
    [
        {**UNSECURED, "sasl.oauthbearer.config": "principal=ann scope=a,b lifeSeconds=60"},
        {
            "sasl.jaas.config": (
                f'{MODULE} unsecuredLoginStringClaim_sub="ann" unsecuredLoginStringClaim_scope="a";'
            )
        },
    ],
)
def test_client_writes_unsigned_tokens(options: dict[str, Any]) -> None:
    """They have the claims of librdkafka's option, or of the login module of Java."""
    sent = message(**options)
    assert sent.startswith(b"n,,\x01auth=Bearer ")
    rules = UnsecuredRules(required_scope=("a",), clock_skew_ms=10**15)
    server = OAuthExchange(lambda token: validate(token, rules, NOW_MS))
    assert (server.step(sent), server.user) == (b"", "ann")


def test_token_is_fetched_with_id_and_secret(provider: IdentityProvider) -> None:
    """It is used until most of its life is over; extensions are sent with it."""
    client = oidc(provider, sasl_oauthbearer_scope="kafka", sasl_oauthbearer_extensions="a=1, b=2")
    first, second = (next(exchange(client, "n")) for _ in range(2))
    assert first == second
    assert first.endswith(b"\x01a=1\x01b=2\x01\x01")
    assert provider.requests == [{"grant_type": ["client_credentials"], "scope": ["kafka"]}]
    provider.life_seconds = 0
    short = oidc(provider)
    for _ in range(2):
        next(exchange(short, "n"))
    assert len(provider.requests) == 3


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        ((500, b""), "Internal Server Error"),
        ((200, b"{}"), "no access_token"),
        ((200, b"no json"), "Expecting value"),
        ((302, b""), "a request with a body is not redirected"),
    ],
)
def test_provider_that_issues_no_token_is_named(
    provider: IdentityProvider, answer: tuple[int, bytes], reason: str
) -> None:
    """The secret is not sent to another address, and not in the sentence."""
    provider.answer = answer
    with pytest.raises(ApiError, match=reason) as refused:
        next(exchange(oidc(provider), "n"))
    assert refused.value.code is ErrorCode.SASL_AUTHENTICATION_FAILED
    assert provider.url in refused.value.message
    assert SECRET not in refused.value.message
    assert len(provider.requests) == 1


def test_wrong_secret_is_refused_by_the_provider(provider: IdentityProvider) -> None:
    """The text of the credentials does not have it."""
    client = oidc(provider, sasl_oauthbearer_client_secret="wrong")
    assert "wrong" not in repr(client)
    with pytest.raises(ApiError, match="Unauthorized"):
        next(exchange(client, "n"))


def test_provider_that_is_not_there_is_named() -> None:
    """The sentence has the reason of the system."""
    client = credentials(
        sasl_oauthbearer_method="oidc",
        sasl_oauthbearer_token_endpoint_url="http://127.0.0.1:1/",
        sasl_oauthbearer_client_id="a",
        sasl_oauthbearer_client_secret="b",
    )
    with pytest.raises(ApiError, match=r"no token from .*127\.0\.0\.1:1/: .*refused"):
        next(exchange(client, "n"))


def test_callback_of_confluent_kafka_returns_the_token() -> None:
    """`oauth_cb` of an AdminClient is the same as for a producer."""
    configs: list[Any] = []

    def token(config: Any) -> tuple[str, float]:
        configs.append(config)
        return "t", 0.0

    options = {**COMMON, "oauth_cb": token, "sasl.oauthbearer.config": "x"}
    security = security_of(read_settings(Role.ADMIN, options, {}).merged)
    assert security is not None
    assert security.credentials is not None
    assert next(exchange(security.credentials, "n")) == b"n,,\x01auth=Bearer t\x01\x01"
    assert configs == ["x"]


def test_refused_token_is_confirmed() -> None:
    """The server sends its error after that (RFC 7628)."""
    steps = exchange(credentials(**UNSECURED, sasl_oauthbearer_config="principal=ann"), "n")
    next(steps)
    assert steps.send(b'{"status":"invalid_token"}') == b"\x01"
    with pytest.raises(AuthenticationFailed, match="invalid_token"):
        steps.send(b"")


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({}, "needs a token: set sasl.oauthbearer.method=oidc"),
        (
            {"sasl.oauthbearer.method": "oidc", "sasl.oauthbearer.client.id": "a"},
            "oidc needs sasl.oauthbearer.token.endpoint.url and sasl.oauthbearer.client.secret",
        ),
        (UNSECURED, "has no principal: write principal=NAME"),
        (
            {**UNSECURED, "sasl.oauthbearer.config": "principal=a lifeSeconds=x"},
            "lifeSeconds is not a number",
        ),
        ({"sasl.login.callback.handler.class": "org.example.Mine"}, "is a class of Java"),
        (
            {
                "sasl.oauthbearer.method": "oidc",
                "sasl.oauthbearer.token.endpoint.url": "file:///etc/passwd",
                "sasl.oauthbearer.client.id": "a",
                "sasl.oauthbearer.client.secret": "b",
            },
            "must begin with https://",
        ),
    ],
)
def test_options_that_are_incomplete_are_an_error(options: dict[str, str], sentence: str) -> None:
    """The sentence says which one to set."""
    with pytest.raises(ConfigError) as refused:
        security_of({**COMMON, **options})
    assert sentence in str(refused.value)


def test_options_of_java_are_those_of_librdkafka() -> None:
    """One file serves producers, consumers, administration and Java."""
    jaas = f'{MODULE} clientId="ann" clientSecret="s" scope="kafka" extension_a="1";'
    options = {
        **COMMON,
        "sasl.login.callback.handler.class": HANDLER,
        "sasl.oauthbearer.token.endpoint.url": "https://login.example.org/token",
        "sasl.jaas.config": jaas,
    }
    expected = {
        "sasl.oauthbearer.method": "oidc",
        "sasl.oauthbearer.token.endpoint.url": "https://login.example.org/token",
        "sasl.oauthbearer.client.id": "ann",
        "sasl.oauthbearer.client.secret": "s",
        "sasl.oauthbearer.scope": "kafka",
        "sasl.oauthbearer.extensions": "a=1",
    }
    native = read_settings(Role.PRODUCER, options, {}).native
    assert expected.items() <= native.items()
    assert expected.items() <= librdkafka_settings(options).items()
    assert bearer.librdkafka_bearer(f'{MODULE} unsecuredLoginStringClaim_sub="ann";') == {
        "enable.sasl.oauthbearer.unsecure.jwt": "true",
        "sasl.oauthbearer.config": "principal=ann",
    }
    assert security_of(options) is not None
    with pytest.raises(ConfigError, match="is a class of Java"):
        librdkafka_settings({"sasl.login.callback.handler.class": "org.example.Mine"})


@pytest.mark.parametrize("microseconds", [0, 400, 600, 999_999])
def test_unsecured_token_is_valid_in_the_moment_of_its_issue(microseconds: int) -> None:
    """A broker on the same machine may see it within the same millisecond."""
    now = NOW_MS / 1000 + microseconds / 1e6
    token = bearer.unsecured({"sub": "ann", "exp": 60}, now)
    found = validate(token, UnsecuredRules(), int(now * 1000))
    assert (found.user, found.expiry_ms) == ("ann", NOW_MS + 60_000)
