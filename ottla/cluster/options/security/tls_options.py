"""The options of TLS, and the files and rules that a listener has by them. Pure.

Not done: stores as texts in the options (ssl.keystore.key, ssl.truststore.certificates).
"""

from dataclasses import replace
from typing import TYPE_CHECKING

from ottla.base.loading import deferred_module
from ottla.base.options import Option, OptionType, Scope
from ottla.cluster.options.option_rows import Rows
from ottla.cluster.options.security.listener_values import PREFIX, ListenerValues
from ottla.net.tls import PEM, VERSION_NAMES

if TYPE_CHECKING:
    from ottla.net.tls import files, policy
else:
    # Only a broker with TLS needs them.
    files = deferred_module("ottla.net.tls.files")
    policy = deferred_module("ottla.net.tls.policy")

STRING = OptionType.STRING
_CLIENT_AUTH = ("none", "requested", "required")
_HOST_CHECK = "ssl.endpoint.identification.algorithm"
_ENABLED, _SUITES = "ssl.enabled.protocols", "ssl.cipher.suites"
_broker = Rows(Scope.BROKER, dynamic=False).row

ROWS = (
    _broker(
        "ssl.keystore.location",
        STRING,
        None,
        "A file with the broker's certificate and its key, in PEM or PKCS#12. It is read again after a "
        "change. At runtime, a file in the same folder can be named for one broker.",
        dynamic=True,
    ),
    _broker(
        "ssl.keystore.type",
        STRING,
        PEM,
        "The format of ssl.keystore.location: PEM or PKCS12. PKCS12 needs `pip install "
        "'ottla[pkcs12]'`. Kafka: JKS.",
        dynamic=True,
    ),
    _broker(
        "ssl.keystore.password",
        OptionType.PASSWORD,
        None,
        "The password of a key store in PKCS12.",
        sensitive=True,
    ),
    _broker(
        "ssl.key.password",
        STRING,
        None,
        "The password of the broker's key in PEM, if it is encrypted.",
        sensitive=True,
    ),
    _broker(
        "ssl.truststore.location",
        STRING,
        None,
        "A file with the certificates that the broker trusts: of clients, and of other brokers. No "
        "others are trusted. It is read again after a change, as the key store is.",
        dynamic=True,
    ),
    _broker(
        "ssl.truststore.type",
        STRING,
        PEM,
        "The format of ssl.truststore.location: PEM or PKCS12. Kafka: JKS.",
        dynamic=True,
    ),
    _broker(
        "ssl.truststore.password",
        OptionType.PASSWORD,
        None,
        "The password of a trust store in PKCS12.",
        sensitive=True,
    ),
    _broker(
        "ssl.client.auth",
        STRING,
        "none",
        "Whether clients must show a certificate. The user is its subject.",
        choices=_CLIENT_AUTH,
    ),
    _broker(
        _HOST_CHECK,
        STRING,
        "https",
        "How a broker checks the certificate of another one: by its host name (https), or not at all "
        "(empty).",
        choices=("https", ""),
    ),
    _broker(
        _ENABLED,
        OptionType.LIST,
        list(VERSION_NAMES),
        "The versions of TLS that connections may have. OpenSSL offers none before TLSv1.2.",
    ),
    _broker(
        "ssl.protocol",
        STRING,
        "TLSv1.3",
        "The newest version of TLS that is used, or TLS for any.",
    ),
    _broker(
        _SUITES,
        OptionType.LIST,
        [],
        "The cipher suites that connections may use, by the names of Java or of OpenSSL. Empty: those "
        "that Python prefers. Without a suite of TLSv1.3, that version is not used; otherwise name all "
        "of its suites.",
    ),
)


DYNAMIC = tuple(row.name for row in ROWS if row.dynamic)
"""The options that can be altered while a broker runs, also for one listener."""


def dynamic_row(name: str) -> Option | None:
    """Return the row of an option of one listener that can be altered; None for other names."""
    if not name.startswith(PREFIX):
        return None
    row = next((row for row in ROWS if row.dynamic and name.endswith(f".{row.name}")), None)
    return None if row is None else replace(row, name=name)


def tls_of(values: ListenerValues) -> "files.TlsFiles":
    """Return the TLS of a listener; ConfigError if an option is wrong or missing."""
    client_auth = values.text("ssl.client.auth")
    if client_auth not in _CLIENT_AUTH:
        raise values.refusal(
            "ssl.client.auth", f"is {client_auth}: use none, requested or required"
        )
    host_check = values.text(_HOST_CHECK)
    if host_check not in ("", "https"):
        raise values.refusal(_HOST_CHECK, f"is {host_check}: use https, or an empty value")
    own = _store(values, "ssl.keystore.location", "ssl.keystore.type", "ssl.keystore.password")
    trusted = _store(
        values, "ssl.truststore.location", "ssl.truststore.type", "ssl.truststore.password"
    )
    if own is None:
        raise values.refusal(
            "ssl.keystore.location", "is not set: name a file with certificate and key in PEM"
        )
    if client_auth != "none" and trusted is None:
        raise values.refusal(
            "ssl.truststore.location",
            "is not set: name a file with the certificates that sign clients' certificates",
        )
    key_password = values.text("ssl.key.password")
    if own.kind == files.PKCS12 and key_password not in ("", own.password):
        raise values.refusal(
            "ssl.key.password",
            "is not ssl.keystore.password: in PKCS12, the key has the password of its store",
        )
    return files.TlsFiles(
        own.path,
        key_password,
        None if trusted is None else trusted.path,
        client_auth,
        host_check != "",
        _policy(values),
        files.Format(own.kind, own.password),
        files.Format() if trusted is None else files.Format(trusted.kind, trusted.password),
    )


def _store(
    values: ListenerValues, location: str, kind_name: str, password_name: str
) -> "files.Store | None":
    path, kind = values.text(location), values.text(kind_name).upper()
    if kind in files.JAVA_KINDS:
        raise values.refusal(
            kind_name,
            f"is {kind}, a format that only Java reads: convert the file with "
            f"`{files.conversion(path or 'FILE.jks')}`, and set {kind_name}=PKCS12",
        )
    if kind not in files.KINDS:
        raise values.refusal(kind_name, f"is {kind}: use {' or '.join(files.KINDS)}")
    password = values.text(password_name)
    if kind == PEM and password:
        raise values.refusal(
            password_name,
            "is set, and a store in PEM has no password: remove it; the key in it has "
            "ssl.key.password",
        )
    return files.Store(path, kind, password) if path else None


def _policy(values: ListenerValues) -> "files.Policy":
    name = _ENABLED
    try:
        versions = policy.versions_of(values.strings(_ENABLED), values.text("ssl.protocol"))
        name = _SUITES
        return policy.policy_of(versions, values.strings(_SUITES))
    except ValueError as error:
        raise values.refusal(name, f"cannot be honoured: {error}") from error
