"""The address of a cluster, together with the options of TLS and SASL for it."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ottla.client.brokers import Brokers
from ottla.client.config.names import Role
from ottla.client.config.settings import read_settings
from ottla.client.security.options import security_of


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
