"""Versions and cipher suites of TLS of clients."""

from pathlib import Path
from typing import Any

import pytest

from ottla.base.errors import ConfigError
from ottla.client.config.librdkafka import librdkafka_settings
from ottla.client.config.names import Role
from ottla.client.config.settings import read_settings
from ottla.client.security.options import security_of
from ottla.net.tls.contexts import server_context
from ottla.net.tls.files import TlsFiles
from tests.certificates import self_signed
from tests.unit.net.tls.handshakes import shake

_OF_JAVA = "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256,TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384"
_OF_OPENSSL = "ECDHE-ECDSA-AES128-GCM-SHA256:ECDHE-RSA-AES256-GCM-SHA384"


def version(folder: Path, **options: Any) -> str | None:
    """Return the version of TLS that a client with these options uses."""
    chain = self_signed(folder)
    named = {name.replace("_", "."): value for name, value in options.items()}
    security = security_of(
        {
            "security.protocol": "SSL",
            "ssl.truststore.location": str(chain.with_suffix(".crt")),
            **named,
        }
    )
    assert security is not None
    assert security.tls is not None
    return shake(server_context(TlsFiles(str(chain), "", None, "none", True)), security.tls)


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({}, "TLSv1.3"),
        ({"ssl_enabled_protocols": "TLSv1.2"}, "TLSv1.2"),
        ({"ssl_protocol": "TLSv1.2"}, "TLSv1.2"),
        ({"ssl_cipher_suites": _OF_JAVA}, "TLSv1.2"),
        ({"ssl_cipher_suites": _OF_OPENSSL, "ssl_protocol": "TLSv1.2"}, "TLSv1.2"),
    ],
)
def test_own_connections_have_the_versions_and_suites_of_the_options(
    tmp_path: Path, options: dict[str, str], expected: str
) -> None:
    """Administration, streams and tools connect so."""
    assert version(tmp_path, **options) == expected


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"ssl_enabled_protocols": "TLSv1"}, "ssl.enabled.protocols cannot be honoured: OpenSSL"),
        ({"ssl_cipher_suites": "TLS_NONE"}, "ssl.cipher.suites cannot be honoured: OpenSSL .* has"),
        ({"ssl_cipher_suites": "none:at"}, "ssl.cipher.suites cannot be honoured"),
    ],
)
def test_name_that_openssl_does_not_have_is_an_error(
    tmp_path: Path, options: dict[str, str], sentence: str
) -> None:
    """The error names the option and the value."""
    with pytest.raises(ConfigError, match=sentence):
        version(tmp_path, **options)


def test_librdkafka_gets_the_names_of_openssl() -> None:
    """It has no option for versions; it uses the default's."""
    config = {
        "security.protocol": "SSL",
        "ssl.enabled.protocols": "TLSv1.2,TLSv1.3",
        "ssl.protocol": "TLS",
        "ssl.cipher.suites": _OF_JAVA,
    }
    expected = {"security.protocol": "SSL", "ssl.cipher.suites": _OF_OPENSSL}
    assert librdkafka_settings(config) == expected
    native = read_settings(Role.PRODUCER, config, {}).native
    assert native.items() >= expected.items()
    assert not native.keys() & {"ssl.enabled.protocols", "ssl.protocol"}
    passed = librdkafka_settings({**config, "ssl.cipher.suites": _OF_OPENSSL})
    assert passed["ssl.cipher.suites"] == _OF_OPENSSL
    # Without TLS, they have no meaning.
    assert librdkafka_settings({"ssl.protocol": "x", "ssl.cipher.suites": "x"}) == {}


def test_librdkafka_cannot_exclude_an_old_version() -> None:
    """A producer must not use TLSv1.2 although its options exclude it."""
    config = {"security.protocol": "SASL_SSL", "ssl.enabled.protocols": "TLSv1.3"}
    with pytest.raises(
        ConfigError, match=r"ssl\.enabled\.protocols excludes TLSv1\.2, which librd"
    ):
        read_settings(Role.CONSUMER, config, {})
    read_settings(Role.ADMIN, config, {})
