"""The options of TLS and SASL: how clients read them, and the errors of wrong ones."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    PrivateFormat,
    load_pem_private_key,
)

from ottla.base.errors import ConfigError
from ottla.client import Consumer, Producer
from ottla.client.config.librdkafka import librdkafka_settings
from ottla.client.security.options import Credentials, read_jaas, security_of
from ottla.client.transport import open_consumer
from tests.certificates import self_signed

SCRAM = "org.apache.kafka.common.security.scram.ScramLoginModule required"


@pytest.mark.parametrize("options", [{}, {"security.protocol": "plaintext", "sasl.mechanism": "x"}])
def test_plaintext_needs_nothing(options: dict[str, Any]) -> None:
    """The other options are not read."""
    assert security_of(options) is None


@pytest.mark.parametrize(
    "options",
    [
        {"sasl.jaas.config": rf'{SCRAM} username="ann" password="a\"b";'},
        {"sasl.jaas.config": rf'{SCRAM} password="a\"b" username = "ann" ;'},
        {"sasl.jaas.config": rf"{SCRAM} username=ann password='a\"b';"},
        {"sasl.username": "ann", "sasl.password": 'a"b'},
    ],
)
def test_credentials_are_those_of_jaas_or_of_librdkafkas_options(options: dict[str, Any]) -> None:
    """A backslash escapes a quotation mark."""
    common = {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "SCRAM-SHA-512"}
    security = security_of(common | options)
    assert security is not None
    assert security.tls is None
    assert security.credentials == Credentials("SCRAM-SHA-512", "ann", 'a"b')


def test_the_text_of_credentials_has_no_password() -> None:
    """Logs and traces do not show it."""
    text = repr(Credentials("PLAIN", "ann", "secret"))
    assert "ann" in text
    assert "secret" not in text


def test_a_delegation_token_is_marked_in_jaas() -> None:
    """As in Java's clients, `tokenauth` is an option of the login module of SCRAM."""
    text = f'{SCRAM} username="id" password="tokenauth=\\"false\\"" tokenauth="true";'
    common = {"security.protocol": "SASL_PLAINTEXT", "sasl.jaas.config": text}
    security = security_of({**common, "sasl.mechanism": "SCRAM-SHA-256"})
    assert security is not None
    assert security.credentials == Credentials(
        "SCRAM-SHA-256", "id", 'tokenauth="false"', is_token=True
    )
    assert read_jaas(text) == {"username": "id", "password": 'tokenauth="false"'}
    with pytest.raises(ConfigError, match=r'tokenauth="true" needs sasl\.mechanism=SCRAM-'):
        security_of({**common, "sasl.mechanism": "PLAIN"})


@pytest.mark.parametrize(
    "kind", [Producer, lambda config: Consumer(config=config)], ids=["producer", "consumer"]
)
def test_librdkafka_cannot_log_in_with_a_delegation_token(kind: Callable[[Any], Any]) -> None:
    """The sentence names the option and who can; without `tokenauth` the client is opened."""
    text = f'{SCRAM} username="id" password="hmac" tokenauth="true";'
    options = {
        "bootstrap.servers": "127.0.0.1:1",
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "SCRAM-SHA-256",
    }
    with pytest.raises(ConfigError) as refused:
        kind({**options, "sasl.jaas.config": text})
    assert str(refused.value) == (
        'tokenauth="true" in sasl.jaas.config: producers and consumers cannot log in with a '
        "delegation token, because librdkafka cannot; use a user and a password (AdminClient and "
        "administration can use the token)"
    )
    kind({**options, "sasl.jaas.config": text.replace("true", "false")}).close()


def test_the_settings_of_a_script_mark_a_delegation_token() -> None:
    """Only opening librdkafka's client fails: a file of properties serves all verbs."""
    text = f'{SCRAM} username="id" password="hmac" tokenauth="true";'
    settings = librdkafka_settings({"sasl.jaas.config": text})
    assert settings == {"sasl.username": "id", "sasl.password": "hmac", "sasl.tokenauth": "true"}
    with pytest.raises(ConfigError, match="cannot log in with a delegation token"):
        open_consumer(settings)


