"""TLS of listeners, and of connections to other brokers: contexts from files.

A peer's certificate counts if one of the trust store has signed it. The authorities that the system
trusts are not asked, unless no trust store is named.
"""

import ssl

from ottla.base.errors import ConfigError
from ottla.net.tls.alerts import AlertingObject
from ottla.net.tls.files import Store, TlsFiles
from ottla.net.tls.key_stores import load_key, load_trusted
from ottla.net.tls.policy import apply

_KEY_STORE, _TRUST_STORE = "ssl.keystore.location", "ssl.truststore.location"


_CLIENT_AUTH = {
    "none": ssl.CERT_NONE,
    "requested": ssl.CERT_OPTIONAL,
    "required": ssl.CERT_REQUIRED,
}


def server_context(files: TlsFiles) -> ssl.SSLContext:
    """Return the context of a listener; ConfigError if a file cannot be read."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.sslobject_class = AlertingObject
    apply(files.policy, context)
    context.verify_mode = _CLIENT_AUTH[files.client_auth]
    load_key(context, _KEY_STORE, files.own, files.key_password)
    if files.trusted is not None:
        _trust(context, files.trusted, _TRUST_STORE)
    return context


def client_context(files: TlsFiles) -> ssl.SSLContext:
    """Return the context of connections to other brokers; ConfigError if a file cannot be read."""
    context = peer_context(files.trusted, _TRUST_STORE)
    apply(files.policy, context)
    context.check_hostname = files.checks_host
    load_key(context, _KEY_STORE, files.own, files.key_password)
    return context


def peer_context(trusted: Store | None, name: str) -> ssl.SSLContext:
    """Return the context of a client that trusts the certificates of a store, and no others.

    Without a store it trusts the authorities of the system. `name` is the option of the store, for
    the ConfigError if it cannot be read.
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    if trusted is None:
        context.load_default_certs()
    else:
        _trust(context, trusted, name)
    return context


def check_acceptance(files: TlsFiles) -> None:
    """Raise ConfigError unless brokers with the same files accept each other's certificate.

    The names of hosts are not checked. As Kafka's SslFactory for the listener of brokers.
    """
    to_client, to_server = ssl.MemoryBIO(), ssl.MemoryBIO()
    client = client_context(files._replace(checks_host=False))
    ends = [
        client.wrap_bio(to_client, to_server),
        server_context(files).wrap_bio(to_server, to_client, server_side=True),
    ]
    try:
        while ends:
            ends = [end for end in ends if not _has_shaken(end)]
    except ssl.SSLError as error:
        reason = getattr(error, "verify_message", None) or error.reason
        raise ConfigError(
            f"other brokers would not accept the certificate of {files.chain} by "
            f"{files.authorities or 'the authorities of the system'}: {reason}"
        ) from error


def _has_shaken(end: ssl.SSLObject) -> bool:
    """Continue the handshake of one end; return True if it is complete."""
    try:
        end.do_handshake()
    except ssl.SSLWantReadError:
        return False
    return True


def _trust(context: ssl.SSLContext, trusted: Store, name: str) -> None:
    load_trusted(context, name, trusted)
    # As with Java, every certificate of the store is trusted, not only root authorities'
    # certificates.
    context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
