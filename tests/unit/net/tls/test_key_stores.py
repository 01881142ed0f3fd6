"""Key stores and trust stores in PEM and PKCS#12; Java's formats are refused."""

import ssl
from pathlib import Path

import pytest

from ottla.base.errors import ConfigError
from ottla.net.tls.contexts import client_context, server_context
from ottla.net.tls.files import PKCS12, Format, Policy, Store, TlsFiles
from ottla.net.tls.key_stores import load_key, load_trusted
from tests.certificates import pkcs12_store, self_signed
from tests.unit.net.tls.handshakes import shake

_NAME = "ssl.keystore.location"


def test_stores_in_pkcs12_serve_connections(tmp_path: Path) -> None:
    """The key is in one of them, the trusted certificate in the other."""
    pem = self_signed(tmp_path)
    own, trusted = pkcs12_store(pem), pkcs12_store(pem, has_key=False)
    own_format, trusted_format = Format(*own[1:]), Format(*trusted[1:])
    files = TlsFiles(
        own.path, "", trusted.path, "required", True, Policy(), own_format, trusted_format
    )
    assert shake(server_context(files), client_context(files)) == "TLSv1.3"


def test_store_with_another_password_is_an_error(tmp_path: Path) -> None:
    """The error has the option and the file, and not the password."""
    store = pkcs12_store(self_signed(tmp_path))._replace(password="wrong")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    for load in (
        lambda: load_key(context, _NAME, store, ""),
        lambda: load_trusted(context, _NAME, store),
    ):
        with pytest.raises(ConfigError, match=f"{_NAME}={store.path} cannot be read") as caught:
            load()
        assert "wrong" not in str(caught.value)


def test_key_store_without_a_key_is_an_error(tmp_path: Path) -> None:
    """It is a trust store."""
    store = pkcs12_store(self_signed(tmp_path), has_key=False)
    with pytest.raises(ConfigError, match="cannot be read: it has no key with a certificate"):
        load_key(ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER), _NAME, store, "")


def test_store_of_java_is_refused_with_the_command_that_converts_it(tmp_path: Path) -> None:
    """It is recognized by its content, also if the options say something else."""
    path = tmp_path / "server.jks"
    path.write_bytes(b"\xfe\xed\xfe\xed\0\0\0\2")
    command = f"keytool -importkeystore -srckeystore {path} -destkeystore {tmp_path}/server.p12"
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    for store in (Store(str(path)), Store(str(path), PKCS12)):
        with pytest.raises(ConfigError, match="is a key store of Java") as caught:
            load_key(context, _NAME, store, "")
        assert f"{command} -deststoretype PKCS12`, and set ssl.keystore.type=PKCS12" in str(
            caught.value
        )


def test_pkcs12_as_pem_is_an_error_that_names_the_type(tmp_path: Path) -> None:
    """OpenSSL's own error would say that there is no start line."""
    store = pkcs12_store(self_signed(tmp_path))
    with pytest.raises(ConfigError, match=r"is not in PEM: set ssl\.keystore\.type=PKCS12"):
        load_key(ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER), _NAME, Store(store.path), "")