def test_the_name_of_the_host_is_checked_unless_it_is_switched_off() -> None:
    """As in Kafka's clients, an empty ssl.endpoint.identification.algorithm switches it off."""
    checks = []
    for options in ({}, {"ssl.endpoint.identification.algorithm": ""}):
        security = security_of({"security.protocol": "SSL", **options})
        assert security is not None
        assert security.tls is not None
        checks.append(security.tls.check_hostname)
    assert checks == [True, False]


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"security.protocol": "TLS"}, "security.protocol=TLS: use PLAINTEXT, SSL"),
        ({"security.protocol": "SASL_SSL"}, "sasl.mechanism=GSSAPI is not supported: use PLAIN"),
        (
            {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "PLAIN"},
            "sasl.jaas.config has no username and no password",
        ),
        (
            {"security.protocol": "SSL", "ssl.truststore.location": "trust.jks"},
            "ssl.truststore.location=trust.jks is a Java key store.*keytool",
        ),
        (
            {
                "security.protocol": "SSL",
                "ssl.keystore.location": "keys",
                "ssl.keystore.type": "PKCS12",
            },
            "ssl.keystore.location=keys is a Java key store",
        ),
        (
            {"security.protocol": "SSL", "ssl.truststore.location": "/nowhere/ca.pem"},
            "the certificates of ssl.truststore cannot be read",
        ),
        (
            {"security.protocol": "SSL", "ssl.truststore.certificates": "no certificate"},
            "the certificates of ssl.truststore cannot be read",
        ),
        (
            {"security.protocol": "SSL", "ssl.keystore.key": "no key"},
            "the certificate of ssl.keystore cannot be read",
        ),
    ],
)
def test_an_option_that_cannot_be_used_is_explained(options: dict[str, Any], sentence: str) -> None:
    """The error names the option."""
    with pytest.raises(ConfigError, match=sentence):
        security_of(options)


def test_a_file_that_is_no_certificate_is_explained(tmp_path: Path) -> None:
    """The error has the reason of the TLS library."""
    file = tmp_path / "ca.pem"
    file.write_text("nothing")
    options = {"security.protocol": "SSL", "ssl.truststore.location": str(file)}
    with pytest.raises(
        ConfigError, match=r"ssl\.truststore cannot be read: \[?X509|no certificate"
    ):
        security_of(options)


@pytest.mark.parametrize("content", [b"\xfe\xed\xfe\xed\0", b"\x30\x82"])
def test_java_key_store_without_an_ending_is_explained(tmp_path: Path, content: bytes) -> None:
    """JKS is the default of ssl.truststore.type in Java; records and administration say the same."""
    file = tmp_path / "truststore"
    file.write_bytes(content)
    options = {"security.protocol": "SSL", "ssl.truststore.location": str(file)}
    for read in (security_of, librdkafka_settings):
        with pytest.raises(ConfigError, match=rf"`keytool -list -rfc -keystore {file} >"):
            read(options)


def test_missing_file_of_certificates_is_explained(tmp_path: Path) -> None:
    """Records and administration say the same."""
    file = tmp_path / "missing.pem"
    options = {"security.protocol": "SSL", "ssl.truststore.location": str(file)}
    for read in (security_of, librdkafka_settings):
        with pytest.raises(
            ConfigError, match=f"ssl.truststore cannot be read: there is no file '{file}'"
        ):
            read(options)


def test_an_encrypted_key_needs_its_password(tmp_path: Path) -> None:
    """Without it there is an error, not a prompt; the same for a wrong one."""
    file = self_signed(tmp_path)
    key = load_pem_private_key(file.read_bytes(), None)
    secret = BestAvailableEncryption(b"secret")
    encrypted = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, secret)
    file.write_bytes(encrypted + file.with_suffix(".crt").read_bytes())
    options = {"security.protocol": "SSL", "ssl.keystore.location": str(file)}
    for wrong in ({}, {"ssl.key.password": "other"}):
        with pytest.raises(ConfigError, match=r"ssl\.keystore cannot be read"):
            security_of(options | wrong)
    assert security_of(options | {"ssl.key.password": "secret"}) is not None
