"""The options of listeners with TLS and SASL."""

import pytest

from ottla.base.errors import ConfigError
from ottla.cluster.options import option_tables
from ottla.cluster.options.security_options import (
    BearerOptions,
    ListenerSecurity,
    security_of,
    token_secret_key,
)
from ottla.net.tls.files import Store
from ottla.security.principal_rules import name_of

_JAAS = 'org.apache.kafka.common.security.plain.PlainLoginModule required user_ann="secret";'
_SASL = "listener.name.sasl_plaintext."


def parsed(settings: dict[str, str]) -> list[ListenerSecurity]:
    """Return the security of each listener."""
    snapshot = option_tables.parse_broker_settings(settings).snapshot
    return [security_of(snapshot, row) for row in option_tables.parse_listeners(snapshot)]


def test_listener_has_its_own_mechanisms_and_users() -> None:
    """An option with the listener's name replaces the common one; names may have dots."""
    listeners = "A.B://h:1,SASL_PLAINTEXT://h:2,PLAINTEXT://h:3"
    assert parsed(
        {
            "listeners": listeners,
            "listener.security.protocol.map": "A.B:SASL_PLAINTEXT",
            "sasl.enabled.mechanisms": "SCRAM-SHA-512",
            "listener.name.a.b.sasl.enabled.mechanisms": "PLAIN, SCRAM-SHA-256",
            "listener.name.a.b.plain.sasl.jaas.config": _JAAS,
        }
    ) == [
        ListenerSecurity(("PLAIN", "SCRAM-SHA-256"), {"ann": "secret"}),
        ListenerSecurity(("SCRAM-SHA-512",)),
        ListenerSecurity(),
    ]


def test_sessions_have_a_limit_for_a_mechanism_a_listener_or_all() -> None:
    """The most precise name counts; 0 and less is no limit."""
    mechanisms = "SCRAM-SHA-256,SCRAM-SHA-512"
    settings = {
        "listeners": "SASL_PLAINTEXT://h:1,A://h:2",
        "listener.security.protocol.map": "A:SASL_PLAINTEXT,SASL_PLAINTEXT:SASL_PLAINTEXT",
        "sasl.enabled.mechanisms": mechanisms,
        "connections.max.reauth.ms": "3000",
        f"{_SASL}connections.max.reauth.ms": "2000",
        f"{_SASL}scram-sha-256.connections.max.reauth.ms": "1000",
        "listener.name.a.scram-sha-512.connections.max.reauth.ms": "-1",
    }
    assert [row.session_ms for row in parsed(settings)] == [
        {"SCRAM-SHA-256": 1000, "SCRAM-SHA-512": 2000},
        {"SCRAM-SHA-256": 3000},
    ]


def bearer(**settings: str) -> BearerOptions | None:
    """Return how a listener checks tokens of OAUTHBEARER."""
    named = {name.replace("_", "."): text for name, text in settings.items()}
    common = {
        "listeners": "SASL_PLAINTEXT://h:1",
        "sasl.enabled.mechanisms": "OAUTHBEARER",
    }
    (row,) = parsed(common | {f"{_SASL}{name}": text for name, text in named.items()})
    return row.bearer


def test_tokens_without_a_signature_need_a_login_module() -> None:
    """Its options change how they are checked."""
    module = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule required"
    options = bearer(oauthbearer_sasl_jaas_config=f'{module} unsecuredValidatorScopeClaimName="s";')
    assert options == BearerOptions({"unsecuredValidatorScopeClaimName": "s"})


def test_tokens_with_a_signature_need_keys() -> None:
    """An option may have the name of the mechanism before it; that one counts."""
    options = bearer(
        sasl_oauthbearer_jwks_endpoint_url="file:///keys.json",
        sasl_oauthbearer_expected_audience="a, b",
        sasl_oauthbearer_expected_issuer="i",
        oauthbearer_sasl_oauthbearer_expected_issuer="j",
        oauthbearer_sasl_server_callback_handler_class="o.a.k.OAuthBearerValidatorCallbackHandler",
    )
    assert options == BearerOptions({}, "/keys.json", ("a", "b"), "j", 30, "sub")
    fetched = bearer(
        sasl_oauthbearer_jwks_endpoint_url="https://issuer/keys",
        sasl_oauthbearer_expected_issuer="i",
        sasl_oauthbearer_jwks_endpoint_refresh_ms="5000",
    )
    assert fetched is not None
    assert (fetched.keys_path, fetched.keys_url) == ("", "https://issuer/keys")
    assert fetched.refresh_ms == 5000


