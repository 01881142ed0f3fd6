"""The login of brokers with SCRAM, and the combinations of options with which they do not start."""

import pytest

from ottla.base.errors import ConfigError
from ottla.cluster.options import option_tables
from ottla.cluster.options.security.broker_login import BrokerLogin

_MODULE = "org.apache.kafka.common.security.scram.ScramLoginModule required"
_JAAS = "listener.name.inner.scram-sha-512.sasl.jaas.config"
_MECHANISM = "sasl.mechanism.inter.broker.protocol"
_SETTINGS: dict[str, str] = {
    "listeners": "INNER://127.0.0.1:1,PLAINTEXT://127.0.0.1:2",
    "listener.security.protocol.map": "INNER:SASL_PLAINTEXT,PLAINTEXT:PLAINTEXT",
    "inter.broker.listener.name": "INNER",
    "sasl.enabled.mechanisms": "SCRAM-SHA-512",
    _MECHANISM: "SCRAM-SHA-512",
    _JAAS: f'{_MODULE} username="broker" password="secret";',
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
}


def login(**changed: str) -> BrokerLogin | None:
    """Return the login of a broker with other settings, whose dots are underscores.

    An empty value removes the setting.
    """
    named = {name.replace("_", "."): text for name, text in changed.items()}
    settings = {name: text for name, text in (_SETTINGS | named).items() if text}
    snapshot = option_tables.parse_broker_settings(settings).snapshot
    option_tables.exposure_warnings(snapshot)
    return option_tables.login_of_brokers(snapshot)


def test_brokers_log_in_as_the_user_of_their_listener() -> None:
    """The names of the options are Kafka's."""
    assert login() == BrokerLogin("SCRAM-SHA-512", "broker", "secret")


@pytest.mark.parametrize("mechanism", ["", "OTTLA-BROKER"])
def test_brokers_use_the_secret_by_default(mechanism: str) -> None:
    """Their listener may have a login module all the same, as Kafka's broker needs one."""
    assert login(sasl_mechanism_inter_broker_protocol=mechanism) is None


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        (
            {_MECHANISM: "GSSAPI"},
            "Invalid value GSSAPI for configuration sasl.mechanism.inter.broker.protocol",
        ),
        (
            {_MECHANISM: "PLAIN"},
            "Invalid value PLAIN for configuration sasl.mechanism.inter.broker.protocol",
        ),
        (
            {"inter.broker.listener.name": "PLAINTEXT"},
            "would have no effect: the listener PLAINTEXT for brokers has the protocol PLAINTEXT",
        ),
        (
            {"inter.broker.authentication": "secret"},
            "inter.broker.authentication=secret contradicts sasl.mechanism.inter.broker.protocol=SCRAM",
        ),
        (
            {"inter.broker.authentication": "none"},
            "inter.broker.authentication=none contradicts sasl.mechanism.inter.broker.protocol=SCRAM",
        ),
        (
            {"sasl.enabled.mechanisms": "SCRAM-SHA-256"},
            "sasl.enabled.mechanisms lacks SCRAM-SHA-512",
        ),
        (
            {"connections.max.reauth.ms": "60000"},
            "set listener.name.inner.scram-sha-512.connections.max.reauth.ms=0",
        ),
        ({_JAAS: ""}, f"{_JAAS} is not set: set it to org.apache.kafka"),
        ({_JAAS: f'{_MODULE} username="broker";'}, "has no ScramLoginModule with username"),
        (
            {_JAAS: 'a.PlainLoginModule required username="broker" password="secret";'},
            "has no ScramLoginModule with username",
        ),
        ({_JAAS: f"{_MODULE} username"}, f"{_JAAS} cannot be read"),
        (
            {_JAAS: f'{_MODULE} username="id" password="hmac" tokenauth="true";'},
            "has a delegation token: brokers need a user",
        ),
        ({"authorizer.class.name": ""}, "each client may set the password of the brokers' user"),
    ],
)
def test_combination_that_does_not_work_is_refused(settings: dict[str, str], sentence: str) -> None:
    """The sentence says what to do."""
    with pytest.raises(ConfigError) as caught:
        login(**settings)
    assert sentence in str(caught.value)


def test_limit_of_other_sessions_is_possible() -> None:
    """Brokers of Apache Kafka renew theirs; clients do so with each mechanism."""
    limits = {
        "connections.max.reauth.ms": "60000",
        "listener.name.inner.scram-sha-512.connections.max.reauth.ms": "0",
    }
    assert login(**limits) is not None


def test_brokers_without_an_authorizer_are_possible_by_name() -> None:
    """As with other listeners that are not secure, on a network of the cluster's own."""
    assert login(authorizer_class_name="", allow_insecure_listeners="true") is not None
