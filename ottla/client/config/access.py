"""How programs connect to a cluster: its address, and the options of TLS and SASL for it."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ottla.client.brokers import Brokers
from ottla.client.config.librdkafka import librdkafka_settings
from ottla.client.config.names import Role
from ottla.client.config.settings import read_settings
from ottla.client.security.options import Security, security_of

# The options may belong to an application: its group, for one, is not the command's.
_OF_CONNECTIONS = (
    "broker.address.", "client.", "connections.", "enable.sasl.", "enable.ssl.", "https.",
    "metadata.", "reconnect.", "sasl.", "security.", "socket.", "ssl.",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class ClusterAccess:
    """The bootstrap servers of a cluster, and the options of Kafka's clients for TLS and SASL.

    The options have secrets: they are not part of its text.
    """

    bootstrap: str
    options: Mapping[str, str] = field(default_factory=dict, repr=False)

    def brokers(
        self, *, client_id: str = "ottla", timeout_s: float = 15.0, is_proven: bool = False
    ) -> Brokers:
        """Return connections, opened on first use; ConfigError for a wrong option."""
        return Brokers(
            self.bootstrap,
            client_id=client_id,
            timeout_s=timeout_s,
            is_proven=is_proven,
            security=security_of(self.options),
        )

    def librdkafka_settings(self) -> dict[str, Any]:
        """Return the options under librdkafka's names; ConfigError for a wrong one."""
        config = {"bootstrap.servers": self.bootstrap, **self.options}
        return read_settings(Role.CONSUMER, config, {}).native


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