def test_login_module_names_the_trust_store_for_the_keys() -> None:
    """As in Kafka, the options of TLS for the provider come from the module."""
    options = bearer(
        sasl_oauthbearer_jwks_endpoint_url="https://issuer/keys",
        sasl_oauthbearer_expected_issuer="i",
        oauthbearer_sasl_jaas_config='a.B required ssl.truststore.location="/t.p12" '
        'ssl.truststore.type="pkcs12" ssl.truststore.password="p";',
    )
    assert options is not None
    assert options.trusted == Store("/t.p12", "PKCS12", "p")


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        (
            {
                "sasl_oauthbearer_jwks_endpoint_url": "https://issuer/keys",
                "sasl_oauthbearer_expected_issuer": "i",
                "oauthbearer_sasl_jaas_config": 'a.B required unsecuredValidatorRequiredScope="s";',
            },
            "has unsecuredValidatorRequiredScope, which has no effect with sasl.oauthbearer.jwks",
        ),
        ({}, r"sasl\.jaas\.config is not set: set sasl\.oauthbearer\.jwks\.endpoint\.url; or"),
        ({"oauthbearer_sasl_jaas_config": "x"}, "cannot be read: it is not a login module"),
        (
            {"oauthbearer_sasl_server_callback_handler_class": "x"},
            "endpoint.url is not set: name a file",
        ),
        (
            {"sasl_oauthbearer_jwks_endpoint_url": "file:///k"},
            "sasl.oauthbearer.expected.issuer is not set, and with sasl.oauthbearer.jwks",
        ),
        (
            {"sasl_oauthbearer_jwks_endpoint_url": "ftp://issuer/keys"},
            "is ftp://issuer/keys: it must begin with https:// or file:///",
        ),
        (
            {
                "sasl_oauthbearer_jwks_endpoint_url": "file:///k",
                "sasl_oauthbearer_expected_issuer": "i",
                "sasl_oauthbearer_clock_skew_seconds": "-1",
            },
            "Invalid value -1 for configuration listener.name.sasl_plaintext.sasl.oauthbearer",
        ),
        (
            {
                "oauthbearer_sasl_jaas_config": "a.B required "
                'unsecuredValidatorAllowableClockSkewMs="soon";'
            },
            "unsecuredValidatorAllowableClockSkewMs=soon: write milliseconds",
        ),
    ],
)
def test_wrong_options_of_tokens_are_refused(settings: dict[str, str], sentence: str) -> None:
    """The broker does not start: it would accept tokens without a check."""
    with pytest.raises(ConfigError, match=sentence):
        bearer(**settings)


def test_secret_key_of_tokens_has_a_former_name() -> None:
    """The former one counts if the other is not set; an empty key is none, as in Kafka."""
    new, former = "delegation.token.secret.key", "delegation.token.master.key"

    def key(**settings: str) -> str:
        named = {{"new": new, "former": former}[name]: text for name, text in settings.items()}
        return token_secret_key(option_tables.parse_broker_settings(named).snapshot)

    assert key() == ""
    assert key(former="b") == "b"
    assert key(new="a", former="b") == "a"
    assert key(new="", former="b") == ""


