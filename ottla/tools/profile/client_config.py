"""The options of Kafka's clients that a command gets from a properties file: TLS and SASL.

Not done: `ottla doctor`, `streams run`, `streams reset`, pipelines, and the commands that run on
Spark connect in plain text.
"""

from ottla.base.errors import ConfigError
from ottla.client.brokers import Brokers
from ottla.client.config.connections import connection_options
from ottla.client.config.properties import parse_properties
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


def refuse_security(brokers: Brokers, purpose: str) -> None:
    """Raise ConfigError if the connections to the brokers have TLS or SASL."""
    if brokers.security is not None:
        raise ConfigError(f"{purpose} connects in plain text only: it cannot use TLS or SASL")
