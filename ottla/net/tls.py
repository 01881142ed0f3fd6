"""TLS of listeners, and of connections to other brokers: contexts from files in PEM."""

import ssl
from typing import NamedTuple

from ottla.base.errors import ConfigError

HANDSHAKE_SECONDS = 10.0
"""A peer that has not completed the handshake by then is disconnected."""


class TlsFiles(NamedTuple):
    """The certificate and key of this broker, and what it demands of its peers.

    `authorities` is a file with trusted certificates; `client_auth` is none, requested or required.
    Another broker's certificate must be for its host name if `checks_host` is True.
    """

    chain: str
    key_password: str
    authorities: str | None
    client_auth: str
    checks_host: bool


_CLIENT_AUTH = {
    "none": ssl.CERT_NONE,
    "requested": ssl.CERT_OPTIONAL,
    "required": ssl.CERT_REQUIRED,
}


def server_context(files: TlsFiles) -> ssl.SSLContext:
    """Return the context of a listener; ConfigError if a file cannot be read."""
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.verify_mode = _CLIENT_AUTH[files.client_auth]
    _load(context, files)
    return context


def client_context(files: TlsFiles) -> ssl.SSLContext:
    """Return the context of connections to other brokers; ConfigError if a file cannot be read."""
    context = ssl.create_default_context(ssl.Purpose.SERVER_AUTH)
    context.check_hostname = files.checks_host
    _load(context, files)
    return context


def _load(context: ssl.SSLContext, files: TlsFiles) -> None:
    try:
        # With None, OpenSSL would ask for the password of an encrypted key on the terminal.
        context.load_cert_chain(files.chain, password=files.key_password)
    except (OSError, ValueError) as error:
        raise ConfigError(f"ssl.keystore.location={files.chain} cannot be read: {error}") from error
    if files.authorities is None:
        return
    try:
        context.load_verify_locations(files.authorities)
    except (OSError, ValueError) as error:
        raise ConfigError(
            f"ssl.truststore.location={files.authorities} cannot be read: {error}"
        ) from error
