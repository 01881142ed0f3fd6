"""Access to a cluster: its options for connections of both kinds, and its text without secrets."""

import pytest

from ottla.base.errors import ConfigError
from ottla.client.config.access import ClusterAccess
from ottla.client.security.options import Credentials, security_options

_JAAS = 'x.PlainLoginModule required username="ann" password="hush";'
_PLAIN = {
    "security.protocol": "SASL_PLAINTEXT",
    "sasl.mechanism": "PLAIN",
    "sasl.jaas.config": _JAAS,
}


def test_both_kinds_of_connections_get_the_options() -> None:
    """The blocking ones get credentials, librdkafka its own names."""
    access = ClusterAccess("b:1", _PLAIN)
    brokers = access.brokers(client_id="c", timeout_s=2)
    assert brokers.security is not None
    assert brokers.security.credentials == Credentials("PLAIN", "ann", "hush")
    assert (brokers.client_id, brokers.timeout_s) == ("c", 2)
    assert access.librdkafka_settings() == {
        "bootstrap.servers": "b:1",
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "PLAIN",
        "sasl.username": "ann",
        "sasl.password": "hush",
    }


def test_a_cluster_without_options_is_plain_text() -> None:
    """The default of Kafka's clients."""
    assert ClusterAccess("b:1").brokers().security is None
    with pytest.raises(ConfigError, match=r"security\.protocol=TLS: use PLAINTEXT, SSL"):
        ClusterAccess("b:1", {"security.protocol": "TLS"}).brokers()


def test_secrets_are_not_in_the_text() -> None:
    """Neither in `repr` nor in `str`."""
    access = ClusterAccess("b:1", _PLAIN)
    assert "hush" not in f"{access} {access!r}"


def test_an_empty_algorithm_accepts_any_host() -> None:
    """Kafka's clients leave the value empty, librdkafka has a word for it."""
    name = "ssl.endpoint.identification.algorithm"
    settings = ClusterAccess("b:1", {"security.protocol": "SSL", name: ""}).librdkafka_settings()
    assert settings[name] == "none"


def test_only_options_of_security_are_chosen() -> None:
    """As texts; other options of clients are left out."""
    options = {**_PLAIN, "enable.ssl.certificate.verification": False, "group.id": "g"}
    chosen = security_options(options)
    assert chosen == _PLAIN | {"enable.ssl.certificate.verification": "false"}
