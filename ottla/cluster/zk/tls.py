"""TLS to a ZooKeeper: Apache Kafka's options `zookeeper.ssl.…`, or ZooKeeper's system properties.

An option of the caller is preferred to the system property in KAFKA_OPTS. Stores are files in PEM
or PKCS#12. Only the trust store counts, if there is one, and not the system's own authorities. The
files are read again for each connection, and after a change by the server of a tree.
Follows kafka.server.KafkaConfig and org.apache.zookeeper.common.ClientX509Util.

Not done:
    Protocols, ciphers and the revocation of certificates cannot be configured.
"""

import logging
import os
import ssl
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, NamedTuple

from ottla.base.clock import Clock
from ottla.base.errors import ConfigError
from ottla.base.files import FileSystem
from ottla.base.loading import deferred_module
from ottla.base.options import Snapshot
from ottla.security.zookeeper.login import JAVA_OPTIONS, login_of_environment, system_properties

if TYPE_CHECKING:
    from ottla.cluster.options.security import exposure
    from ottla.net.tls import contexts, files, key_stores, stamps
    from ottla.security import certificates
else:
    # Only connections with TLS need them.
    exposure = deferred_module("ottla.cluster.options.security.exposure")
    contexts = deferred_module("ottla.net.tls.contexts")
    files = deferred_module("ottla.net.tls.files")
    key_stores = deferred_module("ottla.net.tls.key_stores")
    stamps = deferred_module("ottla.net.tls.stamps")
    certificates = deferred_module("ottla.security.certificates")

_log = logging.getLogger(__name__)

ENABLE = "zookeeper.ssl.client.enable"
SOCKET = "zookeeper.clientCnxnSocket"
KEY_STORE = "zookeeper.ssl.keystore.location"
_KEY_PASSWORD = "zookeeper.ssl.keystore.password"  # noqa: S105 - a name
TRUST_STORE = "zookeeper.ssl.truststore.location"
_CHECK = "zookeeper.ssl.endpoint.identification.algorithm"
_HOST_CHECK = "zookeeper.ssl.hostnameVerification"
# The options, and the names of the system properties.
OPTIONS: Mapping[str, str] = {
    ENABLE: "zookeeper.client.secure",
    SOCKET: "zookeeper.clientCnxnSocket",
    KEY_STORE: "zookeeper.ssl.keyStore.location",
    _KEY_PASSWORD: "zookeeper.ssl.keyStore.password",
    "zookeeper.ssl.keystore.type": "zookeeper.ssl.keyStore.type",
    TRUST_STORE: "zookeeper.ssl.trustStore.location",
    "zookeeper.ssl.truststore.password": "zookeeper.ssl.trustStore.password",
    "zookeeper.ssl.truststore.type": "zookeeper.ssl.trustStore.type",
}
_PEM = "PEM"
_KINDS_BY_ENDING = {".jks": "JKS", ".bcfks": "BCFKS", ".p12": "PKCS12", ".pfx": "PKCS12"}
# System properties that restrict connections in Java's clients.
_UNSUPPORTED = tuple(
    f"zookeeper.ssl.{name}"
    for name in ("protocol", "enabledProtocols", "ciphersuites", "crl", "ocsp", "context.supplier.class",
                 "keyStore.passwordPath", "trustStore.passwordPath")
)  # fmt: skip


