"""TLS to a ZooKeeper: Apache Kafka's options `zookeeper.ssl.…`, or ZooKeeper's system properties.

An option of the caller is preferred to the system property in KAFKA_OPTS. Key stores are files in
PEM. Follows kafka.server.KafkaConfig and org.apache.zookeeper.common.ClientX509Util.

Not done:
    Certificates of the system's own authorities are trusted in addition to the trust store.
    Protocols, ciphers and the revocation of certificates cannot be configured.
"""

import os
import ssl
from collections.abc import Mapping
from typing import NamedTuple

from ottla.base.errors import ConfigError
from ottla.base.options import Snapshot
from ottla.cluster.zk.login import JAVA_OPTIONS, login_of_environment, system_properties

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
_JAVA_ENDINGS = (".jks", ".p12", ".pfx", ".bcfks")


class Tls(NamedTuple):
    """Files that encrypt a connection; the key store has the certificate of the client, if any."""

    key_store: str | None
    key_password: str
    trust_store: str | None
    checks_host: bool


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
        return None
    for name in (KEY_STORE, TRUST_STORE):
        kind = settings.get(name.replace("location", "type"), "PEM").upper()
        if kind != "PEM" or settings.get(name, "").endswith(_JAVA_ENDINGS):
            raise ConfigError(
                f"{name}={settings.get(name, '')} is a Java key store, which cannot be read: "
                "convert it to PEM with `keytool -importkeystore -deststoretype pkcs12` and "
                "`openssl pkcs12 -nodes`"
            )
    tls = Tls(
        settings.get(KEY_STORE),
        settings.get(_KEY_PASSWORD, ""),
        settings.get(TRUST_STORE),
        settings.get(_CHECK, "HTTPS").upper() == "HTTPS",
    )
    _check_files(tls)
    return tls


def has_user(options: Mapping[str, str]) -> bool:
    """Return True if a session has a user: that of a JAAS file, or of a certificate."""
    tls = tls_of(options)
    return login_of_environment() is not None or (tls is not None and tls.key_store is not None)


def _check_files(tls: Tls) -> None:
    context = ssl.create_default_context()
    name, path = TRUST_STORE, tls.trust_store
    try:
        if path is not None:
            context.load_verify_locations(path)
        name, path = KEY_STORE, tls.key_store
        if path is not None:
            context.load_cert_chain(path, password=tls.key_password)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise ConfigError(f"{name}={path} cannot be read ({reason}): name a file in PEM") from error
