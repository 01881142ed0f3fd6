"""The options of Kafka's clients that a command gets from a properties file: TLS and SASL.

librdkafka, Spark and the blocking connections each get them in their own form.
"""

from ottla.client.brokers import Brokers
from ottla.client.config.access import ClusterAccess
from ottla.client.config.connections import connection_options
from ottla.client.config.properties import parse_properties
from ottla.client.security.options import security_of, security_options
from ottla.tools.text_files import read_text


def configure(brokers: Brokers, path: str) -> None:
    """Connect to the brokers with the options of a file; before the first connection.

    Only options of connections have an effect. Raises ConfigError with the name of a wrong one.
    """
    options = connection_options(parse_properties(read_text(path), path, needs_values=False))
    if options.client_id is not None:
        brokers.client_id = options.client_id
    brokers.security = options.security
    brokers.settings = options.librdkafka


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
