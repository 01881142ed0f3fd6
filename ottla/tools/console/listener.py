"""The listener of a broker that the console beside it uses, and its options of a client there.

A listener without security, if there is one; otherwise one for which the broker's configuration has
what a client needs: certificates, or a user as Kafka's brokers name one for themselves.
"""

from collections.abc import Mapping
from typing import NamedTuple

from ottla.base.errors import ConfigError
from ottla.base.options import Snapshot
from ottla.cluster.options.option_tables import (
    Listener,
    inter_broker_listener,
    parse_broker_settings,
    parse_listeners,
)
from ottla.cluster.options.security_options import ListenerSecurity, security_of
from ottla.net.tls import PEM
from ottla.net.tls.files import TlsFiles
from ottla.net.tls.key_stores import certificates_pem, own_pem
from ottla.security import jaas


class ConsoleListener(NamedTuple):
    """The name of a listener, and the options of connections to it by Kafka's names."""

    name: str
    options: Mapping[str, str]


def choose(settings: Mapping[str, str]) -> ConsoleListener:
    """Return the listener for the console of a broker with these settings; ConfigError if none."""
    snapshot = parse_broker_settings(settings).snapshot
    listeners = parse_listeners(snapshot)
    between_brokers = inter_broker_listener(snapshot)
    for listener in sorted(
        listeners, key=lambda item: (item.protocol != "PLAINTEXT", item.name != between_brokers)
    ):
        options = _client_options(snapshot, listener)
        if options is not None:
            return ConsoleListener(listener.name, options)
    name = listeners[0].name
    mechanism = security_of(snapshot, listeners[0]).mechanisms[0].lower()
    raise ConfigError(
        f"The console has no user for the listener {name}: add a listener PLAINTEXT://127.0.0.1:PORT"
        f" to listeners, or set listener.name.{name.lower()}.{mechanism}.sasl.jaas.config to a login"
        ' module with username="…" and password="…"'
    )


def _client_options(snapshot: Snapshot, listener: Listener) -> dict[str, str] | None:
    """Return the options of a client; None if the configuration has no user for it."""
    if listener.protocol == "PLAINTEXT":
        return {}
    security = security_of(snapshot, listener)
    options = {"security.protocol": listener.protocol}
    if security.tls is not None:
        options |= _tls(security.tls)
    if security.mechanisms:
        user = _user(snapshot, listener, security)
        if user is None:
            return None
        options |= user
    return options


def _tls(files: TlsFiles) -> dict[str, str]:
    # Trusted are the brokers' own certificates, too: they may be signed by themselves.
    stores = [store for store in (files.own, files.trusted) if store is not None]
    options = {"ssl.truststore.type": PEM}
    try:
        options["ssl.truststore.certificates"] = "\n".join(map(certificates_pem, stores))
        if files.client_auth != "none":
            options |= _own_certificate(files)
    except (OSError, ValueError) as error:
        paths = " or ".join(store.path for store in stores)
        raise ConfigError(f"the certificates in {paths} cannot be read: {error}") from error
    if not files.checks_host:
        options["ssl.endpoint.identification.algorithm"] = ""
    return options


def _own_certificate(files: TlsFiles) -> dict[str, str]:
    if files.own.kind != PEM:
        key, chain = own_pem(files.own)
        return {
            "ssl.keystore.type": PEM,
            "ssl.keystore.key": key,
            "ssl.keystore.certificate.chain": chain,
        }
    options = {"ssl.keystore.type": PEM, "ssl.keystore.location": files.chain}
    return options | ({"ssl.key.password": files.key_password} if files.key_password else {})


def _user(
    snapshot: Snapshot, listener: Listener, security: ListenerSecurity
) -> dict[str, str] | None:
    for mechanism in security.mechanisms:
        name = f"listener.name.{listener.name.lower()}.{mechanism.lower()}.sasl.jaas.config"
        text = snapshot.explicit.get(name)
        if text is None:
            continue
        try:
            found = jaas.parse_module(str(text)).options
        except ValueError as error:
            raise ConfigError(f"{name} cannot be read: {error}") from error
        if {"username", "password"} <= found.keys():
            return {
                "sasl.mechanism": mechanism,
                "sasl.username": found["username"],
                "sasl.password": found["password"],
            }
    return None