def test_options_of_listeners_are_known() -> None:
    """They cause no warning."""
    settings = {
        "listeners": "SASL_SSL://h:1",
        "ssl.keystore.location": "k",
        "listener.name.sasl_ssl.sasl.enabled.mechanisms": "SCRAM-SHA-256",
        "listener.name.sasl_ssl.scram-sha-256.sasl.jaas.config": "a.B required;",
        "listener.name.sasl_ssl.ssl.client.auth": "none",
    }
    assert option_tables.parse_broker_settings(settings).warnings == []


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({}, "sasl.enabled.mechanisms is not set: set it to one or more of PLAIN, SCRAM-SHA-256"),
        ({f"{_SASL}sasl.enabled.mechanisms": "GSSAPI"}, "has GSSAPI: use PLAIN, SCRAM-SHA-256"),
        ({"sasl.enabled.mechanisms": "GSSAPI"}, "Invalid value GSSAPI for configuration sasl"),
        (
            {
                "sasl.enabled.mechanisms": "SCRAM-SHA-256",
                f"{_SASL}connections.max.reauth.ms": "soon",
            },
            f"Invalid value soon for configuration {_SASL}connections.max.reauth.ms",
        ),
        (
            {"sasl.enabled.mechanisms": "PLAIN"},
            "listener.name.sasl_plaintext.plain.sasl.jaas.config is not set: set it to org.apache",
        ),
        (
            {"sasl.enabled.mechanisms": "PLAIN", f"{_SASL}plain.sasl.jaas.config": "secret"},
            "cannot be read: it is not a login module; write org.apache",
        ),
        (
            {
                "sasl.enabled.mechanisms": "PLAIN",
                f"{_SASL}plain.sasl.jaas.config": _JAAS.replace("user_ann", "username"),
            },
            "has no user: set it to org.apache",
        ),
        (
            {
                "sasl.enabled.mechanisms": "PLAIN",
                f"{_SASL}plain.sasl.jaas.config": _JAAS,
                "sasl.plain.users.file": "/etc/ottla/users",
            },
            "plain.sasl.jaas.config and sasl.plain.users.file both have the users of PLAIN",
        ),
        (
            {"sasl.enabled.mechanisms": "SCRAM-SHA-256", "inter.broker.authentication": "none"},
            "set sasl.mechanism.inter.broker.protocol=SCRAM-SHA-512 in its place, or use a listener",
        ),
        (
            {"sasl.enabled.mechanisms": "SCRAM-SHA-256", "security.inter.broker.protocol": "SSL"},
            "listeners has no listener with this name; set inter.broker.listener.name",
        ),
    ],
)
def test_sasl_that_is_incomplete_is_an_error(settings: dict[str, str], sentence: str) -> None:
    """The sentence names the option, and an example; no password is in it."""
    with pytest.raises(ConfigError) as caught:
        parsed({"listeners": "SASL_PLAINTEXT://h:1", **settings})
    assert sentence in str(caught.value)
    assert "secret;" not in str(caught.value).replace('user_ann="secret";', "")


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({}, "ssl.keystore.location is not set: name a file with certificate and key in PEM"),
        (
            {"ssl.keystore.location": "k", "ssl.client.auth": "required"},
            "ssl.truststore.location is not set",
        ),
        (
            {"ssl.keystore.location": "k", "listener.name.ssl.ssl.client.auth": "yes"},
            "ssl.client.auth is yes: use none, requested or required",
        ),
        (
            {"ssl.keystore.type": "JKS", "ssl.keystore.location": "/a/b.jks"},
            "ssl.keystore.type is JKS, a format that only Java reads: convert the file with `keytool "
            "-importkeystore -srckeystore /a/b.jks -destkeystore /a/b.p12 -deststoretype PKCS12`",
        ),
        ({"listener.name.ssl.ssl.truststore.type": "JKS"}, "set ssl.truststore.type=PKCS12"),
        ({"ssl.keystore.type": "DER"}, "ssl.keystore.type is DER: use PEM or PKCS12"),
        ({"ssl.keystore.password": "x"}, "a store in PEM has no password: remove it"),
        (
            {
                "ssl.keystore.type": "PKCS12",
                "ssl.keystore.location": "k",
                "ssl.keystore.password": "x",
                "ssl.key.password": "y",
            },
            "ssl.key.password is not ssl.keystore.password",
        ),
        (
            {"ssl.keystore.location": "k", "ssl.enabled.protocols": "TLSv1.1,TLSv1.2"},
            "ssl.enabled.protocols cannot be honoured: OpenSSL",
        ),
        (
            {"ssl.keystore.location": "k", "ssl.protocol": "SSLv3"},
            "does not offer SSLv3: use TLSv1.2, TLSv1.3",
        ),
        (
            {"ssl.keystore.location": "k", "ssl.cipher.suites": "TLS_RSA_WITH_NULL_SHA256"},
            "has no suite TLS_RSA_WITH_NULL_SHA256 that authenticates and encrypts",
        ),
        (
            {
                "ssl.keystore.location": "k",
                "listener.name.ssl.ssl.endpoint.identification.algorithm": "http",
            },
            "ssl.endpoint.identification.algorithm is http: use https, or an empty value",
        ),
        (
            {"ssl.keystore.location": "k", "ssl.principal.mapping.rules": "RULE:a/b"},
            "ssl.principal.mapping.rules cannot be read: 'RULE:a/b' does not begin with a rule",
        ),
        (
            {"principal.builder.class": "org.example.Builder"},
            "Ottla runs no classes of Java; write ssl.principal.mapping.rules",
        ),
    ],
)
def test_tls_that_is_incomplete_is_an_error(settings: dict[str, str], sentence: str) -> None:
    """The sentence names the listener and the option."""
    with pytest.raises(ConfigError) as caught:
        parsed({"listeners": "SSL://h:1", **settings})
    assert sentence in str(caught.value)


def test_rules_of_certificates_are_those_of_the_listener() -> None:
    """The rules without a prefix are for the other listeners."""
    found = parsed(
        {
            "listeners": "SSL://h:1,INNER://h:2",
            "listener.security.protocol.map": "SSL:SSL,INNER:SSL",
            "ssl.keystore.location": "k",
            "ssl.principal.mapping.rules": "RULE:^CN=(.*)$/$1/U",
            "listener.name.inner.ssl.principal.mapping.rules": "DEFAULT",
            "principal.builder.class": (
                "org.apache.kafka.common.security.authenticator.DefaultKafkaPrincipalBuilder"
            ),
        }
    )
    (outer, inner) = (security.names for security in found)
    assert outer is not None
    assert name_of(outer, "CN=ann") == "ANN"
    assert inner is None
