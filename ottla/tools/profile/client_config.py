"""The options of Kafka's clients that a command gets from a properties file: TLS and SASL.

librdkafka, Spark and the blocking connections each get them in their own form.
"""

from ottla.client.brokers import Brokers
from ottla.client.config.access import ClusterAccess
from ottla.client.config.properties import parse_properties
from ottla.client.security.options import security_of, security_options
from ottla.tools.scripts.console.settings import librdkafka_settings
from ottla.tools.text_files import read_text

# The file may be that of an application: its group, for one, is not that of a command.
_OF_CONNECTIONS = (
    "broker.address.", "client.", "connections.", "enable.ssl.", "metadata.", "reconnect.",
    "sasl.", "security.", "socket.", "ssl.",
)  # fmt: skip


def configure(brokers: Brokers, path: str) -> None:
    """Connect to the brokers with the options of a file; before the first connection.

    Only options of connections have an effect. Raises ConfigError with the name of a wrong one.
    """
    options = parse_properties(read_text(path), path, needs_values=False)
    brokers.client_id = options.get("client.id", brokers.client_id)
    brokers.security = security_of(options)
    brokers.settings = {
        name: value
        for name, value in librdkafka_settings(options).items()
        if name.startswith(_OF_CONNECTIONS)
    }


def access_with(bootstrap: str, path: str) -> ClusterAccess:
    """Return the access to a cluster with the options of a file, or without any if `path` is "".

    Raises ConfigError with the name of a wrong one.
    """
    if not path:
        return ClusterAccess(bootstrap)
    options = security_options(parse_properties(read_text(path), path, needs_values=False))
    security_of(options)
    return ClusterAccess(bootstrap, options)


def access_of(brokers: Brokers) -> ClusterAccess:
    """Return the access to a cluster with the options that `configure` has read."""
    return ClusterAccess(brokers.bootstrap, security_options(brokers.settings))
