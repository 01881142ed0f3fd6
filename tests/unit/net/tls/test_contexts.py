"""Contexts of TLS from files."""

import ssl
from pathlib import Path

import pytest

from ottla.base.errors import ConfigError
from ottla.net.tls.contexts import client_context, server_context
from ottla.net.tls.files import Policy, TlsFiles
from tests.certificates import self_signed
from tests.unit.net.tls.handshakes import shake


@pytest.mark.parametrize("context", [server_context, client_context])
def test_files_that_cannot_be_read_are_named(tmp_path: Path, context: object) -> None:
    """The sentence has the option and the file."""
    assert callable(context)
    chain = str(self_signed(tmp_path))
    (tmp_path / "empty.pem").write_text("")
    empty, missing = str(tmp_path / "empty.pem"), str(tmp_path / "missing.pem")
    for files, option, name in (
        (TlsFiles(missing, "", None, "none", True), "ssl.keystore.location", missing),
        (TlsFiles(empty, "", None, "none", True), "ssl.keystore.location", empty),
        (TlsFiles(chain, "", missing, "required", True), "ssl.truststore.location", missing),
        (TlsFiles(chain, "", empty, "required", True), "ssl.truststore.location", empty),
    ):
        with pytest.raises(ConfigError, match="cannot be read") as caught:
            context(files)
        assert f"{option}={name}" in str(caught.value)
    context(TlsFiles(chain, "", chain, "required", True))


def test_only_the_trust_store_counts_between_brokers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A certificate that an authority of the system has signed is refused."""
    own, stranger = self_signed(tmp_path), self_signed(tmp_path, name="stranger")
    trusted = str(own.with_suffix(".crt"))
    # OpenSSL takes the authorities of the system from there.
    monkeypatch.setenv("SSL_CERT_FILE", str(stranger.with_suffix(".crt")))
    client = client_context(TlsFiles(str(own), "", trusted, "none", True))
    assert shake(server_context(TlsFiles(str(own), "", None, "none", True)), client) == "TLSv1.3"
    with pytest.raises(ssl.SSLCertVerificationError, match="self-signed certificate"):
        shake(server_context(TlsFiles(str(stranger), "", None, "none", True)), client)
    # Without a trust store, the system's authorities count.
    anyone = client_context(TlsFiles(str(own), "", None, "none", True))
    shake(server_context(TlsFiles(str(stranger), "", None, "none", True)), anyone)


@pytest.mark.parametrize("checks_host", [True, False])
def test_name_of_a_broker_is_checked_unless_the_algorithm_is_empty(
    tmp_path: Path, checks_host: bool
) -> None:
    """The certificate is for 127.0.0.1."""
    own = self_signed(tmp_path)
    files = TlsFiles(str(own), "", str(own.with_suffix(".crt")), "none", checks_host)
    server, client = server_context(files), client_context(files)
    if not checks_host:
        assert shake(server, client, "127.0.0.2") == "TLSv1.3"
        return
    with pytest.raises(ssl.SSLCertVerificationError, match="IP address mismatch"):
        shake(server, client, "127.0.0.2")


def test_contexts_have_the_versions_and_the_suites_of_the_policy(tmp_path: Path) -> None:
    """Both sides are restricted: listeners, and connections to other brokers."""
    own = self_signed(tmp_path)
    files = TlsFiles(str(own), "", str(own.with_suffix(".crt")), "none", checks_host=True)
    old, new = (
        files._replace(policy=Policy(("TLSv1.2",))),
        files._replace(policy=Policy(("TLSv1.3",))),
    )
    assert shake(server_context(old), client_context(files)) == "TLSv1.2"
    assert shake(server_context(files), client_context(old)) == "TLSv1.2"
    for server, client in ((old, new), (new, old)):
        with pytest.raises(ssl.SSLError):
            shake(server_context(server), client_context(client))
    suites = "ECDHE-ECDSA-AES128-GCM-SHA256", "ECDHE-ECDSA-AES256-GCM-SHA384"
    one, other = (old._replace(policy=Policy(("TLSv1.2",), (suite,))) for suite in suites)
    assert shake(server_context(one), client_context(one)) == "TLSv1.2"
    with pytest.raises(ssl.SSLError):
        shake(server_context(one), client_context(other))
