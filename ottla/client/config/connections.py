"""The options of connections among those of Kafka's clients, for commands and the console."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from ottla.client.config.librdkafka import librdkafka_settings
from ottla.client.security.options import Security, security_of

# The options may be those of an application: its group, for one, is not that of a command.
_OF_CONNECTIONS = (
    "broker.address.", "client.", "connections.", "enable.sasl.", "enable.ssl.", "https.", "metadata.", "reconnect.",
    "sasl.", "security.", "socket.", "ssl.",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class ConnectionOptions:
    """How a program connects to a cluster: `security` for blocking connections (None for
    PLAINTEXT), and the same as options of librdkafka. `client_id` is None if no option sets it.
    """

    client_id: str | None
    security: Security | None = field(repr=False)
    librdkafka: Mapping[str, str] = field(repr=False)


def connection_options(options: Mapping[str, str]) -> ConnectionOptions:
    """Return the options of connections; others have no effect.

    Raises ConfigError with the name of an option that is wrong or missing, without its password.
    """
    return ConnectionOptions(
        options.get("client.id"),
        security_of(options),
        {
            name: value
            for name, value in librdkafka_settings(options).items()
            if name.startswith(_OF_CONNECTIONS)
        },
    )
