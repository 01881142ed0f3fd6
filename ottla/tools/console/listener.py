"""The listener of a broker that the console beside it uses, and its options of a client there.

A listener without security, if there is one; otherwise one for which the broker's configuration has
what a client needs: certificates, or a user as Kafka's brokers name one for themselves.
"""

import re
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
from ottla.net.tls import TlsFiles
from ottla.security import jaas
from ottla.tools.text_files import read_text

_CERTIFICATE = re.compile(r"-----BEGIN CERTIFICATE-----.*?-----END CERTIFICATE-----", re.DOTALL)


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
    paths = [path for path in (files.chain, files.authorities) if path]
    certificates = [text for path in paths for text in _CERTIFICATE.findall(read_text(path))]
    options = {"ssl.truststore.type": "PEM", "ssl.truststore.certificates": "\n".join(certificates)}
    if files.client_auth != "none":
        options |= {"ssl.keystore.type": "PEM", "ssl.keystore.location": files.chain}
        if files.key_password:
            options["ssl.key.password"] = files.key_password
    if not files.checks_host:
        options["ssl.endpoint.identification.algorithm"] = ""
    return options


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
