"""A connection to one cluster, which the methods of AdminClient share."""

from collections.abc import Mapping
from typing import Any

from ottla.client.brokers import Brokers
from ottla.client.config.names import Role
from ottla.client.config.settings import Config, read_settings
from ottla.client.errors import Closed
from ottla.client.security.options import security_of

_TIMEOUT_MS = 60_000


class Connected:
    """A connection to one cluster."""

    def __init__(self, config: Config, settings: Mapping[str, Any]) -> None:
        merged = read_settings(Role.ADMIN, config, settings).merged
        self._open: Brokers | None = Brokers(
            merged["bootstrap.servers"],
            timeout_s=float(merged.get("default.api.timeout.ms", _TIMEOUT_MS)) / 1000,
            client_id=str(merged.get("client.id", "ottla")),
            security=security_of(merged),
        )

    @property
    def _brokers(self) -> Brokers:
        if self._open is None:
            raise Closed("the admin client is closed: create a new one")
        return self._open

    def close(self) -> None:
        """Close every connection; idempotent."""
        if self._open is not None:
            self._open.close()
            self._open = None