class Tls(NamedTuple):
    """Files that encrypt a connection; the key store has the certificate of the client, if any."""

    key_store: str | None
    key_password: str
    trust_store: str | None
    checks_host: bool
    key_kind: str = _PEM
    trust_kind: str = _PEM
    trust_password: str = ""

    def context(self) -> ssl.SSLContext:
        """Return the context of connections; ConfigError if a file cannot be read."""
        trusted = None
        if self.trust_store is not None:
            trusted = files.Store(self.trust_store, self.trust_kind, self.trust_password)
        context = contexts.peer_context(trusted, TRUST_STORE)
        context.check_hostname = self.checks_host
        if self.key_store is not None:
            # The password of a key in PEM, or of a store in PKCS#12.
            key_stores.load_key(context, KEY_STORE, self._own, self.key_password)
        return context

    def server_context(self) -> ssl.SSLContext:
        """Return the context of a server with the key store; ConfigError if it cannot be read."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        key_stores.load_key(context, KEY_STORE, self._own, self.key_password)
        return context

    def has_expired(self, now: float) -> bool:
        """Return True if a certificate of the key store has, at a time in seconds since the epoch."""
        try:
            found = key_stores.certificates_der(self._own)
            return min(map(certificates.expiry_of, found), default=now + 1) <= now
        except (OSError, ValueError):
            # OpenSSL has read it.
            return False

    @property
    def _own(self) -> "files.Store":
        assert self.key_store is not None, "a server has a certificate"
        return files.Store(self.key_store, self.key_kind, self.key_password)


class ServerTls:
    """The certificate of a tree that is served. New connections use a file that has changed.

    As on listeners, the former certificate stays if a file cannot be used, or has expired.
    """

    def __init__(self, tls: Tls, file_system: FileSystem, clock: Clock) -> None:
        self._tls = tls
        self._files = file_system
        self._clock = clock
        self._stamps = self._look()
        self.context = tls.server_context()

    async def watch(self, renew: Callable[[ssl.SSLContext], None]) -> None:
        """Look at the files again and again; call `renew` with each new context."""
        while True:
            await self._clock.sleep(stamps.CHECK_SECONDS)
            if await self._files.in_background(self._renew):
                renew(self.context)

    def _look(self) -> "stamps.Stamps":
        return stamps.stamps_of(self._files, [self._tls.key_store or ""])

    def _renew(self) -> bool:
        """Read a file that has changed; return True if it is used from now on."""
        current = self._look()
        if current == self._stamps:
            return False
        self._stamps = current
        try:
            context = self._tls.server_context()
            if self._tls.has_expired(self._clock.time_ms() / 1000):
                raise ConfigError(f"a certificate of {self._tls.key_store} has expired")
        except ConfigError as error:
            _log.error("coordination certificate not renewed, the former one stays error=%s", error)
            return False
        self.context = context
        _log.info("coordination certificate renewed file=%s", self._tls.key_store)
        return True


def options_of(snapshot: Snapshot) -> dict[str, str]:
    """Return the options that a broker sets, as text."""
    values = {name: snapshot[name] for name in (*OPTIONS, _CHECK)}
    return {name: str(value) for name, value in values.items() if value is not None}


def settings_of(options: Mapping[str, str]) -> dict[str, str]:
    """Return the options of TLS that are set, by the caller or in KAFKA_OPTS."""
    properties = system_properties(os.environ.get(JAVA_OPTIONS, ""))
    settings = {name: properties[key] for name, key in OPTIONS.items() if key in properties}
    if properties.get(_HOST_CHECK, "true").lower() == "false":
        settings[_CHECK] = ""
    return settings | {name: options[name] for name in (*OPTIONS, _CHECK) if name in options}


def tls_of(options: Mapping[str, str]) -> Tls | None:
    """Return how to encrypt; None for plain text. ConfigError if a file cannot be used."""
    settings = settings_of(options)
    if settings.get(ENABLE, "false").lower() != "true":
        _refuse_unused(settings)
        return None
    _refuse_unsupported()
    check = settings.get(_CHECK, "HTTPS")
    if check.upper() not in ("HTTPS", ""):
        raise ConfigError(f"{_CHECK}={check} is not known: use HTTPS, or an empty value")
    tls = Tls(
        settings.get(KEY_STORE),
        settings.get(_KEY_PASSWORD, ""),
        settings.get(TRUST_STORE),
        check != "",
        _kind(settings, KEY_STORE, "zookeeper.ssl.keystore.type"),
        _kind(settings, TRUST_STORE, "zookeeper.ssl.truststore.type"),
        settings.get("zookeeper.ssl.truststore.password", ""),
    )
    tls.context()
    return tls


def _kind(settings: Mapping[str, str], name: str, kind_name: str) -> str:
    path = settings.get(name, "")
    ending = path[path.rfind(".") :].lower() if "." in path else ""
    kind = settings.get(kind_name, "").upper() or _KINDS_BY_ENDING.get(ending, _PEM)
    if kind in files.JAVA_KINDS:
        raise ConfigError(
            f"{name}={path} is a Java key store, which cannot be read: convert it with "
            f"`{files.conversion(path)}`, and set {kind_name}=PKCS12"
        )
    if kind not in files.KINDS:
        raise ConfigError(f"{kind_name}={kind} is not known: use {' or '.join(files.KINDS)}")
    return kind


def _refuse_unused(settings: Mapping[str, str]) -> None:
    """Raise ConfigError if files are named, but connections are not encrypted."""
    named = [name for name in settings if name not in (ENABLE, SOCKET)]
    if named and ENABLE not in settings:
        raise ConfigError(
            f"The security option {named[0]} would have no effect: set {ENABLE}=true, or to false for "
            "plain text"
        )


def _refuse_unsupported() -> None:
    properties = system_properties(os.environ.get(JAVA_OPTIONS, ""))
    for name in properties:
        if name in _UNSUPPORTED:
            raise ConfigError(
                f"-D{name} in {JAVA_OPTIONS} would have no effect: Ottla cannot configure that. "
                "Remove it"
            )


def server_tls_of(
    options: Mapping[str, str], host: str, file_system: FileSystem, clock: Clock
) -> ServerTls | None:
    """Return how a broker encrypts the tree that it serves at a host; None for plain text.

    The key store is the same as for its own connections. Raises ConfigError if it cannot be used,
    and if other machines could reach the address without TLS.
    """
    tls = tls_of(options)
    if tls is None and exposure.is_loopback(host):
        return None
    if tls is None or tls.key_store is None or tls.trust_store is None:
        raise ConfigError(
            f"coordination.listener on {host} needs TLS, because other machines can reach the address or "
            f"{ENABLE}=true: set {ENABLE}=true, {KEY_STORE} and {TRUST_STORE} on all brokers, or listen "
            "on 127.0.0.1 in plain text"
        )
    return ServerTls(tls, file_system, clock)


def has_user(options: Mapping[str, str]) -> bool:
    """Return True if a session has a user: from a JAAS file, or from a certificate."""
    tls = tls_of(options)
    return login_of_environment() is not None or (tls is not None and tls.key_store is not None)
