"""The options of TLS, from a broker's configuration to a handshake."""

import ssl
from pathlib import Path

import pytest

from ottla.cluster.options import option_tables
from ottla.cluster.options.security_options import security_of
from ottla.net.tls.contexts import client_context, server_context
from ottla.net.tls.files import TlsFiles
from tests.certificates import self_signed
from tests.unit.net.tls.handshakes import shake


def configured(chain: Path, **settings: str) -> TlsFiles:
    """Return the TLS of a listener; dots of names are underscores."""
    named = {name.replace("_", "."): text for name, text in settings.items()}
    common = {
        "listeners": "SSL://127.0.0.1:1",
        "ssl.keystore.location": str(chain),
        "ssl.truststore.location": str(chain.with_suffix(".crt")),
    }
    snapshot = option_tables.parse_broker_settings(common | named).snapshot
    (listener,) = option_tables.parse_listeners(snapshot)
    tls = security_of(snapshot, listener).tls
    assert tls is not None
    return tls


@pytest.mark.parametrize(
    ("name", "value", "version"),
    [
        ("ssl_enabled_protocols", "TLSv1.3", "TLSv1.3"),
        ("listener_name_ssl_ssl_enabled_protocols", "TLSv1.3", "TLSv1.3"),
        ("ssl_enabled_protocols", "TLSv1.2", "TLSv1.2"),
        ("ssl_protocol", "TLSv1.2", "TLSv1.2"),
        ("ssl_cipher_suites", "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256", "TLSv1.2"),
    ],
)
def test_version_that_is_not_enabled_is_not_used(
    tmp_path: Path, name: str, value: str, version: str
) -> None:
    """A client with another version is refused."""
    chain = self_signed(tmp_path)
    server = server_context(configured(chain, **{name: value}))
    assert shake(server, client_context(configured(chain))) == version
    (other,) = {"TLSv1.2", "TLSv1.3"} - {version}
    with pytest.raises(ssl.SSLError):
        shake(server, client_context(configured(chain, ssl_enabled_protocols=other)))


def test_names_of_brokers_that_are_not_checked_are_a_warning() -> None:
    """The algorithm of the listener between brokers counts; clients check names themselves."""
    name = "ssl.endpoint.identification.algorithm"
    settings = {
        "listeners": "SSL://127.0.0.1:1,OUTER://127.0.0.1:2",
        "listener.security.protocol.map": "SSL:SSL,OUTER:SSL",
        "ssl.keystore.location": "k",
    }
    (warning,) = option_tables.parse_broker_settings({**settings, name: ""}).warnings
    assert f"{name} of the listener SSL is empty: every owner of a certificate" in warning
    outer = {**settings, f"listener.name.outer.{name}": ""}
    assert option_tables.parse_broker_settings(outer).warnings == []
    inner = {**outer, "inter.broker.listener.name": "OUTER"}
    assert len(option_tables.parse_broker_settings(inner).warnings) == 1
