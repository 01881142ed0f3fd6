"""Which names are options of security, and the refusal of those that a broker does not honour."""

import pytest

from ottla.base.errors import ConfigError
from ottla.cluster.options import option_tables
from ottla.cluster.options.option_tables import BROKER_OPTIONS
from ottla.cluster.options.security.names import is_security_option, nearest

TLS = {
    "listeners": "SSL://127.0.0.1:1,INNER.A://127.0.0.1:2",
    "listener.security.protocol.map": "SSL:SSL,INNER.A:SASL_PLAINTEXT",
    "ssl.keystore.location": "k",
    "ssl.truststore.location": "t",
    "sasl.enabled.mechanisms": "SCRAM-SHA-512",
}
# Options of Apache Kafka 3.9 and 4.3 that Ottla does not have, one of each kind.
_OF_KAFKA = (
    "config.providers",
    "config.providers.file.class",
    "password.encoder.secret",
    "sasl.client.callback.handler.class",
    "sasl.jaas.config",
    "sasl.kerberos.service.name",
    "sasl.login.callback.handler.class",
    "sasl.oauthbearer.jwt.validator.class",
    "sasl.oauthbearer.scope.claim.name",
    "sasl.oauthbearer.token.endpoint.url",
    "sasl.server.callback.handler.class",
    "security.providers",
    "ssl.allow.dn.changes",
    "ssl.engine.factory.class",
    "ssl.keymanager.algorithm",
    "ssl.keystore.certificate.chain",
    "ssl.keystore.key",
    "ssl.provider",
    "ssl.secure.random.implementation",
    "ssl.trustmanager.algorithm",
    "ssl.truststore.certificates",
    "zookeeper.ssl.crl.enable",
    "zookeeper.ssl.enabled.protocols",
)


def refusal(name: str, value: str = "required") -> str:
    """Return the reason for which a broker does not start."""
    with pytest.raises(ConfigError) as caught:
        option_tables.parse_broker_settings({**TLS, name: value})
    return str(caught.value)


@pytest.mark.parametrize("name", _OF_KAFKA)
def test_security_option_of_kafka_that_is_not_supported_stops_the_broker(name: str) -> None:
    """The sentence names the option, the reason, and what to do."""
    sentence = refusal(name)
    assert sentence.startswith(f"The security option {name} would have no effect: ")
    assert "there is no such option" not in sentence
    assert any(word in sentence for word in ("Remove it", "write", "Write", "name that"))


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("ssl.client.atuh", "ssl.client.auth"),
        ("sssl.client.auth", "ssl.client.auth"),
        ("SSL.client.auth", "ssl.client.auth"),
        ("ssl.enabled.protocol", "ssl.enabled.protocols"),
        ("sasl.enabled.mechanism", "sasl.enabled.mechanisms"),
        ("super.user", "super.users"),
        ("autorizer.class.name", "authorizer.class.name"),
        ("allow.everyone.if.no.acl.fond", "allow.everyone.if.no.acl.found"),
        ("conections.max.reauth.ms", "connections.max.reauth.ms"),
        ("principal.builder.clas", "principal.builder.class"),
        ("delegation.token.secret.kye", "delegation.token.secret.key"),
        ("zookeeper.set.acls", "zookeeper.set.acl"),
        ("zookeeper.ssl.client.enabled", "zookeeper.ssl.client.enable"),
        ("listener.security.protocol.mapp", "listener.security.protocol.map"),
        ("listener.name.ssl.ssl.client.atuh", "listener.name.ssl.ssl.client.auth"),
        ("listener.name.inner.a.sasl.enabled.mechanism", "listener.name.inner.a.sasl.enabled.mech"),
        ("listener.name.sll.ssl.client.auth", "listener.name.ssl.ssl.client.auth"),
        ("listner.name.ssl.ssl.client.auth", "one that begins with listener.name."),
        ("pasword.encoder.secret", "one that begins with password.encoder."),
    ],
)
def test_mistyped_security_option_stops_the_broker(name: str, meant: str) -> None:
    """The sentence suggests the option that was probably meant."""
    sentence = refusal(name)
    assert f"The security option {name} would have no effect: " in sentence
    assert f"id you mean {meant}" in sentence


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("listener.name.external.ssl.client.auth", "names none of the listeners INNER.A, SSL"),
        ("listener.name.ssl.super.users", "cannot be set for a single listener: write super.users"),
        ("listener.name.ssl.max.connections", "cannot be set for a single listener: write max.con"),
        ("listener.name.inner.a.plain.sasl.server.callback.handler.class", "no such option"),
        ("listener.name.inner.a.ssl.client.auth", "which has no effect there: remove it, or give"),
        ("listener.name.ssl.sasl.enabled.mechanisms", "which has no effect there"),
        ("listener.name.ssl.x.ssl.client.auth", "there is no such option"),
    ],
)
def test_option_of_a_listener_that_is_not_honoured_stops_the_broker(name: str, reason: str) -> None:
    """Its prefix names no listener, or the listener cannot have it."""
    sentence = refusal(name)
    assert name in sentence
    assert reason in sentence


