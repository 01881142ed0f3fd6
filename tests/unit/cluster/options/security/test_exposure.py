"""Listeners that are not secure: refused, unless the options permit them."""

from typing import Any

import pytest

from ottla.base.errors import ConfigError
from ottla.client.config.properties import parse_properties
from ottla.cluster.options import option_tables
from ottla.cluster.options.security.exposure import is_loopback
from tests.law import source

_PLAIN = 'org.apache.kafka.common.security.plain.PlainLoginModule required user_ann="secret";'
_BEARER = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule required;"
_SASL = "listener.name.sasl_plaintext"
_USERS: dict[str, str] = {
    "sasl.enabled.mechanisms": "PLAIN",
    f"{_SASL}.plain.sasl.jaas.config": _PLAIN,
}
_KEYS: dict[str, str] = {
    "sasl.enabled.mechanisms": "OAUTHBEARER",
    "sasl.oauthbearer.expected.issuer": "i",
}
_UNSIGNED: dict[str, str] = {
    "sasl.enabled.mechanisms": "OAUTHBEARER",
    f"{_SASL}.oauthbearer.sasl.jaas.config": _BEARER,
}
_URL = "sasl.oauthbearer.jwks.endpoint.url"


def warnings(settings: dict[str, Any]) -> list[str]:
    """Return the warnings of a broker that starts."""
    return option_tables.exposure_warnings(option_tables.parse_broker_settings(settings).snapshot)


@pytest.mark.parametrize(
    ("listeners", "settings", "sentence"),
    [
        ("PLAINTEXT://0.0.0.0:1", {}, "has neither TLS nor SASL, and other machines can reach it"),
        ("PLAINTEXT://:1", {}, "on every address has neither TLS nor SASL"),
        ("PLAINTEXT://[::]:1", {}, "on :: has neither TLS nor SASL"),
        ("PLAINTEXT://kafka.example.org:1", {}, "has neither TLS nor SASL"),
        ("SASL_PLAINTEXT://10.0.0.1:1", _USERS, "has PLAIN without TLS: passwords can be read"),
        ("SASL_PLAINTEXT://127.0.0.1:1", _UNSIGNED, "accepts tokens without a signature"),
        (
            "SASL_PLAINTEXT://127.0.0.1:1",
            _KEYS | {_URL: "http://login.example.org/keys"},
            "by keys from http://login.example.org/keys: without https, others can replace them",
        ),
    ],
)
def test_listener_that_is_not_secure_is_refused(
    listeners: str, settings: dict[str, str], sentence: str
) -> None:
    """The sentence says what to do; with the option it is a warning."""
    configuration = {"listeners": listeners, **settings}
    with pytest.raises(ConfigError) as caught:
        warnings(configuration)
    assert sentence in str(caught.value)
    assert "set allow.insecure.listeners=true" in str(caught.value)
    (warning,) = warnings({**configuration, "allow.insecure.listeners": "true"})
    assert sentence in warning


@pytest.mark.parametrize(
    ("listeners", "settings"),
    [
        ("PLAINTEXT://127.0.0.1:1,INNER://localhost:2", {}),
        ("PLAINTEXT://[::1]:1", {}),
        ("SASL_PLAINTEXT://127.0.0.1:1", _USERS),
        ("SASL_PLAINTEXT://0.0.0.0:1", {"sasl.enabled.mechanisms": "SCRAM-SHA-512"}),
        ("SSL://0.0.0.0:1", {"ssl.keystore.location": "k"}),
        (
            "SASL_SSL://0.0.0.0:1",
            {
                "ssl.keystore.location": "k",
                "sasl.enabled.mechanisms": "PLAIN",
                "listener.name.sasl_ssl.plain.sasl.jaas.config": _PLAIN,
            },
        ),
        ("SASL_PLAINTEXT://127.0.0.1:1", _KEYS | {_URL: "https://login.example.org/keys"}),
        ("SASL_PLAINTEXT://127.0.0.1:1", _KEYS | {_URL: "http://127.0.0.1/keys"}),
        ("SASL_PLAINTEXT://127.0.0.1:1", _KEYS | {_URL: "file:///keys.json"}),
    ],
)
def test_secure_listener_causes_no_warning(listeners: str, settings: dict[str, str]) -> None:
    """Loopback is for the users of the machine."""
    protocols = {"listener.security.protocol.map": "INNER:PLAINTEXT"}
    assert warnings({"listeners": listeners, **protocols, **settings}) == []


@pytest.mark.parametrize(
    "host", ["127.0.0.1", "127.9.9.9", "::1", "[::1]", "localhost", "LOCALHOST"]
)
def test_addresses_of_this_machine_only(host: str) -> None:
    """Any other name may be another interface's."""
    assert is_loopback(host)


@pytest.mark.parametrize("host", ["", "0.0.0.0", "::", "10.0.0.1", "localhost.example.org", "1"])
def test_addresses_that_other_machines_may_reach(host: str) -> None:
    """An empty host is every address."""
    assert not is_loopback(host)


def test_configuration_for_production_is_secure() -> None:
    """The file in deploy/ has no insecure listener, and no option without effect."""
    text = (source.ROOT / "deploy/server.properties").read_text(encoding="utf-8")
    assert warnings(parse_properties(text, "server.properties")) == []
