"""Certificates of an authority for development, as OpenSSL sees them."""

import ssl
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from ottla.security.certificates import subject_of
from ottla.security.issuing import Issued, issue, new_authority

NOW = datetime.now(UTC)
LIFE = timedelta(days=1)


@pytest.fixture(scope="module")
def authority() -> Issued:
    """Return a new authority."""
    return new_authority("test authority", NOW, LIFE)


def handshake(server: ssl.SSLContext, client: ssl.SSLContext, host: str) -> ssl.SSLObject:
    """Connect both in memory; return the server's side. SSLError if one refuses the other."""
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    serving = server.wrap_bio(to_server, to_client, server_side=True)
    connecting = client.wrap_bio(to_client, to_server, server_hostname=host)
    for _ in range(4):
        for side in (connecting, serving):
            try:
                side.do_handshake()
            except ssl.SSLWantReadError:
                continue
    return serving


def contexts(
    authority: Issued, folder: Path, server: Issued, client: Issued | None = None
) -> tuple[ssl.SSLContext, ssl.SSLContext]:
    """Return the context of a server and of a client that trust the authority."""
    trusted = authority.certificate.decode()
    serving = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH, cadata=trusted)
    connecting = ssl.create_default_context(cadata=trusted)
    path = folder / "server.pem"
    path.write_bytes(server.chain)
    serving.load_cert_chain(path)
    if client is not None:
        serving.verify_mode = ssl.CERT_REQUIRED
        path = folder / "client.pem"
        path.write_bytes(client.chain)
        connecting.load_cert_chain(path)
    return serving, connecting


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1", "kafka.example.org"])
def test_broker_and_client_trust_each_other(authority: Issued, tmp_path: Path, host: str) -> None:
    """The certificate names the hosts, and the user is the common name of the client's."""
    hosts = ("localhost", "127.0.0.1", "kafka.example.org")
    server = issue(authority, "broker", hosts, NOW, LIFE)
    client = issue(authority, "anna", (), NOW, LIFE)
    serving = handshake(*contexts(authority, tmp_path, server, client), host)
    certificate = serving.getpeercert(binary_form=True)
    assert certificate is not None
    assert subject_of(certificate) == "CN=anna"


@pytest.mark.parametrize(
    ("names", "reason"),
    [(("other.example.org",), "not valid for"), ((), "unsuitable certificate purpose")],
    ids=["other host", "client only"],
)
def test_certificate_is_valid_for_its_purpose_only(
    authority: Issued, tmp_path: Path, names: tuple[str, ...], reason: str
) -> None:
    """A client cannot pass for a broker."""
    server = issue(authority, "x", names, NOW, LIFE)
    with pytest.raises(ssl.SSLCertVerificationError, match=reason):
        handshake(*contexts(authority, tmp_path, server), "localhost")


def test_authority_that_cannot_be_read_is_an_error() -> None:
    """The caller reports the folder."""
    with pytest.raises(ValueError, match="PEM"):
        issue(Issued(b"no certificate", b"no key"), "x", (), NOW, LIFE)