@pytest.mark.parametrize(
    "name",
    ["listener.name.SSL.ssl.client.auth", "LISTENER.NAME.Ssl.SSL.Client.Auth"],
)
def test_prefix_of_a_listener_may_have_capital_letters(name: str) -> None:
    """Names of listeners are written so in `listeners`."""
    snapshot = option_tables.parse_broker_settings({**TLS, name: "required"}).snapshot
    (listener, _) = option_tables.parse_listeners(snapshot)
    tls = option_tables.security_options.security_of(snapshot, listener).tls
    assert tls is not None
    assert tls.client_auth == "required"


def test_two_spellings_of_an_option_must_agree() -> None:
    """Otherwise it would be left to chance which one counts."""
    own = "listener.name.{}.ssl.client.auth"
    settings = {**TLS, own.format("ssl"): "none", own.format("SSL"): "required"}
    with pytest.raises(ConfigError, match="set the same option to different values: remove one"):
        option_tables.parse_broker_settings(settings)


def test_client_certificates_without_a_listener_with_tls_are_refused() -> None:
    """Every client would be served without one."""
    with pytest.raises(
        ConfigError, match=r"ssl\.client\.auth=required would have no effect: no li"
    ):
        option_tables.parse_broker_settings({"ssl.client.auth": "required"})


def test_listener_between_brokers_must_exist() -> None:
    """Brokers would use another one, which may be less secure; capital letters do not matter."""
    with pytest.raises(
        ConfigError, match=r"set inter\.broker\.listener\.name to one of SSL, INNER"
    ):
        option_tables.parse_broker_settings({**TLS, "inter.broker.listener.name": "INTERNAL"})
    settings = {**TLS, "inter.broker.listener.name": "inner.a"}
    snapshot = option_tables.parse_broker_settings(settings).snapshot
    assert option_tables.inter_broker_listener(snapshot) == "INNER.A"


def test_option_that_a_user_typed_is_refused_with_the_same_sentence() -> None:
    """`ottla up -o` checks the names before anything is started."""
    with pytest.raises(
        ConfigError, match=r"security option ssl\.client\.atuh would have no effect"
    ):
        option_tables.refuse_unknown_names({"ssl.client.atuh": "required"})
    option_tables.refuse_unknown_names({"listener.name.SSL.ssl.client.auth": "required"})


@pytest.mark.parametrize(
    "name",
    [
        "zookeeper.sync.time.ms",
        "control.plane.listener.name",
        "connections.max.idel.ms",
        "socket.connection.setup.timeout.ms",
        "log.retention.hour",
        "confluent.metrics.reporter.bootstrap.servers",
    ],
)
def test_other_unknown_options_are_warnings(name: str) -> None:
    """Files that were written for Kafka have options of plug-ins."""
    assert not is_security_option(name, BROKER_OPTIONS.rows)
    (warning,) = option_tables.parse_broker_settings({name: "1"}).warnings
    assert f"Unknown configuration {name} is ignored" in warning


def test_nothing_resembles_a_long_name() -> None:
    """Clients choose names: a comparison with every option would take long."""
    assert nearest("x" + max(BROKER_OPTIONS.rows, key=len), BROKER_OPTIONS.rows) is not None
    assert nearest("ssl.keystore.locatio" * 6, BROKER_OPTIONS.rows) is None
    assert not is_security_option("x" * 100_000, BROKER_OPTIONS.rows)
