"""The options of Kafka's clients that a command gets from a properties file: TLS and SASL.

Not done: `ottla doctor`, `streams run`, `streams reset`, pipelines, and the commands that run on
Spark connect in plain text.
"""

from ottla.base.errors import ConfigError
from ottla.client.brokers import Brokers
from ottla.client.config.properties import parse_properties
from ottla.client.security.options import security_of
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


def refuse_security(brokers: Brokers, purpose: str) -> None:
    """Raise ConfigError if the connections to the brokers have TLS or SASL."""
    if brokers.security is not None:
        raise ConfigError(f"{purpose} connects in plain text only: it cannot use TLS or SASL")
