"""The options of connections that a program takes from a file of an application."""

import pytest

from ottla.base.errors import ConfigError
from ottla.client.config.access import connection_options

_JAAS = "org.apache.kafka.common.security.plain.PlainLoginModule required"
_SASL = {
    "security.protocol": "SASL_PLAINTEXT",
    "sasl.mechanism": "PLAIN",
    "sasl.jaas.config": f'{_JAAS} username="ann" password="secret";',
}


def test_only_options_of_connections_are_used() -> None:
    """The group of an application is not the group of a program that reads its file."""
    options = connection_options({**_SASL, "client.id": "c", "group.id": "g", "acks": "all"})
    assert options.client_id == "c"
    assert options.security is not None
    assert options.librdkafka == {
        "client.id": "c",
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanisms": "PLAIN",
        "sasl.username": "ann",
        "sasl.password": "secret",
    }


def test_without_options_connections_are_plain() -> None:
    """There is no client id, either."""
    options = connection_options({"group.id": "g"})
    assert (options.client_id, options.security, options.librdkafka) == (None, None, {})


def test_librdkafka_does_not_identify_hosts_if_kafkas_clients_do_not() -> None:
    """The empty value, which librdkafka refuses, becomes none."""
    name = "ssl.endpoint.identification.algorithm"
    assert connection_options({name: ""}).librdkafka == {name: "none"}


def test_passwords_are_in_no_text() -> None:
    """Neither the options nor the error of a wrong one show them."""
    assert "secret" not in repr(connection_options(_SASL))
    with pytest.raises(ConfigError) as wrong:
        connection_options({**_SASL, "sasl.jaas.config": f'{_JAAS} password="secret";'})
    assert "no username" in str(wrong.value)
    assert "secret" not in str(wrong.value)
